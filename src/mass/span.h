/* Private to this folder: symmetric matrices that are the identity outside of the span of some
 * vectors, and the few directions in which they differ from it. All Local. */
#pragma once

#include "emass/status.h"

#include <stdint.h>

/* The span of n_row vectors, in coordinates in which they are orthonormal. */
typedef struct em_vector_span {
    int64_t dim, n_row;
    double *row;            /* [n_row][dim]: the vectors */
    int64_t order;          /* the dimension of the span */
    double *vector, *value; /* eigenvectors and eigenvalues of the Gram matrix: the last `order`
                               rows of [n_row][n_row] */
    double *coordinate;     /* [order][n_row] of each vector */
} em_vector_span;

/* Computes all members but the first three. Errors: EM_NONFINITE if the span has dimension 0;
 * EM_EMEMORY. */
em_status em_span_find_frame(em_vector_span *span);

/* Computes rows `which` of vector [order][order] as orthonormal directions [count][dim]. Errors:
 * EM_EMEMORY. */
em_status em_span_directions(const em_vector_span *span, int64_t count, const int64_t *which,
                             const double *vector, double *direction);
void em_span_release(em_vector_span *span);

/* Finds the indices of the eigenvalues farthest from 1 among n ascending positive ones: at most
 * `most`, and none within [1 / ratio, ratio]. Returns their number. */
int64_t em_directions_choose(int64_t n, const double *value, double ratio, int64_t most,
                             int64_t *which);
