/* `emass run`: sample, write one file, print its summary. */
#ifndef EM_APP_COMMAND_RUN_COMMAND_H
#define EM_APP_COMMAND_RUN_COMMAND_H

#include "emass/status.h"

/* The command, argv[0] being "run". Collective. Errors, agreed: everything a run can fail with. */
em_status em_run_command(int argc, const char **argv);

/* Reads the text of a config on rank 0 and tells the others. Collective. Errors, agreed: EM_EUSAGE,
 * EM_EDATA, EM_EMEMORY. Freed by em_release. */
em_status em_read_config(const char *path, char **text);

#endif
