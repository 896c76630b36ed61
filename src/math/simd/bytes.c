#include "math/simd/bytes.h"

#include "base/clones.h"
#include "math/simd/simd.h"

enum { WORD = 64 };

static int64_t words(int64_t n)
{
    return (n + WORD - 1) / WORD;
}

em_status em_bytes_create(em_owner *owner, int64_t most, int64_t n_column, em_bytes *out)
{
    const int64_t room = words(most) * WORD, n_word = words(n_column);

    *out = (em_bytes){.n_column = n_column, .n_word = n_word, .room = room};
    return em_own_all(owner, EM_ARRAY(out->row, room), EM_ARRAY(out->of_row, room * n_word),
                      EM_ARRAY(out->of_column, room * n_word));
}

double em_bytes_size(int64_t most, int64_t n_column)
{
    return (double)(words(most) * WORD) * (8 + 16 * (double)words(n_column));
}

typedef uint64_t words_4 __attribute__((vector_size(32), may_alias));
enum { VECTORS = WORD / 4 };

/* A stage of the transpose of a matrix of bits (Warren 2013, section 7-3): swaps bits of vectors of
 * words so far from each other, whose places are `places` from each other. */
static inline __attribute__((always_inline)) void swap_bits(words_4 x[VECTORS], int vectors,
                                                            int places, uint64_t low)
{
    _Pragma("GCC unroll 8") for (int k = 0; k < VECTORS / 2; k++)
    {
        words_4 *a = x + k / vectors * 2 * vectors + k % vectors, *b = a + vectors;
        const words_4 t = (*a >> places ^ *b) & low;
        *a ^= t << places;
        *b ^= t;
    }
}

/* Transposes a matrix of bits of which row 8 i + j is in word 8 j + i: bit b of row k becomes bit k
 * of word b of `out`. So all words that are swapped with others are in different vectors. */
static inline __attribute__((always_inline)) void transpose(words_4 x[VECTORS],
                                                            words_4 out[VECTORS])
{
    const uint64_t *from = (const uint64_t *)x;
    uint64_t *to = (uint64_t *)out;

    swap_bits(x, VECTORS / 2, 4, 0x0f0f0f0f0f0f0f0f);
    swap_bits(x, VECTORS / 4, 2, 0x3333333333333333);
    swap_bits(x, VECTORS / 8, 1, 0x5555555555555555);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            to[8 * i + j] = from[8 * j + i];
    swap_bits(out, VECTORS / 2, 32, 0x00000000ffffffff);
    swap_bits(out, VECTORS / 4, 16, 0x0000ffff0000ffff);
    swap_bits(out, VECTORS / 8, 8, 0x00ff00ff00ff00ff);
}

/* Finds the rows, which are scattered in memory. All are prefetched before the first is read. */
static void find_rows(em_bytes *x, const uint8_t *from, int64_t n, const int64_t *row)
{
    enum { LINE = 64 };

    x->n_row = n;
    for (int64_t i = 0; i < n; i++) {
        x->row[i] = from + row[i] * x->n_column;
        for (int64_t j = 0; j < x->n_column; j += LINE)
            __builtin_prefetch(x->row[i] + j);
    }
}

EM_CLONES static void mark_columns(em_bytes *x)
{
    for (int64_t i = 0; i < x->n_row; i += WORD)
        for (int64_t w = 0; w < x->n_word; w++) {
            const uint64_t *from = x->of_row + w * x->room + i;
            const int n = (int)(x->n_row - i < WORD ? x->n_row - i : WORD);
            words_4 rows[VECTORS] = {{0}};
            for (int k = 0; k < n; k++)
                ((uint64_t *)rows)[(k & 7) << 3 | k >> 3] = from[k];
            transpose(rows, (words_4 *)(x->of_column + (i / WORD * x->n_word + w) * WORD));
        }
}

void em_bytes_take(em_bytes *x, const uint8_t *from, double factor, int64_t n, const int64_t *row)
{
    for (int b = 0; b < 256; b++) {
        x->tone[b] = b * factor;
        x->single_tone[b] = (float)b * (float)factor;
    }
    find_rows(x, from, n, row);
    em_simd_best()->bytes_mark(x);
    mark_columns(x);
}

void em_bytes_multiply(const em_bytes *x, int64_t n_to, const double *weight, int64_t pitch,
                       double *z)
{
    em_simd_best()->bytes_multiply(x, n_to, weight, pitch, z);
}

void em_bytes_gather(const em_bytes *x, int64_t n_to, const double *d, int64_t pitch, bool begun,
                     double *sum)
{
    em_simd_best()->bytes_gather(x, n_to, d, pitch, begun, sum);
}

void em_bytes_multiply_single(const em_bytes *x, int64_t n_to, const float *weight, int64_t pitch,
                              float *z)
{
    em_simd_best()->bytes_multiply_single(x, n_to, weight, pitch, z);
}

void em_bytes_gather_single(const em_bytes *x, int64_t n_to, const float *d, int64_t pitch,
                            bool begun, float *sum)
{
    em_simd_best()->bytes_gather_single(x, n_to, d, pitch, begun, sum);
}
