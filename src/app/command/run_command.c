#include "api/run_diagnoses.h"
#include "app/command/command.h"

#include "app/command/scan_runs.h"
#include "app/process/signals.h"
#include "app/report/report_page.h"
#include "app/summary/command_arguments.h"
#include "app/summary/draws_summary.h"
#include "base/memory.h"
#include "base/page.h"
#include "base/system/launcher.h"
#include "base/system/progress.h"
#include "base/system/terminal.h"
#include "base/text.h"
#include "emass/emass.h"
#include "par/mpi_world.h"
#include "run/loop/driver.h"

#include <math.h>
#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_OVERRIDES = 256, OWN_OVERRIDES = 2, MOST_CONFIG_BYTES = 1 << 20 };

typedef struct run_command {
    const char *config;
    int n_override;
    const char *override[MOST_OVERRIDES +
                         OWN_OVERRIDES]; /* key=value; then those of a scan, which are not freed */
    em_progress_mode progress;
    int overwrite, resume, quiet, same_kernels, remove_config;
    char *report;       /* a page that is written at the end; NULL: none */
    double end;         /* of a scan, by em_clock; NaN: none, or no scan */
    em_scan_stop *stop; /* of a scan; NULL: there are no other runs at the same time */
} run_command;

em_status em_read_config(const char *path, char **text)
{
    const bool leads = em_world_rank() == 0;

    *text = NULL;
    return em_share_text(leads ? em_read_text_file(path, MOST_CONFIG_BYTES, text) : EM_OK, text);
}

/* ---------------------------------------------------------------- command line */

enum { SET = 1, OUTPUT, SEED, CHAINS, MAX_TIME, PROGRESS };

static em_status add_override(run_command *command, const char *key, const char *value)
{
    char **out = (char **)&command->override[command->n_override];

    if (command->n_override == MOST_OVERRIDES)
        return em_fail(EM_EUSAGE, "more than %d --set options", MOST_OVERRIDES);
    const em_status status =
        key ? em_format_text(out, "%s=%s", key, value) : em_copy_text(value, out);
    command->n_override += !status;
    return status;
}

static em_status take_option(run_command *command, int option, const char *value)
{
    static const char *const keys[] = {[SET] = NULL,
                                       [OUTPUT] = "output.file",
                                       [SEED] = "run.seed",
                                       [CHAINS] = "run.chains",
                                       [MAX_TIME] = "stop.max_time"};

    if (option == PROGRESS)
        return em_progress_mode_of(value, &command->progress);
    return add_override(command, keys[option], value);
}

static em_status parse_command(int argc, const char **argv, run_command *command)
{
    const struct poptOption options[] = {
        {"set", 0, POPT_ARG_STRING, NULL, SET, "override one setting of the config", "KEY=VALUE"},
        {"output", 0, POPT_ARG_STRING, NULL, OUTPUT, "output file", "FILE"},
        {"seed", 0, POPT_ARG_STRING, NULL, SEED, "seed", "N"},
        {"chains", 0, POPT_ARG_STRING, NULL, CHAINS, "number of chains", "N"},
        {"max-time", 0, POPT_ARG_STRING, NULL, MAX_TIME, "stop by then, with a checkpoint", "3h"},
        {"progress", 0, POPT_ARG_STRING, NULL, PROGRESS, "how progress is shown",
         "auto|bar|log|none"},
        {"quiet", 0, POPT_ARG_NONE, &command->quiet, 0, "no progress, no table", NULL},
        {"resume", 0, POPT_ARG_NONE, &command->resume, 0,
         "go on where an earlier run was stopped, or start a new one", NULL},
        {"overwrite", 0, POPT_ARG_NONE, &command->overwrite, 0, "replace an existing output", NULL},
        {"report", 0, POPT_ARG_STRING, &command->report, 0, "write a page at the end", "PAGE"},
        {"same-kernels", 0, POPT_ARG_NONE, &command->same_kernels, 0,
         "fail if the kind of processor or a library differs", NULL},
        {"remove-config", 0, POPT_ARG_NONE, &command->remove_config, 0,
         "remove the file of the config once it is read", NULL},
        POPT_TABLEEND};
    poptContext context = poptGetContext("emass run", argc, argv, options, 0);
    em_status status = EM_OK;
    int option;

    while (!status && (option = poptGetNextOpt(context)) > 0) {
        char *value = poptGetOptArg(context);
        status = take_option(command, option, value);
        free(value);
    }
    status = status ? status : em_arguments_check(context, "run", option);
    const char *config = status ? NULL : poptGetArg(context);
    if (!status && !config)
        status = em_fail(EM_EUSAGE, "run: expected a config file (see emass run --help)");
    if (!status && poptPeekArg(context))
        status = em_fail(EM_EUSAGE, "run: found '%s' after the config, expected options only",
                         poptPeekArg(context));
    if (!status && command->overwrite && command->resume)
        status = em_fail(EM_EUSAGE, "run: --resume and --overwrite exclude each other");
    status = status ? status : em_copy_text(config, (char **)&command->config);
    poptFreeContext(context);
    return status;
}

