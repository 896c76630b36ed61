/* The checkpoints of a transaction: written, and restored from the newest valid one. */
#include "base/memory.h"
#include "io/checkpoint/archive.h"
#include "io/draws/enclosed.h"
#include "par/world.h"
#include "run/config/config_changes.h"
#include "run/output/output.h"
#include "run/transaction/transaction_parts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------- what a checkpoint is of */

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

/* Compares the texts that identify the run of a checkpoint with this run. Collective. */
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

/* ---------------------------------------------------------------- write */

em_status em_checkpoint_write(const em_output_transaction *t, const em_transaction_run *run)
{
    const hashes hash = hashes_of(run->model);
    em_archive *archive = NULL;
    em_status closed, status = em_archive_create(run->grid, t->path[EM_FILE_NEW], &archive);

    if (!status)
        status = em_archive_put_text(archive, "config", t->config->stored);
    if (!status)
        status = em_archive_put_text(archive, "program_hash", hash.program);
    if (!status)
        status = em_archive_put_text(archive, "data_hash", hash.data);
    if (!status)
        status = run->visit(run->run, em_archive_visitor(archive));
    closed = em_archive_close(&archive, !status);
    return status ? status : closed;
}

em_status em_checkpoint_publish(const em_output_transaction *t)
{
    const char *newest = t->path[EM_FILE_CHECKPOINT];
    em_status status = EM_OK;

    if (em_file_exists(newest))
        status = em_file_rename(newest, t->path[EM_FILE_PREVIOUS]);
    if (!status)
        status = em_file_rename(t->path[EM_FILE_NEW], newest);
    em_file_sync_folder(newest);
    return status;
}

/* ---------------------------------------------------------------- restore */

static em_status read_archive(const em_output_transaction *t, em_transaction_file file,
                              const em_transaction_run *run, bool *new_rule)
{
    em_archive *archive = NULL;
    em_status status = em_archive_open(run->grid, t->path[file], &archive);

    if (!status)
        status = check_origin(t->config, archive, t->path[file], run->model, new_rule);
    if (!status)
        status = run->visit(run->run, em_archive_visitor(archive));
    em_archive_close(&archive, false);
    return status;
}

/* The draws to continue: F.draws, or else F. Rank 0. */
static em_status read_draws(const em_output_transaction *t, em_transaction_file *file,
                            em_existing_output *existing)
{
    em_status status = em_existing_output_read(t, EM_FILE_DRAWS, existing);

    *file = existing->exists ? EM_FILE_DRAWS : EM_FILE_OUTPUT;
    return status || existing->exists ? status
                                      : em_existing_output_read(t, EM_FILE_OUTPUT, existing);
}

/* What is wrong with a file, without its name. */
static void note_damage(em_restored *restored)
{
    const char *text = em_error_text(), *colon = strstr(text, ": ");

    snprintf(restored->damage, sizeof restored->damage, "the checkpoint in it: %s",
             colon ? colon + 2 : text);
}

/* Copies the checkpoint inside a finished file to F.checkpoint.new. A damaged one is not copied.
 * Rank 0. */
static em_status take_out(const em_output_transaction *t, em_restored *restored)
{
    const char *to = t->path[EM_FILE_NEW];
    em_transaction_file file;
    em_existing_output existing;
    em_status status = read_draws(t, &file, &existing);

    restored->finished = !status && existing.complete;
    if (restored->finished && existing.has_checkpoint) {
        status = em_enclosed_take(t->path[file], EM_OUTPUT_CHECKPOINT, to);
        if (!status)
            status = em_archive_check(to);
        restored->from_inside = !status;
    }
    em_existing_output_release(&existing);
    if (status != EM_EDATA)
        return status;
    note_damage(restored);
    unlink(to);
    return EM_OK;
}

/* `reason`: what is wrong with the first checkpoint that was tried. */
static void say_why_none(const em_output_transaction *t, const em_restored *restored,
                         const char *reason)
{
    const char *newest = t->path[EM_FILE_CHECKPOINT];

    if (restored->damage[0])
        em_fail(EM_EDATA, "%s", restored->damage);
    else if (!restored->from_inside && !em_file_exists(newest) &&
             !em_file_exists(t->path[EM_FILE_PREVIOUS]))
        em_fail(EM_EDATA, "%s: there is none: the run had not saved its first", newest);
    else
        em_fail(EM_EDATA, "%s", reason);
}

em_status em_checkpoint_restore(const em_output_transaction *t, const em_transaction_run *run,
                                em_restored *restored)
{
    char reason[1024] = "";
    em_status status;

    *restored = (em_restored){.found = false};
    status = em_agree(em_world_rank() == 0 ? take_out(t, restored) : EM_OK);
    em_broadcast(restored, sizeof *restored);
    const em_transaction_file candidates[] = {
        restored->from_inside ? EM_FILE_NEW : EM_FILE_CHECKPOINT, EM_FILE_PREVIOUS};
    for (int i = 0; !status && i < (restored->from_inside ? 1 : 2); i++) {
        status = read_archive(t, candidates[i], run, &restored->new_rule);
        restored->found = status == EM_OK;
        restored->file = candidates[i];
        if (status != EM_EDATA) /* a file that cannot be read now may be valid */
            return status;
        if (i == 0)
            snprintf(reason, sizeof reason, "%s", em_error_text());
        status = EM_OK;
    }
    if (!status)
        say_why_none(t, restored, reason);
    return status;
}

/* ---------------------------------------------------------------- the draws to go on from */

em_status em_checkpoint_find_draws(const em_output_transaction *t, const em_model *model,
                                   em_transaction_file *file)
{
    em_existing_output existing = {.exists = false};
    em_status status = EM_OK;

    if (em_world_rank() == 0) {
        status = read_draws(t, file, &existing);
        if (!status && existing.readable)
            status = check_hashes(t->path[*file], existing.program_hash, existing.data_hash, model);
        em_existing_output_release(&existing);
    }
    status = em_agree(status);
    em_broadcast(file, sizeof *file);
    return status;
}
