#include "run/transaction/transaction.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/memory.h"
#include "io/checkpoint/rollback_journal.h"
#include "par/world.h"
#include "run/transaction/transaction_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Runs an operation on rank 0 and shares its result. Collective. */
#define BY_RANK_0(call) em_agree(em_world_rank() == 0 ? (call) : EM_OK)

/* ---------------------------------------------------------------- the rollback journal */

/* Writes the journal under another name and renames it, so that it is complete or absent. */
static em_status write_journal(const em_output_transaction *t)
{
    const char *output = t->path[EM_FILE_OUTPUT], *part = t->path[EM_FILE_JOURNAL_PART];
    EM_SCOPED char *identity = NULL;
    em_status status = em_fault_file("file-journal", output);

    status = status ? status : em_earlier_run_identify(t, &identity);
    if (!status && !identity)
        status = em_fail(EM_EIO, "%s: could not be read before the end of the run is written to it",
                         output);
    status = status ? status : em_rollback_journal_keep(output, identity, part);
    status = status ? status : em_file_rename(part, t->path[EM_FILE_JOURNAL]);
    if (status)
        unlink(part);
    else
        em_file_sync_folder(output);
    return status;
}

/* Restores F from its journal. A journal of another file is ignored. So is an incomplete one: F is
 * unchanged until the journal is complete. */
static em_status roll_back(const em_output_transaction *t)
{
    const char *output = t->path[EM_FILE_OUTPUT], *journal = t->path[EM_FILE_JOURNAL];
    struct stat file;
    EM_SCOPED char *identity = NULL;

    if (!em_file_exists(journal) || stat(output, &file) != 0 || file.st_size == 0)
        return EM_OK;
    em_status status = em_earlier_run_identify(t, &identity);
    status = status ? status : em_rollback_journal_apply(journal, identity, output);
    if (status)
        return status == EM_EDATA ? EM_OK : status;
    status = em_fault_file("file-restore", output);
    status = status ? status : em_file_remove(journal);
    em_file_sync_folder(output);
    return status;
}

/* ---------------------------------------------------------------- open, close */

/* Removes the files left beside a complete F. */
static em_status remove_leftovers(const em_output_transaction *t)
{
    static const em_transaction_file left[] = {EM_FILE_JOURNAL, EM_FILE_DRAWS, EM_FILE_PREVIOUS,
                                               EM_FILE_CHECKPOINT};
    const int n = t->config->output.keep_checkpoint ? 2 : 4;
    em_status status = EM_OK;

    for (int i = 0; !status && i < n; i++)
        status = em_file_remove(t->path[left[i]]);
    return status ? status : em_fault_file("file-done", t->path[EM_FILE_OUTPUT]);
}

static em_status inspect(em_output_transaction *t)
{
    em_status status = t->mode == EM_RUN_RESUME ? roll_back(t) : EM_OK;

    status = status ? status : em_earlier_run_check(t);
    return !status && t->done ? remove_leftovers(t) : status;
}

static em_status take_lock(const em_config *config, em_run_mode mode, em_output_transaction **out)
{
    em_status status = em_agree(em_allocate(1, sizeof **out, out));
    em_output_transaction *t = *out;

    if (status)
        return status;
    *t = (em_output_transaction){.config = config, .mode = mode};
    status = em_files_name(t);
    return status
               ? status
               : BY_RANK_0(em_lock_take(t->path[EM_FILE_LOCK], t->path[EM_FILE_OUTPUT], &t->lock));
}

em_status em_transaction_open(const em_config *config, em_run_mode mode,
                              em_output_transaction **out)
{
    em_status status = take_lock(config, mode, out);

    if (status)
        return status;
    status = BY_RANK_0(inspect(*out));
    em_broadcast(&(*out)->state, sizeof(*out)->state);
    em_broadcast(&(*out)->done, sizeof(*out)->done);
    return status;
}

em_status em_transaction_check_output(const em_config *config)
{
    em_output_transaction t = {.config = config};
    const em_status status = em_files_name(&t);

    for (int i = 0; i < EM_N_FILE; i++)
        em_release(&t.path[i]);
    return status;
}

bool em_transaction_is_done(const em_output_transaction *t)
{
    return t->done;
}

