/* Products of panels, a row's bits its own, and of bytes: right, for every instruction set of this
 * processor. */
#include "base/memory.h"
#include "math/rng.h"
#include "math/simd/bytes.h"
#include "math/simd/panel.h"
#include "support/simds.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHAIN = 17, N_ROW = 150, MAX_COLUMN = 70 };

static double *normals(int64_t n, uint64_t chain)
{
    const em_stream stream = {.seed = 5, .chain = chain, .purpose = EM_RNG_TEST};
    double *out;

    ck_assert_int_eq(em_allocate_doubles(em_stride(n), &out), EM_OK);
    em_normals(&stream, n, out);
    return out;
}

/* sum_j a[j] b[j * step] within n roundings of its terms. */
static void check_sum(double found, int64_t n, const double *a, const double *b, int64_t step)
{
    long double sum = 0, size = 0;

    for (int64_t j = 0; j < n; j++) {
        sum += (long double)a[j] * b[j * step];
        size += fabsl((long double)a[j] * b[j * step]);
    }
    ck_assert_msg(fabsl(found - sum) <= n * 0x1p-52L * size, "found %.17g, expected %.17Lg", found,
                  sum);
}

static void check_product(const em_simd *simd, int64_t n, int64_t m)
{
    const int64_t lda = n + 3, ldb = em_stride(m), ldc = ldb + 8;
    double *A = normals(MAX_CHAIN * lda, 0), *B = normals(n * ldb, 1);
    double *alone = normals(MAX_CHAIN * ldc, 2), *C = normals(MAX_CHAIN * ldc, 3);

    for (int64_t c = 0; c < MAX_CHAIN; c++) {
        simd->panel_product(1, n, m, A + c * lda, lda, B, ldb, alone + c * ldc, ldc);
        for (int64_t i = 0; i < m; i++)
            check_sum(alone[c * ldc + i], n, A + c * lda, B + i, ldb);
    }
    for (int64_t n_chain = 1; n_chain <= MAX_CHAIN; n_chain++)
        for (int64_t first = 0; first + n_chain <= MAX_CHAIN; first += 5) {
            C[n_chain * ldc - 8] = 1e300; /* behind the last row */
            simd->panel_product(n_chain, n, m, A + first * lda, lda, B, ldb, C, ldc);
            for (int64_t c = 0; c < n_chain; c++)
                ck_assert_mem_eq(C + c * ldc, alone + (first + c) * ldc, (size_t)ldb * sizeof *C);
            ck_assert(C[n_chain * ldc - 8] == 1e300);
        }
    em_release(&A);
    em_release(&B);
    em_release(&alone);
    em_release(&C);
}

START_TEST(rows_of_a_product_are_their_own)
{
    static const int64_t n[] = {0, 1, 2, 7, 10, 65},
                         m[] = {1, 7, 8, 9, 10, 16, 25, 63, 65, 130, 201};

    for (int i = 0; em_simd_runs(em_simds[_i]) && i < 6; i++)
        for (int k = 0; k < 11; k++)
            check_product(em_simds[_i], n[i], m[k]);
}
END_TEST

/* Tiles of an N_ROW x n_column matrix, its missing rows zero. */
static em_tiled tiles(int64_t n_column)
{
    const int64_t n_tile = (N_ROW + EM_TILE_ROWS - 1) / EM_TILE_ROWS;
    em_tiled x = {N_ROW, n_column, n_tile, normals(n_tile * n_column * EM_TILE_ROWS, 4)};

    for (int64_t j = 0; j < n_column; j++)
        for (int64_t i = N_ROW % EM_TILE_ROWS; i < EM_TILE_ROWS; i++)
            x.tile[((n_tile - 1) * n_column + j) * EM_TILE_ROWS + i] = 0;
    return x;
}

/* eta [tile][chain][64] and gradient [chain][em_stride(n_column)] of some chains, through one
 * instruction set, with eta itself as the residual. */
