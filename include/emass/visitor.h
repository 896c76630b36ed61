/*
 * A walk over the state of a run, the same for saving and restoring it: whoever owns state shows
 * each of its arrays to a visitor, which either reads or replaces the numbers. One description
 * serves both, so that they cannot disagree.
 */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

EM_BEGIN_C

/* How numbers are kept in memory, and as such in a file. */
typedef enum em_number {
    EM_NUMBER_DOUBLE,
    EM_NUMBER_INT64,
    EM_NUMBER_INT32,
    EM_NUMBER_UINT16,
    EM_NUMBER_UINT8
} em_number;

typedef struct em_visitor {
    void *context;
    bool restores; /* it replaces the numbers: what is derived from them has to be made anew */
    /* x[n_local_chain][n]: rows of this rank's chains, kept by chain number. Collective. */
    em_status (*chains)(void *context, const char *name, int64_t n, double *x);
    /* x[n]: the same on all ranks. Collective. */
    em_status (*shared)(void *context, const char *name, int64_t n, double *x);
    /* x[n_local_chain][count]: each chain has `total` numbers, which are divided among the shards;
     * this rank passes numbers first .. first + count - 1 of its chains. Collective. */
    em_status (*dealt)(void *context, const char *name, em_number kind, int64_t total,
                       int64_t first, int64_t count, void *x);
} em_visitor;

EM_END_C
