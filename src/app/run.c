#include "app/run.h"

#include "app/signals.h"
#include "app/summary.h"
#include "base/fault.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/text.h"
#include "par/mpi_world.h"
#include "run/driver.h"

#include <popt.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_OVERRIDES = 256, MOST_CONFIG_BYTES = 1 << 20 };

typedef struct run_command {
    const char *config;
    int n_override;
    const char *override[MOST_OVERRIDES]; /* key=value */
    char *owned[MOST_OVERRIDES];          /* those made here */
    em_progress_mode progress;
    int overwrite, resume, quiet;
} run_command;

em_status em_load_config(const char *path, int n_override, const char *const *override,
                         em_config **out)
{
    char *text = NULL;
    em_status status = EM_OK;

    *out = NULL;
    if (em_world_rank() == 0)
        status = em_read_text_file(path, MOST_CONFIG_BYTES, &text);
    status = em_agree(status);
    if (!status)
        status = em_broadcast_text(&text);
    if (status) {
        em_release(&text);
        return status;
    }
    status = em_fault("config") ? em_fail(EM_ECONFIG, "%s: parsing failed (injected)", path)
                                : em_config_parse(path, text, n_override, override, out);
    em_release(&text);
    status = em_agree(status);
    if (status)
        em_config_destroy(out);
    return status;
}

/* ---------------------------------------------------------------- command line */

enum { SET = 1, OUTPUT, SEED, CHAINS, MAX_TIME, PROGRESS };

static em_status add_override(run_command *command, const char *key, const char *value)
{
    em_status status = EM_OK;

    if (command->n_override == MOST_OVERRIDES)
        return em_fail(EM_EUSAGE, "more than %d --set options", MOST_OVERRIDES);
    if (key)
        status = em_format_text(&command->owned[command->n_override], "%s=%s", key, value);
    else
        status = em_copy_text(value, &command->owned[command->n_override]);
    if (!status) {
        command->override[command->n_override] = command->owned[command->n_override];
        command->n_override++;
    }
    return status;
}

static em_status take_option(run_command *command, int option, const char *value)
{
    static const char *const keys[] = {[SET] = NULL,
                                       [OUTPUT] = "output.file",
                                       [SEED] = "run.seed",
                                       [CHAINS] = "run.chains",
                                       [MAX_TIME] = "stop.max_time"};

    static const char *const names[] = {
        [OUTPUT] = "--output", [SEED] = "--seed", [CHAINS] = "--chains", [MAX_TIME] = "--max-time"};

    if (option != SET && option != PROGRESS && !*value) /* which would be the default, unsaid */
        return em_fail(EM_EUSAGE, "run: %s: found nothing, expected a value", names[option]);
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
        {"progress", 0, POPT_ARG_STRING, NULL, PROGRESS, "how progress is told",
         "auto|bar|log|none"},
        {"quiet", 0, POPT_ARG_NONE, &command->quiet, 0, "no progress, no table", NULL},
        {"resume", 0, POPT_ARG_NONE, &command->resume, 0,
         "go on where an earlier run was stopped, else start", NULL},
        {"overwrite", 0, POPT_ARG_NONE, &command->overwrite, 0, "replace an existing output", NULL},
        POPT_TABLEEND};
    poptContext context = poptGetContext("emass run", argc, argv, options, 0);
    em_status status = EM_OK;
    int option;

    while (!status && (option = poptGetNextOpt(context)) > 0) {
        char *value = poptGetOptArg(context);
        status = take_option(command, option, value);
        free(value);
    }
    if (!status && option < -1)
        status = em_fail(EM_EUSAGE, "run: %s: %s (see emass run --help)",
                         poptBadOption(context, POPT_BADOPTION_NOALIAS), poptStrerror(option));
    const char *config = status ? NULL : poptGetArg(context);
    if (!status && !config)
        status = em_fail(EM_EUSAGE, "run: expected a config file (see emass run --help)");
    if (!status && poptPeekArg(context))
        status = em_fail(EM_EUSAGE, "run: found '%s' after the config, expected options only",
                         poptPeekArg(context));
    if (!status && command->overwrite && command->resume)
        status = em_fail(EM_EUSAGE, "run: --resume and --overwrite exclude each other");
    if (!status)
        status = em_copy_text(config, (char **)&command->config);
    poptFreeContext(context);
    return status;
}

static void release_command(run_command *command)
{
    for (int i = 0; i < command->n_override; i++)
        em_release(&command->owned[i]);
    em_release(&command->config);
}

/* ---------------------------------------------------------------- the run */

static em_status run(const run_command *command, const em_config *config)
{
    const em_run_mode mode = command->resume      ? EM_RUN_RESUME
                             : command->overwrite ? EM_RUN_OVERWRITE
                                                  : EM_RUN_NEW;
    em_progress *progress = NULL;
    em_report report;
    em_status status = EM_OK;

    if (em_world_rank() == 0)
        status = em_progress_create(command->quiet ? EM_PROGRESS_NONE : command->progress, stderr,
                                    &progress);
    status = em_agree(status);
    if (!status)
        status = em_run(config, mode, progress, &report);
    em_progress_destroy(&progress);
    if (!status && report.was_finished) {
        if (em_world_rank() == 0)
            fprintf(stderr, "emass: %s is complete: nothing to do\n", config->output.file);
        return EM_OK;
    }
    if (!status && !command->quiet) {
        const em_summary_options summary = em_summary_defaults(config->output.file);
        status = em_summary_print(&summary, stdout);
    }
    if (status || command->quiet || em_world_rank() != 0)
        return status;
    printf("%s\n", report.verdict);
    if (report.learned[0])
        printf("%s\n", report.learned);
    if (report.unreported > 0)
        fprintf(stderr,
                "emass: warning: %lld draws could not be reported in full: what is missing is NaN "
                "in the file%s%s\n",
                (long long)report.unreported, report.failure[0] ? "; the first on this rank: " : "",
                report.failure);
    if (report.rejections.count > 0)
        fprintf(
            stderr,
            "emass: note: the model rejected %lld positions that chains tried after warmup%s%s\n",
            (long long)report.rejections.count,
            report.rejections.first[0] ? "; the first on this rank: " : "",
            report.rejections.first);
    if (report.note[0])
        fprintf(stderr, "emass: note: %s\n", report.note);
    return EM_OK;
}

static void warn(const em_config *config)
{
    const em_sampler_options *options = config->sampler_options;

    if (em_world_rank() == 0 && options->minibatch != INT64_MIN && !config->sampler->minibatches &&
        !config->sampler->by_model)
        fprintf(stderr,
                "emass: warning: sampler.minibatch does not apply to %s, which uses all "
                "observations\n",
                config->sampler->name);
}

em_status em_run_command(int argc, const char **argv)
{
    run_command command = {0};
    em_config *config = NULL;
    em_status status = em_agree(parse_command(argc, argv, &command));

    if (!status)
        status = em_load_config(command.config, command.n_override, command.override, &config);
    em_signals_hand_on();
    if (!status)
        warn(config);
    if (!status)
        status = run(&command, config);
    em_config_destroy(&config);
    release_command(&command);
    return status;
}
