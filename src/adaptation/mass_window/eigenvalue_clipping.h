/* Guards that keep an M-step from ruining the mass (the papers' criterion needs them). Local. */
#ifndef EM_ADAPTATION_MASS_WINDOW_EIGENVALUE_CLIPPING_H
#define EM_ADAPTATION_MASS_WINDOW_EIGENVALUE_CLIPPING_H

#include "mass/mass.h"

/*
 * Brings the numbers of a new inverse mass (in place) near enough to what is known, part by part:
 * its eigenvalues relative to the current one, of numbers `current`, within [1/4, 4], and its own
 * within [1e-3, 1e3], that is, relative to the identity that warmup started from. EM_NONFINITE when
 * it is not positive definite to begin with; EM_EMEMORY.
 */
em_status em_clip_eigenvalues(const em_mass_form *form, const double *current, double *number);

#endif
