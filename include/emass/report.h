/* The progress of a run, and its results. */
#pragma once

#include "emass/model.h"

#include <stdbool.h>
#include <stdint.h>

EM_BEGIN_C

/* The state of convergence at a check; the same on all ranks. Without a stop rule a check before
 * the end looks at the parameters alone. */
typedef struct em_convergence {
    int64_t n_draw; /* of each chain */
    bool thorough;  /* all numbers were looked at */
    double r_hat;   /* the worst of the monitored numbers; NaN: none defined yet */
    double ess;     /* the smallest bulk or tail ESS; NaN likewise */
    bool met;       /* the thresholds hold for the numbers looked at */
    bool stop;      /* they held `consecutive` times in a row, and a stop rule was asked for */
} em_convergence;

/* Seconds of this rank, by what they were spent on. */
typedef struct em_seconds {
    double total, sampling, exchange, m_step, diagnostics, writing;
    double checkpoint; /* the longest one */
} em_seconds;

/* Evaluations of a simulator that failed, each of which was a rejection. */
typedef struct em_failed_evaluations {
    int64_t count;
    char first[256];  /* why, the first on this rank since the last start; "": none did */
    const char *list; /* the first of each chain, a list in JSON; NULL: none. Borrowed */
} em_failed_evaluations;

typedef struct em_report {
    int64_t n_chain;     /* of the run */
    int64_t done, total; /* iterations of each chain: done, and in all (fewer once warmup ends) */
    int64_t before;      /* of those done, before this start of the run (resume) */
    int64_t warmup;      /* those of warmup; at most, until it has ended */
    int64_t n_draw;      /* draws of sampling stored of each chain */
    bool finished;       /* nothing is left to do: what follows is the last word, unless */
    bool was_finished;   /* resume: the output was complete already, and nothing was done */
    em_convergence convergence;    /* at the last check (stop.check_every) */
    double r_hat_limit, ess_limit; /* that it is held to */
    int64_t divergences;           /* of all chains in sampling, by then */
    em_seconds seconds;
    /* From here on once the run has finished. */
    double e_bfmi;          /* the smallest of a chain; NaN: the sampler has no energy */
    const char *optimiser;  /* a kernel of the run that is no sampler, so that draws are not of the
                               posterior; NULL: none */
    int64_t redrawn_starts; /* draws of chains' starts that were replaced by another draw */
    double mode_search_log_mass; /* log of the Laplace mass of the modes that no draw is near to,
                                    over that of the modes that draws are near to; NaN: none */
    bool converged;      /* convergence.met, no chain that stood still, chains in one mode, at most
                            one divergence in 1000 draws, no mode of more mass elsewhere, and no
                            optimiser; with warnings too */
    char verdict[512];   /* "converged: ...", "converged with warnings: ..." or "not converged:
                            ...", as stored in the file */
    char tempering[256]; /* of a tempered run: log evidence, round trips; else "" */
    char learned[512];   /* what warmup took and found; "" where there is nothing to say */
    char note[512];      /* what the user should know about the adaptation; "" where nothing */
    int64_t evaluations; /* (chain, gradient) pairs of this rank */
    int64_t unreported;  /* draws of sampling whose report failed */
    char failure[256];   /* why, the first on this rank; "": none did here */
    em_failed_evaluations failed_evaluations; /* of a simulator, in warmup too */
    em_rejections rejections; /* in sampling, of all chains since the last start; why, the first on
                                 this rank */
    const char *ended_by;     /* what ended a run with draws: auto: "the stop rule", or the limit,
                                 "stop.max_draws"; NULL: the run has another number of draws */
} em_report;

EM_END_C
