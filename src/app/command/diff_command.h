/* `emass diff`: what differs between two files, and where first. */
#ifndef EM_APP_COMMAND_DIFF_COMMAND_H
#define EM_APP_COMMAND_DIFF_COMMAND_H

#include "emass/status.h"

/* The command, argv[0] being "diff"; rank 0 reads and prints. Collective. Errors, agreed:
 * EM_EUSAGE, EM_EDATA (also where a file cannot be read), and EM_ENUMERIC where the files differ.
 */
em_status em_diff_command(int argc, const char **argv);

#endif
