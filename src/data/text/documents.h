/*
 * Documents in text, one after the other: the lines of a file, the files of a folder, or the rows
 * of a table or of JSON lines, of which one column is the text. Files may be compressed (.gz, .xz),
 * those of a folder not. All Local.
 */
#pragma once

#include "emass/status.h"

#include <stddef.h>
#include <stdint.h>

/* Where the documents are. */
typedef struct em_documents_options {
    const char *path;  /* a file, or a folder with documents and folders of documents */
    const char *text;  /* the column of the text; NULL: a line is a document */
    const char *name;  /* the column of the names; NULL: none. Files are named by their paths */
    const char *label; /* the column of the labels; NULL: none. In a folder: the folder in it */
} em_documents_options;

/* A document; texts are valid until the next one. */
typedef struct em_text_document {
    const char *text; /* NULL: there are no more */
    size_t length;
    const char *name, *label; /* NULL: none */
} em_text_document;

typedef struct em_documents em_documents;

/* Text columns are read from a table whose first line names its columns, divided by commas,
 * semicolons or tabs, with fields in quotes, over several lines too; or from JSON lines, where the
 * file begins with {. `options` is borrowed. Errors: EM_EDATA: there is no file or column; EM_EIO,
 * EM_EMEMORY. */
em_status em_documents_open(const em_documents_options *options, em_documents **out);
void em_documents_close(em_documents **documents); /* NULL-safe. */

/* Errors: EM_EDATA, which names file and line, what was found and what was expected; EM_EIO,
 * EM_EMEMORY. */
em_status em_documents_next(em_documents *documents, em_text_document *out);
