/* Functions by which readers fill a table, and by which it is then completed over all ranks. */
#pragma once

#include "data/table/table.h"

/* A table without rows. Local. Errors: EM_EMEMORY. */
em_status em_table_create(const char *path, em_table **out);

/* Makes the table sparse, or labelled, even if it gets no rows. Local. Errors: EM_EMEMORY. */
em_status em_table_make_sparse(em_table *table);
em_status em_table_make_labelled(em_table *table);

/* Begins a run of consecutive rows; `order` sorts the runs of all ranks. Local. Errors:
 * EM_EMEMORY. */
em_status em_table_begin_run(em_table *table, int64_t order);

/* The line of a held row; held == n_row: of the next row. Local. */
int64_t em_table_line_of(const em_table *table, int64_t held);

/* Appends an entry to the row being read, and ends it. Local. Errors: EM_EMEMORY. */
em_status em_table_push(em_table *table, double value);
em_status em_table_push_sparse(em_table *table, int32_t column, double value);
em_status em_table_end_row(em_table *table, int64_t line);
em_status em_table_end_row_labelled(em_table *table, int64_t line, double label);

/* Ends `count` dense rows, from line `line` on, whose numbers the caller has written after the
 * present ones. Local. Errors: EM_EMEMORY. */
em_status em_table_end_rows(em_table *table, int64_t line, int64_t count);

/* Names columns that have no name x1, x2, ... Local. Errors: EM_EMEMORY. */
em_status em_table_name_columns(em_table *table);

/* Removes the numbers of the row being read, and counts it as dropped. Local. */
void em_table_drop_row(em_table *table);

/* Appends a text as the value of a column. Local. Errors: EM_EMEMORY. */
em_status em_table_push_text(em_table *table, int64_t column, const char *text);

/* Completes a table after its last row: numbers the rows over all ranks, names columns without
 * names, and finds the totals. Collective. Errors, agreed: EM_EMEMORY. */
em_status em_table_finish(em_table *table);

/* The contribution of held rows to the hash of the table. They are the rows from `row` on of the
 * whole table. Contributions are added, so the hash does not depend on the ranks that hold the
 * rows. Local. */
uint64_t em_table_hash_rows(const em_table *table, int64_t held, int64_t count, int64_t row);

/* Sets the hash of the table from the sum of this rank's contributions. Collective. */
void em_table_hash(em_table *table, uint64_t sum);

/* Removes all rows but keeps the memory. Local. */
static inline void em_table_clear(em_table *table)
{
    table->n_row = table->n_value = table->n_break = table->n_run = 0;
}
