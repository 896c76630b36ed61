/* `emass verify`: run a stretch of a finished run again, on another number of ranks, and compare.
 */
#ifndef EM_APP_COMMAND_VERIFY_COMMAND_H
#define EM_APP_COMMAND_VERIFY_COMMAND_H

#include "emass/status.h"

/* The command, argv[0] being "verify". Collective. Errors, agreed: EM_EUSAGE, EM_EDATA, those of a
 * run, and EM_ENUMERIC naming the first difference. */
em_status em_verify_command(int argc, const char **argv);

#endif
