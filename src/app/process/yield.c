/*
 * How a rank waits for another one. Collectives of MPI, which HDF5 calls too, poll for messages in
 * a loop. Open MPI calls sched_yield between two polls, and the linker finds the sched_yield below
 * before that of libc. MPICH calls nothing between polls; but where it is built with UCX, a poll is
 * a call of ucp_worker_progress, and the one below is found first. Other builds of MPICH spin: with
 * these, do not start more ranks than processors.
 *
 * Where only ranks share a processor, a yield is best: the next rank runs at once, and the yield
 * returns within microseconds. Where another program computes on the processor, a yield gives it a
 * whole time slice, some milliseconds, while messages wait. A yield that returns late shows this.
 * The rank then sleeps for short times instead of yielding, and for longer periods each time that a
 * later yield is late again. A process that wakes from sleep has not used up its time slice, so the
 * scheduler soon runs it.
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

/* Times in nanoseconds. A yield that takes longer than LATE shows that the processor is shared:
 * other ranks seldom need as long between two waits, and a turn of another process takes 3 to 4 ms.
 */
#define MICROSECOND  INT64_C(1000)
#define LATE         (2000 * MICROSECOND)
#define APART        (10 * MICROSECOND) /* looks of one wait are no further apart */
#define FIRST_NAP    (10 * MICROSECOND)
#define LONG_NAP     (50 * MICROSECOND)
#define LONGEST_NAP  (1000 * MICROSECOND)
#define SHORT_CALM   (20 * 1000 * MICROSECOND)
#define LONGEST_CALM (1000 * 1000 * MICROSECOND)

typedef struct waiting {
    int64_t began, last; /* this wait, and its last poll */
    int64_t nap;
    int64_t calm, calm_until; /* how long yields are not tried, and until when */
} waiting;

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Sleeps half as long again each time, up to a sixteenth of the time that the wait has taken. */
static void take_nap(waiting *w, int64_t time)
{
    const int64_t share = (time - w->began) / 16;
    const int64_t most = share < LONG_NAP ? LONG_NAP : share < LONGEST_NAP ? share : LONGEST_NAP;

    nanosleep(&(struct timespec){.tv_nsec = w->nap}, NULL);
    w->nap = w->nap * 3 / 2 < most ? w->nap * 3 / 2 : most;
}

/* Records that a yield was late. If that happens soon after the last period without yields, the
 * processor is still shared, and the next period is longer. */
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
typedef unsigned progress_function(void *worker);

/* Polls by UCX, and yields if there is no message. Messages between ranks of one node do not come
 * through UCX. MPICH polls for them next, before it calls this again. */
__attribute__((visibility("default"))) unsigned ucp_worker_progress(void *worker);

unsigned ucp_worker_progress(void *worker)
{
    static progress_function *own;

    if (!own) {
        void *found = dlsym(RTLD_NEXT, "ucp_worker_progress");
        memcpy(&own, &found, sizeof own);
    }
    const unsigned events = own ? own(worker) : 0;
    if (events == 0)
        sched_yield();
    return events;
}
#endif
