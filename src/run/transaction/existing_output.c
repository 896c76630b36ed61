/* What an earlier run has left at the path of an output, and whether this run may replace it or go
 * on from it. */
#include "base/memory.h"
#include "io/checkpoint/archive.h"
#include "io/draws/reader.h"
#include "io/hdf5/hdf5.h"
#include "run/config/config_changes.h"
#include "run/output/output.h"
#include "run/transaction/transaction_parts.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ---------------------------------------------------------------- one file */

static bool has_valid_checkpoint(const em_output_transaction *t)
{
    return em_archive_check(t->path[EM_FILE_CHECKPOINT]) == EM_OK ||
           em_archive_check(t->path[EM_FILE_PREVIOUS]) == EM_OK;
}

/* Whether a file that HDF5 cannot open is the output of a killed run: the lock file records its
 * inode, or there is a valid checkpoint. */
static bool is_torn_output(const em_output_transaction *t, const char *path,
                           const struct stat *file, bool opens)
{
    return em_lock_made(t->lock) == file->st_ino ||
           (!opens && em_h5_may_be(path) && has_valid_checkpoint(t));
}

/* Reads the attributes by which an output of emass is known. */
static bool read_attributes(em_reader *reader, em_existing_output *out)
{
    int64_t complete = 0, merged = 0;
    char *library = NULL;
    const bool ours =
        em_reader_text(reader, "inference_library", &library) && strcmp(library, "emass") == 0;

    em_release(&library);
    if (!ours || !em_reader_int(reader, "complete", &complete))
        return false;
    out->complete = complete != 0;
    em_reader_text(reader, "program_hash", &out->program_hash);
    em_reader_text(reader, EM_OUTPUT_LEFT_OUT, &out->left_out);
    out->has_checkpoint = em_reader_has(reader, EM_OUTPUT_CHECKPOINT, "bytes");
    out->merged = em_reader_int(reader, "merged", &merged);
    out->readable = em_reader_text(reader, "config", &out->config) &&
                    em_reader_text(reader, "data_hash", &out->data_hash) &&
                    em_reader_int(reader, "planned_draws", &out->planned_draws);
    return true;
}

em_status em_existing_output_read(const em_output_transaction *t, em_transaction_file which,
                                  em_existing_output *out)
{
    const char *path = t->path[which];
    em_reader *reader = NULL;
    struct stat file;
    em_status status;

    *out = (em_existing_output){.exists = false};
    if (lstat(path, &file) != 0)
        return errno == ENOENT ? EM_OK : em_fail(EM_EIO, "%s: %s", path, strerror(errno));
    out->exists = true;
    if (file.st_size == 0)
        return EM_OK;
    status = em_reader_open(path, NULL, &reader);
    const bool opens = status == EM_OK, ours = opens && read_attributes(reader, out);
    em_reader_close(&reader);
    if (ours || (status && status != EM_EDATA) || is_torn_output(t, path, &file, opens))
        return status == EM_EDATA ? EM_OK : status;
    return em_fail(EM_EUSAGE,
                   "%s: found a file that is no output of emass, expected one or none: neither "
                   "--overwrite nor --resume touches it",
                   path);
}

void em_existing_output_release(em_existing_output *existing)
{
    em_release(&existing->config);
    em_release(&existing->data_hash);
    em_release(&existing->program_hash);
    em_release(&existing->left_out);
}

/* ---------------------------------------------------------------- whether a run may go on from it
 */

/* A run never goes on from draws of another config, and never replaces them unasked. */
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

/* A finished file can be extended if a checkpoint is in it or beside it. */
static em_status check_extendable(const em_output_transaction *t, const char *path,
                                  const em_existing_output *existing)
{
    if (!existing->complete || existing->has_checkpoint || has_valid_checkpoint(t))
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
static em_status check_file(const em_output_transaction *t, em_transaction_file file,
                            const em_existing_output *existing, bool *finished)
{
    const char *path = t->path[file];
    bool new_rule = false;
    em_status status = EM_OK;

    if (existing->complete && !existing->readable)
        return em_fail(EM_EUSAGE,
                       "%s is complete, but has no config to compare with: expected an output that "
                       "this version can go on with; give --overwrite or another --output",
                       path);
    if (existing->readable)
        status = check_config(t->config, path, existing, &new_rule);
    if (!status && existing->readable && existing->complete)
        status = is_finished(t->config, path, existing, new_rule, finished);
    return status || *finished ? status : check_extendable(t, path, existing);
}

static em_transaction_state state_of(const em_output_transaction *t,
                                     const em_existing_output *output,
                                     const em_existing_output *draws)
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

/* On --resume. Draws that were set aside are never finished: F has still to be made from them. */
static em_status check_resume(em_output_transaction *t, const em_existing_output *output,
                              const em_existing_output *draws)
{
    bool enough = false;
    em_status status;

    if (output->merged)
        return em_fail(EM_EUSAGE,
                       "%s: found a file of several runs that emass merge made, expected that of "
                       "one to go on with",
                       t->path[EM_FILE_OUTPUT]);
    status = check_file(t, EM_FILE_OUTPUT, output, &t->done);
    if (!status && !t->done)
        status = check_file(t, EM_FILE_DRAWS, draws, &enough);
    t->state = t->done ? EM_TRANSACTION_FINISHED : state_of(t, output, draws);
    return status;
}

em_status em_existing_output_check(em_output_transaction *t)
{
    em_existing_output output = {.exists = false}, draws = {.exists = false};
    em_status status = em_existing_output_read(t, EM_FILE_OUTPUT, &output);

    if (t->mode == EM_RUN_NEW && (status == EM_EUSAGE || output.exists))
        status = em_fail(EM_EUSAGE, "%s exists: give --overwrite, --resume or another --output",
                         t->path[EM_FILE_OUTPUT]);
    if (!status)
        status = em_existing_output_read(t, EM_FILE_DRAWS, &draws);
    if (!status && t->mode == EM_RUN_NEW && draws.exists)
        status = em_fail(EM_EUSAGE,
                         "%s, the draws of an interrupted run, exists: give --resume, --overwrite "
                         "or another --output",
                         t->path[EM_FILE_DRAWS]);
    if (!status && t->mode == EM_RUN_RESUME)
        status = check_resume(t, &output, &draws);
    em_existing_output_release(&output);
    em_existing_output_release(&draws);
    return status;
}
