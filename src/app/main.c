/* The program: starts MPI if a command needs it, runs the command, and reports a failure once. */
#include "app/command/command.h"
#include "app/process/launch.h"
#include "app/process/rank_failure_monitor.h"
#include "app/process/signals.h"
#include "app/report/report_page.h"
#include "app/summary/loo.h"
#include "base/fault.h"
#include "base/system/launcher.h"
#include "base/text.h"
#include "base/text/nearest.h"
#include "io/hdf5/crash_handler.h"
#include "io/hdf5/hdf5.h"
#include "math/simd/simd.h"
#include "par/world.h"
#include "version.h"

#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

typedef struct command {
    const char *name;
    em_status (*run)(int argc, const char **argv); /* Collective; argv[0] is the name */
    bool without_mpi;                              /* the command runs in one process without MPI */
} command;

static const command commands[] = {
    {"run", em_run_command, false},         {"summary", em_summary_command, true},
    {"report", em_report_command, true},    {"check", em_check_command, false},
    {"list", em_list_command, true},        {"predict", em_predict_command, false},
    {"merge", em_merge_command, false},     {"loo", em_loo_command, true},
    {"diff", em_diff_command, true},        {"verify", em_verify_command, false},
    {"convert", em_convert_command, false}, {"evidence", em_evidence_command, true},
    {"launch", em_launch_command, true},
};

enum { N_COMMAND = sizeof commands / sizeof *commands };

static em_status print(const char *name)
{
    return em_world_rank() == 0 ? em_help_print(name) : EM_OK;
}

