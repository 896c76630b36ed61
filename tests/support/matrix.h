/* Small square matrices, in which tests write down laws. */
#ifndef TESTS_SUPPORT_MATRIX_H
#define TESTS_SUPPORT_MATRIX_H

#include "mass/mass.h"
#include "math/linalg.h"
#include "support/law.h"

typedef struct matrix {
    int64_t n;
    double at[LAW_MOST_DIM][LAW_MOST_DIM];
} matrix;

/* out += scale A x */
void add_product(double scale, const matrix *a, const double *x, double *out);

matrix product(const matrix *a, const matrix *b);
matrix sum(double x, const matrix *a, double y, const matrix *b);
matrix transposed(const matrix *a);
matrix identity(int64_t n);
matrix inverse_of(const matrix *a);

/* L of the mass, M = L L^T: its columns are where unit vectors go. */
matrix factor_of(const em_mass *mass);

/* exp(-A), by its series after halving: the arguments here are small. */
matrix decay_of(const matrix *a);

/* Writes A as the block at (first, first) of a square array with `ld` columns. */
void put_block(const matrix *a, int64_t first, int64_t ld, double *out);

/* A as one array without padding. */
void pack_matrix(const matrix *a, double *out);

/* Frobenius norm of the first n x n block of S minus T, relative to that of T. */
double relative_error(int64_t n, const double *S, int64_t ld, const matrix *T);

#endif
