/* Sums over the shards of the data, for what a model does on all of them at the same time. A shard
 * is the part of the data that one rank holds. */
#pragma once

#include "emass/status.h"

#include <stdint.h>

EM_BEGIN_C

typedef struct em_shards {
    void *context;
    /*
     * Replaces x[n] by its sums over all shards. `own` is the status of this rank since the last
     * sum. A rank that has failed must not return before the others, so it passes its error here:
     * then all ranks get this error, and x is undefined. Collective over the ranks of a group.
     */
    em_status (*sum)(void *context, em_status own, int64_t n, int64_t *x);
    /*
     * Puts together what each shard has made for all of them, its part of x, n items of `size`
     * bytes: the parts follow each other, and the first n % n_shard of them have one item more.
     * Collective over the ranks of a group.
     */
    void (*gather)(void *context, int64_t n, int64_t size, void *x);
    /*
     * As sum, of n items of `size` numbers each, but that a shard is given the sums of those alone
     * that gather takes from it; the others are then of no meaning.
     */
    em_status (*deal)(void *context, em_status own, int64_t n, int64_t size, int64_t *x);
} em_shards;

EM_END_C
