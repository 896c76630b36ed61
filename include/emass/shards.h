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
     * Memory of n items of `size` bytes, zeroed, of which each shard makes its part: the parts
     * follow each other, and the first n % n_shard of them have one item more. Shards on one node
     * write and read the same memory; others have one each. Collective over the ranks of a group.
     * Errors, agreed: EM_EMEMORY, *(void **)out is then NULL.
     */
    em_status (*share)(void *context, int64_t n, int64_t size, void *out);
    /* Shows all shards what each has made of such memory. Collective over the ranks of a group. */
    void (*publish)(void *context, void *memory);
    /* Frees *(void **)memory and sets it to NULL; NULL-safe. Local. */
    void (*release)(void *memory);
    /*
     * Sends bytes[s] bytes, out[s], to each other shard s. What the others send to this one follows
     * each other in *in, taken[s] bytes of shard s; it is made larger where *capacity bytes are too
     * few, and is freed by free. `own` as in sum. Collective over the ranks of a group. Errors,
     * agreed: EM_EMEMORY.
     */
    em_status (*exchange)(void *context, em_status own, const int64_t *bytes,
                          const void *const *out, int64_t *taken, int64_t *capacity, char **in);
} em_shards;

EM_END_C
