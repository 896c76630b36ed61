/*
 * A sink receives the stored draws of a run while it samples. The output file is one sink; a
 * program that uses the library may pass another (emass/emass.h).
 */
#pragma once

#include "emass/model.h"
#include "emass/report.h"
#include "emass/status.h"
#include "emass/visitor.h"

#include <stdbool.h>
#include <stdint.h>

EM_BEGIN_C

/* A group of variables, as in the output file. */
typedef struct em_draw_group {
    const char *name; /* posterior, log_likelihood, posterior_predictive, predictions, sample_stats,
                         unconstrained_posterior */
    int64_t n_variable;
    const em_variable *variable; /* [n_variable] */
    int64_t width; /* numbers of a draw: those of its variables in order, each row-major */
    bool sharded;  /* each of the ranks that compute the chain passes the numbers of its own
                    observations, and -0.0 for the others. The sum over these ranks is the complete
                    draw: adding -0.0 changes no number, not even the sign of a zero */
} em_draw_group;

/* The layout of the draws, known before the first one. */
typedef struct em_layout {
    int64_t n_chain;                    /* of the run */
    int64_t first_chain, n_local_chain; /* those of this rank, consecutive */
    int64_t shard; /* index among the ranks that compute the same chains. All of them get the same
                      draws, except in groups that are `sharded` */
    int64_t n_draw, n_warmup_draw; /* of each chain, at most; n_warmup_draw 0: draws of warmup are
                                      not stored (output.save_warmup) */
    int64_t n_group;
    const em_draw_group *group; /* [n_group], posterior first */
} em_layout;

/* One draw of one chain. Borrowed for the call. */
typedef struct em_stored_draw {
    int64_t chain; /* from 0 */
    int64_t index; /* index in warmup or in sampling, from 0. With draws: auto a long run thins its
                      draws: index + 1 is then a multiple of 2, later of 4, and so on... */
    int64_t iteration; /* of the chain, from 0, with warmup counted */
    bool in_warmup;
    const double *const *group; /* [layout.n_group]: pointers to `width` numbers each */
} em_stored_draw;

/*
 * A sink. Every function is OPTIONAL and gets `state`. All ranks of the run call the Collective
 * ones at the same time, and may return different statuses: if one rank fails, all do. A negative
 * status, with a message (em_fail), ends the run.
 */
typedef struct em_sink {
    void *state;
    /* Called before the first draw, and again if a run that was to be resumed starts from the
     * beginning instead. `layout` stays valid until the run is destroyed. Collective. */
    em_status (*begin)(void *state, const em_layout *layout);
    /* Called for each stored draw of each chain of this rank, chain by chain within an iteration.
     * Local. */
    em_status (*take)(void *state, const em_stored_draw *draw);
    /* Called at planned points, when all ranks have passed the draws of the same iterations.
     * Collective. */
    em_status (*flush)(void *state);
    /* Passes the state of the sink to a visitor, which saves it in a checkpoint or, when a run is
     * resumed, restores it; earlier draws are not passed to `take` again. All ranks set this
     * function or none. Collective. */
    em_status (*visit)(void *state, const em_visitor *visitor);
    /* Called after the last draw. Collective. */
    em_status (*finish)(void *state, const em_report *report);
} em_sink;

EM_END_C
