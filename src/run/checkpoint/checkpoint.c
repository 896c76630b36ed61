#include "run/checkpoint/checkpoint.h"

#include "base/memory.h"
#include "io/checkpoint/archive.h"
#include "io/draws/enclosed.h"
#include "io/draws/reader.h"
#include "par/world.h"
#include "run/config/config_changes.h"
#include "run/output/output.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct hashes {
    char program[32], data[32];
} hashes;

static hashes hashes_of(const em_model *model)
{
    hashes out;

    snprintf(out.program, sizeof out.program, "xxh64:%016llx",
             (unsigned long long)model->program_hash);
    snprintf(out.data, sizeof out.data, "xxh64:%016llx", (unsigned long long)model->data_hash);
    return out;
}

/* Compares the hashes stored in a file with those of this run. The program is part of the data: it
 * is compared first, so that the message names it. */
static em_status check_hashes(const char *path, const char *program, const char *data,
                              const em_model *model)
{
    const hashes expected = hashes_of(model);

    if (program && strcmp(program, expected.program) != 0)
        return em_fail(EM_ECONFIG, "%s is of another program: its hash was %s, expected %s", path,
                       program, expected.program);
    if (strcmp(data, expected.data) != 0)
        return em_fail(EM_ECONFIG, "%s is of other data: their hash was %s, expected %s", path,
                       data, expected.data);
    return EM_OK;
}

/* Texts that identify what a checkpoint is of. */
static em_status check_origin(const em_config *config, em_archive *archive, const char *path,
                              const em_model *model, bool *new_rule)
{
    char *old = NULL, *program = NULL, *data = NULL;
    em_changes changes = {.refused = NULL};
    em_status status = em_archive_get_text(archive, "config", &old);

    if (!status)
        status = em_archive_get_text(archive, "program_hash", &program);
    if (!status)
        status = em_archive_get_text(archive, "data_hash", &data);
    if (!status)
        status = em_changes_find(config, old, &changes);
    if (!status && changes.refused)
        status = em_fail(EM_ECONFIG,
                         "%s is of another config: %s differ; go on with the old values, or start "
                         "anew with --overwrite",
                         path, changes.refused);
    else if (!status)
        status = check_hashes(path, program, data, model);
    *new_rule = changes.stop_rule;
    em_changes_release(&changes);
    em_release(&old);
    em_release(&program);
    em_release(&data);
    return em_agree(status);
}

/* ---------------------------------------------------------------- save and restore */

static em_status write_archive(const em_config *config, const em_grid *grid, const char *path,
                               const em_model *model, em_visit *visit, void *state)
{
    const hashes hash = hashes_of(model);
    em_archive *archive = NULL;
    em_status closed, status = em_archive_create(grid, path, &archive);

    if (!status)
        status = em_archive_put_text(archive, "config", config->stored);
    if (!status)
        status = em_archive_put_text(archive, "program_hash", hash.program);
    if (!status)
        status = em_archive_put_text(archive, "data_hash", hash.data);
    if (!status)
        status = visit(state, em_archive_visitor(archive));
    closed = em_archive_close(&archive, !status);
    return status ? status : closed;
}

em_status em_checkpoint_save(const em_output_paths *paths, const em_config *config,
                             const em_grid *grid, const em_model *model, em_visit *visit,
                             void *state)
{
    const em_status status = write_archive(config, grid, paths->fresh, model, visit, state);

    return status ? status : em_output_paths_turn_checkpoint(paths);
}

static em_status read_archive(const char *path, const em_config *config, const em_grid *grid,
                              const em_model *model, em_visit *visit, void *state, bool *new_rule)
{
    em_archive *archive = NULL;
    em_status status = em_archive_open(grid, path, &archive);

    if (!status)
        status = check_origin(config, archive, path, model, new_rule);
    if (!status)
        status = visit(state, em_archive_visitor(archive));
    em_archive_close(&archive, false);
    return status;
}

/* The draws to go on from: those set aside, or the output. Rank 0. */
static em_status inspect_draws(const em_output_paths *paths, const char **path,
                               em_existing_output *existing)
{
    em_status status = em_output_paths_find(paths, paths->draws, existing);

    *path = existing->exists ? paths->draws : paths->output;
    return status || existing->exists ? status
                                      : em_output_paths_find(paths, paths->output, existing);
}

