/* Gradients in the coordinates of a map of non-centred parameters, by central differences. */
#ifndef TESTS_SUPPORT_MAPPED_GRADIENT_H
#define TESTS_SUPPORT_MAPPED_GRADIENT_H

#include "posterior/noncentring.h"

/* The log density of x, and its gradient. */
typedef double mapped_law(const double *x, double *gradient);

/* The log density of z. */
double mapped_density(const em_noncentring *map, mapped_law *law, const double *z);

/* At z, em_noncentring_pull has to give the derivatives of the log density of z, to within `pulled`
 * times size + |derivative|; and em_noncentring_push those of x, to within `pushed` times size +
 * |derivative|. */
void check_mapped_gradient(const em_noncentring *map, mapped_law *law, const double *z, double size,
                           double pulled, double pushed);

#endif
