/* The operations and the options of NUTS. Other kernels use NUTS in the initial phase of warmup. */
#pragma once

#include "sampler/hamiltonian/trees.h"

typedef struct em_nuts_options {
    em_sampler_options common;
    int64_t max_treedepth;
} em_nuts_options;

/* The row of max_treedepth, which is `member` of `type`. */
#define EM_NUTS_FIELD(type, member)                                                                \
    EM_ROW_AS("max_treedepth", type, member, EM_FIELD_INT, int64_t, .minimum = 1,                  \
              .maximum = EM_TREES_MOST_DEPTH, .fallback = "10",                                    \
              .doc = "doublings of a tree: it has at most 2^max_treedepth - 1 leapfrog steps")

extern const em_sampler_ops em_nuts;
