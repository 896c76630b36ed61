/* The recorder passes each stored draw to the sinks (emass/sink.h): the reported variables that the
 * config selects, the statistics of the sampler, and the positions. */
#pragma once

#include "emass/sink.h"
#include "par/grid.h"
#include "run/config/config.h"
#include "run/config/run_plan.h"
#include "run/convergence/convergence_monitor.h"

typedef struct em_recorder em_recorder;

/* The sizes of a stored draw with the variables that the config selects. Local. Errors: EM_ECONFIG
 * if the model does not have a selected variable, or none is of the posterior. */
em_status em_recorder_width(const em_config *config, const em_model *model, em_width *width);

/* `config`, `model` and `plan` outlive it. Freed by em_release_owner. Local. Errors:
 * EM_EMEMORY. */
em_status em_recorder_create(const em_config *config, const em_grid *grid, em_model *model,
                             const em_plan *plan, em_recorder **out);

/* The groups and variables of its draws. Local. */
const em_layout *em_recorder_layout(const em_recorder *recorder);

/* Adds a sink, which is copied. Sinks are called in the order in which they were added. `agreed`:
 * its statuses are the same on all ranks. Local. */
void em_recorder_add(em_recorder *recorder, const em_sink *sink, bool agreed);

/* Removes the sink whose state this is. Local. */
void em_recorder_remove(em_recorder *recorder, const void *state);

/* Records iteration `iteration` (from 0) from the block, and from those of its samplers. An
 * iteration that is stored goes to the sinks and, in sampling, to the monitor.
 * unreported[n_local_chain] counts the draws of sampling whose report failed recoverably. Local.
 * Errors: those of the model's report and of the sinks. */
em_status em_recorder_take(em_recorder *recorder, const em_block *block,
                           const em_block *const *kernels, int64_t iteration, em_monitor *monitor,
                           double *unreported);

/* Draws from the prior, and calls the model's report for the draw, which fills the layout's groups
 * posterior and posterior_predictive. The next report overwrites them. `draw` numbers the draw;
 * `theta` [dim] is work space. *failed: the report is not complete. Local. Errors: fatal ones of
 * the model. */
em_status em_recorder_draw_prior(em_recorder *recorder, em_draw draw, double *theta, bool *failed);

/* The numbers of group `i` of the layout from the last report. Local. */
const double *em_recorder_values(const em_recorder *recorder, int64_t i);

/* The other calls to the sinks: begin, flush, visit and finish. Collective. Errors, agreed: those
 * of the sinks. */
em_status em_recorder_begin(em_recorder *recorder); /* only sinks added with `agreed` false */
em_status em_recorder_flush(em_recorder *recorder);
em_status em_recorder_visit(em_recorder *recorder, const em_visitor *visitor);
em_status em_recorder_finish(em_recorder *recorder, const em_report *report);

/* The message of the first failed report on this rank; "": none. Local. */
const char *em_recorder_failure(const em_recorder *recorder);
