/* The command lines of all commands. All Local but em_command_line_read. */
#pragma once

#include "emass/status.h"

#include <popt.h>
#include <stdint.h>

/* The options that were read, and the other arguments. They are valid until em_command_line_end. */
typedef struct em_command_line {
    poptContext popt;
    const struct poptOption *option;
    int64_t n;
    const char **argument; /* [n] */
} em_command_line;

/* Reads argv by a table of options and sets their variables. There must be `least` to `most` other
 * arguments, which an error message calls `what`, for example "one file". argv[0] is the name of
 * the command. Collective. Errors, agreed: EM_EUSAGE; call em_command_line_end even then. */
em_status em_command_line_read(int argc, const char **argv, const struct poptOption *option,
                               const char *what, int64_t least, int64_t most, em_command_line *out);

/* The index of an option's text among its choices, which end with NULL; 0 if `text` is NULL: the
 * option was not given. Local. Errors: EM_EUSAGE. */
em_status em_command_choice(const char *command, const char *option, const char *text,
                            const char *const *choices, int *out);

/* Also frees the texts that the table of options points to. */
void em_command_line_end(em_command_line *line);

/* Replaces the ending .h5 of a path, or appends `ending`: "heart.h5" and ".html" make "heart.html".
 * Freed by em_release. Errors: EM_EMEMORY. */
em_status em_replace_h5(const char *path, const char *ending, char **out);

/* `option` is the last result of poptGetNextOpt: below -1 if an argument is no option of `command`.
 * Errors: EM_EUSAGE. */
em_status em_arguments_check(poptContext context, const char *command, int option);
