/* Guards that keep an M-step from ruining the mass (the papers' criterion needs them). Local. */
#ifndef EM_EXCHANGE_GUARD_H
#define EM_EXCHANGE_GUARD_H

#include "mass/mass.h"

/*
 * Brings a new inverse mass (em_mass_size elements, in place) near enough to what is known: its
 * eigenvalues relative to the current one within [1/4, 4], and its own within [1e-3, 1e3], that is,
 * relative to the identity that warmup started from. EM_NONFINITE when it is not a positive
 * definite matrix to begin with; EM_EMEMORY.
 */
em_status em_guard(const em_mass *current, double *inverse);

/* The smallest and largest eigenvalue of an inverse mass. Errors: EM_EMEMORY, EM_ENUMERIC. */
em_status em_inverse_range(em_structure structure, int64_t dim, const double *inverse,
                           double *smallest, double *largest);

#endif
