#include "app/process/launch.h"

#include "app/process/relay.h"
#include "base/memory.h"
#include "base/system/launcher.h"
#include "base/system/terminal.h"
#include "base/text.h"
#include "par/world.h"
#include "version.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* PROGRAM_OF_LAUNCH: the number of words before the program in `emass launch -- PROGRAM`, when
 * --ranks N has been taken out. */
enum { MOST_RANKS = 1000000, MOST_WORDS = 64, PROGRAM_OF_LAUNCH = 3 };

/* ---------------------------------------------------------------- the command line */

/* Takes --ranks out of argv; *value NULL: it is not there. */
static em_status take_option(int *argc, char **argv, const char **value)
{
    static const char name[] = "--ranks";
    const size_t length = strlen(name);

    *value = NULL;
    for (int i = 2; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        const bool apart = strcmp(argv[i], name) == 0;
        if (!apart && (strncmp(argv[i], name, length) != 0 || argv[i][length] != '='))
            continue;
        if (*value || (apart && i + 1 == *argc))
            return em_fail(EM_EUSAGE, "%s: expected --ranks once, with a number", argv[1]);
        *value = apart ? argv[i + 1] : argv[i] + length + 1;
        const int n = apart ? 2 : 1;
        memmove(argv + i, argv + i + n, (size_t)(*argc - i - n + 1) * sizeof *argv);
        *argc -= n;
        i--;
    }
    return EM_OK;
}

static em_status read_ranks(const char *command, const char *text, long *ranks)
{
    *ranks = strspn(text, "0123456789") == strlen(text) ? strtol(text, NULL, 10) : 0;
    if (*ranks >= 1 && *ranks <= MOST_RANKS)
        return EM_OK;
    return em_fail(EM_EUSAGE, "%s: --ranks: found '%s', expected a number from 1 to %d", command,
                   em_excerpt_of(text).text, MOST_RANKS);
}

/* ---------------------------------------------------------------- the launcher */

/* The PMI by which srun lets ranks find each other: PMIx for Open MPI, PMI-2 for MPICH and
 * libraries derived from it. */
#ifdef OPEN_MPI
#define PMI "pmix"
#else
#define PMI "pmi2"
#endif

const char *em_launchers(void)
{
    return EM_MPIRUN ", srun --mpi=" PMI;
}

static bool srun_has_pmi(void)
{
    FILE *list = getenv("SLURM_JOB_ID") ? popen("srun --mpi=list 2>&1", "r") : NULL;
    char line[256];
    bool found = false;

    while (list && fgets(line, sizeof line, list))
        found |= strstr(line, PMI) != NULL;
    if (list)
        pclose(list);
    return found;
}

/* Chooses the launcher. srun gets --wait: without it, the other ranks of MPICH wait for a lost rank
 * without end. */
static const char *choose_launcher(void)
{
    const char *given = getenv("EMASS_LAUNCHER");

    if (given && *given)
        return given;
    return srun_has_pmi() ? "srun --quiet --wait=60 --mpi=" PMI : EM_MPIRUN;
}

/* The processors that this process may use: those of taskset, of a cpuset, or of the job. */
static long count_processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                       : sysconf(_SC_NPROCESSORS_ONLN);
}

/*
 * Sets what Open MPI's mpirun needs: permission to run as root, as containers do; permission to
 * start more ranks than cores, which are then neither bound to a core nor spin; and silence about
 * errors that emass reports. Where this process may use only some processors, ranks are not bound
 * either: Open MPI 4 binds rank k to core k of the machine, whether it may use it or not. These are
 * environment variables, which other launchers ignore. Those that the user has set are kept.
 */
static void prepare_environment(long ranks)
{
    static const char *const always[][2] = {
        {"OMPI_ALLOW_RUN_AS_ROOT", "1"},      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        {"PRTE_ALLOW_RUN_AS_ROOT", "1"},      {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        {"OMPI_MCA_orte_execute_quiet", "1"}, {"OMPI_MCA_rmaps_base_oversubscribe", "1"}};
    static const char *const crowded[][2] = {
        {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},
        {"OMPI_MCA_mpi_yield_when_idle", "1"}};
    const long n = count_processors();
    const bool is_crowded = ranks > n, is_restricted = n < sysconf(_SC_NPROCESSORS_ONLN);

    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        setenv(always[i][0], always[i][1], 0);
    for (size_t i = 0; is_crowded && i < sizeof crowded / sizeof *crowded; i++)
        setenv(crowded[i][0], crowded[i][1], 0);
    if (is_crowded || is_restricted)
        setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 0);
    if (getenv("SLURM_STEP_ID")) /* srun would wait for the processors of this shell's own step */
        setenv("SLURM_OVERLAP", "1", 0);
    if (geteuid() == 0) /* containers forbid one process to read another's memory */
        setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
}

