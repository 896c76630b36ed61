/* What a regression's priors, or a fixed sigma, have to do with where its posterior is. */
#ifndef EM_APP_SUMMARY_ADVICE_PRIOR_H
#define EM_APP_SUMMARY_ADVICE_PRIOR_H

#include "emass/status.h"
#include "io/draws/reader.h"

#include <stdio.h>

/*
 * Prints a sentence for each that is true: the posterior mean of a coefficient is more than three
 * standard deviations of its normal prior from the prior's centre; residuals have another standard
 * deviation, by a factor of two, than the sigma that is fixed. `reader` is of the posterior, with
 * log_density [n_draw] of all chains, NULL: not known. Nothing for files that say nothing of
 * priors. Local. Errors: EM_EDATA, EM_EIO, EM_EMEMORY.
 */
em_status em_advise_on_priors(em_reader *reader, int64_t n_draw, const double *log_density,
                              FILE *out);

#endif
