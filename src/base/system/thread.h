/* Helper threads beside the sampling thread. They sleep nearly always and receive none of its
 * signals. */
#pragma once

#include <pthread.h>

/* Runs run(context) in a joinable thread with a small stack. Returns 0 or an errno. Local. */
int em_thread_start(pthread_t *thread, void *(*run)(void *context), void *context);

/* Initialises a condition variable whose deadlines use the monotonic clock. Local. */
void em_condition_create(pthread_cond_t *condition);
