/*
 * The papers' rule for S_count, the number of samples of an E-step (Roychowdhury & Parthasarathy,
 * section 3.2; EQUATIONS 14). Momenta are subsampled at random iterations of the E-step. The M-step
 * changes the mean of the test vector W p. When the new mean lies within the Monte Carlo confidence
 * interval of the old one, S_count grows by S_count / S_I. The other half of the test vector is the
 * gradient. It does not depend on W and always lies within its interval, so it counts in the
 * Bonferroni correction only.
 */
#pragma once

#include "adaptation/mass_window/mass_options.h"
#include "mass/mass.h"

#include <stdbool.h>

/* Accumulators of one chain: count, sum p, sum Wp, sum (Wp)^2. */
static inline int64_t em_subsampling_interval_size(int64_t dim)
{
    return 1 + 3 * dim;
}

void em_subsampling_interval_observe(int64_t dim, const double *momentum, const double *velocity,
                                     double *accumulator);

/* Whether epoch `epoch` (from 1) of E-step number `m_step` is subsampled; the same for all chains.
 * Local. */
bool em_subsampling_interval_takes(const em_mass_options *options, uint64_t seed, int64_t m_step,
                                   int64_t epoch);

/* Whether S_count grows: every component of mean W_new p lies within the interval around mean W p.
 * `scratch`: 2 em_stride(dim) doubles, 64-byte aligned. Local. */
bool em_subsampling_interval_holds(const em_mass_options *options, const em_mass *updated,
                                   const double *accumulator, double *scratch);
