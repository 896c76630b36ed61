/*
 * Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011; Random123). The key is the seed;
 * the counter holds chain, iteration and purpose, never a rank. A stream has no state: two calls
 * with the same arguments give the same numbers.
 */
#pragma once

#include <stdint.h>

/* The purposes of random numbers; numbers of different purposes are different. */
typedef enum em_purpose {
    EM_RNG_DATA,           /* data that a model generates */
    EM_RNG_INIT,           /* initial positions */
    EM_RNG_MOMENTUM,       /* fresh momenta */
    EM_RNG_ACCEPT,         /* Metropolis-Hastings */
    EM_RNG_TRAJECTORY,     /* trajectory length, shared by all chains */
    EM_RNG_SUBSAMPLE,      /* epochs of the S_count rule, shared by all chains */
    EM_RNG_MINIBATCH,      /* which observations */
    EM_RNG_NOISE,          /* injected noise of stochastic samplers */
    EM_RNG_THERMOSTAT,     /* scalar thermostat variables */
    EM_RNG_TEST,           /* tests and benches */
    EM_RNG_REPORT,         /* what a model draws when it reports an iteration */
    EM_RNG_REINITIALISE,   /* the choice of the chain whose state an outlying chain gets */
    EM_RNG_EVALUATION,     /* what a model draws when it estimates a density */
    EM_RNG_TOKENS,         /* topics of tokens, counted by document (em_item_bits only) */
    EM_RNG_TOPICS,         /* word distributions of topics */
    EM_RNG_UPDATE,         /* what a model draws to move a chain */
    EM_RNG_START,          /* what a model draws when a chain starts */
    EM_RNG_PREDICTION,     /* what a model draws to predict */
    EM_RNG_EPOCH,          /* the order of observations in an epoch */
    EM_RNG_PRIOR,          /* positions from the prior */
    EM_RNG_PRIOR_REPORT,   /* what a model draws when it reports a draw from the prior */
    EM_RNG_FOLD_IN,        /* topics of tokens of new documents (em_item_bits only) */
    EM_RNG_MODE_SEARCH,    /* no longer used; it keeps the order */
    EM_RNG_REFERENCE,      /* draws of the reference law of a tempered chain */
    EM_RNG_SWAP,           /* whether two rungs of a ladder swap their states */
    EM_RNG_JUMPS,          /* jumps of gamma processes (em_item_bits only) */
    EM_RNG_REFERENCE_PART, /* the component of a mixture that a draw of a reference distribution is
                              from */
    EM_RNG_PROOF           /* positions at which priors are proved before the first draw */
} em_purpose;

/* A stream of 2^41 uniforms. `chain` is below 2^32, `iteration` below 2^40. */
typedef struct em_stream {
    uint64_t seed;
    uint64_t chain;
    uint64_t iteration;
    em_purpose purpose;
} em_stream;

/* The chain number of streams that all chains share. */
#define EM_ALL_CHAINS 0xffffffffu

/* The index-th uniform of the stream, in (0, 1) excluding both ends: an odd multiple of 2^-53.
 * Local. */
double em_uniform(const em_stream *stream, uint64_t index);

/* An integer in [0, bound), unbiased; bound > 0. For bounds below 2^32 it uses 32 bits of the
 * stream, else 64. Local. */
uint64_t em_uniform_below(const em_stream *stream, uint64_t index, uint64_t bound);

/* out[i] = em_uniform_below(stream, i, bound + i growth), vectorised for bounds below 2^32; growth
 * is 0 or 1. `out` is 64-byte aligned and has em_integers_capacity(n) elements, all of which may be
 * overwritten. Local. */
void em_uniforms_below(const em_stream *stream, int64_t n, uint64_t bound, uint64_t growth,
                       int64_t *out);

static inline int64_t em_integers_capacity(int64_t n)
{
    return (n + 31) / 32 * 32;
}

