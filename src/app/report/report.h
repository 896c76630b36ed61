/* `emass report`: one page with the config, the diagnostics and the results of a run. */
#pragma once

#include "emass/status.h"

/* argv[0] is the name of the command. Collective. */
em_status em_report_command(int argc, const char **argv);
