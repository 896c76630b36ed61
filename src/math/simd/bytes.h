/*
 * Matrix products in which one factor X has rows of bytes that are mostly 0, such as drawn images
 * at the input of a dense layer. A bitmap marks the bytes that are not 0, and the products use
 * these alone, and those of a few neighbouring rows or columns at the same places:
 *
 *     Z_i += x_ij W_j  for all rows i and columns j,  G_j += x_ij D_i  for all j and i.
 *
 * As many columns of W or D are processed at a time as fit into registers. A row of Z or G stays in
 * registers; the rows of W or D are in the first-level cache. AVX-512 and AVX2 give the same bits.
 * All Local.
 */
#pragma once

#include "base/memory.h"
#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

/* The matrix X. Its bitmaps have words of 64 bits: of_row [n_word][room] for 64 columns of a row,
 * and of_column [room / 64][64 n_word] for 64 rows of a column. */
typedef struct em_bytes {
    int64_t n_row, n_column, n_word;
    int64_t room; /* rows allocated, a multiple of 64 */
    const uint8_t **row;
    uint64_t *of_row, *of_column;
    double tone[256]; /* the value of each byte */
    float single_tone[256];
} em_bytes;

/* Allocates X for up to `most` rows of n_column bytes. Errors: EM_EMEMORY. */
em_status em_bytes_create(em_owner *owner, int64_t most, int64_t n_column, em_bytes *out);

/* The bytes of memory that em_bytes_create allocates. */
double em_bytes_size(int64_t most, int64_t n_column);

/* Sets X to factor times the n rows row[i] of `from` [][n_column], which is borrowed. */
void em_bytes_take(em_bytes *x, const uint8_t *from, double factor, int64_t n, const int64_t *row);

/* em_bytes_multiply: Z += X W for weight [n_column][n_to] and z [n_row][pitch]. em_bytes_gather:
 * sum [n_column][n_to] = X^T D for d [n_row][pitch]; if `begun`, X^T D is added to sum. Rows of z
 * and d are 64-byte aligned, so `pitch` is a multiple of 64 bytes. Elements of a row from n_to on
 * may have any value and may be overwritten. 64 bytes after the end of weight and sum must be
 * readable. */
void em_bytes_multiply(const em_bytes *x, int64_t n_to, const double *weight, int64_t pitch,
                       double *z);
void em_bytes_gather(const em_bytes *x, int64_t n_to, const double *d, int64_t pitch, bool begun,
                     double *sum);
void em_bytes_multiply_single(const em_bytes *x, int64_t n_to, const float *weight, int64_t pitch,
                              float *z);
void em_bytes_gather_single(const em_bytes *x, int64_t n_to, const float *d, int64_t pitch,
                            bool begun, float *sum);
