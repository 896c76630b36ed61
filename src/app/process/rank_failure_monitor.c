#include "app/process/rank_failure_monitor.h"

#include "base/fault.h"
#include "base/system/thread.h"
#include "par/mpi_world.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Seconds that launchers have, which do better: they know what ended the rank. */
enum { PATIENCE = 10 };

enum { MATE, PARTING, N_FILE };

static struct {
    bool may, begun; /* there are ranks; the thread has */
    pthread_t thread;
    int file[N_FILE], write_end; /* readable: the mate has ended, the ranks part */
    int mate, patience;          /* its rank in the world; milliseconds */
} watch;

/* True when the file becomes readable in time; -1: whenever that is. */
static bool wait_for(struct pollfd *file, int n, int milliseconds)
{
    int found;

    do
        found = poll(file, (nfds_t)n, milliseconds);
    while (found < 0 && errno == EINTR);
    return found != 0;
}

static void *look(void *context)
{
    struct pollfd file[N_FILE] = {{watch.file[MATE], POLLIN, 0}, {watch.file[PARTING], POLLIN, 0}};

    (void)context;
    wait_for(file, N_FILE, -1);
    if (file[PARTING].revents || wait_for(&file[PARTING], 1, watch.patience))
        return NULL;
    fprintf(stderr, "emass: rank %d was lost: the others, who would wait for it, end too\n",
            watch.mate);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    abort();
}

/* A process, as others see it who count processes from the same one on. */
typedef struct who {
    int64_t process, counted_in, rank;
} who;

static who describe_self(void)
{
    struct stat space;

    return (who){getpid(), stat("/proc/self/ns/pid", &space) == 0 ? (int64_t)space.st_ino : -1,
                 em_world_rank()};
}

/* Files are closed with the process. */
static bool start(const who *mate)
{
    int ends[2];

    watch.mate = (int)mate->rank;
    watch.file[MATE] = (int)syscall(SYS_pidfd_open, (pid_t)mate->process, 0);
    if (watch.file[MATE] < 0 || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    watch.file[PARTING] = ends[0];
    watch.write_end = ends[1];
    return em_thread_start(&watch.thread, look, NULL) == 0;
}

/* Each tells the one before it. */
void em_rank_failure_watch(void)
{
    const who own = describe_self();
    who next = own;
    int size, rank;

    MPI_Comm_size(em_world_node(), &size);
    MPI_Comm_rank(em_world_node(), &rank);
    MPI_Sendrecv(&own, sizeof own, MPI_BYTE, (rank + size - 1) % size, 0, &next, sizeof next,
                 MPI_BYTE, (rank + 1) % size, 0, em_world_node(), MPI_STATUS_IGNORE);
    watch.may = true;
    watch.patience = 1000 * (em_fault("launcher") ? 1 : PATIENCE);
    watch.begun = size > 1 && next.counted_in == own.counted_in && start(&next);
}

void em_rank_failure_part(void)
{
    if (watch.begun) {
        close(watch.write_end);
        pthread_join(watch.thread, NULL);
        watch.begun = false;
    }
    if (watch.may)
        MPI_Barrier(em_world_node());
}