/* A command line and the memory of its words. */
typedef struct launch_line {
    char *words, option[4], ranks[32], program[4096];
    char **argv;
} launch_line;

/* Whether the ranks run another program than this one. */
static bool starts_another(char **argv)
{
    return strcmp(argv[1], "launch") == 0;
}

/* Composes the command: the words of the launcher, -n N, the program of the ranks and its
 * arguments. */
static em_status prepare_command(int argc, char **argv, long ranks, launch_line *l)
{
    const ssize_t length = readlink("/proc/self/exe", l->program, sizeof l->program - 1);
    const int first = starts_another(argv) ? PROGRAM_OF_LAUNCH : 1;
    char *rest = NULL;
    int n = 0;
    em_status status = em_copy_text(choose_launcher(), &l->words);

    if (!status && length <= 0)
        status = em_fail(EM_EIO, "cannot find this program: %s", strerror(errno));
    status = status ? status : em_allocate(argc + MOST_WORDS + 4, sizeof *l->argv, &l->argv);
    if (status)
        return status;
    snprintf(l->option, sizeof l->option, "-n");
    snprintf(l->ranks, sizeof l->ranks, "%ld", ranks);
    for (char *word = strtok_r(l->words, " ", &rest); word && n < MOST_WORDS;
         word = strtok_r(NULL, " ", &rest))
        l->argv[n++] = word;
    l->argv[n++] = l->option;
    l->argv[n++] = l->ranks;
    if (!starts_another(argv))
        l->argv[n++] = l->program;
    for (int i = first; i < argc; i++)
        l->argv[n++] = argv[i];
    return EM_OK;
}

/* ---------------------------------------------------------------- watching the launcher */

static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

enum { N_FORWARDED = sizeof forwarded / sizeof *forwarded };

/*
 * Replaces this process by the launcher, in a process group of its own, so that a terminal sends
 * Ctrl-C to emass alone. SIGUSR1 is ignored until launcher and ranks have installed handlers:
 * before that, it would end them. wait_for_launcher() sends it again.
 */
static _Noreturn void become(char **command, const sigset_t *mask, const em_relay *relay,
                             int failure)
{
    em_relay_use(relay);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGUSR1, SIG_IGN);
    if (isatty(STDIN_FILENO)) { /* reading it from the background would stop the launcher */
        const int nothing = open("/dev/null", O_RDONLY);
        dup2(nothing, STDIN_FILENO);
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(command[0], command);
    const int error = errno;
    _exit(write(failure, &error, sizeof error) == sizeof error ? 127 : 126);
}

/*
 * Waits until the launcher ends. From the first signal on, sends SIGUSR1 to the launcher once a
 * second. Launchers forward it, and ranks then stop with a checkpoint. SIGTERM would make Open MPI
 * kill the ranks after a second; it is sent at the second interrupt.
 */
static int wait_for_launcher(pid_t launcher, const sigset_t *handled)
{
    const struct timespec second = {1, 0};
    bool stopping = false;
    int interrupts = 0, status = 0;

    while (waitpid(launcher, &status, WNOHANG) == 0) {
        const int number = sigtimedwait(handled, NULL, &second);
        stopping |= number > 0 && number != SIGCHLD;
        interrupts += number == SIGINT;
        if (stopping && (number != SIGCHLD))
            kill(launcher, interrupts > 1 ? SIGTERM : SIGUSR1);
    }
    return status;
}

static em_status start_and_wait(char **command, em_relay *relay, int *status)
{
    sigset_t handled, before;
    int failure[2], error = 0;

    sigemptyset(&handled);
    sigaddset(&handled, SIGCHLD);
    for (int i = 0; i < N_FORWARDED; i++)
        sigaddset(&handled, forwarded[i]);
    if (pipe2(failure, O_CLOEXEC) != 0)
        return em_fail(EM_EIO, "cannot start %s: %s", command[0], strerror(errno));
    sigprocmask(SIG_BLOCK, &handled, &before);
    const pid_t child = fork();
    if (child == 0)
        become(command, &before, relay, failure[1]);
    close(failure[1]);
    const bool failed =
        child < 0 || read(failure[0], &error, sizeof error) == (ssize_t)sizeof error;
    close(failure[0]);
    em_relay_start(relay);
    if (child > 0)
        *status = wait_for_launcher(child, &handled);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return failed ? em_fail(EM_EUSAGE,
                            "%s cannot be started: %s; start the ranks yourself and leave out "
                            "--ranks, or name a launcher in EMASS_LAUNCHER",
                            command[0], strerror(child < 0 ? errno : error))
                  : EM_OK;
}

