/* Advice under a summary: what is wrong with the draws, and what to do about it. */
#pragma once

#include "app/summary/evidence.h"

#include <stdio.h>

/*
 * Prints a sentence for each problem that the file has, the gravest first: an incomplete file, an
 * optimiser, draws that are not finite, constant chains, several modes, a posterior that may be
 * improper, a mode that no chain visited, R-hat and ESS outside their limits, undefined
 * diagnostics, heavy tails, divergences, low E-BFMI, chains that warmup reinitialised, saturated
 * trees. Call em_judge_conclude first. Local. Errors: EM_EDATA, EM_EIO, EM_EMEMORY.
 */
em_status em_advise(em_judge *judge, const em_summary_table *table, FILE *out);

/* Prints only the sentences on modes: how many chains are in each, where the modes are, whether
 * they differ by an exchange of labels, and how their log densities differ. Local. Errors: the
 * same. */
em_status em_advise_on_modes(em_judge *judge, const em_summary_table *table, FILE *out);

/*
 * Prints a sentence for each of these problems: the posterior mean of a coefficient is more than
 * three prior standard deviations from the centre of its normal prior; the standard deviation of
 * the residuals differs from a fixed sigma by a factor of two. `reader` reads the posterior.
 * log_density [n_draw] is that of all chains; NULL: not known. Prints nothing if the file does not
 * store the priors. Local. Errors: EM_EDATA, EM_EIO, EM_EMEMORY.
 */
em_status em_advise_on_priors(em_reader *reader, int64_t n_draw, const double *log_density,
                              FILE *out);
