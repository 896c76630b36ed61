#include "app/command/command.h"
#include "app/command/compare_draws.h"

#include "app/summary/command_arguments.h"
#include "base/memory.h"
#include "io/draws/reader.h"
#include "par/world.h"
#include "run/config/config_folder.h"
#include "run/loop/driver.h"
#include "run/output/output.h"
#include "run/output/processor_record.h"
#include "run/output/stored_config.h"
#include "run/transaction/transaction.h"

#include <stdio.h>
#include <string.h>

typedef struct verify_command {
    const char *path, *folder;
    long draws;
    int same_kernels;
} verify_command;

/* ---------------------------------------------------------------- the second run */

/* Loads the config in the file, changed to write fewer draws to another file. If draws: auto has
 * thinned the draws, the new run thins as much. Local. */
static em_status load(const verify_command *command, em_reader *reader, const char *output,
                      em_config **out)
{
    EM_SCOPED char *file = NULL, *draws = NULL, *thin = NULL;
    int64_t thinning = 0;
    em_status status =
        em_reader_n_draw(reader) > 0
            ? em_format_text(&file, "output.file=%s", output)
            : em_fail(EM_EDATA, "%s: found no draws, expected those of a run", command->path);

    if (!status)
        status = em_format_text(&draws, "run.draws=%lld",
                                (long long)em_least(em_reader_n_draw(reader), command->draws));
    if (!status && em_reader_int(reader, EM_OUTPUT_THINNING, &thinning))
        status = em_format_text(&thin, "run.thin=%lld", (long long)thinning);
    if (!status) {
        const char *const overrides[] = {file,
                                         draws,
                                         "stop.r_hat=none",
                                         "stop.ess=none",
                                         "stop.max_time=none",
                                         "stop.max_draws=" EM_DEFAULT_MAX_DRAWS,
                                         "stop.max_gradients=none",
                                         "stop.end_after=none",
                                         thin};
        status = em_stored_config(command->path, command->folder, thin ? 9 : 8, overrides, out);
        if (!status && !em_home_has_all_paths(*out))
            em_say("note: files named in the config of %s do not exist (--folder DIR sets the "
                   "folder of its relative paths)",
                   command->path);
    }
    return status;
}

/* ---------------------------------------------------------------- comparison, by rank 0 */

/* Checks that variable i has the same name and as many numbers in both files. */
static em_status match_variable(em_reader *old, em_reader *new, int64_t i)
{
    const em_reader_variable *a = em_reader_variable_at(old, i), *b = em_reader_variable_at(new, i);

    if (strcmp(a->name, b->name) == 0 && a->size == b->size)
        return EM_OK;
    return em_fail(
        EM_ENUMERIC,
        "verify: %s of %lld numbers in the file is %s of %lld now: are the data the same?", a->name,
        (long long)a->size, b->name, (long long)b->size);
}

/* Fails if any number of a variable differs, in any bit. */
static em_status compare_variable(em_reader *old, em_reader *new, int64_t i)
{
    const em_reader_variable *variable = em_reader_variable_at(new, i);
    em_difference found = {0};
    em_status status = em_compare_draws((em_reader *[]){old, new}, (int64_t[]){i, i}, true, &found);

    if (status || found.count == 0)
        return status;
    return em_fail(EM_ENUMERIC,
                   "verify: %s, chain %lld, draw %lld: %.17g in the file, %.17g on %d ranks",
                   em_reader_label(variable, found.element), (long long)found.chain,
                   (long long)found.draw, found.value[0], found.value[1], em_world_size());
}

static em_status compare_group(const char *old_path, const char *new_path, const char *group)
{
    EM_SCOPED_BY(em_reader_close) em_reader *old = NULL, *new = NULL;
    em_status status = em_reader_open(old_path, group, &old);

    status = status ? status : em_reader_open(new_path, group, &new);
    if (!status && (em_reader_n_variable(old) != em_reader_n_variable(new) ||
                    em_reader_n_chain(old) != em_reader_n_chain(new) ||
                    em_reader_n_draw(old) < em_reader_n_draw(new)))
        status = em_fail(EM_ENUMERIC, "verify: the group %s has other variables, chains or draws",
                         group);
    for (int64_t i = 0; !status && i < em_reader_n_variable(new); i++) {
        status = match_variable(old, new, i);
        status = status ? status : compare_variable(old, new, i);
    }
    return status;
}

static em_status compare_files(const char *old_path, const char *new_path)
{
    static const char *const groups[] = {
        "posterior",   "sample_stats", "log_likelihood",  "posterior_predictive",
        "predictions", "prior",        "prior_predictive"};
    EM_SCOPED_BY(em_reader_close) em_reader *reader = NULL;
    em_status status = em_reader_open(new_path, "posterior", &reader);

    for (size_t i = 0; !status && i < sizeof groups / sizeof *groups; i++)
        if (em_reader_has(reader, groups[i], "draw"))
            status = compare_group(old_path, new_path, groups[i]);
    return status;
}

/* ---------------------------------------------------------------- the command */

static em_status run_and_compare(const verify_command *command, const em_config *config)
{
    em_report report;
    const em_engine_request order = {
        .mode = EM_RUN_OVERWRITE, .watchful = true, .same_kernels = command->same_kernels};
    EM_SCOPED char *kernels = NULL;
    em_status removed,
        status = em_processor_check_file(command->path, command->same_kernels, &kernels);

    if (status)
        return status;
    status = em_sample(config, &order, &report);

    if (!status && em_world_rank() == 0)
        status = compare_files(command->path, config->output.file);
    status = em_agree(status);
    if (!status && em_world_rank() == 0)
        printf("%s: no difference in the first %lld draws of %lld chains, run again on %d ranks\n",
               command->path, (long long)config->run.draws, (long long)config->run.chains,
               em_world_size());
    removed = em_transaction_remove(config);
    return status ? status : removed;
}

static em_status verify(const verify_command *command)
{
    em_reader *reader = NULL;
    EM_SCOPED_BY(em_config_destroy) em_config *config = NULL;
    EM_SCOPED char *output = NULL;
    int64_t merged;
    em_status status = em_format_text(&output, "%s.verify", command->path);

    status = status ? status : em_reader_open(command->path, "posterior", &reader);
    if (!status && em_reader_int(reader, "merged", &merged))
        status = em_fail(
            EM_EUSAGE, "%s: found a file of %lld runs, expected that of one: verify each by itself",
            command->path, (long long)merged);
    status = status ? status : load(command, reader, output, &config);
    em_reader_close(&reader);
    status = em_agree(status);
    return status ? status : run_and_compare(command, config);
}

em_status em_verify_command(int argc, const char **argv)
{
    verify_command command = {.draws = 100};
    const struct poptOption options[] = {
        {"draws", 0, POPT_ARG_LONG, &command.draws, 0, "draws to compare", "N"},
        {"folder", 0, POPT_ARG_STRING, &command.folder, 0, "folder of the config", "DIR"},
        {"same-kernels", 0, POPT_ARG_NONE, &command.same_kernels, 0, "fail on another processor",
         NULL},
        POPT_TABLEEND};
    EM_SCOPED_BY(em_command_line_end) em_command_line line;
    em_status status = em_command_line_read(argc, argv, options, "one file", 1, 1, &line);

    if (!status && command.draws < 1)
        status =
            em_fail(EM_EUSAGE, "verify: --draws: found %ld, expected at least 1", command.draws);
    command.path = line.argument ? line.argument[0] : NULL;
    return status ? status : verify(&command);
}
