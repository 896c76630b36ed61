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

/* Stores the directions in which a matrix differs most from the identity, from its eigenvectors,
 * the rows of vector [order][order], and its positive eigenvalues, ascending: at most `most`, and
 * none with a value within [1 / ratio, ratio]. values [most] and then the orthonormal directions
 * [most] [dim] are as after em_directions_clear. Errors: EM_EMEMORY. */
em_status em_span_store_directions(const em_vector_span *span, const double *vector,
                                   const double *value, double ratio, int64_t most, double *values);
void em_span_release(em_vector_span *span);

/* No directions, in the numbers of a mass of low rank: values [most] are 1, and the directions
 * [most][dim] behind them 0. */
void em_directions_clear(int64_t dim, int64_t most, double *values);
