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

/* Seconds in which the launcher may end the job itself: it can name what ended the rank. */
enum { PATIENCE = 10 };

enum { NEIGHBOUR, LEAVING, N_FILE };

static struct {
    bool has_others, begun; /* there are other ranks; the thread runs */
    pthread_t thread;
    int file[N_FILE], write_end; /* readable once the neighbour has ended, or all ranks leave */
    int neighbour, patience;     /* its rank in the world; milliseconds */
} monitored;

/* True when one of the files becomes readable in time. -1 milliseconds: without a limit. */
static bool wait_for(struct pollfd *file, int n, int milliseconds)
{
    int found;

    do
        found = poll(file, (nfds_t)n, milliseconds);
    while (found < 0 && errno == EINTR);
    return found != 0;
}

static void *monitor(void *context)
{
    struct pollfd file[N_FILE] = {{monitored.file[NEIGHBOUR], POLLIN, 0},
                                  {monitored.file[LEAVING], POLLIN, 0}};

    (void)context;
    wait_for(file, N_FILE, -1);
    if (file[LEAVING].revents || wait_for(&file[LEAVING], 1, monitored.patience))
        return NULL;
    fprintf(
        stderr,
        "emass: rank %d was lost: the other ranks would wait for it for ever, so they end too\n",
        monitored.neighbour);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    abort();
}

/* A process id means something to processes of the same PID namespace, `counted_in`. */
typedef struct process_id {
    int64_t process, counted_in, rank;
} process_id;

static process_id describe_self(void)
{
    struct stat space;

    return (process_id){getpid(),
                        stat("/proc/self/ns/pid", &space) == 0 ? (int64_t)space.st_ino : -1,
                        em_world_rank()};
}

/* Monitors the process of a neighbour. The kernel closes the files when this process ends. */
static bool start_monitor(const process_id *neighbour)
{
    int ends[2];

    monitored.neighbour = (int)neighbour->rank;
    monitored.file[NEIGHBOUR] = (int)syscall(SYS_pidfd_open, (pid_t)neighbour->process, 0);
    if (monitored.file[NEIGHBOUR] < 0 || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    monitored.file[LEAVING] = ends[0];
    monitored.write_end = ends[1];
    return em_thread_start(&monitored.thread, monitor, NULL) == 0;
}

/* Each rank of a node sends its process id to the rank before it, which then monitors it. */
void em_rank_failure_monitor_start(void)
{
    const process_id own = describe_self();
    process_id next = own;
    int size, rank;

    MPI_Comm_size(em_world_node(), &size);
    MPI_Comm_rank(em_world_node(), &rank);
    MPI_Sendrecv(&own, sizeof own, MPI_BYTE, (rank + size - 1) % size, 0, &next, sizeof next,
                 MPI_BYTE, (rank + 1) % size, 0, em_world_node(), MPI_STATUS_IGNORE);
    monitored.has_others = true;
    monitored.patience = 1000 * (em_fault("launcher") ? 1 : PATIENCE);
    monitored.begun = size > 1 && next.counted_in == own.counted_in && start_monitor(&next);
}

void em_rank_failure_monitor_stop(void)
{
    if (monitored.begun) {
        close(monitored.write_end);
        pthread_join(monitored.thread, NULL);
        monitored.begun = false;
    }
    if (monitored.has_others)
        MPI_Barrier(em_world_node());
}
