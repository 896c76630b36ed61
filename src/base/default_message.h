/* Failures of foreign code (models, sinks). If it sets no message with em_fail, a default message
 * replaces the one of an earlier failure. All Local. */
#pragma once

#include "emass/status.h"

#include <stdint.h>

/* The number of calls of em_fail by this thread so far. */
uint64_t em_messages_set(void);

/* Returns `status`. If it is a failure and no message was set since em_messages_set() returned
 * `before`, sets one that names `who`. */
em_status em_default_message(em_status status, uint64_t before, const char *who);
