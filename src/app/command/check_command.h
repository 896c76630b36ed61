/* `emass check`: parse, load the data, print the plan, test the gradient; no sampling. */
#ifndef EM_APP_COMMAND_CHECK_COMMAND_H
#define EM_APP_COMMAND_CHECK_COMMAND_H

#include "emass/status.h"

/* The command, argv[0] being "check". Collective. Errors, agreed: those of the config and the data;
 * EM_EMODEL when the gradient is wrong. */
em_status em_check_command(int argc, const char **argv);

#endif
