#include "math/simd/bytes.h"

#include "base/clones.h"
#include "base/memory.h"
#include "math/simd/simd.h"

enum { WORD = 64 };

static int64_t words(int64_t n)
{
    return (n + WORD - 1) / WORD;
}

em_status em_bytes_create(int64_t most, int64_t n_column, em_bytes *out)
{
    const int64_t room = words(most) * WORD, n_word = words(n_column);
    em_status status;

    *out = (em_bytes){.n_column = n_column, .n_word = n_word, .room = room};
    status = em_allocate(room, sizeof *out->row, &out->row);
    status = status ? status : em_allocate(room * n_word, sizeof *out->of_row, &out->of_row);
    return status ? status : em_allocate(room * n_word, sizeof *out->of_column, &out->of_column);
}

void em_bytes_release(em_bytes *x)
{
    em_release_all(&x->row, &x->of_row, &x->of_column);
}

double em_bytes_size(int64_t most, int64_t n_column)
{
    return (double)(words(most) * WORD) * (8 + 16 * (double)words(n_column));
}

/* Transposes a matrix of bits: bit b of word k becomes bit k of word b (Warren 2013, section 7-3).
 */
static inline void transpose(uint64_t x[WORD])
{
    uint64_t low = 0x00000000ffffffff;

    for (int s = WORD / 2; s > 0; s >>= 1, low ^= low << s)
        for (int from = 0; from < WORD; from += 2 * s)
            for (int k = from; k < from + s; k++) {
                const uint64_t t = (x[k] >> s ^ x[k + s]) & low;
                x[k] ^= t << s;
                x[k + s] ^= t;
            }
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
            uint64_t bits[WORD] = {0};
            for (int64_t k = 0; k < WORD && i + k < x->n_row; k++)
                bits[k] = x->of_row[(i + k) * x->n_word + w];
            transpose(bits);
            for (int64_t k = 0; k < WORD; k++)
                x->of_column[((w * WORD + k) * x->room + i) / WORD] = bits[k];
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