bool em_transaction_may_resume(const em_output_transaction *t)
{
    return t->state != EM_TRANSACTION_NOTHING;
}

/* Whether F belongs to this run but cannot be opened. The lock file then keeps the inode of F, by
 * which the next run recognises it. */
static bool must_keep_inode(const em_output_transaction *t)
{
    struct stat file;
    EM_SCOPED char *identity = NULL;

    if (lstat(t->path[EM_FILE_OUTPUT], &file) != 0 || file.st_ino != em_lock_made(t->lock))
        return false;
    const bool readable = em_earlier_run_identify(t, &identity) == EM_OK && identity;
    return !readable;
}

void em_transaction_close(em_output_transaction **out)
{
    em_output_transaction *t = *out;
    char message[2048];

    if (!t)
        return;
    snprintf(message, sizeof message, "%s", em_error_text());
    if (t->lock)
        em_lock_release(&t->lock, must_keep_inode(t));
    em_fail(EM_OK, "%s", message);
    for (int i = 0; i < EM_N_FILE; i++)
        em_release(&t->path[i]);
    em_release(out);
}

/* ---------------------------------------------------------------- begin */

/* Removes F and all files beside it. */
static em_status remove_all(const em_output_transaction *t)
{
    em_status status = EM_OK;

    for (int i = 0; !status && i < EM_FILE_LOCK; i++)
        status = em_file_remove(t->path[i]);
    return status;
}

/* Makes an empty F in place of an existing one, and records in the lock that it is ours. */
static em_status make_empty(const em_output_transaction *t)
{
    const char *output = t->path[EM_FILE_OUTPUT];
    struct stat file;
    em_status status = em_file_remove(output);

    status = status ? status : em_fault_file("file-create", output);
    if (status)
        return status;
    EM_SCOPED_BY(em_file_close)
    int descriptor = open(output, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor < 0 || fstat(descriptor, &file) != 0)
        status = em_fail(EM_EIO, "%s: cannot create the output: %s", output, strerror(errno));
    return status ? status : em_lock_set_made(t->lock, file.st_ino);
}

/* Makes F with its groups. If the run fails to write them, F is removed. Collective. */
static em_status make_output(const em_output_transaction *t, const em_transaction_run *run)
{
    const char *output = t->path[EM_FILE_OUTPUT];
    em_status status = BY_RANK_0(make_empty(t));

    if (status)
        return status;
    status = run->create(run->run, output, t->path[EM_FILE_CHECKPOINT]);
    if (status && em_world_rank() == 0)
        unlink(output);
    return status;
}

em_status em_transaction_begin(em_output_transaction *t, const em_transaction_run *run)
{
    if (t->mode == EM_RUN_RESUME && t->state == EM_TRANSACTION_NOTHING)
        em_say("nothing to resume at %s: starting", t->path[EM_FILE_OUTPUT]);
    em_status status = BY_RANK_0(remove_all(t));
    if (status)
        return status;
    t->state = EM_TRANSACTION_NOTHING;
    status = make_output(t, run);
    if (!status)
        t->state = EM_TRANSACTION_STARTED;
    return status;
}

em_status em_transaction_remove(const em_config *config)
{
    char message[2048];
    em_output_transaction *t = NULL;

    snprintf(message, sizeof message, "%s", em_error_text());
    em_status status = take_lock(config, EM_RUN_OVERWRITE, &t);
    status = status ? status : BY_RANK_0(remove_all(t));
    em_transaction_close(&t);
    if (!status)
        em_fail(EM_OK, "%s", message);
    return status;
}

/* ---------------------------------------------------------------- save */

em_status em_transaction_save(em_output_transaction *t, const em_transaction_run *run)
{
    if (t->state != EM_TRANSACTION_STARTED && t->state != EM_TRANSACTION_SAVED)
        return em_fail(EM_EUSAGE,
                       "%s: found a run that has finished or failed, expected one in progress: its "
                       "state is not saved again",
                       t->path[EM_FILE_OUTPUT]);
    em_status status = BY_RANK_0(em_lock_check(t->lock));
    status = status ? status : run->flush(run->run);
    status = status ? status : em_checkpoint_write(t, run);
    status = status ? status : BY_RANK_0(em_checkpoint_publish(t));
    if (!status)
        t->state = EM_TRANSACTION_SAVED;
    return status;
}

