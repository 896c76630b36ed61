/* emass convert: a table in the form that ranks read fastest. */
#ifndef EM_APP_COMMAND_CONVERT_COMMAND_H
#define EM_APP_COMMAND_CONVERT_COMMAND_H

#include "emass/status.h"

/* argv[0] is "convert". Collective. Errors, agreed: EM_EUSAGE, EM_EDATA, EM_EIO, EM_EMEMORY. */
em_status em_convert_command(int argc, const char **argv);

#endif
