/* `emass report`: one page with the config, the diagnostics and the results of a run. */
#pragma once

#include "emass/status.h"

/* argv[0] is the name of the command. Collective. */
em_status em_report_command(int argc, const char **argv);

/* Writes the report of a finished run, as that command does. Collective. Errors: those of reading,
 * EM_EUSAGE, EM_EIO. */
em_status em_report_write(const char *file, const char *output);

/* Fails if em_report_write could not replace what exists at `output`. Local. Errors: EM_EUSAGE. */
em_status em_report_check(const char *output);
