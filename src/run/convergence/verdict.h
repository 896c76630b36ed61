/*
 * The verdict on draws: one of three words, and the numbers that it depends on. A run prints it at
 * its end and stores it in its file; a summary of other files derives theirs by the same rule. All
 * Local.
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

/* What it rests on. */
typedef struct em_evidence {
    double r_hat, ess;             /* the worst; NaN: undefined */
    double r_hat_limit, ess_limit; /* that they are held to */
    bool nested;                   /* that R-hat is the one of superchains */
    bool undefined;                /* some number has no R-hat or ESS and is not constant */
    int64_t divergences;
    int64_t n_iteration; /* in which they were counted, of all chains */
    em_findings findings;
    double mode_search_log_mass; /* of a mode where no chain is, less that of the chains' own; NaN:
                                    none was found */
    const char *tempering;       /* a warning about the ladders of a tempered run: clauses that end
                                    with ", "; NULL: none */
    bool tempering_failed;       /* it is no warning but a failure */
    bool is_tempered; /* divergences are then a warning however many: what the steps at the target
                         do not reach comes from other rungs */
    const char *optimiser; /* what made the draws is no sampler but this; NULL: a sampler */
} em_evidence;

/* Divergences that are a warning: more of them say that a part of the posterior is missed. */
int64_t em_divergence_limit(int64_t n_iteration);

em_verdict em_verdict_of(const em_evidence *evidence);

/* "not converged: 2 modes (2 and 2 of 4 chains), worst R-hat 1.73 (limit 1.01), ...", up to the
 * number of divergences and the like. */
void em_verdict_word(const em_evidence *evidence, size_t bytes, char *text);
