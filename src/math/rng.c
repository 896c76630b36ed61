#include "math/rng.h"

#include "emass/random.h"
#include "math/simd/simd.h"
#include "math/special.h"

#include <Random123/philox.h>
#include <Random123/u01fixedpt.h>

/* The counter of the first block of a stream. Its 128 bits are, from the lowest: block (40),
 * iteration (40), purpose (8), attempt (8), chain (32). The attempt is 0 unless em_uniform_below
 * must draw again. */
static em_philox start_of(const em_stream *stream, uint64_t attempt)
{
    return (em_philox){.key = stream->seed,
                       .low = stream->iteration << 40,
                       .high = stream->iteration >> 24 | (uint64_t)stream->purpose << 16 |
                               attempt << 24 | stream->chain << 32};
}

/* Block number `block` of the stream. */
static philox4x32_ctr_t block_of(em_philox start, uint64_t block)
{
    const uint64_t low = start.low + block;
    const philox4x32_ctr_t counter = {
        {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)start.high, (uint32_t)(start.high >> 32)}};
    const philox4x32_key_t key = {{(uint32_t)start.key, (uint32_t)(start.key >> 32)}};

    return philox4x32(counter, key);
}

/* 64 random bits. A block has two such groups. */
static uint64_t bits(em_philox start, uint64_t index)
{
    const philox4x32_ctr_t block = block_of(start, index / 2);

    return index % 2 ? (uint64_t)block.v[3] << 32 | block.v[2]
                     : (uint64_t)block.v[1] << 32 | block.v[0];
}

double em_uniform(const em_stream *stream, uint64_t index)
{
    return u01fixedpt_open_open_64_double(bits(start_of(stream, 0), index));
}

/* An integer below the bound (Lemire 2019): the upper word of the product of random bits and the
 * bound. The few bits that would favour some integers are drawn again. */
static uint64_t below_wide(const em_stream *stream, uint64_t index, uint64_t bound)
{
    for (uint64_t attempt = 0;; attempt++) {
        unsigned __int128 product =
            (unsigned __int128)bits(start_of(stream, attempt), index) * bound;
        if ((uint64_t)product >= bound || (uint64_t)product >= -bound % bound)
            return (uint64_t)(product >> 64);
    }
}

static uint64_t below_narrow(const em_stream *stream, uint64_t index, uint32_t bound)
{
    for (uint64_t attempt = 0;; attempt++) {
        const philox4x32_ctr_t block = block_of(start_of(stream, attempt), index / 4);
        const uint64_t product = (uint64_t)block.v[index % 4] * bound;
        if ((uint32_t)product >= bound || (uint32_t)product >= -bound % bound)
            return product >> 32;
    }
}

uint64_t em_uniform_below(const em_stream *stream, uint64_t index, uint64_t bound)
{
    return bound >> 32 ? below_wide(stream, index, bound)
                       : below_narrow(stream, index, (uint32_t)bound);
}

void em_uniforms_below(const em_stream *stream, int64_t n, uint64_t bound, uint64_t growth,
                       int64_t *out)
{
    const bool narrow = (bound + (uint64_t)n * growth) >> 32 == 0, few = n < 3;

    if (few || !narrow || !em_simd_best()->integers(start_of(stream, 0), n, bound, growth, out))
        for (int64_t i = 0; i < n; i++)
            out[i] = (int64_t)em_uniform_below(stream, (uint64_t)i, bound + (uint64_t)i * growth);
}

void em_uniforms(const em_stream *stream, uint64_t first, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = em_uniform(stream, first + (uint64_t)i);
}

void em_uniforms_within(const em_stream *stream, int64_t n, double radius, double *out)
{
    em_uniforms(stream, 0, n, out);
    for (int64_t i = 0; i < n; i++)
        out[i] = radius * (2 * out[i] - 1);
}

void em_normals_from(const em_stream *stream, int64_t first, int64_t n, double *out)
{
    em_philox start = start_of(stream, 0);

    start.low += (uint64_t)first / 2;
    em_simd_best()->normals(start, n, out);
}

void em_normals(const em_stream *stream, int64_t n, double *out)
{
    em_normals_from(stream, 0, n, out);
}