static void both_products(const em_simd *simd, const em_tiled *x, int64_t n_chain,
                          const double *theta, double *eta, double *gradient)
{
    const int64_t n = x->n_column;
    double *partial = normals(n_chain * n * EM_LANES, 6);

    memset(partial, 0, (size_t)(n_chain * n * EM_LANES) * sizeof *partial);
    memset(gradient, 0, (size_t)(n_chain * em_stride(n)) * sizeof *gradient);
    for (int64_t t = 0; t < x->n_tile; t++) {
        const double *tile = x->tile + t * n * EM_TILE_ROWS;
        double *part = eta + t * n_chain * EM_TILE_ROWS;
        simd->tile_predict(n_chain, n, tile, MAX_COLUMN, theta, part);
        simd->tile_accumulate(n_chain, n, tile, part, partial);
    }
    simd->tile_finish(n_chain, n, partial, em_stride(n), gradient);
    em_release(&partial);
}

static void check_tiles(const em_simd *simd, int64_t n_column)
{
    em_tiled x = tiles(n_column);
    const int64_t size = x.n_tile * EM_TILE_ROWS;
    double *theta = normals(MAX_CHAIN * MAX_COLUMN, 7);
    double *eta = normals(MAX_CHAIN * size, 8),
           *gradient = normals(MAX_CHAIN * em_stride(n_column), 9);
    double *eta1 = normals(MAX_CHAIN * size, 8),
           *gradient1 = normals(MAX_CHAIN * em_stride(n_column), 9);

    for (int64_t c = 0; c < MAX_CHAIN; c++) {
        const double *h = eta1 + c * size, *g = gradient1 + c * em_stride(n_column);
        both_products(simd, &x, 1, theta + c * MAX_COLUMN, eta1 + c * size,
                      gradient1 + c * em_stride(n_column));
        for (int64_t i = 0; i < size; i++)
            check_sum(h[i], n_column, theta + c * MAX_COLUMN,
                      x.tile + i / EM_TILE_ROWS * n_column * EM_TILE_ROWS + i % EM_TILE_ROWS,
                      EM_TILE_ROWS);
        for (int64_t j = 0; j < n_column; j++) {
            double column[3 * EM_TILE_ROWS];
            for (int64_t i = 0; i < size; i++)
                column[i] =
                    x.tile[(i / EM_TILE_ROWS * n_column + j) * EM_TILE_ROWS + i % EM_TILE_ROWS];
            check_sum(g[j], size, h, column, 1);
        }
    }
    for (int64_t n_chain = 1; n_chain <= MAX_CHAIN; n_chain++) {
        const int64_t first = MAX_CHAIN - n_chain;
        both_products(simd, &x, n_chain, theta + first * MAX_COLUMN, eta, gradient);
        for (int64_t c = 0; c < n_chain; c++)
            for (int64_t t = 0; t < x.n_tile; t++)
                ck_assert_mem_eq(eta + (t * n_chain + c) * EM_TILE_ROWS,
                                 eta1 + (first + c) * size + t * EM_TILE_ROWS,
                                 EM_TILE_ROWS * sizeof *eta);
        ck_assert_mem_eq(gradient, gradient1 + first * em_stride(n_column),
                         (size_t)(n_chain * em_stride(n_column)) * sizeof *gradient);
    }
    em_release(&x.tile);
    em_release(&theta);
    em_release(&eta);
    em_release(&gradient);
    em_release(&eta1);
    em_release(&gradient1);
}

START_TEST(rows_of_tiles_are_their_own)
{
    static const int64_t n_column[] = {1, 2, 31, 32, 33, MAX_COLUMN};

    for (int k = 0; em_simd_runs(em_simds[_i]) && k < 6; k++)
        check_tiles(em_simds[_i], n_column[k]);
}
END_TEST

/* X^T (X theta), each element a sum of n products of which eta has a rounding of its own. */
static void check_gram(const em_simd *simd, int64_t n, const int64_t *index, int64_t stride,
                       const double *x, const double *theta, bool same_bits)
{
    double *sum = normals(stride, 14), *sum1 = normals(stride, 14);

    memset(sum, 0, (size_t)stride * sizeof *sum);
    memset(sum1, 0, (size_t)stride * sizeof *sum);
    em_rows_gram(n, index, x, stride, theta, sum1);
    if (stride == 8)
        simd->rows_gram(n, index, x, theta, sum);
    else
        memcpy(sum, sum1, (size_t)stride * sizeof *sum);
    ck_assert(!same_bits || memcmp(sum, sum1, (size_t)stride * sizeof *sum) == 0);
    for (int64_t j = 0; j < stride; j++) {
        double expected = 0, size = 0;
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < stride; k++) {
                const double *row = x + index[i] * stride;
                expected += row[j] * row[k] * theta[k];
                size += fabs(row[j] * row[k] * theta[k]);
            }
        ck_assert(fabs(sum[j] - expected) <= (double)(n + stride) * 0x1p-51 * size);
    }
    em_release(&sum);
    em_release(&sum1);
}

