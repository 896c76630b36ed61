/*
 * A permutation of 0 .. n - 1 that is computed where it is asked for and never stored: a Feistel
 * network over the least power of two that holds n, walked along its cycle until it is below n
 * (Black & Rogaway 2002), with keys from a counter-based stream (Mitchell et al. 2022).
 */
#ifndef EM_MATH_SHUFFLE_H
#define EM_MATH_SHUFFLE_H

#include "math/rng.h"

enum { EM_SHUFFLE_ROUNDS = 24 }; /* fewer are not uniform over the permutations of few numbers */

typedef struct em_shuffle {
    uint64_t n, low, high; /* low, high: the ones of the halves of a number */
    int shift;             /* where the upper half begins */
    uint64_t key[EM_SHUFFLE_ROUNDS];
} em_shuffle;

/* That of the stream, for n > 0. Local. */
em_shuffle em_shuffle_of(const em_stream *stream, int64_t n);

/* The number at a place, both from 0 below n. Local. */
int64_t em_shuffle_at(const em_shuffle *shuffle, int64_t place);

#endif
