/*
 * The verdict on draws: one of three, and the numbers that it depends on. A run prints its verdict
 * at the end and stores it in its file. A summary of several files uses the same rule. All Local.
 */
#pragma once

#include "run/convergence/chain_statistics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum em_verdict {
    EM_CONVERGED,
    EM_CONVERGED_WITH_WARNINGS, /* a few divergences, low E-BFMI, saturated trees, or a mode of
                                   less mass where no chain is */
    EM_NOT_CONVERGED            /* R-hat, ESS, a chain that stood still, several modes, more
                                   divergences, or a mode of more mass where no chain is */
} em_verdict;

/* The numbers that the verdict depends on. */
typedef struct em_evidence {
    double r_hat, ess;             /* the worst; NaN: undefined */
    double r_hat_limit, ess_limit; /* their limits */
    bool nested;                   /* r_hat is the nested R-hat of superchains */
    bool undefined;                /* some number has no R-hat or ESS and is not constant */
    bool constant; /* every monitored number has one value in all draws of two chains or more */
    int64_t divergences;
    int64_t n_iteration; /* iterations of all chains in which divergences were counted */
    em_findings findings;
    double mode_search_log_mass; /* log mass of modes without chains minus that of modes with
                                    chains; NaN: no such mode was found */
    const char *tempering;       /* a warning about the ladders of a tempered run: clauses that end
                                    with ", "; NULL: none */
    bool tempering_failed;       /* `tempering` is a failure and not a warning */
    bool is_tempered;      /* more divergences are then a warning: copies from other rungs reach
                              regions that steps at the target do not reach */
    const char *optimiser; /* the kernel that made the draws is this optimiser; NULL: a sampler */
} em_evidence;

/* The largest number of divergences that is a warning. More of them show that a part of the
 * posterior is missed. */
int64_t em_divergence_limit(const em_evidence *evidence);

em_verdict em_verdict_of(const em_evidence *evidence);

/* Writes the verdict and its reasons: "not converged: 2 modes (2 and 2 of 4 chains), worst R-hat
 * 1.73 (limit 1.01), ...". */
void em_verdict_word(const em_evidence *evidence, size_t bytes, char *text);