static void release_command(run_command *command)
{
    for (int i = 0; i < command->n_override; i++)
        em_release(&command->override[i]);
    em_release(&command->config);
    free(command->report); /* popt's */
}

/* Says that this run, which no launcher started, does not use the tasks of the user's Slurm job. */
static void note_unused_tasks(const run_command *command)
{
    const char *tasks = getenv("SLURM_NTASKS");
    const int n = tasks ? atoi(tasks) : 0;

    if (n > 1 && !command->quiet && !em_is_launched())
        em_say(
            "note: this run has one rank%s, and the Slurm job has %d tasks: --ranks %d uses them",
            getenv("SLURMD_NODENAME") ? "" : " on this machine", n, n);
}

/* ---------------------------------------------------------------- the run */

/* Where messages of a run are printed. */
typedef struct message_output {
    FILE *stream;
    em_progress *progress; /* printed on the same stream; NULL: none */
    const char *name;      /* of the run; NULL: it is the only one */
} message_output;

/* Prints the progress of a run and its end. */
typedef struct progress_output {
    em_progress *progress;
    em_context *context;
    double end; /* by em_clock; NaN: none */
    em_scan_stop *stop;
} progress_output;

static void print_message(void *to, const char *text)
{
    const message_output *messages = to;

    em_progress_give_way(messages->progress);
    fprintf(messages->stream, "emass: %s%s%s\n", messages->name ? messages->name : "",
            messages->name ? ": " : "", text);
}

static void report_progress(void *to, const em_report *report)
{
    const progress_output *of = to;
    const em_progress_record record = em_report_progress(report);

    const bool stops = em_scan_stop_check(of->stop, em_world_interrupted());

    if (em_clock() > of->end || stops)
        em_context_interrupt(of->context);
    em_progress_tell(of->progress, &record);
}

/* Prints results that are not in the summary. Rank 0. */
static void print_outcome(const em_report *report)
{
    char note[EM_NOTE_BYTES];

    if (report->learned[0]) {
        em_terminal_fill(stdout, em_terminal_columns(stdout), report->learned);
        putchar('\n');
    }
    for (int64_t i = 0; em_report_note(report, i, sizeof note, note); i++)
        fprintf(stderr, "emass: %s\n", note);
}

static em_status sample(const run_command *command, em_context *context, const char *config,
                        progress_output *progress, em_run **run)
{
    const em_run_mode mode = command->resume      ? EM_RUN_RESUME
                             : command->overwrite ? EM_RUN_OVERWRITE
                                                  : EM_RUN_NEW;
    em_status status = em_run_create(context,
                                     &(em_run_request){.config = config,
                                                       .path = command->config,
                                                       .n_override = command->n_override,
                                                       .override = command->override,
                                                       .mode = mode,
                                                       .same_kernels = command->same_kernels,
                                                       .progress = report_progress,
                                                       .progress_to = progress},
                                     run);

    em_signals_run_is_made();
    return status ? status : em_run_advance(*run, INT64_MAX);
}

static em_status print_result(em_run *run)
{
    const char *const file = em_run_file(run);
    em_summary_options summary = em_summary_defaults(1, &file);

    summary.log = true;
    summary.known = em_run_diagnoses(run);
    const em_status status = em_summary_print(&summary, stdout);

    if (!status && em_world_rank() == 0)
        print_outcome(em_run_report(run));
    return status;
}

/* Prints the end of a run. `name`: of one run of a scan, for which one line is printed; NULL: it is
 * the only run. */
static em_status tell(const run_command *command, const char *name, em_run *run)
{
    const em_report *report = em_run_report(run);

    if (report->was_finished) {
        if (em_world_rank() == 0)
            fprintf(stderr, "emass: %s is complete: nothing to do\n", em_run_file(run));
        return EM_OK;
    }
    if (command->quiet)
        return EM_OK;
    if (!name)
        return print_result(run);
    if (em_world_rank() == 0) {
        printf("%s, %s: %s\n", name, em_run_file(run), report->verdict);
        fflush(stdout);
    }
    return EM_OK;
}