/* What is wrong with a file, without its name. */
static void note_damage(em_restored *restored)
{
    const char *text = em_error_text(), *colon = strstr(text, ": ");

    snprintf(restored->damage, sizeof restored->damage, "the checkpoint in it: %s",
             colon ? colon + 2 : text);
}

/* Copies the checkpoint inside a finished file to paths->fresh. A damaged one is not copied. Rank
 * 0. */
static em_status take_out(const em_output_paths *paths, em_restored *restored)
{
    const char *path;
    em_existing_output existing;
    em_status status = inspect_draws(paths, &path, &existing);

    restored->finished = !status && existing.complete;
    if (restored->finished && existing.has_checkpoint) {
        status = em_enclosed_take(path, EM_OUTPUT_CHECKPOINT, paths->fresh);
        if (!status)
            status = em_archive_check(paths->fresh);
        restored->from_inside = !status;
    }
    em_existing_output_release(&existing);
    if (status != EM_EDATA)
        return status;
    note_damage(restored);
    unlink(paths->fresh);
    return EM_OK;
}

/* `reason`: what is wrong with the first one that was tried. */
static void say_why_none(const em_output_paths *paths, const em_restored *restored,
                         const char *reason)
{
    if (restored->damage[0])
        em_fail(EM_EDATA, "%s", restored->damage);
    else if (!restored->from_inside && access(paths->checkpoint, F_OK) != 0 &&
             access(paths->previous, F_OK) != 0)
        em_fail(EM_EDATA, "%s: there is none: the run had not come to its first",
                paths->checkpoint);
    else
        em_fail(EM_EDATA, "%s", reason);
}

em_status em_checkpoint_restore(const em_output_paths *paths, const em_config *config,
                                const em_grid *grid, const em_model *model, em_visit *visit,
                                void *state, em_restored *restored)
{
    char reason[1024] = "";
    em_status status;

    *restored = (em_restored){.found = false};
    status = em_agree(em_world_rank() == 0 ? take_out(paths, restored) : EM_OK);
    em_broadcast(restored, sizeof *restored);
    const char *const candidates[] = {restored->from_inside ? paths->fresh : paths->checkpoint,
                                      paths->previous};
    for (int i = 0; !status && i < (restored->from_inside ? 1 : 2); i++) {
        status =
            read_archive(candidates[i], config, grid, model, visit, state, &restored->new_rule);
        restored->found = status == EM_OK;
        restored->path = candidates[i];
        if (status != EM_EDATA) /* what cannot be read now may be the next time */
            return status;
        if (i == 0)
            snprintf(reason, sizeof reason, "%s", em_error_text());
        status = EM_OK;
    }
    if (!status)
        say_why_none(paths, restored, reason);
    return status;
}

/* ---------------------------------------------------------------- what stands there, by rank 0 */

/* Draws of another run are never gone on from, and not replaced unasked. */
static em_status check_config(const em_config *config, const char *path,
                              const em_existing_output *existing, bool *new_rule)
{
    em_changes changes;
    em_status status = em_changes_find(config, existing->config, &changes);

    if (!status && changes.refused)
        status =
            em_fail(EM_ECONFIG,
                    "%s is %sof another config: %s differ; give the old values, --overwrite or "
                    "another --output",
                    path, existing->complete ? "complete and " : "", changes.refused);
    *new_rule = changes.stop_rule;
    em_changes_release(&changes);
    return status;
}

/* Whether a complete output needs no more draws: as many were planned as the config says, and
 * either all of them are there or the stop rule that ended the run still applies. */
static em_status is_finished(const em_config *config, const char *path,
                             const em_existing_output *existing, bool new_rule, bool *finished)
{
    em_reader *reader = NULL;
    em_status status = EM_OK;

    *finished = existing->planned_draws >= config->run.draws;
    if (*finished && new_rule) {
        status = em_reader_open(path, "posterior", &reader);
        *finished = !status && em_reader_n_draw(reader) >= config->run.draws;
        em_reader_close(&reader);
    }
    return status;
}

