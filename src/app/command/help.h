/* The help texts, which are in help.txt. */
#pragma once

#include "emass/status.h"

/* Prints the help of a command, or of "emass", to standard output. On a terminal lines are broken
 * to its width, a hundred columns at most. Local. Errors: EM_EMEMORY. */
em_status em_help_print(const char *name);

/* The same of a command that a model brings (emass/model/commands.h), from its own text. */
em_status em_help_print_text(const char *text);
