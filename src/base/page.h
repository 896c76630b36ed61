/*
 * Pages and figures that commands write. A file appears at its name only when it is whole. A
 * symbolic link is followed, and a file that is no page of emass is not replaced. All Local, by one
 * rank.
 */
#pragma once

#include "emass/status.h"

#include <stdio.h>

/* One that is being written, into `out`, a file of its own. */
typedef struct em_page {
    char *path, *part;
    FILE *out;
} em_page;

/* Fails where something else stands than a file that begins with this line, of `kind`: "report".
 * Errors: EM_EUSAGE. */
em_status em_page_check(const char *path, const char *first_line, const char *kind);

/* A folder, made if it is not there, or fails where no files can be made in it. Errors: EM_EUSAGE.
 */
em_status em_page_make_folder(const char *path);

/* Begins one in place of whatever regular file stands there. Errors: EM_EUSAGE, EM_EMEMORY;
 * em_page_close(page, status) all the same. */
em_status em_page_open(const char *path, em_page *page);

/* Ends it, has it take its place unless something went wrong, and says what did. Errors: EM_EIO. */
em_status em_page_close(em_page *page, em_status status);
