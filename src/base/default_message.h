/* Failures of code that is not ours (models, sinks), which may forget to say why: else the message
 * would be that of an earlier one. All Local. */
#ifndef EM_BASE_DEFAULT_MESSAGE_H
#define EM_BASE_DEFAULT_MESSAGE_H

#include "emass/status.h"

#include <stdint.h>

/* How many messages this thread has had so far. */
uint64_t em_n_said(void);

/* The status of what began when there were `before`: other than EM_OK and without a message it is
 * given one, in which it is called `who`. */
em_status em_default_message(em_status status, uint64_t before, const char *who);

#endif
