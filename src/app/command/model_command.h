/* Commands that built-in models bring (emass/model/commands.h). */
#pragma once

#include "emass/model/commands.h"

/* The i-th of all of them; NULL: there are no more. Local. */
const em_model_command *em_model_command_at(int i);

/* Reads the arguments, argv[0] being the name, and runs it. Collective. Errors: EM_EUSAGE, those of
 * the command. */
em_status em_model_command_run(const em_model_command *command, int argc, const char **argv);
