/* The progress of a run, and its results. */
#pragma once

#include "emass/model.h"

#include <stdbool.h>
#include <stdint.h>

EM_BEGIN_C

/* The result of a convergence check; the same on all ranks. Checks before the end stop at the first
 * number that misses the limits; without a stop rule they use the parameters alone. `r_hat` and
 * `ess` are then bounds: other numbers may be worse. */
typedef struct em_convergence {
    int64_t n_draw; /* of each chain */
    bool thorough;  /* all monitored numbers were used: no bounds */
    double r_hat;   /* the worst of the monitored numbers; NaN: none defined yet */
    double ess;     /* the smallest bulk or tail ESS; NaN likewise */
    bool met;       /* the thresholds hold for the numbers used */
    bool stop;      /* they held in `consecutive` checks in a row, and the config has a stop rule */
} em_convergence;

/* Seconds that this rank spent, by activity. */
typedef struct em_seconds {
    double total, sampling, exchange, m_step, diagnostics, writing;
    double checkpoint; /* the longest one */
    double earlier;    /* the total of all earlier starts of the run (resume); 0: not known */
} em_seconds;

/* Failed evaluations of a simulator, each of which was a rejection. */
typedef struct em_failed_evaluations {
    int64_t count, total; /* failures; evaluations in all, negative: not known */
    char first[256];      /* message of the first one on this rank since the last start; "": none */
    const char *list;     /* the first ones of each chain, a JSON list; NULL: none. Borrowed */
} em_failed_evaluations;

typedef struct em_report {
    int64_t n_chain;     /* of the run */
    int64_t done, total; /* iterations of each chain: done, and in all (fewer once warmup ends) */
    int64_t before;      /* those of `done` that earlier starts of the run made (resume) */
    int64_t warmup;      /* iterations of warmup; until it has ended, the largest possible number */
    int64_t n_draw;      /* draws of sampling stored of each chain */
    bool finished;       /* the run is complete, and the members below are final */
    bool was_finished;   /* resume: the output was complete before, and nothing was done; the
                            members below are then not set */
    em_convergence convergence;    /* at the last check (stop.check_every) */
    double r_hat_limit, ess_limit; /* its thresholds */
    int64_t divergences;           /* of all chains in sampling, up to that check */
    em_seconds seconds;
    /* The following members are set when the run has finished. */
    double e_bfmi;               /* the smallest of all chains; NaN: the sampler has no energy */
    const char *optimiser;       /* a kernel of the run that optimises, so that draws are not of the
                                    posterior; NULL: none */
    int64_t redrawn_starts;      /* starts of chains that were drawn again */
    double mode_search_log_mass; /* log of the ratio of the Laplace mass of modes without draws
                                    nearby to that of modes with draws nearby; NaN: no such mode */
    bool converged;    /* convergence.met, no chain stood still, all chains are in one mode, at most
                          one divergence in 1000 draws, no other mode has more mass, and no optimiser;
                          also true with warnings */
    char verdict[512]; /* "converged: ...", "converged with warnings: ..." or "not converged:
                          ...", as stored in the file */
    char tempering[256]; /* of a tempered run: log evidence, round trips; else "" */
    char learned[512];   /* cost and results of warmup; "" if there are none */
    char note[512];      /* a note about the adaptation; "" if there is none */
    int64_t evaluations; /* (chain, gradient) pairs of this rank */
    int64_t unreported;  /* draws of sampling whose report failed */
    char failure[256];   /* message of the first one on this rank; "": none */
    em_failed_evaluations failed_evaluations; /* of a simulator, warmup included */
    em_rejections rejections; /* in sampling, of all chains since the last start; the message is the
                                 first one on this rank */
    const char *ended_by;     /* what ended a run with draws: auto: "the stop rule" or the limit
                                 "stop.max_draws"; NULL: the number of draws was given */
    double rate; /* expected iterations of each chain per second in the rest of the run; NaN: not
                    known, for example while warmup uses more and more of the data */
} em_report;

EM_END_C
