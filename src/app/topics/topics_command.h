/* `emass topics`: what the topics of a run are about. */
#ifndef EM_APP_TOPICS_TOPICS_COMMAND_H
#define EM_APP_TOPICS_TOPICS_COMMAND_H

#include "emass/status.h"

/* The command, argv[0] being "topics"; rank 0 prints to standard output. Local. Errors: EM_EUSAGE,
 * EM_EDATA, EM_EIO, EM_EMEMORY, the same on all ranks. */
em_status em_topics_command(int argc, const char **argv);

#endif
