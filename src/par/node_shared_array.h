/*
 * Arrays shared by the ranks of a node that need the same data. One rank, the writer, writes into
 * shared memory, which the others read. If the array is small or the node has no shared memory,
 * each rank has its own copy.
 */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct em_node_array em_node_array;

/* Groups the ranks that pass the same `key` by nodes. Collective. Errors, agreed: EM_EMEMORY. */
em_status em_node_array_create(int64_t key, em_node_array **out);
void em_node_array_destroy(em_node_array **node_array); /* NULL-safe. Local. */

/* Whether this rank is the one that writes. Local. */
bool em_node_array_writes(const em_node_array *node_array);

/* Sets *(void **)out to an array of `count` elements of `size` bytes, zero and 64-byte aligned. The
 * writer's `count` is used, and the other ranks may only read the array. Collective over its ranks.
 * Errors, agreed among them: EM_EMEMORY. Freed by em_node_array_release. */
em_status em_node_array_allocate(em_node_array *node_array, int64_t count, size_t size, void *out);

/* Makes what the writer has written visible to the other ranks; NULL-safe. Collective over its
 * ranks. */
void em_node_array_publish(em_node_array *node_array, void *memory);

/* Frees *(void **)pointer and sets it to NULL; NULL-safe. Local. */
void em_node_array_release(void *pointer);
