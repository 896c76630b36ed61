#include "par/world.h"

#include "base/memory.h"

#include <limits.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long a failing rank waits for the others to come and agree before it aborts them. */
enum { PATIENCE_SECONDS = 5 };

static struct {
    int rank, size;
    MPI_Comm
        agreement; /* its own, so that a failing rank never meets another collective's message */
    bool interrupted;
    int word, told;
} world = {0, 1, MPI_COMM_NULL, false, INT_MAX, INT_MAX};

static volatile sig_atomic_t signalled;

static int launched_ranks(void)
{
    /* Set per process by mpirun (Open MPI), Hydra and PMI launchers, and srun; not by sbatch. */
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return 1;
}

em_status em_world_start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.size);
    MPI_Comm_dup(MPI_COMM_WORLD, &world.agreement);
    if (world.size == 1 && launched_ranks() > 1)
        return em_fail(EM_EUSAGE,
                       "the launcher started %d ranks but MPI sees one: the MPI of the launcher is "
                       "not the one emass is linked with (see emass --version)",
                       launched_ranks());
    return EM_OK;
}

void em_world_stop(void)
{
    MPI_Comm_free(&world.agreement);
    MPI_Finalize();
}

int em_world_rank(void)
{
    return world.rank;
}

int em_world_size(void)
{
    return world.size;
}

_Noreturn void em_panic(const char *format, ...)
{
    char text[2048];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "emass: rank %d: %s\n", world.rank, text);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static void note_signal(int number)
{
    (void)number;
    signalled = 1;
}

void em_world_catch_signals(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
    struct sigaction action = {.sa_handler = note_signal};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        action.sa_flags = SA_RESTART | (numbers[i] == SIGINT ? (int)SA_RESETHAND : 0);
        sigaction(numbers[i], &action, NULL);
    }
}

bool em_world_interrupted(void)
{
    return world.interrupted;
}

void em_world_tell(int word)
{
    if (world.rank == 0)
        world.word = word;
}

int em_world_told(void)
{
    return world.told;
}

static void wait_for(MPI_Request *request, em_status status)
{
    const struct timespec pause = {0, 1000000};
    const double deadline = MPI_Wtime() + PATIENCE_SECONDS;
    int done = 0;

    if (!status) {
        MPI_Wait(request, MPI_STATUS_IGNORE);
        return;
    }
    while (MPI_Test(request, &done, MPI_STATUS_IGNORE), !done) {
        if (MPI_Wtime() > deadline)
            em_panic("%s", em_error_text());
        nanosleep(&pause, NULL);
    }
}

static void share_failure(int failing, em_status *status)
{
    struct {
        em_status status;
        char text[2048];
    } failure = {0};

    if (world.rank == failing) {
        failure.status = *status;
        snprintf(failure.text, sizeof failure.text, "%s", em_error_text());
    }
    MPI_Bcast(&failure, sizeof failure, MPI_BYTE, failing, world.agreement);
    if (world.size > 1 && strncmp(failure.text, "rank ", 5) != 0)
        *status = em_fail(failure.status, "rank %d: %s", failing, failure.text);
    else
        *status = em_fail(failure.status, "%s", failure.text);
}

em_status em_agree_at(em_status status, const char *file, int line)
{
    enum { FAILING, SITE, NEGATIVE_SITE, NOT_SIGNALLED, WORD, N };
    int mine[N], lowest[N];
    MPI_Request request;
    unsigned hash = 0;

    for (const char *c = file; *c; c++)
        hash = hash * 31 + (unsigned char)*c;
    mine[FAILING] = status < 0 ? world.rank : INT_MAX;
    mine[SITE] = (int)(hash % 10000) * 100000 + line;
    mine[NEGATIVE_SITE] = -mine[SITE];
    mine[NOT_SIGNALLED] = !signalled;
    mine[WORD] = world.word;
    MPI_Iallreduce(mine, lowest, N, MPI_INT, MPI_MIN, world.agreement, &request);
    wait_for(&request, status < 0 ? status : EM_OK);
    if (lowest[SITE] != -lowest[NEGATIVE_SITE])
        em_panic("internal error: ranks met at different places, here %s:%d, elsewhere line %d%s%s",
                 file, line,
                 (lowest[SITE] == mine[SITE] ? -lowest[NEGATIVE_SITE] : lowest[SITE]) % 100000,
                 status < 0 ? "; " : "", status < 0 ? em_error_text() : "");
    world.interrupted = !lowest[NOT_SIGNALLED];
    world.told = lowest[WORD];
    if (lowest[FAILING] == INT_MAX)
        return EM_OK;
    share_failure(lowest[FAILING], &status);
    return status;
}

void em_world_list(bool mine, size_t size, char *text)
{
    enum { MOST = 8 };
    int count = 0, last = -1, rank;

    text[0] = '\0';
    for (; count <= MOST; last = rank, count++) {
        rank = mine && world.rank > last ? world.rank : INT_MAX;
        MPI_Allreduce(MPI_IN_PLACE, &rank, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (rank == INT_MAX)
            return;
        const size_t length = strlen(text);
        snprintf(text + length, size - length, count == 0 ? "rank %d" : ", %d", rank);
        if (count == MOST)
            snprintf(text + length, size - length, ", ...");
    }
}

void em_broadcast(void *data, size_t bytes)
{
    char *next = data;

    while (bytes > 0) {
        const int part = bytes < INT_MAX ? (int)bytes : INT_MAX;
        MPI_Bcast(next, part, MPI_BYTE, 0, MPI_COMM_WORLD);
        next += part;
        bytes -= (size_t)part;
    }
}

em_status em_broadcast_text(char **text)
{
    int64_t length = world.rank == 0 ? (int64_t)strlen(*text) : 0;
    em_status status = EM_OK;

    em_broadcast(&length, sizeof length);
    if (world.rank != 0)
        status = em_allocate(length + 1, 1, text);
    status = em_agree(status);
    if (!status)
        em_broadcast(*text, (size_t)length + 1);
    return status;
}