static em_status run(const run_command *command, em_context *context, const char *config,
                     message_output *messages)
{
    progress_output progress = {.context = context, .end = command->end, .stop = command->stop};
    EM_SCOPED_BY(em_run_destroy) em_run *made = NULL;
    em_status status = EM_OK;

    if (em_world_rank() == 0)
        status = em_progress_create(command->quiet ? EM_PROGRESS_NONE : command->progress, stderr,
                                    "starting", &progress.progress);
    messages->progress = progress.progress;
    status = em_agree(status);
    status = status ? status : sample(command, context, config, &progress, &made);
    messages->progress = NULL;
    em_progress_destroy(&progress.progress);
    status = status ? status : tell(command, messages->name, made);
    if (!status && command->report && !messages->name)
        status = em_report_write(em_run_file(made), command->report);
    return status;
}

/* Makes one run with all ranks of the world. */
static em_status run_once(const run_command *command, const char *name, const char *config)
{
    message_output messages = {stderr, NULL, name};
    const em_context_options options = {print_message, &messages, .may_abort = true};
    EM_SCOPED_BY(em_context_destroy) em_context *context = NULL;
    em_status status = em_context_create(em_world_ranks(), &options, &context);

    if (!status) {
        em_signals_hand_on(context, em_world_rank());
        if (em_scan_stop_check(command->stop, false))
            em_context_interrupt(context);
        status = run(command, context, config, &messages);
        em_signals_hand_on(NULL, 0);
    }
    return status;
}

/* ---------------------------------------------------------------- scans */

typedef struct scan_request {
    const run_command *command;
    const char *config;
    const em_config_scan *scan;
} scan_request;

static em_status run_of_scan(void *to, int64_t i, bool shows, em_scan_stop *stop)
{
    const scan_request *r = to;
    run_command own = *r->command;
    EM_SCOPED char *value = NULL, *file = NULL;
    em_status status = em_agree(em_config_scan_overrides(r->scan, i, &value, &file));

    if (!status) {
        own.override[own.n_override++] = value;
        own.override[own.n_override++] = file;
        own.progress = shows ? own.progress : EM_PROGRESS_NONE;
        own.stop = stop;
        status = run_once(&own, value + strlen("model."), r->config);
    }
    return status;
}

/* Checks all outputs before the first run begins; each run checks its output again. Rank 0. */
static em_status check_outputs(const run_command *command, const em_config_scan *scan)
{
    const bool is_new = !command->resume && !command->overwrite;
    em_status status = em_page_check(scan->page, scan->model->commands->page_line, "page");

    for (int64_t i = 0; !status && is_new && i < scan->count; i++)
        if (access(scan->file[i], F_OK) == 0)
            return em_fail(EM_EUSAGE, "%s exists: give --overwrite, --resume or another --output",
                           scan->file[i]);
    return status;
}

/* Makes one run or, if the config has a list for the option that may have one, a run for each of
 * its values. */
static em_status run_all(run_command *command, const char *config)
{
    EM_SCOPED_BY(em_config_scan_release) em_config_scan scan = {.model = NULL};
    em_status status = em_agree(em_config_scan_read(command->config, config, command->n_override,
                                                    command->override, &scan));

    command->end = NAN;
    if (status)
        return status;
    if (!scan.option) {
        if (command->report)
            status = em_agree(em_world_rank() == 0 ? em_report_check(command->report) : EM_OK);
        return status ? status : run_once(command, NULL, config);
    }
    if (command->report) {
        em_release(&scan.page);
        status = em_agree(em_copy_text(command->report, &scan.page));
    }
    command->end = em_clock() + scan.max_time;
    if (!status)
        status = em_agree(em_world_rank() == 0 ? check_outputs(command, &scan) : EM_OK);
    if (!status)
        status = em_scan_all(&scan, run_of_scan, &(scan_request){command, config, &scan}, false);
    return status ? status : em_scan_compare(&scan, !command->quiet);
}

/* ---------------------------------------------------------------- the command */

em_status em_run_command(int argc, const char **argv)
{
    EM_SCOPED_BY(release_command) run_command command = {0};
    EM_SCOPED char *config = NULL;
    em_status status = em_agree(parse_command(argc, argv, &command));

    if (!status)
        note_unused_tasks(&command);
    status = status ? status : em_read_config(command.config, &config);
    if (!status && command.remove_config && em_world_rank() == 0)
        unlink(command.config);
    return status ? status : run_all(&command, config);
}