/* Some rows of a matrix, some of them twice; all instruction sets but the portable one must have
 * the bits of the best. */
static void check_listed(const em_simd *simd, int64_t n, int64_t stride, bool same_bits)
{
    double *x = normals(N_ROW * stride, 10), *theta = normals(stride, 11);
    double *eta = normals(n, 12), *eta1 = normals(n, 12);
    double *sum = normals(stride, 13), *sum1 = normals(stride, 13);
    double column[EM_TILE_ROWS];
    int64_t index[EM_TILE_ROWS];

    for (int64_t i = 0; i < n; i++)
        index[i] = i * i % N_ROW;
    memset(sum, 0, (size_t)stride * sizeof *sum);
    memset(sum1, 0, (size_t)stride * sizeof *sum);
    simd->rows_predict(n, index, x, stride, theta, eta);
    simd->rows_accumulate(n, index, x, stride, eta, sum);
    em_rows_predict(n, index, x, stride, theta, eta1);
    em_rows_accumulate(n, index, x, stride, eta1, sum1);
    ck_assert(!same_bits || memcmp(eta, eta1, (size_t)n * sizeof *eta) == 0);
    ck_assert(!same_bits || memcmp(sum, sum1, (size_t)stride * sizeof *sum) == 0);
    for (int64_t i = 0; i < n; i++)
        check_sum(eta[i], stride, x + index[i] * stride, theta, 1);
    for (int64_t j = 0; j < stride; j++) {
        for (int64_t i = 0; i < n; i++)
            column[i] = x[index[i] * stride + j];
        check_sum(sum[j], n, eta, column, 1);
        sum[j] = 1;
    }
    simd->rows_accumulate(0, index, x, stride, eta, sum);
    ck_assert(sum[0] == 1);
    check_gram(simd, n, index, stride, x, theta, same_bits);
    double *const arrays[] = {x, theta, eta, eta1, sum, sum1};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++)
        free(arrays[k]);
}

START_TEST(listed_rows)
{
    const bool last = !em_simds[_i + 1];

    for (int64_t n = 0; em_simd_runs(em_simds[_i]) && n <= EM_TILE_ROWS; n += 8)
        for (int64_t stride = 8; stride <= 72; stride += 16)
            check_listed(em_simds[_i], n, stride, !last);
}
END_TEST