/* out[i] = the (first+i)-th uniform of the stream: the same as n calls of em_uniform. Local. */
void em_uniforms(const em_stream *stream, uint64_t first, int64_t n, double *out);

/* The same of the first n uniforms, mapped to (-radius, radius). Local. */
void em_uniforms_within(const em_stream *stream, int64_t n, double radius, double *out);

/* out[0..n): independent standard normals (Box-Muller on the uniforms of the stream), vectorised.
 * out[i] depends on the stream and on i alone, not on n; AVX2 and AVX-512 give the same bits, a
 * processor with neither may differ in the last one. `out` is 64-byte aligned and has em_stride(n)
 * elements; the padding is overwritten. Local. */
void em_normals(const em_stream *stream, int64_t n, double *out);

/* The normals from number `first` on, a multiple of 16: out[i] is what em_normals writes to
 * out[first + i]. Local. */
void em_normals_from(const em_stream *stream, int64_t first, int64_t n, double *out);

/* Normals in single precision, in a third of the time. Each is computed from 31 random bits,
 * rounded to the 24 of a float, so its absolute value is at most 6.7. `first` is a multiple of 32.
 * They are independent of the normals of other purposes, but not of those of em_normals of the same
 * stream. Local. */
void em_single_normals_from(const em_stream *stream, int64_t first, int64_t n, double *out);

/* out[i] ~ Gamma(shape[i], 1) (Marsaglia and Tsang 2000; below 1 Ahrens and Dieter 1974),
 * vectorised; 0 where the shape is not above 0. out[i] depends on the stream, on first + i and on
 * shape[i] alone. Bits on different processors: as em_normals. `shape` and `out` may alias; they
 * are 64-byte aligned and have em_stride(n) elements, of which the padding is overwritten. Local.
 */
void em_gammas(const em_stream *stream, uint64_t first, int64_t n, const double *shape,
               double *out);

/* Random bits for many items that each need a few: out[4 i .. 4 i + 3] are 128 bits that depend on
 * the stream and on block[i] alone. The purpose of the stream must have no other use, and its
 * iteration is below 2^24. `block` and `out` are 64-byte aligned, n a multiple of 8. Local. */
void em_item_bits(const em_stream *stream, int64_t n, const uint64_t *block, uint32_t *out);

/*
 * The jumps of a gamma process on a line, in order of position. The process has the increment
 * Gamma(s, 1) on an interval of length s. Jumps smaller than 2^-32 are left out; their sum has a
 * mean of s 2^-32. For i < EM_JUMPS, gap[i] is the distance from jump i - 1 to jump
 * i, and size[i] the size of jump i, which may be 0. The jumps depend only on the stream, item and
 * batch. Bits on different processors: as em_normals. `gap` and `size` are 64-byte aligned. Local.
 */
enum { EM_JUMPS = 128 };
void em_gamma_jumps(const em_stream *stream, uint32_t item, uint32_t batch, float *gap,
                    float *size);

/* A random permutation of 0 .. n - 1 whose elements are computed on demand and not stored. It is a
 * Feistel network over the least power of two that is at least n; values of n or more are mapped
 * again until they are below n (cycle walking: Black & Rogaway 2002). The keys come from a
 * counter-based stream (Mitchell et al. 2022). */

enum {
    EM_SHUFFLE_ROUNDS = 24
}; /* with fewer rounds, not all permutations of a few numbers are equally likely */

typedef struct em_shuffle {
    uint64_t n, low, high; /* low, high: bit masks of the two halves of an index */
    int shift;             /* the position of the upper half */
    uint64_t key[EM_SHUFFLE_ROUNDS];
} em_shuffle;

/* The permutation that a stream determines, n > 0. Local. */
em_shuffle em_shuffle_of(const em_stream *stream, int64_t n);

/* The element at index `place`; both are in 0 .. n - 1. Local. */
int64_t em_shuffle_at(const em_shuffle *shuffle, int64_t place);
