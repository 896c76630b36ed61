/*
 * How heavy the tails of draws are. A generalised Pareto distribution is fitted to each tail, and
 * the larger of both shapes k is the result: the diagnostic of Vehtari, Simpson, Gelman, Yao and
 * Gabry (2024) for the mean of any number, and pareto_khat of the R package posterior. The mean
 * does not exist for k >= 1, and the variance does not for k >= 1/2. Above em_psis_good_k (psis.h)
 * few extreme draws determine mean, standard deviation and their Monte Carlo errors. Quantiles are
 * not affected. Local.
 */
#pragma once

#include "emass/status.h"

#include <stdint.h>

/*
 * Writes the shape for n finite draws with this mean and standard deviation to *shape. It is 0
 * without a fit if no draw is farther than 10 standard deviations from the mean, since a tail so
 * heavy has farther ones; and if there are too few draws. Errors: EM_EMEMORY.
 */
em_status em_tail_shape(int64_t n, const double *draws, double mean, double sd, double *shape);
