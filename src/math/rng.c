#include "math/rng.h"

#include "math/simd.h"

#include <Random123/philox.h>
#include <Random123/u01fixedpt.h>

/*
 * The 128 bits of a counter, from the lowest: block (40), iteration (40), purpose (8), attempt (8),
 * chain (32). The attempt is 0 but where em_uniform_below must draw again.
 */
static em_philox start_of(const em_stream *stream, uint64_t attempt)
{
    return (em_philox){.key = stream->seed,
                       .low = stream->iteration << 40,
                       .high = stream->iteration >> 24 | (uint64_t)stream->purpose << 16 |
                               attempt << 24 | stream->chain << 32};
}

/* 64 random bits: a block gives two of them. */
static uint64_t bits(em_philox start, uint64_t index)
{
    const uint64_t low = start.low + index / 2;
    const philox4x32_ctr_t counter = {
        {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)start.high, (uint32_t)(start.high >> 32)}};
    const philox4x32_key_t key = {{(uint32_t)start.key, (uint32_t)(start.key >> 32)}};
    const philox4x32_ctr_t block = philox4x32(counter, key);

    return index % 2 ? (uint64_t)block.v[3] << 32 | block.v[2]
                     : (uint64_t)block.v[1] << 32 | block.v[0];
}

double em_uniform(const em_stream *stream, uint64_t index)
{
    return u01fixedpt_open_open_64_double(bits(start_of(stream, 0), index));
}

/* Lemire (2019): the upper word of bits * bound, but for the few bits that would favour some
 * integers. */
uint64_t em_uniform_below(const em_stream *stream, uint64_t index, uint64_t bound)
{
    for (uint64_t attempt = 0;; attempt++) {
        unsigned __int128 product =
            (unsigned __int128)bits(start_of(stream, attempt), index) * bound;
        if ((uint64_t)product >= bound || (uint64_t)product >= -bound % bound)
            return (uint64_t)(product >> 64);
    }
}

void em_uniforms_below(const em_stream *stream, int64_t n, uint64_t bound, uint64_t growth,
                       int64_t *out)
{
    const bool narrow = (bound + (uint64_t)n * growth) >> 32 == 0;

    if (!narrow || !em_simd_best()->integers(start_of(stream, 0), n, bound, growth, out))
        for (int64_t i = 0; i < n; i++)
            out[i] = (int64_t)em_uniform_below(stream, (uint64_t)i, bound + (uint64_t)i * growth);
}

void em_uniforms(const em_stream *stream, uint64_t first, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = em_uniform(stream, first + (uint64_t)i);
}

void em_normals(const em_stream *stream, int64_t n, double *out)
{
    em_simd_best()->normals(start_of(stream, 0), n, out);
}
