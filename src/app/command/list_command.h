/* `emass list`: what a config can say. */
#ifndef EM_APP_COMMAND_LIST_COMMAND_H
#define EM_APP_COMMAND_LIST_COMMAND_H

#include "emass/status.h"

/* The command, argv[0] being "list"; rank 0 prints to standard output. Local. Errors: EM_EUSAGE,
 * the same on all ranks. */
em_status em_list_command(int argc, const char **argv);

#endif
