/* Documents that are read one after the other, as rows of a sparse table. All Local. */
#pragma once

#include "data/corpus/corpus_table.h"

typedef struct em_document_entry {
    int32_t word, count;
} em_document_entry;

/* `path` is for messages. Freed by em_document_rows_release. */
typedef struct em_document_rows {
    const char *path;
    em_table *table;
    em_corpus_take *take; /* gets the rows, some at a time; NULL: they stay in the table */
    void *to;
    int64_t found, n_row;           /* entries and documents so far */
    int64_t length, used, capacity; /* tokens and entries of the document being read */
    em_document_entry *entry;
} em_document_rows;

/* Adds `count` tokens of a word, found on this line, to the document that is being read. A word may
 * be added several times. Errors: EM_EDATA if the document is too long; EM_EMEMORY. */
em_status em_document_rows_add(em_document_rows *rows, int64_t line, int64_t word, int64_t count);

/* Ends the document, and makes it a row with one entry for each of its words, in ascending order.
 * Errors: EM_EMEMORY; those of `take`. */
em_status em_document_rows_end(em_document_rows *rows, int64_t line);

/* Passes the remaining rows to `take`. To be called after the last document. Errors: those of
 * `take`. */
em_status em_document_rows_finish(em_document_rows *rows);

void em_document_rows_release(em_document_rows *rows);