static bool is_quiet(int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--quiet") == 0 || strcmp(argv[i], "--progress=none") == 0 ||
            (strcmp(argv[i], "none") == 0 && strcmp(argv[i - 1], "--progress") == 0))
            return true;
    return false;
}

/* Prints a line on a terminal, because ranks may need a second to start. */
static void say_that_it_starts(int argc, char **argv, long ranks, const char *launcher)
{
    if (em_terminal_columns(stderr) > 0 && !is_quiet(argc, argv))
        fprintf(stderr, "emass: %ld ranks, started by %s\n", ranks, launcher);
}

/* The signal that ended a rank, by the status of the launcher: 128 plus the signal, or for MPICH's
 * mpirun the signal itself. 0: none. */
static int signal_of(int code)
{
#ifndef OPEN_MPI
    if (code < SIGRTMIN)
        return code;
#endif
    return code > 128 && code - 128 <= SIGRTMAX ? code - 128 : 0;
}

/* Reports a rank that was killed, because it cannot do so itself and mpirun was told to print
 * nothing. If srun cannot start some ranks, it kills those that it has started. */
static void say_what_was_lost(const char *launcher, const char *command, int code)
{
    const int number = signal_of(code);
    const bool by_srun = strcmp(launcher, "srun") == 0;

    if (code == 0 || code == em_exit_status(EM_EIO) || code == em_exit_status(EM_EUSAGE) ||
        code == em_exit_status(EM_ESTOPPED))
        return;
    fprintf(stderr, "emass: %s ended with status %d", launcher, code);
    if (number > 0)
        fprintf(stderr, ": signal %d ended a rank (%s)%s", number, strsignal(number),
                number == SIGKILL ? ", as when memory runs out" : "");
    if (by_srun && number == SIGKILL)
        fprintf(stderr, ", or when a launch fails: if srun says so above, set "
                        "EMASS_LAUNCHER=mpirun");
    fprintf(stderr, "%s\n",
            strcmp(command, "run") == 0 || strcmp(command, "launch") == 0
                ? "; a checkpoint, if one was written, remains (go on with --resume)"
                : "");
}

/*
 * Rank 0 leaves the status of all ranks in a file, and the launcher sees 0: Open MPI 5 has no
 * option against its lines about a rank with another status. Rank 0 takes the name of the file
 * away, so that nothing stays if processes are killed. A rank 0 on another node does not find the
 * file, which it must not create, and the launcher then reports the status.
 */
#define RANKS_STATUS "EMASS_RANKS_STATUS"

static char status_of_ranks[PATH_MAX]; /* of a rank: the path of the file; "": none */
static FILE *status_file;              /* of rank 0 */

/* Creates a temporary file for the exit status of the ranks; NULL: it cannot be created. */
static FILE *create_status_file(char path[static PATH_MAX])
{
    const char *folder = getenv("TMPDIR");

    snprintf(path, PATH_MAX, "%s/emass-status-XXXXXX", folder && *folder ? folder : "/tmp");
    const int file = mkostemp(path, O_CLOEXEC);
    if (file < 0)
        return NULL;
    setenv(RANKS_STATUS, path, 1);
    return fdopen(file, "r");
}

/* Reads the status of the ranks from the file and closes the file; 0: there is none. *untouched:
 * rank 0 has not found the file. */
static int take_status(FILE *file, const char *path, bool *untouched)
{
    int code = 0;

    *untouched = file && unlink(path) == 0;
    if (!file)
        return 0;
    if (fscanf(file, "%d", &code) != 1)
        code = 0;
    fclose(file);
    return code;
}

/* Stores the path of the status file, and removes the environment variable, so that only ranks have
 * it and not the programs that they start. */
static void note_status_file(void)
{
    const char *path = getenv(RANKS_STATUS);

    snprintf(status_of_ranks, sizeof status_of_ranks, "%s", path ? path : "");
    unsetenv(RANKS_STATUS);
}

