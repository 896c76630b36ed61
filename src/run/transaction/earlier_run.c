/* Handles the files of an earlier run: its output and its checkpoints, and whether this run may
 * replace or continue them. It also handles the checkpoints of this run. */
#include "base/memory.h"
#include "io/checkpoint/archive.h"
#include "io/draws/enclosed.h"
#include "io/draws/reader.h"
#include "io/hdf5/hdf5.h"
#include "par/world.h"
#include "run/config/config_changes.h"
#include "run/output/output.h"
#include "run/transaction/transaction_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- an output */

typedef struct existing_output {
    bool exists, readable; /* readable: an output of emass that HDF5 can open */
    bool complete;
    bool merged;         /* of several runs, by emass merge */
    bool has_checkpoint; /* in it: a finished one that can be extended */
    int64_t planned_draws;
    char *config, *data_hash; /* NULL where not readable */
    char *program_hash;       /* NULL: of no program */
    char *left_out;           /* why it has no checkpoint; NULL: it does not say */
    char *ended_by;           /* of a run with draws: auto; else NULL */
} existing_output;

static bool has_valid_checkpoint(const em_output_transaction *t)
{
    return em_archive_check(t->path[EM_FILE_CHECKPOINT]) == EM_OK ||
           em_archive_check(t->path[EM_FILE_PREVIOUS]) == EM_OK;
}

/* Reads the attributes by which an output of emass is recognised. */
static bool read_attributes(em_reader *reader, existing_output *out)
{
    int64_t complete = 0, merged = 0;
    EM_SCOPED char *library = NULL;
    const bool ours =
        em_reader_text(reader, "inference_library", &library) && strcmp(library, "emass") == 0;

    if (!ours || !em_reader_int(reader, "complete", &complete))
        return false;
    out->complete = complete != 0;
    em_reader_text(reader, "program_hash", &out->program_hash);
    em_reader_text(reader, EM_OUTPUT_ENDED_BY, &out->ended_by);
    em_reader_text(reader, EM_OUTPUT_LEFT_OUT, &out->left_out);
    out->has_checkpoint = em_reader_has(reader, EM_OUTPUT_CHECKPOINT, "bytes");
    out->merged = em_reader_int(reader, "merged", &merged);
    out->readable = em_reader_text(reader, "config", &out->config) &&
                    em_reader_text(reader, "data_hash", &out->data_hash) &&
                    em_reader_int(reader, "planned_draws", &out->planned_draws);
    return true;
}

/*
 * Inspects F or F.draws. An empty file is one that exists and is not readable. So is a file that
 * HDF5 cannot open because a run was killed while writing it: the files beside it identify it as
 * ours. Errors: EM_EUSAGE, a file that is no output of emass; EM_EIO.
 */
static em_status read_output(const em_output_transaction *t, em_transaction_file which,
                             existing_output *out)
{
    const char *path = t->path[which];
    em_reader *reader = NULL;
    struct stat file;

    *out = (existing_output){.exists = false};
    if (lstat(path, &file) != 0)
        return errno == ENOENT ? EM_OK : em_fail(EM_EIO, "%s: %s", path, strerror(errno));
    out->exists = true;
    if (file.st_size == 0)
        return EM_OK;
    const em_status status = em_reader_open(path, NULL, &reader);
    const bool opens = status == EM_OK, ours = opens && read_attributes(reader, out);
    bool torn = false;
    em_reader_close(&reader);
    if (!ours && (!status || status == EM_EDATA)) /* a run may have been killed while writing it */
        torn = em_lock_made(t->lock) == file.st_ino ||
               (!opens && em_h5_may_be(path) && has_valid_checkpoint(t));
    if (ours || torn || (status && status != EM_EDATA))
        return status == EM_EDATA ? EM_OK : status;
    return em_fail(EM_EUSAGE,
                   "%s: found a file that is not an output of emass, expected one or none: neither "
                   "--overwrite nor --resume touches it",
                   path);
}

static void release(existing_output *existing)
{
    em_release_all(&existing->config, &existing->data_hash, &existing->program_hash,
                   &existing->left_out, &existing->ended_by);
}

em_status em_earlier_run_identify(const em_output_transaction *t, char **identity)
{
    EM_SCOPED_BY(release) existing_output existing = {.exists = false};
    em_status status = read_output(t, EM_FILE_OUTPUT, &existing);

    *identity = NULL;
    if (!status && existing.readable)
        status = em_format_text(identity, "%s%s", existing.config, existing.data_hash);
    return status;
}

