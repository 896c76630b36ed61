/* `emass predict`: predictions for new data from the draws of a run. */
#ifndef EM_APP_COMMAND_PREDICT_COMMAND_H
#define EM_APP_COMMAND_PREDICT_COMMAND_H

#include "emass/status.h"

/* The command, argv[0] being "predict"; rank 0 prints to standard output. Collective. Errors,
 * agreed: EM_EUSAGE, and those of em_predict. */
em_status em_predict_command(int argc, const char **argv);

#endif
