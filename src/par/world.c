#include "par/world.h"
#include "base/memory.h"
#include "base/system/launcher.h"
#include "base/text.h"
#include "par/mpi_world.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The time that a failing rank waits for the others to agree before it aborts them. */
enum { PATIENCE_SECONDS = 5 };

struct em_world {
    int rank, size, node_size;
    MPI_Comm ranks, node; /* all of them, and those of this node */
    MPI_Comm agreement; /* a separate communicator, so that a failing rank never receives a message
                           of another collective call */
    em_world_options options;
    volatile sig_atomic_t asked; /* this rank was, to stop */
    bool interrupted, broken;    /* broken: ranks met at different places */
    int word, told;
    unsigned agreed; /* a hash of the message of the last failure that was agreed on */
};

static em_world alone = {
    .size = 1, .node_size = 1, .word = INT_MAX, .told = INT_MAX}; /* without MPI */

static _Thread_local em_world *entered; /* NULL: alone */

static em_world *here(void)
{
    return entered ? entered : &alone;
}

em_world *em_world_enter(em_world *world)
{
    em_world *before = entered;

    entered = world;
    return before;
}

void em_world_return(em_world *const *before)
{
    em_world_enter(*before);
}

em_status em_world_create(MPI_Comm ranks, const em_world_options *options, em_world **out)
{
    int rank;
    em_status status = em_allocate(1, sizeof **out, out);
    em_world *world = *out;

    MPI_Comm_rank(ranks, &rank);
    int failing = status ? rank : INT_MAX;
    MPI_Allreduce(MPI_IN_PLACE, &failing, 1, MPI_INT, MPI_MIN, ranks);
    if (failing != INT_MAX) {
        em_release(out);
        return em_fail(EM_EMEMORY, "rank %d: out of memory", failing);
    }
    *world = (em_world){.rank = rank, .options = *options, .word = INT_MAX, .told = INT_MAX};
    MPI_Comm_size(ranks, &world->size);
    MPI_Comm_dup(ranks, &world->ranks);
    MPI_Comm_dup(ranks, &world->agreement);
    MPI_Comm_split_type(ranks, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &world->node);
    MPI_Comm_size(world->node, &world->node_size);
    /* Return values of MPI are not checked, and a host program's error handler may return. */
    MPI_Comm_set_errhandler(world->ranks, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(world->agreement, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(world->node, MPI_ERRORS_ARE_FATAL);
    return EM_OK;
}

void em_world_destroy(em_world **world)
{
    if (!*world)
        return;
    if (entered == *world)
        entered = NULL;
    MPI_Comm_free(&(*world)->ranks);
    MPI_Comm_free(&(*world)->agreement);
    MPI_Comm_free(&(*world)->node);
    em_release(world);
}

MPI_Comm em_world_ranks(void)
{
    return here()->ranks;
}

int em_world_node_size(void)
{
    return here()->node_size;
}

MPI_Comm em_world_node(void)
{
    return here()->node;
}

/* ---------------------------------------------------------------- a program of our own */

/*
 * Settings of Open MPI, which must be made before it starts; settings of the user are kept. A
 * waiting rank yields the processor. This costs nothing on an idle machine, and otherwise a rank
 * that spins would keep from the processor the very process that it waits for. And data sieving is
 * off, because a rank would overwrite data of other ranks (io/hdf5/hdf5.c).
 */
static void set_up_process(void)
{
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    setenv("OMPI_MCA_fbtl_posix_write_datasieving", "0", 0);
    signal(SIGXFSZ, SIG_IGN); /* exceeding the limit on file sizes then fails the write instead of
                                 ending the process */
}

/*
 * Settings that make MPI start faster for a single process without a launcher. It needs no daemon
 * of Open MPI; no transports to other processes, of which two (psm, psm2) sleep a tenth of a second
 * when they are loaded; no folder in /tmp, whose name would be common to such processes; no
 * plug-ins of hwloc, which query graphics cards, and no list of devices. The variables are in the
 * environment only while MPI starts, and those that the user has set are kept.
 */
static const char *const of_alone[][2] = {{"OMPI_MCA_ess_singleton_isolated", "1"},
                                          {"OMPI_MCA_pml", "ob1"},
                                          {"OMPI_MCA_btl", "self"},
                                          {"OMPI_MCA_orte_create_session_dirs", "0"},
                                          {"HWLOC_PLUGINS_PATH", "/nonexistent"},
                                          {"HWLOC_COMPONENTS", "-linuxio"}};

enum { N_OF_ALONE = sizeof of_alone / sizeof *of_alone };

/*
 * Whether this process is the only one of a step of srun without PMI, such as a shell by srun
 * --pty. Open MPI 4 takes a process with SLURM_STEP_ID for one of several, and does not start
 * without PMI.
 */
static bool is_alone_in_step(void)
{
    static const char *const of_pmi[] = {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"};
    bool found = false;

    for (size_t i = 0; i < sizeof of_pmi / sizeof *of_pmi; i++)
        found |= getenv(of_pmi[i]) != NULL;
    return getenv("SLURM_STEP_ID") && !found && em_launched_ranks() == 1;
}

/* MPI_Init without SLURM_STEP_ID. */
static void initialise_outside_step(int *argc, char ***argv)
{
    EM_SCOPED char *step = NULL;

    if (!em_copy_text(getenv("SLURM_STEP_ID"), &step))
        unsetenv("SLURM_STEP_ID");
    MPI_Init(argc, argv);
    if (step)
        setenv("SLURM_STEP_ID", step, 1);
}

void em_world_initialise_mpi(int *argc, char ***argv)
{
    const bool in_step = is_alone_in_step(), launched = em_is_launched() && !in_step;
    bool ours[N_OF_ALONE];

    set_up_process();
    for (int i = 0; i < N_OF_ALONE; i++) {
        ours[i] = !launched && !getenv(of_alone[i][0]);
        if (ours[i])
            setenv(of_alone[i][0], of_alone[i][1], 1);
    }
    if (!launched) /* read when the first file is opened: OMPIO needs the folder, or puts files for
                      pointers that ranks share beside the output, where a kill leaves them */
        setenv("OMPI_MCA_io", "^ompio", 0);
    if (in_step)
        initialise_outside_step(argc, argv);
    else
        MPI_Init(argc, argv);
    for (int i = 0; i < N_OF_ALONE; i++)
        if (ours[i])
            unsetenv(of_alone[i][0]);
}

static void print(void *stream, const char *text)
{
    fprintf(stream, "emass: %s\n", text);
}

void em_world_start_alone(void)
{
    set_up_process();
    alone.options = (em_world_options){print, stderr, .may_abort = true};
}

em_status em_world_start(int *argc, char ***argv)
{
    const em_world_options options = {print, stderr, .may_abort = true};
    em_world *world;

    em_world_initialise_mpi(argc, argv);
    const em_status status = em_world_create(MPI_COMM_WORLD, &options, &world);
    em_world_enter(world);
    if (!status && world->size == 1 && em_launched_ranks() > 1)
        return em_fail(EM_EUSAGE,
                       "the launcher started %d ranks but MPI sees one: the MPI of the launcher is "
                       "not the one emass is linked with (see emass --version)",
                       em_launched_ranks());
    return status;
}

void em_world_stop(void)
{
    em_world *world = em_world_enter(NULL);

    if (!world)
        return;
    em_world_destroy(&world);
    em_keep_loaded();
    MPI_Finalize();
}

/* ---------------------------------------------------------------- of the world entered */

int em_world_rank(void)
{
    return here()->rank;
}

int em_world_size(void)
{
    return here()->size;
}

void em_say(const char *format, ...)
{
    const em_world *world = here();
    char text[2048], printable[2048];
    va_list arguments;

    if (world->rank != 0 || !world->options.say)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    em_text_escape(text, printable, sizeof printable);
    world->options.say(world->options.to, printable);
}

/* Prints a message and aborts all ranks at once. */
static _Noreturn void end_all(em_world *world, const char *message)
{
    fprintf(stderr, "emass: rank %d: %s\n", world->rank, message);
    fflush(stderr);
    MPI_Abort(world->ranks, 1);
    abort();
}

void em_world_interrupt(em_world *world)
{
    world->asked = 1;
}

void em_world_ask(void)
{
    here()->asked = 1;
}

void em_world_resume(void)
{
    here()->asked = 0;
}

bool em_world_interrupted(void)
{
    return here()->interrupted;
}

void em_world_tell(int word)
{
    if (here()->rank == 0)
        here()->word = word;
}

int em_world_told(void)
{
    return here()->told;
}

static unsigned hash_text(const char *text)
{
    unsigned hash = 0;

    for (const char *c = text; *c; c++)
        hash = hash * 31 + (unsigned char)*c;
    return hash;
}

void em_world_agreed(void)
{
    here()->agreed = hash_text(em_error_text());
}

/* Waits for other ranks to agree. There is a deadline unless all ranks have already agreed on this
 * failure: then they will agree, however slow they are. */
static void wait_for(em_world *world, MPI_Request *request, em_status status)
{
    const struct timespec pause = {0, 1000000};
    const double deadline = MPI_Wtime() + PATIENCE_SECONDS;
    int done = 0;

    if (!status || !world->options.may_abort || hash_text(em_error_text()) == world->agreed) {
        MPI_Wait(request, MPI_STATUS_IGNORE);
        return;
    }
    while (MPI_Test(request, &done, MPI_STATUS_IGNORE), !done) {
        if (MPI_Wtime() > deadline)
            end_all(world, em_error_text());
        nanosleep(&pause, NULL);
    }
}

em_status em_world_share_failure(MPI_Comm ranks, int failing, em_status status, const char *text)
{
    struct {
        em_status status;
        char text[2048];
    } failure = {.status = status};

    snprintf(failure.text, sizeof failure.text, "%s", text);
    MPI_Bcast(&failure, sizeof failure, MPI_BYTE, failing, ranks);
    return em_fail(failure.status, "%s", failure.text);
}

/* Shares the message of a failure. The message names a rank, unless all ranks have the same message
 * about a file or a config, or rank 0 alone has read for all what it is about, such as a config, a
 * program or the name of the output. */
static em_status share_failure(em_world *world, int failing, bool alike, em_status status)
{
    status = em_world_share_failure(world->agreement, failing, status, em_error_text());
    const bool of_all = alike || (failing == 0 && em_exit_status(status) == 2);
    if (world->size > 1 && !of_all && strncmp(em_error_text(), "rank ", 5) != 0)
        em_fail(status, "rank %d: %s", failing, em_error_text());
    em_world_agreed();
    return status;
}

/* Aborts because no later agreement is reliable: ranks no longer make the same collective calls. */
static em_status part_ways(em_world *world, em_status status, const char *file, int line,
                           int elsewhere)
{
    status =
        em_fail(EM_EINTERNAL,
                "internal error: ranks met at different places, here %s:%d, elsewhere line %d%s%s",
                file, line, elsewhere, status < 0 ? "; " : "", status < 0 ? em_error_text() : "");
    if (world->options.may_abort)
        end_all(world, em_error_text());
    world->broken = true;
    return status;
}

em_status em_agree_at(em_status status, const char *file, int line)
{
    enum { FAILING, TEXT, NEGATIVE_TEXT, SITE, NEGATIVE_SITE, NOT_ASKED, WORD, N };
    em_world *world = here();
    int mine[N], lowest[N];
    MPI_Request request;

    if (world == &alone)
        return status < 0 ? status : EM_OK;
    if (world->broken)
        return status < 0 ? status : em_fail(EM_EINTERNAL, "ranks met at different places before");
    mine[FAILING] = status < 0 ? world->rank : INT_MAX;
    mine[TEXT] = status < 0 ? (int)(hash_text(em_error_text()) % INT_MAX) : -1;
    mine[NEGATIVE_TEXT] = -mine[TEXT];
    mine[SITE] = (int)(hash_text(file) % 10000) * 100000 + line;
    mine[NEGATIVE_SITE] = -mine[SITE];
    mine[NOT_ASKED] = !world->asked;
    mine[WORD] = world->word;
    MPI_Iallreduce(mine, lowest, N, MPI_INT, MPI_MIN, world->agreement, &request);
    wait_for(world, &request, status < 0 ? status : EM_OK);
    if (lowest[SITE] != -lowest[NEGATIVE_SITE])
        return part_ways(world, status, file, line,
                         (lowest[SITE] == mine[SITE] ? -lowest[NEGATIVE_SITE] : lowest[SITE]) %
                             100000);
    world->interrupted = !lowest[NOT_ASKED];
    world->told = lowest[WORD];
    if (lowest[FAILING] == INT_MAX)
        return EM_OK;
    return share_failure(world, lowest[FAILING],
                         lowest[TEXT] >= 0 && lowest[TEXT] == -lowest[NEGATIVE_TEXT], status);
}

void em_world_list(bool mine, size_t size, char *text)
{
    enum { MOST = 8 };
    const em_world *world = here();
    int count = 0, last = -1, rank;

    text[0] = '\0';
    for (; count <= MOST; last = rank, count++) {
        rank = mine && world->rank > last ? world->rank : INT_MAX;
        if (world->size > 1)
            MPI_Allreduce(MPI_IN_PLACE, &rank, 1, MPI_INT, MPI_MIN, world->ranks);
        if (rank == INT_MAX)
            return;
        if (count < MOST)
            em_append(size, text, count == 0 ? "rank %d" : ", %d", rank);
        else
            em_append(size, text, ", ...");
    }
}

void em_broadcast(void *data, size_t bytes)
{
    char *next = data;

    while (bytes > 0 && here()->size > 1) {
        const int part = bytes < INT_MAX ? (int)bytes : INT_MAX;
        MPI_Bcast(next, part, MPI_BYTE, 0, here()->ranks);
        next += part;
        bytes -= (size_t)part;
    }
}

em_status em_share_text(em_status status, char **text)
{
    int64_t length = 0;

    status = em_agree(status);
    if (status)
        return status;
    if (em_world_rank() == 0)
        length = (int64_t)strlen(*text);
    em_broadcast(&length, sizeof length);
    if (em_world_rank() != 0)
        status = em_allocate(length + 1, 1, text);
    status = em_agree(status);
    if (!status)
        em_broadcast(*text, (size_t)length + 1);
    return status;
}

typedef struct library_names {
    int n;
    char *name[1024];
} library_names;

/* Collects the names of shared objects. They are used later, because dl_iterate_phdr holds a lock
 * that dlopen needs. */
static int note(struct dl_phdr_info *object, size_t size, void *data)
{
    library_names *all = data;
    const int room = (int)(sizeof all->name / sizeof *all->name);

    (void)size;
    if (object->dlpi_name[0] && all->n < room && (all->name[all->n] = strdup(object->dlpi_name)))
        all->n++;
    return 0;
}

void em_keep_loaded(void)
{
    library_names all = {0};

    dl_iterate_phdr(note, &all);
    for (int i = 0; i < all.n; i++) {
        void *object = dlopen(all.name[i], RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
        if (object)
            dlclose(object);
        free(all.name[i]);
    }
}
