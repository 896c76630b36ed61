/* Checks the files that a Stan program includes, before the interpreter opens them. */
#pragma once

#include "emass/status.h"

#include <stdint.h>

/*
 * Checks all files that a program includes from `folder`, directly or through other files. Each
 * must be a regular text file: a pipe may never end. Together they may have at most `most` bytes,
 * each counted as often as it is included. A file that is missing or includes itself is no error
 * here, because the interpreter reports it. Messages call the program `path`. Local. Errors:
 * EM_EUSAGE, EM_EDATA, EM_EMEMORY.
 */
em_status em_stan_check_includes(const char *path, const char *folder, const char *program,
                                 int64_t most);
