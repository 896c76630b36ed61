/* Checks the files that a Stan program includes, before the interpreter opens them. */
#pragma once

#include "emass/status.h"

#include <stdint.h>

/*
 * The files that a program includes, and those that these include, by their names in `folder`, are
 * text: no pipe, which may never end, no folder, no more than `most` bytes in all, as often as each
 * is there. One that is missing, or includes itself, is left to the interpreter, which says so.
 * `path` is what messages name the program by. Local. Errors: EM_EUSAGE, EM_EDATA, EM_EMEMORY.
 */
em_status em_stan_check_includes(const char *path, const char *folder, const char *program,
                                 int64_t most);