/* AVX-512 and AVX2 give the same bits; and the public functions are the best kernels. */
START_TEST(instruction_sets_agree)
{
    enum { CHAINS = 5, COLUMNS = 70 };
    em_tiled x = tiles(COLUMNS);
    const int64_t size = CHAINS * EM_TILE_ROWS, stride = em_stride(COLUMNS);
    double *theta = normals(CHAINS * MAX_COLUMN, 7), *B = normals(COLUMNS * stride, 1);
    double *C = normals(CHAINS * stride, 2), *C1 = normals(CHAINS * stride, 3);
    double *eta = normals(x.n_tile * size, 8), *gradient = normals(CHAINS * em_stride(COLUMNS), 9);
    double *eta1 = normals(size, 8), *gradient1 = normals(CHAINS * em_stride(COLUMNS), 9);
    double *partial = normals(CHAINS * em_stride(COLUMNS) * EM_LANES, 6);

    memset(partial, 0, CHAINS * em_stride(COLUMNS) * EM_LANES * sizeof *partial);
    memset(gradient1, 0, CHAINS * em_stride(COLUMNS) * sizeof *gradient1);
    for (int64_t t = 0; t < x.n_tile; t++) {
        em_tile_predict(&x, t, CHAINS, MAX_COLUMN, theta, eta1);
        em_tile_accumulate(&x, t, CHAINS, eta1, partial);
    }
    em_tile_finish(CHAINS, COLUMNS, partial, em_stride(COLUMNS), gradient1);
    em_panel_product(CHAINS, COLUMNS, COLUMNS, theta, MAX_COLUMN, B, stride, C1, stride);
    for (int k = 0; em_simds[k]; k++) {
        if (!em_simd_runs(em_simds[k]) || (!em_simds[k + 1] && em_simds[k] != em_simd_best()))
            continue;
        both_products(em_simds[k], &x, CHAINS, theta, eta, gradient);
        em_simds[k]->panel_product(CHAINS, COLUMNS, COLUMNS, theta, MAX_COLUMN, B, stride, C,
                                   stride);
        ck_assert_mem_eq(eta + (x.n_tile - 1) * size, eta1, (size_t)size * sizeof *eta);
        ck_assert_mem_eq(gradient, gradient1, CHAINS * em_stride(COLUMNS) * sizeof *gradient);
        ck_assert_mem_eq(C, C1, (size_t)(CHAINS * stride) * sizeof *C);
    }
    em_release(&x.tile);
    em_release(&theta);
    em_release(&B);
    em_release(&C);
    em_release(&C1);
    em_release(&eta);
    em_release(&gradient);
    em_release(&eta1);
    em_release(&gradient1);
    em_release(&partial);
}
END_TEST

/* What is there is added to, and nothing beyond; neighbours are summed in pairs, in vectors of
 * columns as in those that are left over. */
START_TEST(finish_adds)
{
    enum { COLUMNS = 10 };
    static const double column[3][8] = {{1, 2, 3, 4, 5, 6, 7, 8},
                                        {1e300, 1, 0, 0, -1e300, 0, 0, 0},
                                        {1e300, -1e300, 1, 0, 0, 0, 0, 0}};
    static const double sum[3] = {36, 0, 1};
    _Alignas(64) double partial[2][COLUMNS][8], gradient[2][2 * EM_LANES];

    for (int c = 0; c < 2; c++) {
        for (int j = 0; j < 2 * EM_LANES; j++)
            gradient[c][j] = 100 * (c + j);
        for (int j = 0; j < COLUMNS; j++)
            memcpy(partial[c][j], column[(c + j) % 3], sizeof partial[c][j]);
    }
    if (em_simd_runs(em_simds[_i]))
        em_simds[_i]->tile_finish(2, COLUMNS, partial[0][0], 2 * EM_LANES, gradient[0]);
    for (int c = 0; em_simd_runs(em_simds[_i]) && c < 2; c++)
        for (int j = 0; j < 2 * EM_LANES; j++)
            ck_assert_double_eq(gradient[c][j],
                                100 * (c + j) + (j < COLUMNS ? sum[(c + j) % 3] : 0));
}
END_TEST

/* ---- bytes ---- */

enum { BYTE_ROW = 100, BYTE_COLUMN = 151, MOST_TO = 150, PITCH = 160 };

static uint8_t byte_at(int64_t i, int64_t j)
{
    return i % 7 == 3 || (i * 31 + j * j) % 5 > 1 ? 0 : (uint8_t)(1 + (i * 13 + j * 7) % 255);
}

static double number_at(int64_t i, int64_t k)
{
    return (double)((i * 17 + k * 5) % 19 - 9);
}

