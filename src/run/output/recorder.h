/* What is stored of a draw, and handed to where it goes (emass/sink.h): the variables that the
 * config selects of what the model reports, the statistics of the sampler, the positions. */
#ifndef EM_RUN_OUTPUT_RECORDER_H
#define EM_RUN_OUTPUT_RECORDER_H

#include "emass/sink.h"
#include "par/grid.h"
#include "run/config/config.h"
#include "run/config/run_plan.h"
#include "run/convergence/convergence_monitor.h"

typedef struct em_recorder em_recorder;

/* How many numbers of a draw are stored for the variables that the config selects: in all, and in
 * the posterior. Local. Errors: EM_ECONFIG, a selected variable that the model does not have, or
 * none of the posterior. */
em_status em_recorder_width(const em_config *config, const em_model *model, em_width *width);

/* `config`, `model` and `plan` outlive it. Local. Errors: EM_EMEMORY. */
em_status em_recorder_create(const em_config *config, const em_grid *grid, em_model *model,
                             const em_plan *plan, em_recorder **out);
void em_recorder_destroy(em_recorder **recorder); /* NULL-safe. Local. */

/* What its draws are made of. Local. */
const em_layout *em_recorder_layout(const em_recorder *recorder);

/* Hands draws to this sink too, which is copied, after those that came before. `agreed`: its
 * statuses are. Local. */
void em_recorder_add(em_recorder *recorder, const em_sink *sink, bool agreed);

/* Takes what iteration `iteration` (from 0) left in the block, and in those of its samplers: where
 * it is a stored one, to the sinks and, in sampling, to the monitor; counts in
 * unreported[n_local_chain] the draws of sampling whose report failed recoverably. Local. Errors:
 * what the model's report or a sink fails with. */
em_status em_recorder_take(em_recorder *recorder, const em_block *block,
                           const em_block *const *kernels, int64_t iteration, em_monitor *monitor,
                           double *unreported);

/* What a model reports of a draw from its prior, in the values of the layout's groups: posterior,
 * posterior_predictive, which are those of the next report from then on. `draw` counts it; `theta`
 * [dim] is work space. *failed: its report is not whole. Local. Errors: fatal ones of the model. */
em_status em_recorder_draw_prior(em_recorder *recorder, em_draw draw, double *theta, bool *failed);

/* The numbers of group `i` of the layout, of the last report. Local. */
const double *em_recorder_values(const em_recorder *recorder, int64_t i);

/* The other calls to the sinks. Collective. Errors, agreed: what a sink fails with. */
em_status em_recorder_begin(em_recorder *recorder); /* those whose statuses are not agreed */
em_status em_recorder_flush(em_recorder *recorder);
em_status em_recorder_visit(em_recorder *recorder, const em_visitor *visitor);
em_status em_recorder_finish(em_recorder *recorder, const em_report *report);

/* Why a report failed, the first one on this rank; "": none did. Local. */
const char *em_recorder_failure(const em_recorder *recorder);

#endif
