/* What the command lines of all commands have in common. */
#ifndef EM_APP_SUMMARY_COMMAND_ARGUMENTS_H
#define EM_APP_SUMMARY_COMMAND_ARGUMENTS_H

#include "emass/status.h"

#include <popt.h>
#include <stdint.h>

/* `option` is what poptGetNextOpt returned last: below -1 for one that is no option of `command`.
 * Local. Errors: EM_EUSAGE. */
em_status em_arguments_check(poptContext context, const char *command, int option);

/* The only argument, `what` ("one file"), copied to *out. Local. Errors: EM_EUSAGE, EM_EMEMORY. */
em_status em_arguments_only(poptContext context, const char *command, const char *what, char **out);

/* The arguments, `least` or more of them, "files to merge", each borrowed from the context: the
 * list is freed by em_release. Local. Errors: EM_EUSAGE, EM_EMEMORY. */
em_status em_arguments_all(poptContext context, const char *command, const char *what,
                           int64_t least, int64_t *n, const char ***out);

#endif