/* A finished file has a checkpoint in it or beside it, or nothing can go on from it. */
static em_status check_extendable(const em_output_paths *paths, const char *path,
                                  const em_existing_output *existing)
{
    if (!existing->complete || existing->has_checkpoint ||
        em_archive_check(paths->checkpoint) == EM_OK || em_archive_check(paths->previous) == EM_OK)
        return EM_OK;
    return em_fail(EM_EUSAGE,
                   "%s is complete, with %lld draws planned, and cannot be extended: %s; "
                   "--overwrite draws all of it anew, and output.keep_checkpoint: true then keeps "
                   "the state beside it",
                   path, (long long)existing->planned_draws,
                   existing->left_out ? existing->left_out
                                      : "it holds no checkpoint, as it is of an earlier version of "
                                        "emass");
}

/* Whether a run may continue this file, and whether the file needs no more draws. */
static em_status check_file(const em_config *config, const em_output_paths *paths, const char *path,
                            const em_existing_output *existing, bool *finished)
{
    bool new_rule = false;
    em_status status = EM_OK;

    if (existing->complete && !existing->readable)
        return em_fail(EM_EUSAGE,
                       "%s is complete, but has no config to compare with: expected an output that "
                       "this version can go on with; give --overwrite or another --output",
                       path);
    if (existing->readable)
        status = check_config(config, path, existing, &new_rule);
    if (!status && existing->readable && existing->complete)
        status = is_finished(config, path, existing, new_rule, finished);
    return status || *finished ? status : check_extendable(paths, path, existing);
}

/* The same for the draws of a run to resume. Draws that were set aside are never finished: the
 * output has still to be made from them. */
static em_status check_draws(const em_config *config, const em_output_paths *paths,
                             const em_existing_output *output, const em_existing_output *draws,
                             em_standing *standing)
{
    bool finished = false, enough = false;
    em_status status;

    if (output->merged)
        return em_fail(EM_EUSAGE,
                       "%s: found a file of several runs that emass merge made, expected that of "
                       "one to go on with",
                       paths->output);
    status = check_file(config, paths, paths->output, output, &finished);
    if (!status && !finished)
        status = check_file(config, paths, paths->draws, draws, &enough);
    if (finished)
        *standing = EM_STANDS_FINISHED;
    else if (output->exists || draws->exists)
        *standing = EM_STANDS_PARTIAL;
    return status;
}

static em_status check(const em_config *config, const em_output_paths *paths, em_run_mode mode,
                       em_standing *standing)
{
    em_existing_output output = {.exists = false}, draws = {.exists = false};
    em_status status = em_output_paths_find(paths, paths->output, &output);

    if (mode == EM_RUN_NEW && (status == EM_EUSAGE || output.exists))
        status = em_fail(EM_EUSAGE, "%s exists: give --overwrite, --resume or another --output",
                         paths->output);
    if (!status)
        status = em_output_paths_find(paths, paths->draws, &draws);
    if (!status && mode == EM_RUN_NEW && draws.exists)
        status = em_fail(EM_EUSAGE,
                         "%s, the draws of an interrupted run, exists: give --resume, --overwrite "
                         "or another --output",
                         paths->draws);
    if (!status && mode == EM_RUN_RESUME)
        status = check_draws(config, paths, &output, &draws, standing);
    em_existing_output_release(&output);
    em_existing_output_release(&draws);
    return status;
}

em_status em_checkpoint_check(const em_config *config, const em_output_paths *paths,
                              em_run_mode mode, em_standing *standing)
{
    em_status status = EM_OK;

    *standing = EM_STANDS_NOTHING;
    if (em_world_rank() == 0)
        status = check(config, paths, mode, standing);
    status = em_agree(status);
    em_broadcast(standing, sizeof *standing);
    return status;
}

/* ---------------------------------------------------------------- the draws to go on from */

static em_status find_draws(const em_output_paths *paths, const em_model *model, const char **path)
{
    em_existing_output existing;
    em_status status = inspect_draws(paths, path, &existing);

    if (!status && existing.readable)
        status = check_hashes(*path, existing.program_hash, existing.data_hash, model);
    em_existing_output_release(&existing);
    return status;
}

em_status em_checkpoint_find_draws(const em_output_paths *paths, const em_model *model,
                                   const char **path)
{
    bool aside = false;
    em_status status = EM_OK;

    if (em_world_rank() == 0) {
        status = find_draws(paths, model, path);
        aside = *path == paths->draws;
    }
    status = em_agree(status);
    em_broadcast(&aside, sizeof aside);
    *path = aside ? paths->draws : paths->output;
    return status;
}
