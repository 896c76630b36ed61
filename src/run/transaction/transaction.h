/*
 * The output transaction of a run: all changes of its output F and of the files beside it. Its
 * invariant: if the run is killed at any moment, `emass run --resume` produces the file of an
 * undisturbed run, with the same bytes.
 *
 *          begin           save            finish             finish
 * NOTHING -------> STARTED -----> SAVED -----------> FINISHING -----> FINISHED
 *                   |  ^          | | ^                  |                |
 *                   +--+    close | | | resume,          |                |
 *             kill, resume        v | | at its end       |                |
 *                           STOPPED | |            kill, |         resume | with
 *                                 | | | kill,     resume |           more | draws
 *                          resume | | | resume           |                |
 *                                 v v |                  v                |
 *                                 REMAKING <-------------+----------------+
 *
 * The files, by what their names end in:
 *   F                       the draws; its attribute `complete` is 0 until the end
 *   F.lock                  the lock, while a run uses F or after it was killed (output_lock.h)
 *   F.checkpoint            the newest checkpoint; .previous, the one before it; .new, one that is
 *                           being written
 *   F.draws                 the old F, while a new F is made from it
 *   F.undo                  the rollback journal of F (rollback_journal.h); .part, one that is
 *                           being written
 *
 * STATE      on disk, beside F.lock                after a kill in it, --resume
 * NOTHING    neither F nor F.draws                 begins. A checkpoint without F is removed
 * STARTED    F: empty, unreadable, `complete` 0    warns and begins anew: there is no checkpoint
 * SAVED      F with `complete` 0; F.checkpoint;    restores F.checkpoint, or .previous where it is
 *            after the second save .previous too.  missing or damaged. Where both are, it warns
 *            Between the two renames of a save     and begins anew, as it does where F.checkpoint
 *            F.checkpoint is missing               is damaged and F was thinned after .previous
 * STOPPED    as SAVED, without F.lock              does the same
 * REMAKING   F.draws; F.checkpoint; F: missing,    reads F.draws and makes F again
 *            empty or in part
 * FINISHING  F: perhaps unreadable; F.checkpoint   restores F from F.undo, then F.checkpoint, and
 *            of the last iteration; F.undo         finishes again
 * FINISHED   F with `complete` 1. What is left     removes that and says that the run is complete,
 *            beside it is being removed            or resumes for more draws
 *
 * F.checkpoint.new or F.undo.part may stand beside them, as far as they were written.
 *
 * ARROW      what it does, in this order
 * open       takes the lock; on --resume also restores F from a whole F.undo, and removes what is
 *            left beside a complete F that needs no more draws
 * begin      removes the files of an earlier run, draws first; makes an empty F; records its inode
 *            in the lock; has the run write its groups
 * save       has the run force the draws to the disk; writes F.checkpoint.new and forces it to the
 *            disk; renames F.checkpoint to .previous, and .new to F.checkpoint
 * close      releases the lock and removes F.lock, unless F cannot be opened
 * remake     makes F with room for another number of draws, as `resume` does: renames F to F.draws;
 *            makes F; has the run copy its draws, or every second of them; removes F.draws. It goes
 *            through REMAKING and back to SAVED
 * resume     restores the state of the run and looks for its draws; makes F.checkpoint of the one
 *            inside a complete F; renames F to F.draws; makes F as `begin` does; has the run copy
 *            its draws; removes F.draws. Where that fails, a complete F is renamed back
 * finish     writes F.undo.part and renames it to F.undo; has the run write the end of F, with
 *            `complete` 1 last; removes F.undo, F.draws and the checkpoints (these stay with
 *            output.keep_checkpoint)
 *
 * A failure leaves the files of its state, and `close` releases the lock. Where `begin` fails to
 * write the groups of F, F is removed. A run whose lock another run has taken writes no more.
 * After a kill between `complete` 1 and the removal of F.undo, the end is written again, with the
 * same bytes. An F that cannot be opened is known as ours by its inode in F.lock or by a valid
 * checkpoint.
 *
 * All functions are Collective, with agreed statuses. Rank 0 changes the files.
 */
#pragma once

#include "emass/run.h"
#include "emass/visitor.h"
#include "par/grid.h"
#include "run/config/config.h"

#include <stdbool.h>

typedef enum em_transaction_state {
    EM_TRANSACTION_NOTHING,
    EM_TRANSACTION_STARTED,
    EM_TRANSACTION_SAVED,
    EM_TRANSACTION_STOPPED,
    EM_TRANSACTION_REMAKING,
    EM_TRANSACTION_FINISHING,
    EM_TRANSACTION_FINISHED
} em_transaction_state;

