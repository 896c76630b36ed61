/* Communication between the shards of the data, for functions of a model that all of them call at
 * the same time. A shard is the part of the data that one rank holds. */
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
     * Allocates n items of `size` bytes, set to zero, of which each shard is to write its part. The
     * parts are consecutive; the first n % n_shard of them have one item more. Shards on one node
     * share the memory; every node has its own. Collective over the ranks of a group. Errors, the
     * same on all ranks: EM_EMEMORY, with *(void **)out NULL.
     */
    em_status (*share)(void *context, int64_t n, int64_t size, void *out);
    /* Makes the parts that all shards have written visible to all of them. Collective over the
     * ranks of a group. */
    void (*publish)(void *context, void *memory);
    /* Frees *(void **)memory and sets it to NULL; NULL-safe. Local. */
    void (*release)(void *memory);
    /*
     * Sends bytes[s] bytes from out[s] to each other shard s. The data that this shard receives are
     * in *in, ordered by sender, taken[s] bytes from shard s. *in is reallocated if *capacity bytes
     * are too few; the caller frees it by free. `own` as in sum. Collective over the ranks of a
     * group. Errors, the same on all ranks: EM_EMEMORY.
     */
    em_status (*exchange)(void *context, em_status own, const int64_t *bytes,
                          const void *const *out, int64_t *taken, int64_t *capacity, char **in);
} em_shards;

EM_END_C
