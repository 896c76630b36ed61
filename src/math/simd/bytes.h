/*
 * Products of matrices where one factor X has rows of bytes that are mostly 0, as images of
 * drawings at the input of a dense layer. A bitmap marks the bytes that are not 0, and the products
 * visit these alone:
 *
 *     Z_i += x_ij W_j  for all rows i and columns j,  G_j += x_ij D_i  for all j and i,
 *
 * They take as many columns of W or D at a time as registers hold. A row of Z, or of G, stays in
 * registers, and the rows of W, or of D, are in the first-level cache. AVX-512 and AVX2 give the
 * same bits. All Local.
 */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Bits are words of 64, [row][n_word] and [column][room / 64]. */
typedef struct em_bytes {
    int64_t n_row, n_column, n_word;
    int64_t room; /* for rows, a multiple of 64 */
    const uint8_t **row;
    uint64_t *of_row, *of_column;
    double tone[256]; /* the number that a byte stands for */
    float single_tone[256];
} em_bytes;

/* Room for `most` rows of n_column bytes. Errors: EM_EMEMORY; what there is is to be released. */
em_status em_bytes_create(int64_t most, int64_t n_column, em_bytes *out);
void em_bytes_release(em_bytes *x);

/* The bytes of memory that such room takes. */
double em_bytes_size(int64_t most, int64_t n_column);

/* X is factor times rows row[0 .. n) of `from`, of n_column bytes each, which it borrows. */
void em_bytes_take(em_bytes *x, const uint8_t *from, double factor, int64_t n, const int64_t *row);

/* Z += X W for weight [n_column][n_to] and z [n_row][pitch], and sum [n_column][n_to] = X^T D, or,
 * once `begun`, sum + X^T D, for d [n_row][pitch]. Rows of z and d are on lines of 64 bytes, which
 * `pitch` counts in whole, and what is beyond n_to there is overwritten or anything; there are 64
 * bytes to read behind weight and sum. */
void em_bytes_multiply(const em_bytes *x, int64_t n_to, const double *weight, int64_t pitch,
                       double *z);
void em_bytes_gather(const em_bytes *x, int64_t n_to, const double *d, int64_t pitch, bool begun,
                     double *sum);
void em_bytes_multiply_single(const em_bytes *x, int64_t n_to, const float *weight, int64_t pitch,
                              float *z);
void em_bytes_gather_single(const em_bytes *x, int64_t n_to, const float *d, int64_t pitch,
                            bool begun, float *sum);
