/* How readers fill a table, and what it then takes for it to be one of all ranks. */
#ifndef EM_DATA_TABLE_BUILDER_H
#define EM_DATA_TABLE_BUILDER_H

#include "data/table/table.h"

/* A table without rows. Local. Errors: EM_EMEMORY. */
em_status em_table_create(const char *path, em_table **out);

/* Its rows will be sparse, or labelled, even if there are none. Local. Errors: EM_EMEMORY. */
em_status em_table_make_sparse(em_table *table);
em_status em_table_make_labelled(em_table *table);

/* The rows that follow belong together; `order` says where among those of all ranks. Local. Errors:
 * EM_EMEMORY. */
em_status em_table_begin_run(em_table *table, int64_t order);

/* The line that a held row is on, or would be on as the next one. Local. */
int64_t em_table_line_of(const em_table *table, int64_t held);

/* Appends an entry to the row being read, and ends it. Local. Errors: EM_EMEMORY. */
em_status em_table_push(em_table *table, double value);
em_status em_table_push_sparse(em_table *table, int32_t column, double value);
em_status em_table_end_row(em_table *table, int64_t line);
em_status em_table_end_row_labelled(em_table *table, int64_t line, double label);

/* The next `count` dense rows, on the lines from `line` on, stand in the room behind the numbers
 * that are there. Local. Errors: EM_EMEMORY. */
em_status em_table_end_rows(em_table *table, int64_t line, int64_t count);

/* Names columns that have no name x1, x2, ... Local. Errors: EM_EMEMORY. */
em_status em_table_name_columns(em_table *table);

/* Takes back the numbers of the row being read, which counts as dropped. Local. */
void em_table_drop_row(em_table *table);

/* The text stands for itself in a column. Local. Errors: EM_EMEMORY. */
em_status em_table_push_text(em_table *table, int64_t column, const char *text);

/* All rows are read: numbers them over all ranks, names the columns that have no name, and finds
 * what is said of the whole. Collective. Errors, agreed: EM_EMEMORY. */
em_status em_table_finish(em_table *table);

/* What held rows, which are the rows from `row` on of the whole, add to the hash: a sum of what the
 * number of each row makes of it, whoever holds it. Local. */
uint64_t em_table_hash_rows(const em_table *table, int64_t held, int64_t count, int64_t row);

/* Sets the hash of a table of `total` rows from such a sum over this rank's. Collective. */
void em_table_hash(em_table *table, uint64_t sum);

/* Lets the rows go, and keeps the room for others. Local. */
void em_table_clear(em_table *table);

/* What held rows, which are the rows from `row` on of the whole, add to the hash: a sum of what the
 * number of each row makes of it, whoever holds it. Local. */
uint64_t em_table_hash_rows(const em_table *table, int64_t held, int64_t count, int64_t row);

/* Sets the hash of a table of `total` rows from the sum over those of this rank. Collective. */
void em_table_hash(em_table *table, uint64_t sum);

/* Lets the rows go, and keeps the room for others. Local. */
void em_table_clear(em_table *table);

#endif