/* ---------------------------------------------------------------- whether a run may go on */

static const char how_to_extend[] =
    " (run.draws: auto; a higher stop.max_draws or stop.ess gives more draws)";

/* Checks that the files may be continued. A run never continues draws of another config, and never
 * replaces them unless it is told to. */
static em_status check_config(const em_config *config, const char *path,
                              const existing_output *existing, bool *new_rule)
{
    EM_SCOPED_BY(em_changes_release) em_changes changes = {0};
    em_status status = em_changes_find(config, existing->config, &changes);

    if (!status && changes.refused)
        status = em_fail(EM_ECONFIG,
                         "%s%s has another config: %s differ; give the old values%s, --overwrite "
                         "or another --output",
                         path, existing->complete ? " is complete and" : "", changes.refused,
                         changes.was_auto ? how_to_extend : "");
    *new_rule = changes.stop_rule;
    return status;
}

/* Whether a complete output needs no more draws: as many were planned as the config says, and
 * either all of them are there or the stop rule that ended the run still applies. With draws: auto
 * an output ended by the stop rule needs no more draws; one ended by stop.end_after does. */
static em_status is_finished(const em_config *config, const char *path,
                             const existing_output *existing, bool new_rule, bool *finished)
{
    em_reader *reader = NULL;
    em_status status = EM_OK;

    *finished = existing->planned_draws >= config->run.draws;
    if (existing->ended_by && strcmp(existing->ended_by, "stop.max_draws") != 0)
        *finished = !new_rule && strcmp(existing->ended_by, "stop.end_after") != 0;
    else if (*finished && new_rule && !existing->ended_by) {
        status = em_reader_open(path, "posterior", &reader);
        *finished = !status && em_reader_n_draw(reader) >= config->run.draws;
        em_reader_close(&reader);
    }
    return status;
}

/* A finished file can be extended if a checkpoint is in it or beside it. */
static em_status check_extendable(const em_output_transaction *t, const char *path,
                                  const existing_output *existing)
{
    if (!existing->complete || existing->has_checkpoint || has_valid_checkpoint(t))
        return EM_OK;
    return em_fail(
        EM_EUSAGE,
        "%s is complete, with %lld draws planned, and cannot be extended: %s; --overwrite draws "
        "all of it anew, and output.keep_checkpoint: true then keeps the state beside it",
        path, (long long)existing->planned_draws,
        existing->left_out
            ? existing->left_out
            : "it holds no checkpoint, because an earlier version of emass wrote it");
}

/* Whether a run may continue this file, and whether the file needs no more draws. */
static em_status check_file(const em_output_transaction *t, em_transaction_file file,
                            const existing_output *existing, bool *finished)
{
    const char *path = t->path[file];
    bool new_rule = false;
    em_status status = EM_OK;

    if (existing->complete && !existing->readable)
        return em_fail(EM_EUSAGE,
                       "%s is complete, but has no config to compare with: expected an output that "
                       "this version can continue; give --overwrite or another --output",
                       path);
    if (existing->readable)
        status = check_config(t->config, path, existing, &new_rule);
    if (!status && existing->readable && existing->complete)
        status = is_finished(t->config, path, existing, new_rule, finished);
    return status || *finished ? status : check_extendable(t, path, existing);
}

static em_transaction_state state_of(const em_output_transaction *t, const existing_output *output,
                                     const existing_output *draws)
{
    if (draws->exists)
        return EM_TRANSACTION_REMAKING;
    if (!output->exists)
        return EM_TRANSACTION_NOTHING;
    if (output->complete)
        return EM_TRANSACTION_FINISHED;
    return em_file_exists(t->path[EM_FILE_CHECKPOINT]) || em_file_exists(t->path[EM_FILE_PREVIOUS])
               ? EM_TRANSACTION_STOPPED
               : EM_TRANSACTION_STARTED;
}

/* Checks the files for --resume. If draws were set aside, the run is not finished: F has still to
 * be made from them. */
static em_status check_resume(em_output_transaction *t, const existing_output *output,
                              const existing_output *draws)
{
    bool enough = false;

    if (output->merged)
        return em_fail(
            EM_EUSAGE,
            "%s: found a file that emass merge made of several runs, expected the file of one run",
            t->path[EM_FILE_OUTPUT]);
    em_status status = check_file(t, EM_FILE_OUTPUT, output, &t->done);
    if (!status && !t->done)
        status = check_file(t, EM_FILE_DRAWS, draws, &enough);
    t->state = t->done ? EM_TRANSACTION_FINISHED : state_of(t, output, draws);
    return status;
}

