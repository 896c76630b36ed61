/*
 * The ranks of a node that hold the same data: one of them writes it into memory that all of them
 * see, or, where it is little or the node has no such memory, into its own, which is then copied.
 */
#ifndef EM_PAR_NODE_SHARED_ARRAY_H
#define EM_PAR_NODE_SHARED_ARRAY_H

#include "emass/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct em_node_array em_node_array;

/* Groups the ranks that say the same `key` by nodes. Collective. Errors, agreed: EM_EMEMORY. */
em_status em_node_array_create(int64_t key, em_node_array **out);
void em_node_array_destroy(em_node_array **holders); /* NULL-safe. Local. */

/* Whether this rank is the one that writes. Local. */
bool em_node_array_writes(const em_node_array *holders);

/*
 * Allocates `count` zeroed elements of `size` bytes, 64-byte aligned, into *(void **)out, as many
 * as the writer says; the others may only read them. Collective over the holders. Errors, agreed
 * among them: EM_EMEMORY. Freed by em_node_array_release.
 */
em_status em_node_array_allocate(em_node_array *holders, int64_t count, size_t size, void *out);

/* What the writer has written there is from now on what the others read; NULL-safe. Collective over
 * the holders. */
void em_node_array_publish(em_node_array *holders, void *memory);

/* Frees *(void **)pointer and sets it to NULL; NULL-safe. Local. */
void em_node_array_release(void *pointer);

#endif
