/* Random numbers from the distributions of responses, for predictions in reported draws.
 */
#pragma once

#include "emass/model.h"

#include <stdint.h>

/* The random numbers of one observation in a draw, used one after the other. Each observation has
 * EM_VARIATES of them, more than any of these functions has been observed to use. */
enum { EM_VARIATES = 256 };

typedef struct em_variate {
    const em_draw *draw;
    uint64_t next;
} em_variate;

double em_variate_uniform(em_variate *v); /* in (0, 1). Local. */
double em_variate_normal(em_variate *v);  /* standard. Local. */

/* Gamma with this shape, of scale 1: Marsaglia and Tsang (2000). Local. */
double em_variate_gamma(em_variate *v, double shape);

/* Poisson: by inversion below a mean of 10, else by Hormann's (1993) transformed rejection, PTRS.
 * Local. */
double em_variate_poisson(em_variate *v, double mean);
