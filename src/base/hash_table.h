/*
 * A hash table: it numbers texts, draws and other data from 0 on, in the order in which they come,
 * and finds their numbers again. It keeps only their hashes, of 128 bits: data with equal hashes
 * are taken to be equal. All Local.
 */
#pragma once

#include "emass/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct em_hash {
    uint64_t low, high;
} em_hash;

/* All members are zero at first. */
typedef struct em_hash_table {
    int64_t n, capacity, n_slot;
    em_hash *hash; /* [n] */
    int64_t *slot; /* [n_slot] 1 + a number; 0: free */
} em_hash_table;

em_hash em_hash_of(const void *data, size_t bytes);

/* The number of the data with this hash; -1: none. */
int64_t em_hash_find(const em_hash_table *table, em_hash hash);

/* The number of the data with this hash; new data get the next number, n. Errors: EM_EMEMORY. */
em_status em_hash_add(em_hash_table *table, em_hash hash, int64_t *number);

void em_hash_table_release(em_hash_table *table);