static em_status print_version(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;

    MPI_Get_library_version(library, &length);
    library[strcspn(library, "\n")] = '\0';
    if (em_world_rank() == 0)
        printf("emass %s (commit %s)\nMPI: %s\nstarted by: %s\n", EM_VERSION, EM_COMMIT, library,
               em_launchers());
    return EM_OK;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static bool asks_for_help(int argc, const char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (is_help(argv[i]))
            return true;
    return false;
}

/* The command of that name; NULL: there is none. */
static const command *find_command(const char *name)
{
    for (int i = 0; i < N_COMMAND; i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

static const em_model_command *find_model_command(const char *name)
{
    const em_model_command *one;

    for (int i = 0; (one = em_model_command_at(i)); i++)
        if (strcmp(name, one->name) == 0)
            return one;
    return NULL;
}

static em_status unknown_command(const char *name)
{
    em_nearest nearest = em_nearest_start(name);

    for (int i = 0; i < N_COMMAND; i++)
        em_nearest_offer(&nearest, commands[i].name);
    for (int i = 0; em_model_command_at(i); i++)
        em_nearest_offer(&nearest, em_model_command_at(i)->name);
    return em_fail(EM_EUSAGE, "unknown command '%s'%s%s%s", name,
                   nearest.name ? "; did you mean " : " (see emass --help)",
                   nearest.name ? nearest.name : "", nearest.name ? "?" : "");
}

static em_status no_command(void)
{
    char names[256] = "";

    for (int i = 0; i < N_COMMAND; i++)
        em_append(sizeof names, names, "%s%s", i > 0 ? ", " : "", commands[i].name);
    for (int i = 0; em_model_command_at(i); i++)
        em_append(sizeof names, names, ", %s", em_model_command_at(i)->name);
    return em_fail(EM_EUSAGE, "expected a command: %s (see emass --help)", names);
}

/* Runs or explains a command that a model brings. */
static em_status run_model_command(const char *name, bool help, int argc, const char **argv)
{
    const em_model_command *const own = find_model_command(name);

    if (!own)
        return unknown_command(name);
    if (!help)
        return em_model_command_run(own, argc, argv);
    return em_world_rank() == 0 ? em_help_print_text(own->help) : EM_OK;
}

/* An option with an empty value, such as that of a variable of the shell that is not set, would
 * mean its default. */
static em_status refuse_empty_arguments(int argc, const char **argv)
{
    for (int i = 2; i < argc; i++) {
        const char *const equals = strchr(argv[i], '=');
        if (*argv[i] == '\0')
            return em_fail(EM_EUSAGE, "%s: found nothing after %s, expected a value", argv[1],
                           argv[i - 1]);
        if (strncmp(argv[i], "--", 2) == 0 && equals && equals[1] == '\0')
            return em_fail(EM_EUSAGE, "%s: found nothing after %.*s, expected a value", argv[1],
                           (int)(equals + 1 - argv[i]), argv[i]);
    }
    return EM_OK;
}

static em_status run_program(int argc, const char **argv)
{
    if (argc < 2)
        return no_command();
    if (strcmp(argv[1], "--version") == 0)
        return print_version();
    const bool help = strcmp(argv[1], "help") == 0 || is_help(argv[1]);
    if (help && argc == 2)
        return print("emass");
    const char *const name = argv[1 + help];
    const command *const found = find_command(name);
    const bool explains = help || asks_for_help(argc - 1, argv + 1);
    const em_status status = explains ? EM_OK : refuse_empty_arguments(argc, argv);
    if (status)
        return status;
    if (!found)
        return run_model_command(name, explains, argc - 1, argv + 1);
    return explains ? print(found->name) : found->run(argc - 1, argv + 1);
}

/* Whether the command needs MPI. MPI, its libraries and threads take hundredths of a second to
 * start, which is too much for a page of help. */
static bool needs_mpi(int argc, const char **argv)
{
    const command *const found = argc > 1 ? find_command(argv[1]) : NULL;

    const bool waits =
        found ? !found->without_mpi : argc > 1 && find_model_command(argv[1]) != NULL;

    return em_is_launched() || (waits && !asks_for_help(argc - 1, argv + 1));
}

/* Flushes standard output, because a full disk under `emass summary > table` is a failure too. The
 * status is agreed, as em_launched_exit expects. */
static em_status flush_output(em_status status)
{
    const bool failed = fflush(stdout) != 0 || ferror(stdout);

    if (!status && failed)
        status = em_fail(EM_EIO, "cannot write to standard output: %s", strerror(errno));
    const em_status agreed = em_agree(status);
    return agreed ? agreed : status;
}

/*
 * If EMASS_PARENT is the process id of the parent, this process gets SIGTERM when the parent ends,
 * for whatever reason, SIGKILL included: a run then stops with a checkpoint. Writing to a pipe that
 * the parent has left does not end this process. The variable is removed, so that ranks which this
 * process starts do not read it. A front end sets it; without it a process outlives its parent, as
 * under nohup. To be called once, by the one thread of the process, before it starts others.
 */
static void end_with_parent(void)
{
    static const char variable[] = "EMASS_PARENT";
    const char *given = getenv(variable);
    const pid_t parent = given ? (pid_t)strtol(given, NULL, 10) : 0;

    unsetenv(variable);
    if (parent <= 0 || getppid() != parent)
        return;
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* it has ended meanwhile */
        raise(SIGTERM);
}

int main(int argc, char **argv)
{
    bool launched = false;
    int code = 0;

    em_start_without_threads(argv);
    end_with_parent();
    em_h5_crash_handler_enable();
    em_status status = em_check_limits();
    status = status ? status : em_simd_check();
    status = status ? status : em_launch(&argc, argv, &launched, &code);
    if (launched || status) {
        if (status)
            fprintf(stderr, "emass: %s\n", em_error_text());
        return status ? em_exit_status(status) : code;
    }
    if (argc > 1 && strcmp(argv[1], "run") == 0)
        em_signals_catch();
    const bool with_mpi = needs_mpi(argc, (const char **)argv);
    if (with_mpi)
        status = em_world_start(&argc, &argv);
    else
        em_world_start_alone();
    if (!status) {
        em_fault_start(em_world_rank());
        em_launched_begin();
        if (with_mpi)
            em_rank_failure_monitor_start();
        status = run_program(argc, (const char **)argv);
    }
    status = flush_output(status);
    em_h5_quiet(); /* HDF5 would print a page when it cannot close what it has of a damaged file */
    if (status < 0 && em_world_rank() == 0)
        fprintf(stderr, "emass: %s\n", em_error_text());
    code = em_launched_exit(status);
    if (with_mpi && em_world_size() == 1)
        em_signals_end_within_reason(code);
    em_rank_failure_monitor_stop();
    em_world_stop();
    em_signals_report_end();
    return code;
}
