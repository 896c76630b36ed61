/* `emass run`: sample, write one file, print its summary. */
#ifndef EM_APP_RUN_H
#define EM_APP_RUN_H

#include "emass/status.h"
#include "run/config.h"

/* The command, argv[0] being "run". Collective. Errors, agreed: everything a run can fail with. */
em_status em_run_command(int argc, const char **argv);

/*
 * Reads the config on rank 0, tells the others, and parses it everywhere with the overrides
 * "key=value". Collective. Errors, agreed: EM_EUSAGE, EM_ECONFIG, EM_EMEMORY.
 */
em_status em_load_config(const char *path, int n_override, const char *const *override,
                         em_config **out);

#endif