/* Products of integers, which are exact, of one type and instruction set. */
#define CHECK_BYTES(type, multiply, gather)                                                        \
    static void check_##multiply(const em_simd *simd, const em_bytes *x, const int64_t *row,       \
                                 int64_t n_to)                                                     \
    {                                                                                              \
        static _Alignas(64) type weight[(BYTE_COLUMN + 1) * MOST_TO], z[BYTE_ROW * PITCH],         \
            sum[(BYTE_COLUMN + 1) * MOST_TO];                                                      \
        const int64_t pitch = (n_to + 15) / 16 * 16;                                               \
        for (int64_t j = 0; j < BYTE_COLUMN; j++)                                                  \
            for (int64_t k = 0; k < n_to; k++) {                                                   \
                weight[j * n_to + k] = (type)number_at(j, k);                                      \
                sum[j * n_to + k] = 1;                                                             \
            }                                                                                      \
        for (int64_t i = 0; i < x->n_row; i++)                                                     \
            for (int64_t k = 0; k < n_to; k++)                                                     \
                z[i * pitch + k] = 2;                                                              \
        simd->multiply(x, n_to, weight, pitch, z);                                                 \
        for (int64_t i = 0; i < x->n_row; i++)                                                     \
            for (int64_t k = 0; k < n_to; k++) {                                                   \
                double expected = 2;                                                               \
                for (int64_t j = 0; j < BYTE_COLUMN; j++)                                          \
                    expected += 0.5 * byte_at(row[i], j) * number_at(j, k);                        \
                ck_assert_double_eq((double)z[i * pitch + k], expected);                           \
                z[i * pitch + k] = (type)number_at(i, k);                                          \
            }                                                                                      \
        sum[BYTE_COLUMN * n_to] = 77;                                                              \
        for (int begun = 0; begun < 2; begun++)                                                    \
            simd->gather(x, n_to, z, pitch, begun, sum);                                           \
        for (int64_t j = 0; j < BYTE_COLUMN; j++)                                                  \
            for (int64_t k = 0; k < n_to; k++) {                                                   \
                double expected = 0;                                                               \
                for (int64_t i = 0; i < x->n_row; i++)                                             \
                    expected += byte_at(row[i], j) * number_at(i, k);                              \
                ck_assert_double_eq((double)sum[j * n_to + k], expected);                          \
            }                                                                                      \
        ck_assert(sum[BYTE_COLUMN * n_to] == 77);                                                  \
    }
CHECK_BYTES(double, bytes_multiply, bytes_gather)
CHECK_BYTES(float, bytes_multiply_single, bytes_gather_single)

/* A bit for each byte that is not 0, and none beyond the last column. */
static void check_bytes_mark(const em_simd *simd, em_bytes *x, const int64_t *row)
{
    memset(x->of_row, 0xff, (size_t)(x->room * x->n_word) * sizeof *x->of_row);
    simd->bytes_mark(x);
    for (int64_t i = 0; i < x->n_row; i++)
        for (int64_t j = 0; j < 64 * x->n_word; j++)
            ck_assert_int_eq(x->of_row[j / 64 * x->room + i] >> j % 64 & 1,
                             j < BYTE_COLUMN && byte_at(row[i], j) != 0);
}

START_TEST(products_follow_the_bits)
{
    em_owner memory = {NULL};
    static uint8_t byte[BYTE_ROW * BYTE_COLUMN];
    const int64_t count[] = {1, 64, 65, BYTE_ROW}, n_to[] = {1, 16, 20, 33, 100, MOST_TO};
    int64_t row[BYTE_ROW];
    em_bytes x;

    for (int64_t i = 0; i < BYTE_ROW; i++) {
        row[i] = i * 37 % BYTE_ROW;
        for (int64_t j = 0; j < BYTE_COLUMN; j++)
            byte[i * BYTE_COLUMN + j] = byte_at(i, j);
    }
    ck_assert_int_eq(em_bytes_create(&memory, BYTE_ROW, BYTE_COLUMN, &x), EM_OK);
    for (int c = 0; em_simd_runs(em_simds[_i]) && c < 4; c++) {
        em_bytes_take(&x, byte, 0.5, count[c], row);
        check_bytes_mark(em_simds[_i], &x, row);
        for (int k = 0; k < 6; k++) {
            check_bytes_multiply(em_simds[_i], &x, row, n_to[k]);
            check_bytes_multiply_single(em_simds[_i], &x, row, n_to[k]);
        }
    }
    em_release_owned(&memory);
}
END_TEST

int main(void)
{
    TCase *all = tcase_create("panel");

    add_simd_test(all, rows_of_a_product_are_their_own);
    add_simd_test(all, rows_of_tiles_are_their_own);
    add_simd_test(all, listed_rows);
    tcase_add_test(all, instruction_sets_agree);
    add_simd_test(all, finish_adds);
    add_simd_test(all, products_follow_the_bits);
    tcase_set_timeout(all, 60);

    return run_case(all, CK_FORK_GETENV);
}