/* ---------------------------------------------------------------- resume */

/* Handles a run that cannot be resumed. A finished F is never replaced unless the run is told to;
 * any other run starts from the beginning. */
static em_status cannot_resume(const em_output_transaction *t, const em_restored *restored,
                               const char *what)
{
    char reason[1024];

    snprintf(reason, sizeof reason, "%s", em_error_text());
    if (restored->finished)
        return em_fail(EM_EDATA,
                       "%s is complete and cannot be extended: %s%s%s; --overwrite draws all of it "
                       "anew",
                       t->path[EM_FILE_OUTPUT], what, *what && *reason ? ": " : "", reason);
    em_say("warning: starting anew%s%s%s%s", *what ? ": " : "", what, *reason ? ": " : "", reason);
    return EM_OK;
}

/* Renames F to F.draws, unless an interrupted run has done so. A checkpoint that was in F is
 * published first, so that one stands beside F.draws. */
static em_status set_aside(const em_output_transaction *t, const em_restored *restored)
{
    em_status status = restored->from_inside ? em_checkpoint_publish(t) : EM_OK;

    if (status || em_file_exists(t->path[EM_FILE_DRAWS]))
        return status;
    return em_file_rename(t->path[EM_FILE_OUTPUT], t->path[EM_FILE_DRAWS]);
}

/* Rewrites F from the draws that are known to exist. Collective. */
static em_status remake(em_output_transaction *t, const em_transaction_run *run,
                        const em_restored *restored)
{
    const char *output = t->path[EM_FILE_OUTPUT], *draws = t->path[EM_FILE_DRAWS];
    em_status status = BY_RANK_0(set_aside(t, restored));

    if (status)
        return status;
    t->state = EM_TRANSACTION_REMAKING;
    status = make_output(t, run);
    status = status ? status : run->copy_draws(run->run, draws);
    if (status && restored->finished && BY_RANK_0(em_file_rename(draws, output)) == EM_OK)
        t->state = EM_TRANSACTION_FINISHED;
    status = status ? status : BY_RANK_0(em_file_remove(draws));
    if (!status)
        t->state = EM_TRANSACTION_SAVED;
    return status;
}

em_status em_transaction_remake(em_output_transaction *t, const em_transaction_run *run)
{
    return remake(t, run, &(em_restored){.found = true});
}

/* Resumes from a checkpoint. Nothing is renamed before it is known that the draws exist.
 * Collective. */
static em_status resume_from(em_output_transaction *t, const em_transaction_run *run,
                             const em_restored *restored, bool *resumed)
{
    bool found = false;
    em_status status =
        run->find_draws(run->run, restored->new_rule, t->path[restored->draws], &found);

    if (status)
        return status;
    if (!found)
        return cannot_resume(t, restored, "the draws that the checkpoint counts are missing");
    status = remake(t, run, restored);
    *resumed = !status;
    return status;
}

em_status em_transaction_resume(em_output_transaction *t, const em_transaction_run *run,
                                em_resumption *out)
{
    em_restored restored;
    em_status status = em_checkpoint_restore(t, run, &restored);

    *out = (em_resumption){.extends = restored.finished,
                           .output = t->path[EM_FILE_OUTPUT],
                           .checkpoint = t->path[restored.file]};
    if (!status && !restored.found)
        status = cannot_resume(t, &restored, "");
    else if (!status)
        status = resume_from(t, run, &restored, &out->resumed);
    if (restored.from_inside && !out->resumed)
        BY_RANK_0(em_file_remove(t->path[EM_FILE_NEW]));
    return status;
}

/* ---------------------------------------------------------------- finish */

em_status em_transaction_finish(em_output_transaction *t, const em_transaction_run *run)
{
    em_status status = BY_RANK_0(write_journal(t));

    if (status)
        return status;
    t->state = EM_TRANSACTION_FINISHING;
    status = run->finish(run->run);
    if (status)
        return status;
    t->state = EM_TRANSACTION_FINISHED;
    return BY_RANK_0(remove_leftovers(t));
}