typedef struct em_output_transaction em_output_transaction;

/* The functions of a run that the transaction calls. They are Collective, with agreed statuses;
 * their first argument is `run`. */
typedef struct em_transaction_run {
    const em_grid *grid;
    const em_model *model;
    void *run;
    /* Writes the groups of a new F, which exists and is empty. `checkpoint`: the path of the file
     * that F will contain at its end. Both paths outlive the run. */
    em_status (*create)(void *run, const char *output, const char *checkpoint);
    /* Writes the draws so far and forces them to the disk. */
    em_status (*flush)(void *run);
    /* Passes the state of the run to a visitor, which saves or restores it. */
    em_status (*visit)(void *run, const em_visitor *visitor);
    /* The seconds that the run has taken in all, the same on all ranks: saved beside the state, and
     * replaced when that is restored. NULL: not saved, since a file is to have the same bytes. */
    double *seconds;
    /* Accepts the restored state. *found: whether a file has all draws of that state. new_rule: the
     * stop rule differs from that of the saved run. */
    em_status (*find_draws)(void *run, bool new_rule, const char *file, bool *found);
    /* Copies these draws into the new F. */
    em_status (*copy_draws)(void *run, const char *file);
    /* Writes the end of F and closes it. */
    em_status (*finish)(void *run);
} em_transaction_run;

/*
 * Determines the paths from the config, which outlives the transaction, locks the output, and finds
 * which state the files are in. Changes nothing but what `open` above says. Errors: EM_EUSAGE when
 * another run has locked the output, the folder is missing, a name is too long, one of the files is
 * no regular file or is read by this run, or a file exists that must not be replaced (any for
 * EM_RUN_NEW; one that is no output of emass; a finished one that cannot be extended); EM_ECONFIG
 * when --resume finds a run of another config, naming the keys; EM_EIO.
 */
em_status em_transaction_open(const em_config *config, em_run_mode mode,
                              em_output_transaction **out);

/* Checks for `emass check` that a run of this config could write its output: the folder, the name,
 * and that no file of the run is read by it or is no regular file. Locks and changes nothing.
 * Collective. Errors: EM_EUSAGE, EM_EIO, as em_transaction_open has them. */
em_status em_transaction_check_output(const em_config *config);

/* Whether F is complete and needs no more draws, so that there is nothing to do. Local. */
bool em_transaction_is_done(const em_output_transaction *transaction);

/* Whether `resume` is to be called before `begin`: an earlier run has left something. Local. */
bool em_transaction_may_resume(const em_output_transaction *transaction);

typedef struct em_resumption {
    bool resumed;       /* otherwise a warning has said why not, and the run begins anew */
    bool extends;       /* a finished run */
    const char *output; /* F */
    const char *checkpoint;
} em_resumption;

/*
 * Errors: EM_ECONFIG when the checkpoint is of another config (naming the keys), another program or
 * other data; EM_EDATA when a finished F cannot be extended; EM_EIO when a checkpoint that may be
 * valid cannot be read; what the functions of `run` return.
 */
em_status em_transaction_resume(em_output_transaction *transaction, const em_transaction_run *run,
                                em_resumption *out);

/* Errors: EM_EIO; what run->create returns. */
em_status em_transaction_begin(em_output_transaction *transaction, const em_transaction_run *run);

/* Errors: EM_EIO, also when another run has taken the lock; the last valid checkpoint then remains.
 * EM_EUSAGE, F is complete. */
em_status em_transaction_save(em_output_transaction *transaction, const em_transaction_run *run);

/* To be called after a `save` whose state counts the draws that the new F is to have; the run has
 * closed F. Errors: EM_EIO; what run->create and run->copy_draws return. */
em_status em_transaction_remake(em_output_transaction *transaction, const em_transaction_run *run);

/* To be called after a `save` at the last iteration. Errors: EM_EIO; what run->finish returns. */
em_status em_transaction_finish(em_output_transaction *transaction, const em_transaction_run *run);

/* NULL-safe. Keeps the error message. */
void em_transaction_close(em_output_transaction **transaction);

/* Removes the output of a config and the files beside it, after its run has closed them. Keeps the
 * error message, unless this fails. Errors: those of `open`; EM_EIO. */
em_status em_transaction_remove(const em_config *config);
