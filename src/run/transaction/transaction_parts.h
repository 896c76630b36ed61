/* Private to this folder: the transaction from inside, and its parts, which rank 0 calls unless
 * they say Collective. */
#pragma once

#include "io/checkpoint/output_lock.h"
#include "run/transaction/transaction.h"

/* The files of a transaction, in the order in which a new run removes them: draws before
 * checkpoints, so that a kill in between leaves a checkpoint without draws, which no run uses. */
typedef enum em_transaction_file {
    EM_FILE_OUTPUT,
    EM_FILE_DRAWS,
    EM_FILE_JOURNAL,
    EM_FILE_JOURNAL_PART,
    EM_FILE_CHECKPOINT,
    EM_FILE_PREVIOUS,
    EM_FILE_NEW,
    EM_FILE_LOCK,
    EM_N_FILE
} em_transaction_file;

struct em_output_transaction {
    const em_config *config;
    em_run_mode mode;
    em_transaction_state state;
    bool done; /* FINISHED, with as many draws as the config says */
    char *path[EM_N_FILE];
    em_lock *lock; /* of rank 0 */
};

/* ---------------------------------------------------------------- output_files.c */

/* Determines the paths and checks them, by rank 0 alone: folder, lengths, kinds of files, and that
 * the run reads none of them. Collective. Errors: EM_EUSAGE, EM_EIO. */
em_status em_files_name(em_output_transaction *transaction);

/* Whether `input`, the path of a file or of a dataset in it ("file:/dataset"), is the existing file
 * `path`. Errors: EM_EMEMORY. */
em_status em_files_are_same(const char *path, const char *input, bool *same);

bool em_file_exists(const char *path);

/* Renames a file, replacing an existing one; removes it, if there is one. Errors: EM_EIO. */
em_status em_file_rename(const char *from, const char *to);
em_status em_file_remove(const char *path);

/* Forces the folder of a file to the disk, so that a rename in it is not lost with the power. */
void em_file_sync_folder(const char *path);

/* ---------------------------------------------------------------- earlier_run.c */

/* Checks that the run may replace or continue what is there, and sets transaction->state and done.
 * Errors: those of em_transaction_open. */
em_status em_earlier_run_check(em_output_transaction *transaction);

/* A fresh text that identifies F, its config and its data; NULL where F cannot be read. Errors:
 * EM_EUSAGE, a file that is no output of emass; EM_EIO. */
em_status em_earlier_run_identify(const em_output_transaction *transaction, char **identity);

/* Writes the state into F.checkpoint.new and forces it to the disk. Collective. Errors: EM_EIO. */
em_status em_checkpoint_write(const em_output_transaction *transaction,
                              const em_transaction_run *run);

/* Renames F.checkpoint to .previous and .new to F.checkpoint. Errors: EM_EIO. */
em_status em_checkpoint_publish(const em_output_transaction *transaction);

typedef struct em_restored {
    bool found;                /* a valid checkpoint exists; else em_error_text() has the reason */
    bool new_rule;             /* the stop rule differs from the one it was saved under */
    bool finished;             /* the draws to continue are those of a finished file */
    bool from_inside;          /* the checkpoint was in that file: it is now F.checkpoint.new */
    em_transaction_file file;  /* the checkpoint */
    em_transaction_file draws; /* F.draws or F, whose draws it counts */
    char damage[512]; /* why the one in that file is invalid; "": it is valid, or there is none */
} em_restored;

/* Restores the state from the newest valid checkpoint: that in a finished file, or one beside it.
 * Collective. Errors: those of em_transaction_resume. */
em_status em_checkpoint_restore(const em_output_transaction *transaction,
                                const em_transaction_run *run, em_restored *restored);
