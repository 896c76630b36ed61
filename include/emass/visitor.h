/*
 * A visitor saves or restores the state of a run. The owner of state passes each of its arrays to
 * the visitor, which either reads or replaces the numbers. The same calls save and restore, so that
 * the two cannot disagree.
 */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

EM_BEGIN_C

/* The type of numbers in memory and in a file. */
typedef enum em_number {
    EM_NUMBER_DOUBLE,
    EM_NUMBER_INT64,
    EM_NUMBER_INT32,
    EM_NUMBER_UINT16,
    EM_NUMBER_UINT8
} em_number;

typedef struct em_visitor {
    void *context;
    bool restores; /* it replaces the numbers; the owner must then recompute what it derived from
                      them */
    /* x [n_local_chain][n]: one row for each chain of this rank, stored by chain number.
     * Collective. */
    em_status (*chains)(void *context, const char *name, int64_t n, double *x);
    /* x [n]: equal on all ranks. Collective. */
    em_status (*shared)(void *context, const char *name, int64_t n, double *x);
    /* x [n_local_chain][count]: each chain has `total` numbers, which are divided over the shards.
     * This rank passes numbers first .. first + count - 1 of its chains. Collective. */
    em_status (*sharded)(void *context, const char *name, em_number kind, int64_t total,
                         int64_t first, int64_t count, void *x);
} em_visitor;

EM_END_C