em_status em_earlier_run_check(em_output_transaction *t)
{
    EM_SCOPED_BY(release) existing_output output = {.exists = false}, draws = {.exists = false};
    em_status status = read_output(t, EM_FILE_OUTPUT, &output);

    if (t->mode == EM_RUN_NEW && (status == EM_EUSAGE || output.exists))
        status = em_fail(EM_EUSAGE, "%s exists: give --overwrite, --resume or another --output",
                         t->path[EM_FILE_OUTPUT]);
    status = status ? status : read_output(t, EM_FILE_DRAWS, &draws);
    if (!status && t->mode == EM_RUN_NEW && draws.exists)
        status = em_fail(EM_EUSAGE,
                         "%s, the draws of an interrupted run, exists: give --resume, --overwrite "
                         "or another --output",
                         t->path[EM_FILE_DRAWS]);
    return status || t->mode != EM_RUN_RESUME ? status : check_resume(t, &output, &draws);
}

/* ---------------------------------------------------------------- identity of a checkpoint */

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
        return em_fail(
            EM_ECONFIG,
            "%s is a run of another Stan program: the hash of the program was %s, expected %s",
            path, program, expected.program);
    const bool is_unknown =
        strcmp(data, "xxh64:0000000000000000") == 0; /* as em_density_create has it */
    if (!is_unknown && strcmp(data, expected.data) != 0)
        return em_fail(EM_ECONFIG, "%s has other data: their hash was %s, expected %s", path, data,
                       expected.data);
    return EM_OK;
}

/* The texts in a checkpoint that identify its run. */
enum { CONFIG, PROGRAM, DATA, N_TEXT };
static const char *const text_name[N_TEXT] = {"config", "program_hash", "data_hash"};

static const char seconds_name[] = "sampling_time"; /* absent from reproducible runs */

/* Compares the texts in a checkpoint with those of this run. Collective. */
static em_status check_origin(const em_config *config, em_archive *archive, const char *path,
                              const em_model *model, bool *new_rule)
{
    char *text[N_TEXT] = {NULL};
    EM_SCOPED_BY(em_changes_release) em_changes changes = {.refused = NULL};
    em_status status = EM_OK;

    for (int i = 0; !status && i < N_TEXT; i++)
        status = em_archive_get_text(archive, text_name[i], &text[i]);
    status = status ? status : em_changes_find(config, text[CONFIG], &changes);
    if (!status && changes.refused)
        status = em_fail(EM_ECONFIG,
                         "%s has another config: %s differ; give the old values%s, or start anew "
                         "with --overwrite",
                         path, changes.refused, changes.was_auto ? how_to_extend : "");
    else if (!status)
        status = check_hashes(path, text[PROGRAM], text[DATA], model);
    *new_rule = changes.stop_rule;
    for (int i = 0; i < N_TEXT; i++)
        em_release(&text[i]);
    return em_agree(status);
}

/* ---------------------------------------------------------------- write */

em_status em_checkpoint_write(const em_output_transaction *t, const em_transaction_run *run)
{
    const hashes hash = hashes_of(run->model);
    const char *const text[N_TEXT] = {t->config->stored, hash.program, hash.data};
    em_archive *archive = NULL;
    em_status status = em_archive_open(run->grid, t->path[EM_FILE_NEW], true, &archive);

    for (int i = 0; !status && i < N_TEXT; i++)
        status = em_archive_put_text(archive, text_name[i], text[i]);
    status = status ? status : run->visit(run->run, em_archive_visitor(archive));
    if (!status && run->seconds) {
        const em_visitor *visitor = em_archive_visitor(archive);
        status = visitor->shared(visitor->context, seconds_name, 1, run->seconds);
    }
    const em_status closed = em_archive_close(&archive, !status);
    return status ? status : closed;
}

em_status em_checkpoint_publish(const em_output_transaction *t)
{
    const char *newest = t->path[EM_FILE_CHECKPOINT];
    em_status status = EM_OK;

    if (em_file_exists(newest))
        status = em_file_rename(newest, t->path[EM_FILE_PREVIOUS]);
    status = status ? status : em_file_rename(t->path[EM_FILE_NEW], newest);
    em_file_sync_folder(newest);
    return status;
}

/* ---------------------------------------------------------------- restore */

