/* Arranges the rows of a table for people: parameters, then transformed parameters, then generated
 * quantities; scalars and short arrays before long ones. Equal rows become one line, and of many
 * rows only some are shown. All Local. */
#pragma once

#include "app/summary/evidence.h"
#include "app/summary/summary_table.h"
#include "emass/status.h"
#include "io/draws/reader.h"

/* Rows on a terminal, unless all are asked for, and in the log of a run. */
enum { EM_ROWS_ON_TERMINAL = 40, EM_ROWS_IN_LOG = 100 };

typedef struct em_rows_order {
    int64_t most; /* rows */
    bool sorted;  /* the order of the rows is kept */
    bool marks;   /* if rows are left out, those that mix worst are marked */
} em_rows_order;

typedef struct em_visible_rows {
    em_summary_table table; /* columns borrowed, rows and their texts owned */
    int64_t n_line;         /* lines of the complete table */
} em_visible_rows;

/* Arranges a table whose rows are elements of the reader. Call em_rows_release even after an error.
 * Errors: EM_EMEMORY. */
em_status em_rows_arrange(const em_summary_table *table, const em_reader *reader,
                          const em_rows_order *order, em_visible_rows *out);
void em_rows_release(em_visible_rows *rows);