void em_single_normals_from(const em_stream *stream, int64_t first, int64_t n, double *out)
{
    em_philox start = start_of(stream, 0);

    start.low += (uint64_t)first / 4;
    em_simd_best()->single_normals(start, n, out);
}

void em_gammas(const em_stream *stream, uint64_t first, int64_t n, const double *shape, double *out)
{
    em_philox start = start_of(stream, 0);

    start.low += first;
    em_simd_best()->gammas(start, n, shape, out);
}

/* Here the block takes the whole lower word, and the iteration is where the attempt is in other
 * streams. */
void em_item_bits(const em_stream *stream, int64_t n, const uint64_t *block, uint32_t *out)
{
    const em_philox start = {.key = stream->seed,
                             .high = (stream->iteration & 0xffff) |
                                     (uint64_t)stream->purpose << 16 |
                                     (stream->iteration >> 16 & 0xff) << 24 | stream->chain << 32};

    em_simd_best()->item_bits(start, n, block, out);
}

void em_gamma_jumps(const em_stream *stream, uint32_t item, uint32_t batch, float *gap, float *size)
{
    enum { BLOCKS = EM_JUMPS / 2 }; /* 64 bits a jump */
    uint64_t block[BLOCKS] __attribute__((aligned(64)));
    uint32_t bits[4 * BLOCKS] __attribute__((aligned(64)));

    for (uint64_t i = 0; i < BLOCKS; i++)
        block[i] = (uint64_t)item << 32 | ((uint64_t)batch * BLOCKS + i);
    em_item_bits(stream, BLOCKS, block, bits);
    em_simd_best()->jumps(EM_JUMPS, bits, gap, size);
}

/* ---- the random numbers of a model (emass/random.h) ---- */

void em_draw_uniforms(const em_draw *draw, uint64_t first, int64_t n, double *out)
{
    static const em_purpose purpose[] = {[EM_DRAW_REPORT] = EM_RNG_REPORT,
                                         [EM_DRAW_EVALUATION] = EM_RNG_EVALUATION,
                                         [EM_DRAW_UPDATE] = EM_RNG_UPDATE,
                                         [EM_DRAW_START] = EM_RNG_START,
                                         [EM_DRAW_PREDICTION] = EM_RNG_PREDICTION,
                                         [EM_DRAW_PRIOR] = EM_RNG_PRIOR,
                                         [EM_DRAW_PRIOR_REPORT] = EM_RNG_PRIOR_REPORT};
    const em_stream stream = {draw->seed, (uint64_t)draw->chain, (uint64_t)draw->iteration,
                              purpose[draw->purpose]};

    em_uniforms(&stream, first, n, out);
}

void em_draw_normals(const em_draw *draw, uint64_t first, int64_t n, double *out)
{
    em_draw_uniforms(draw, first, n, out);
    for (int64_t i = 0; i < n; i++)
        out[i] = em_normal_quantile(out[i]);
}

em_shuffle em_shuffle_of(const em_stream *stream, int64_t n)
{
    em_shuffle s = {.n = (uint64_t)n};
    int bits = 0;

    while ((s.n - 1) >> bits)
        bits++;
    s.shift = bits / 2;
    s.low = (UINT64_C(1) << s.shift) - 1;
    s.high = (UINT64_C(1) << (bits - s.shift)) - 1;
    for (uint64_t r = 0; r < EM_SHUFFLE_ROUNDS; r++)
        s.key[r] = em_uniform_below(stream, r, UINT64_MAX);
    return s;
}

/* 32 of the bits that splitmix64 computes from x. */
static uint64_t scramble(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x >> 32;
}

int64_t em_shuffle_at(const em_shuffle *s, int64_t place)
{
    uint64_t x = (uint64_t)place;

    do {
        uint64_t low = x & s->low, high = x >> s->shift;
        for (int r = 0; r < EM_SHUFFLE_ROUNDS; r += 2) {
            high ^= scramble(low + s->key[r]) & s->high;
            low ^= scramble(high + s->key[r + 1]) & s->low;
        }
        x = high << s->shift | low;
    } while (x >= s->n);
    return (int64_t)x;
}
