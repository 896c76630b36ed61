/* Threads beside the one that samples: they sleep nearly always, and take none of its signals. */
#ifndef EM_BASE_SYSTEM_THREAD_H
#define EM_BASE_SYSTEM_THREAD_H

#include <pthread.h>

/* Runs run(context) in a thread with a small stack, which is joined. 0, or the errno of why not.
 * Local. */
int em_thread_start(pthread_t *thread, void *(*run)(void *context), void *context);

/* A condition whose deadlines are of the monotonic clock. Local. */
void em_condition_create(pthread_cond_t *condition);

#endif
