/* Sends the rows of a table from the ranks that have read them to the ranks that need them. */
#pragma once

#include "data/table/table.h"

/* Some rows of a table, laid out as in em_table; the entries k of its i-th row are
 * start[i] - start[0] <= k < start[i + 1] - start[0]. */
typedef struct em_row_block {
    int64_t row, count; /* counted from the first requested row */
    const double *response, *beside[EM_N_BESIDE], *value;
    const int64_t *start;
    const int32_t *column;
} em_row_block;

/* Receives a block of rows, which is valid during the call. Local. */
typedef em_status em_take(void *to, const em_row_block *piece);

/* Passes the rows first .. first + count - 1 to `take` on this rank, in order and in blocks. Ranks
 * may request different rows or the same rows. Needs little more memory than the table. Collective.
 * Errors, agreed: what `take` returns, EM_EMEMORY. */
em_status em_redistribute_rows(const em_table *table, int64_t first, int64_t count, em_take *take,
                               void *to);

/* Replaces the rows of the table on this rank by the rows first .. first + count - 1. Collective.
 * Errors, agreed: EM_EMEMORY. */
em_status em_table_hold(em_table *table, int64_t first, int64_t count);
