/* What a run leaves: which numbers of a draw are stored, and everything else that goes into the
 * file. Collective functions return agreed statuses. */
#ifndef EM_RUN_OUTPUT_H
#define EM_RUN_OUTPUT_H

#include "exchange/adapt.h"
#include "par/grid.h"
#include "run/config.h"
#include "run/created.h"
#include "run/monitor.h"
#include "run/plan.h"

typedef struct em_output em_output;

/* The facts of a finished run that are stored as attributes. */
typedef struct em_verdict {
    const char *text; /* one sentence */
    bool converged;
    em_convergence convergence;
    double r_hat_limit, ess_limit; /* that it was held to */
    double e_bfmi;                 /* the smallest of a chain; NaN: there is none */
    int64_t divergences, unreported;
    double seconds; /* of sampling, warmup included */
} em_verdict;

/* How many numbers of a draw are stored for the variables that the config selects: in all, and in
 * the posterior. Local. Errors: EM_ECONFIG, a selected variable that the model does not have, or
 * none of the posterior. */
em_status em_output_width(const em_config *config, const em_model *model, em_width *width);

/* Writes the file `path` anew with all its groups, constant data and attributes; on failure it
 * leaves none. Collective. Errors: EM_EIO, EM_EMEMORY. */
em_status em_output_create(const em_config *config, const char *path, const em_grid *grid,
                           em_model *model, const em_plan *plan, const em_created *created,
                           em_output **out);

/* Takes what iteration `iteration` (from 0) left in the block: where it is a stored one, into the
 * buffer and, in sampling, to the monitor; counts in unreported[n_local_chain] the draws of
 * sampling whose report failed recoverably. Local. Errors: what the model's report fails with. */
em_status em_output_take(em_output *output, const em_block *block, int64_t iteration,
                         em_monitor *monitor, double *unreported);

/* Warmup has ended, as the plan now says. Local. */
void em_output_end_warmup(em_output *output, const em_plan *plan);

/* Why a report failed, the first one on this rank; "": none did. Local. */
const char *em_output_failure(const em_output *output);

/* Writes what the buffer holds, if anything; the ranks must have taken the same iterations.
 * Collective. */
em_status em_output_flush(em_output *output);

/* Forces what was written to the disk. Collective. */
em_status em_output_sync(em_output *output);

/* True when the file holds the draws of an output's groups up to `done` iterations, of all
 * chains. Collective. Errors: EM_EIO, EM_EMEMORY. */
em_status em_output_can_restore(const em_config *config, const em_grid *grid, const em_model *model,
                                const em_plan *plan, const char *path, int64_t done, bool *can);

/* Copies the draws up to `done` iterations from another file of the same run, and shows those of
 * sampling to the monitor. Collective. Errors: EM_EIO, EM_EDATA, EM_EMEMORY. */
em_status em_output_restore(em_output *output, const char *path, int64_t done, em_monitor *monitor);

/* Writes what was learned and the verdict, cuts the draws to `n_draw`, closes the file. Collective.
 */
em_status em_output_finish(em_output *output, const em_adapt *adapt, int64_t n_draw,
                           const em_verdict *verdict);

/* NULL-safe; a file not finished is left as it is, marked incomplete. Collective. */
void em_output_destroy(em_output **output);

#endif
