/*
 * Writes the pages and figures of commands. A file appears under its name only when it is complete.
 * Symbolic links are followed. A file that is not a page of emass is not replaced. All Local, by
 * one rank.
 */
#pragma once

#include "emass/status.h"

#include <stdio.h>

/* A page that is being written to `out`, a temporary file. */
typedef struct em_page {
    char *path, *part;
    FILE *out;
} em_page;

/* Fails if there is already something at `path`, unless it is a file that begins with this line.
 * Messages call such a file a `kind`, for example "report". Errors: EM_EUSAGE. */
em_status em_page_check(const char *path, const char *first_line, const char *kind);

/* Makes the folder unless it exists. Errors: EM_EUSAGE, also where no files can be made in it. */
em_status em_page_make_folder(const char *path);

/* Begins a page, which will replace a regular file of that name. Errors: EM_EUSAGE, EM_EMEMORY;
 * call em_page_close(page, status) even then. */
em_status em_page_open(const char *path, em_page *page);

/* Closes the page. Without an error it gets its final name; else it is removed, and `status`
 * returned. Errors: EM_EIO. */
em_status em_page_close(em_page *page, em_status status);
