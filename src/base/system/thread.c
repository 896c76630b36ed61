#include "base/system/thread.h"

#include <signal.h>
#include <time.h>

int em_thread_start(pthread_t *thread, void *(*run)(void *context), void *context)
{
    enum { STACK_BYTES = 1 << 18 };
    pthread_attr_t small;
    sigset_t all, before;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(thread, &small, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&small);
    return failed;
}

void em_condition_create(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}