/* Reads a checkpoint. If it is from inside the output, messages name the output. */
static em_status read_archive(const em_output_transaction *t, em_transaction_file file,
                              const em_transaction_run *run, em_restored *restored)
{
    const char *named = t->path[file == EM_FILE_NEW ? restored->draws : file];
    em_archive *archive = NULL;
    em_status status = em_archive_open(run->grid, t->path[file], false, &archive);

    if (!status)
        status = check_origin(t->config, archive, named, run->model, &restored->new_rule);
    status = status ? status : run->visit(run->run, em_archive_visitor(archive));
    if (!status && run->seconds && em_archive_has(archive, seconds_name)) {
        const em_visitor *visitor = em_archive_visitor(archive);
        status = visitor->shared(visitor->context, seconds_name, 1, run->seconds);
    }
    em_archive_close(&archive, false);
    return status;
}

/* Reads the output whose draws are to be continued: F.draws, or else F. Rank 0. */
static em_status read_draws(const em_output_transaction *t, em_restored *restored,
                            existing_output *existing)
{
    em_status status = read_output(t, EM_FILE_DRAWS, existing);

    restored->draws = existing->exists ? EM_FILE_DRAWS : EM_FILE_OUTPUT;
    if (!status && !existing->exists)
        status = read_output(t, EM_FILE_OUTPUT, existing);
    restored->finished = !status && existing->complete;
    return status;
}

/* Copies the checkpoint in a finished output to F.checkpoint.new; stores why if it is damaged. Rank
 * 0. */
static em_status take_out(const em_output_transaction *t, em_restored *restored,
                          const existing_output *existing)
{
    const char *to = t->path[EM_FILE_NEW];

    if (!restored->finished || !existing->has_checkpoint)
        return EM_OK;
    em_status status = em_enclosed_take(t->path[restored->draws], EM_OUTPUT_CHECKPOINT, to);
    status = status ? status : em_archive_check(to);
    restored->from_inside = !status;
    if (status != EM_EDATA)
        return status;
    const char *text = em_error_text();
    const char *colon = strstr(text, ": "); /* after the name of the file */
    snprintf(restored->damage, sizeof restored->damage, "the checkpoint in it: %s",
             colon ? colon + 2 : text);
    unlink(to);
    return EM_OK;
}

/* Reads the newest valid checkpoint: that from inside the output, or one of the two beside it. If
 * none is valid, the error text says why. Collective. */
static em_status read_newest(const em_output_transaction *t, const em_transaction_run *run,
                             em_restored *restored)
{
    const em_transaction_file candidates[] = {
        restored->from_inside ? EM_FILE_NEW : EM_FILE_CHECKPOINT, EM_FILE_PREVIOUS};
    char reason[1024] = "";

    for (int i = 0; i < (restored->from_inside ? 1 : 2); i++) {
        const em_status status = read_archive(t, candidates[i], run, restored);
        restored->found = status == EM_OK;
        restored->file = candidates[i];
        if (status != EM_EDATA) /* a file that cannot be read now may be valid */
            return status;
        if (i == 0)
            snprintf(reason, sizeof reason, "%s", em_error_text());
    }
    if (restored->damage[0])
        em_fail(EM_EDATA, "%s", restored->damage);
    else if (!restored->from_inside && !em_file_exists(t->path[EM_FILE_CHECKPOINT]) &&
             !em_file_exists(t->path[EM_FILE_PREVIOUS]))
        em_fail(EM_EDATA, "%s: the run had not saved a checkpoint", t->path[EM_FILE_CHECKPOINT]);
    else
        em_fail(EM_EDATA, "%s", reason); /* error message about the newest */
    return EM_OK;
}

em_status em_checkpoint_restore(const em_output_transaction *t, const em_transaction_run *run,
                                em_restored *restored)
{
    const bool leads = em_world_rank() == 0;
    EM_SCOPED_BY(release) existing_output existing = {.exists = false};
    em_status status = EM_OK;

    *restored = (em_restored){.found = false};
    if (leads)
        status = read_draws(t, restored, &existing);
    if (!status && leads)
        status = take_out(t, restored, &existing);
    status = em_agree(status);
    em_broadcast(restored, sizeof *restored);
    status = status ? status : read_newest(t, run, restored);
    if (!status && restored->found && leads && existing.readable)
        status = check_hashes(t->path[restored->draws], existing.program_hash, existing.data_hash,
                              run->model);
    return em_agree(status);
}