void em_launched_begin(void)
{
    if (em_world_rank() == 0 && status_of_ranks[0])
        status_file = fopen(status_of_ranks, "r+e");
    if (status_file)
        unlink(status_of_ranks);
}

/*
 * srun may end with 0 when it could not launch the ranks. Rank 0 has not begun if it has not found
 * the file on the node that it belongs to: the first of the job, where a batch script or a shell
 * within the job runs. A shell on a login node has no SLURMD_NODENAME. Where the user chooses the
 * launcher, it may hide the file, as a container does.
 */
static em_status check_begun(const char *launcher, int code, bool untouched)
{
    const char *given = getenv("EMASS_LAUNCHER"), *order = getenv("SLURM_DISTRIBUTION");

    if (code != 0 || !untouched || strcmp(launcher, "srun") != 0 || (given && *given) ||
        !getenv("SLURMD_NODENAME") || (order && strncmp(order, "arbitrary", 9) == 0))
        return EM_OK;
    return em_fail(EM_EIO, "srun ended with status 0, but no rank began: set "
                           "EMASS_LAUNCHER=mpirun, or leave out --ranks and use srun yourself");
}

/* Says why srun refuses to start the ranks, if the user's job has fewer tasks. */
static void say_if_tasks_are_few(const char *launcher, long ranks, int code)
{
    const char *tasks = getenv("SLURM_NTASKS");
    const long n = tasks ? atol(tasks) : 0;

    if (code != 0 && n > 0 && n < ranks && strcmp(launcher, "srun") == 0)
        fprintf(stderr,
                "emass: --ranks: found %ld, expected at most %ld, the tasks of the Slurm job: ask "
                "for more by --ntasks, or set EMASS_LAUNCHER=mpirun\n",
                ranks, n);
}

static em_status launch(int argc, char **argv, long ranks, int *code)
{
    launch_line l = {.words = NULL};
    char path[PATH_MAX];
    FILE *file = NULL;
    int result = 0;
    em_relay relay = {.from = -1, .to = -1};
    em_status status = prepare_command(argc, argv, ranks, &l);

    if (!status && !starts_another(argv))
        status = em_relay_open(&relay);
    if (!status) {
        if (!starts_another(argv))
            file = create_status_file(path);
        prepare_environment(ranks);
        say_that_it_starts(argc, argv, ranks, l.argv[0]);
        status = start_and_wait(l.argv, &relay, &result);
    }
    if (!status && WIFSIGNALED(result))
        status = em_fail(EM_EIO, "%s was ended by signal %d", l.argv[0], WTERMSIG(result));
    *code = WIFEXITED(result) ? WEXITSTATUS(result) : 1;
    bool untouched = false;
    const int left = take_status(file, path, &untouched);
    if (*code == 0)
        *code = left;
    if (!status && untouched)
        say_if_tasks_are_few(l.argv[0], ranks, *code);
    status = status ? status : check_begun(l.argv[0], *code, untouched);
    if (!status)
        say_what_was_lost(l.argv[0], argv[1], *code);
    const em_status written = em_relay_finish(&relay);
    if (!status && *code == 0) /* what ranks ended with says more */
        status = written;
    em_release_all(&l.words, &l.argv);
    return status;
}

/* The error of `emass launch` without ranks or without a program. */
em_status em_launch_command(int argc, const char **argv)
{
    (void)argc, (void)argv;
    return em_fail(EM_EUSAGE, "launch: expected --ranks N -- PROGRAM (see emass launch --help)");
}

static em_status check_program(int argc, char **argv)
{
    const bool has = argc > PROGRAM_OF_LAUNCH && strcmp(argv[PROGRAM_OF_LAUNCH - 1], "--") == 0;

    return has ? EM_OK : em_launch_command(argc, NULL);
}

static bool may_start_ranks(const char *command)
{
    static const char *const those[] = {"run",     "check",  "verify", "predict",
                                        "convert", "launch", NULL};

    return em_text_find(command, those) >= 0;
}

em_status em_launch(int *argc, char **argv, bool *launched, int *code)
{
    const char *text = NULL;
    long ranks = 1;

    *launched = false;
    note_status_file();
    if (*argc < 3 || !may_start_ranks(argv[1]))
        return EM_OK;
    em_status status = take_option(argc, argv, &text);
    if (status || !text)
        return status;
    status = read_ranks(argv[1], text, &ranks);
    if (!status && em_launched_ranks() > 1)
        status = em_fail(EM_EUSAGE,
                         "%s: --ranks starts the ranks itself: leave it out under mpirun or srun",
                         argv[1]);
    if (!status && starts_another(argv))
        status = check_program(*argc, argv);
    if (status || (ranks == 1 && !starts_another(argv)))
        return status;
    *launched = true;
    return launch(*argc, argv, ranks, code);
}

