/*
 * How a rank of ours waits for another. Collectives of MPI, which HDF5 calls too, look for messages
 * in a loop. Open MPI calls sched_yield between two looks; libraries find this one before libc's.
 * MPICH calls nothing, but where it is built upon UCX a look is a call of UCX, which finds the one
 * below first. (Other builds of it spin: there, ranks are not to be more than processors.)
 *
 * Where ranks alone share a processor a yield is the best there is: the next one has it at once,
 * and it returns within microseconds. Where anybody else computes there, a yield hands over a whole
 * turn of the scheduler, some milliseconds, again and again, while messages lie there. A yield that
 * returns late says so; from then on, and for longer each time that is confirmed, the rank sleeps
 * instead, for moments. Who wakes from sleep has not used up its turn, and soon has the processor.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Nanoseconds. What other ranks do between two waits seldom takes LATE; a turn is 3 to 4 ms. */
#define MICROSECOND  INT64_C(1000)
#define LATE         (2000 * MICROSECOND)
#define APART        (10 * MICROSECOND) /* looks of one wait are no further apart */
#define FIRST_NAP    (10 * MICROSECOND)
#define LONG_NAP     (50 * MICROSECOND)
#define LONGEST_NAP  (1000 * MICROSECOND)
#define SHORT_CALM   (20 * 1000 * MICROSECOND)
#define LONGEST_CALM (1000 * 1000 * MICROSECOND)

typedef struct waiting {
    int64_t began, last; /* this wait, and its last look */
    int64_t nap;
    int64_t calm, calm_until; /* how long yields are not tried, and until when */
} waiting;

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Half as long again each time; a sixteenth of what a long wait has taken is not missed. */
static void take_nap(waiting *w, int64_t time)
{
    const int64_t share = (time - w->began) / 16;
    const int64_t most = share < LONG_NAP ? LONG_NAP : share < LONGEST_NAP ? share : LONGEST_NAP;

    nanosleep(&(struct timespec){.tv_nsec = w->nap}, NULL);
    w->nap = w->nap * 3 / 2 < most ? w->nap * 3 / 2 : most;
}

/* Late soon after the last calm: processors are shared still. */
static void note_late(waiting *w, int64_t time)
{
    const bool again = time - w->calm_until < w->calm;

    w->calm = !again ? SHORT_CALM : 2 * w->calm < LONGEST_CALM ? 2 * w->calm : LONGEST_CALM;
    w->calm_until = time + w->calm;
    prctl(PR_SET_TIMERSLACK, MICROSECOND); /* by default naps end 50 microseconds late */
}

__attribute__((visibility("default"))) int sched_yield(void)
{
    static _Thread_local waiting own;
    const int64_t time = now();

    if (time - own.last > APART) {
        own.began = time;
        own.nap = FIRST_NAP;
    }
    if (time < own.calm_until) {
        take_nap(&own, time);
        own.last = now();
        return 0;
    }
    syscall(SYS_sched_yield);
    own.last = now();
    if (own.last - time > LATE)
        note_late(&own, own.last);
    return 0;
}

#ifdef MPICH_VERSION
typedef unsigned look(void *worker);

/* A look of UCX's, and a yield where it finds nothing. What ranks of one node say to one another
 * does not come that way: MPICH looks for it next, before it looks here again. */
__attribute__((visibility("default"))) unsigned ucp_worker_progress(void *worker);

unsigned ucp_worker_progress(void *worker)
{
    static look *own;
    unsigned events;

    if (!own) {
        void *found = dlsym(RTLD_NEXT, "ucp_worker_progress");
        memcpy(&own, &found, sizeof own);
    }
    events = own ? own(worker) : 0;
    if (events == 0)
        sched_yield();
    return events;
}
#endif
