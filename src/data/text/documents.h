/* Reads documents in text one after the other: the lines of a file, the files of a folder, or one
 * column of a table or of JSON lines. Files may be compressed (.gz, .xz), except in a folder. All
 * functions are Local. */
#pragma once

#include "emass/status.h"

#include <stddef.h>

/* Where the documents are. */
typedef struct em_documents_options {
    const char *path; /* a file, or a folder of documents, which may contain folders */
    const char *text; /* the column of the text; NULL: a line is a document */
    /* the column of the names; NULL: none. Files of a folder have their paths as names */
    const char *name;
    const char *label; /* the column of the labels; NULL: none. Files of a folder have their
                          subfolder as label */
} em_documents_options;

/* A document; texts are valid until the next one. */
typedef struct em_text_document {
    const char *text; /* NULL: there are no more */
    size_t length;
    const char *name, *label; /* NULL: none */
} em_text_document;

typedef struct em_documents em_documents;

/* The first line of a table names its columns. Delimiters are commas, semicolons or tabs. Quoted
 * fields may contain line breaks. A file that begins with { has JSON lines. `options` is borrowed.
 * Errors: EM_EDATA: there is no file or column; EM_EIO, EM_EMEMORY. */
em_status em_documents_open(const em_documents_options *options, em_documents **out);
void em_documents_close(em_documents **documents); /* NULL-safe. */

/* Errors: EM_EDATA, which names file and line, what was found and what was expected; EM_EIO,
 * EM_EMEMORY. */
em_status em_documents_next(em_documents *documents, em_text_document *out);
