/*
 * A sink receives the stored draws of a run as they are made. The file that a run writes is one
 * sink; a program that uses the library may give another (emass/emass.h).
 */
#pragma once

#include "emass/model.h"
#include "emass/report.h"
#include "emass/status.h"
#include "emass/visitor.h"

#include <stdbool.h>
#include <stdint.h>

EM_BEGIN_C

/* A group of variables, as the output file has it. */
typedef struct em_draw_group {
    const char *name; /* posterior, log_likelihood, posterior_predictive, predictions, sample_stats,
                         unconstrained_posterior */
    int64_t n_variable;
    const em_variable *variable; /* [n_variable] */
    int64_t width;               /* numbers of a draw: those of its variables, one after the other,
                                    each row-major */
    bool dealt; /* each of the ranks that have the chain has the numbers of its own observations,
                   and -0.0 for those of others: the whole is their sum */
} em_draw_group;

/* What a run is going to hand over, known before its first draw. */
typedef struct em_layout {
    int64_t n_chain;                    /* of the run */
    int64_t first_chain, n_local_chain; /* those of this rank: first_chain + 0, 1, ... */
    int64_t shard;                      /* of the ranks that have the same chains, which share the
                                           data, all are handed the same draws, but for groups that are dealt */
    int64_t n_draw, n_warmup_draw;      /* of each chain, at most; n_warmup_draw 0: those of warmup
                                           are not stored (output.save_warmup) */
    int64_t n_group;
    const em_draw_group *group; /* [n_group], posterior first */
} em_layout;

/* One draw of one chain. Borrowed for the call. */
typedef struct em_stored_draw {
    int64_t chain;     /* from 0 */
    int64_t index;     /* of its phase, from 0. With draws: auto draws are thinned the longer the
                          run takes, and index + 1 becomes a multiple of 2, then of 4, ... */
    int64_t iteration; /* of the chain, from 0; warmup is counted too */
    bool in_warmup;
    const double *const *group; /* [layout.n_group]: pointers to `width` numbers each */
} em_stored_draw;

/*
 * A sink: every function is OPTIONAL and is given `state`. Those that are Collective are called by
 * all ranks of the run at the same time, and their status need not be agreed: when one rank fails,
 * all do. A negative status, with a message (em_fail), ends the run.
 */
typedef struct em_sink {
    void *state;
    /* Before the first draw; once more when a run that was to go on starts anew. `layout` stays
     * until the run is destroyed. Collective. */
    em_status (*begin)(void *state, const em_layout *layout);
    /* For each stored draw of each chain of this rank, chain by chain within an iteration. Local.
     */
    em_status (*take)(void *state, const em_stored_draw *draw);
    /* At planned points: all ranks have handed over the same iterations. Collective. */
    em_status (*flush)(void *state);
    /* Shows what the sink has made of the draws, to be saved with a checkpoint, or replaced by what
     * an earlier one has saved when a run goes on: the draws before it are not handed over again.
     * Given on all ranks or on none. Collective. */
    em_status (*visit)(void *state, const em_visitor *visitor);
    /* After the last draw. Collective. */
    em_status (*finish)(void *state, const em_report *report);
} em_sink;

EM_END_C
