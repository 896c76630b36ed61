/* The determinant of the Jacobian of a map, by central differences. */
#ifndef TESTS_SUPPORT_JACOBIAN_H
#define TESTS_SUPPORT_JACOBIAN_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { JACOBIAN_MOST = 8 };

typedef void phase_map(void *self, const double *z, double *out);

/* Differences of 1e-4 leave errors of order 1e-8 (their square) and 1e-12 (rounding). */
double jacobian(phase_map *map, void *self, int64_t n, const double *z);

#endif
