/* The command lines of all commands. All Local but em_command_line_read. */
#pragma once

#include "emass/status.h"

#include <popt.h>
#include <stdint.h>

/* Options that have been read, and the arguments beside them: borrowed until em_command_line_end.
 */
typedef struct em_command_line {
    poptContext popt;
    const struct poptOption *option;
    int64_t n;
    const char **argument; /* [n] */
} em_command_line;

/*
 * Reads argv by a table of options, whose variables are set, and between `least` and `most`
 * arguments, which a message calls `what`: "one file". argv[0] is the name of the command.
 * Collective. Errors, agreed: EM_EUSAGE; em_command_line_end all the same.
 */
em_status em_command_line_read(int argc, const char **argv, const struct poptOption *option,
                               const char *what, int64_t least, int64_t most, em_command_line *out);

/* Frees the texts that the table of options points to as well. */
void em_command_line_end(em_command_line *line);

/* NAME.h5 or NAME, with another ending: "heart.h5" and ".html" make "heart.html". Freed by
 * em_release. Errors: EM_EMEMORY. */
em_status em_replace_h5(const char *path, const char *ending, char **out);

/* `option` is what poptGetNextOpt returned last: below -1 for one that is no option of `command`.
 * Errors: EM_EUSAGE. */
em_status em_arguments_check(poptContext context, const char *command, int option);
