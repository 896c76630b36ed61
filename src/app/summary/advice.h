/* Advice under a summary: what is wrong with the draws, and what to do about it. */
#pragma once

#include "app/summary/evidence.h"

#include <stdio.h>

/*
 * Prints a sentence for each that is true, the gravest first: file incomplete, optimiser, draws not
 * finite, chains that stood still, several modes, numbers that may be improper, a mode elsewhere,
 * R-hat and ESS beside their limits, diagnostics undefined, divergences, E-BFMI, what warmup did to
 * chains, saturated trees. The judge has concluded. Local. Errors: EM_EDATA, EM_EIO, EM_EMEMORY.
 */
em_status em_advise(em_judge *judge, const em_summary_table *table, const em_judge_columns *at,
                    FILE *out);

/* The sentences on modes alone: how many chains are in each, where they are, whether they are one
 * with its labels exchanged, how their log densities differ. Local. Errors: the same. */
em_status em_advise_on_modes(em_judge *judge, const em_summary_table *table,
                             const em_judge_columns *at, FILE *out);

/*
 * Prints a sentence for each that is true: the posterior mean of a coefficient is more than three
 * standard deviations of its normal prior from the prior's centre; residuals have another standard
 * deviation, by a factor of two, than the sigma that is fixed. `reader` is of the posterior, with
 * log_density [n_draw] of all chains, NULL: not known. Nothing for files that say nothing of
 * priors. Local. Errors: EM_EDATA, EM_EIO, EM_EMEMORY.
 */
em_status em_advise_on_priors(em_reader *reader, int64_t n_draw, const double *log_density,
                              FILE *out);
