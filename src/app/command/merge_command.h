/* `emass merge`: files of one model, as of the jobs of an array, into one. */
#ifndef EM_APP_COMMAND_MERGE_COMMAND_H
#define EM_APP_COMMAND_MERGE_COMMAND_H

#include "emass/status.h"

/* The command, argv[0] being "merge". Collective. Errors, agreed: EM_EUSAGE, and those of em_merge.
 */
em_status em_merge_command(int argc, const char **argv);

#endif
