/* Eigenvalue clipping of a new inverse mass. The papers' momentum criterion needs it: a single poor
 * estimate could otherwise make the mass unusable. Local. */
#pragma once

#include "mass/mass.h"

/*
 * Clips the eigenvalues of a new inverse mass in place, block by block. Relative to the current
 * inverse mass, of numbers `current`, they end within [1/4, 4]. Relative to the identity, which
 * warmup started from, they end within [1e-3, 1e3]. Errors: EM_NONFINITE when it is not positive
 * definite; EM_EMEMORY.
 */
em_status em_clip_eigenvalues(const em_mass_form *form, const double *current, double *number);