/* ---------------------------------------------------------------- the status of ranks */

/* Writes the status to the file and closes the file. Returns whether that succeeded; `file` NULL:
 * there is none. Rank 0. */
static bool write_status(FILE *file, int code)
{
    const bool written = file && fprintf(file, "%d\n", code) > 0;

    return file && fclose(file) == 0 && written;
}

int em_launched_exit(em_status status)
{
    const int code = em_exit_status(status);
    const char *path = code == 0 || status == EM_ESTOPPED ? getenv("EMASS_STATUS") : NULL;
    bool written = false;

    if (code == 0) {
        if (em_world_rank() == 0 && path && *path && !write_status(fopen(path, "we"), code))
            fprintf(stderr, "emass: warning: cannot write the status 0 to %s: %s\n", path,
                    strerror(errno));
        return code;
    }
    if (em_world_rank() == 0)
        written = (path && *path && write_status(fopen(path, "we"), code)) ||
                  write_status(status_file, code);
    em_broadcast(&written, sizeof written);
    return written ? 0 : code;
}

/* ---------------------------------------------------------------- limits */

#define NO_THREADS "OPENBLAS_NUM_THREADS"

static char **lent_place, *lent;

#ifdef __GLIBC__
/*
 * Before any library starts, the place of a variable that none of them reads is lent to
 * OPENBLAS_NUM_THREADS=1: main takes it back. This saves the time to load the program twice. The C
 * library cannot be called yet. Local.
 */
__attribute__((no_sanitize("address"))) static void lend_variable(int argc, char **argv,
                                                                  char **environment)
{
    static const char *const unread[] = {"_=", "OLDPWD=", "SHLVL=", "PWD="};
    static char no_threads[] = NO_THREADS "=1";

    (void)argc, (void)argv;
    for (char **at = environment; *at; at++) {
        size_t n = 0;
        while ((*at)[n] && (*at)[n] == no_threads[n] && no_threads[n] != '=')
            n++;
        if ((*at)[n] == '=' && no_threads[n] == '=') {
            lent_place = NULL;
            return;
        }
        for (size_t k = 0; !lent_place && k < sizeof unread / sizeof *unread; k++) {
            for (n = 0; unread[k][n] && (*at)[n] == unread[k][n];)
                n++;
            lent_place = unread[k][n] ? NULL : at;
        }
    }
    if (lent_place) {
        lent = *lent_place;
        *lent_place = no_threads;
    }
}

__attribute__((section(".preinit_array"),
               used)) static void (*const before_libraries)(int, char **, char **) = lend_variable;
#endif

void em_start_without_threads(char **argv)
{
    char program[PATH_MAX];

    if (lent_place) {
        *lent_place = lent;
        if (putenv(lent) == 0 && setenv(NO_THREADS, "1", 1) == 0)
            return;
    }
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (getenv(NO_THREADS) || length <= 0 || setenv(NO_THREADS, "1", 1) != 0)
        return;
    program[length] = '\0';
    execv(program, argv); /* should that fail, this process does as well */
}

em_status em_check_limits(void)
{
    enum { LEAST_FILES = 64 };
    static const rlim_t least_bytes = (rlim_t)384 << 20; /* MPI starts in 350 MB */
    struct rlimit files, memory;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < LEAST_FILES) {
        files.rlim_cur = files.rlim_max < LEAST_FILES ? files.rlim_max : LEAST_FILES;
        if (files.rlim_cur < LEAST_FILES || setrlimit(RLIMIT_NOFILE, &files) != 0)
            return em_fail(EM_EUSAGE,
                           "found a limit of %lld open files, expected at least %d, "
                           "which MPI needs (ulimit -n)",
                           (long long)files.rlim_cur, LEAST_FILES);
    }
    if (getrlimit(RLIMIT_AS, &memory) == 0 && memory.rlim_cur < least_bytes)
        return em_fail(EM_EUSAGE,
                       "found a limit of %lld kB of address space, expected at least "
                       "%lld, which MPI needs (ulimit -v)",
                       (long long)(memory.rlim_cur >> 10), (long long)(least_bytes >> 10));
    return EM_OK;
}
