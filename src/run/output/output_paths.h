/*
 * The paths of a run's files: the output, the files beside it, and the lock on all of them. Where
 * the output is a symbolic link, its target is used. Collective, with agreed statuses; rank 0 does
 * the work.
 */
#ifndef EM_RUN_OUTPUT_OUTPUT_PATHS_H
#define EM_RUN_OUTPUT_OUTPUT_PATHS_H

#include "run/config/config.h"

typedef struct em_lock em_lock;

typedef struct em_output_paths {
    char *output;
    char *checkpoint, *previous,
        *fresh;           /* the newest one, the previous one, the one being written */
    char *draws;          /* the output of an interrupted run while a new one is made from it */
    char *journal, *part; /* rollback journal of a file being finished; the same being written */
    char *lock_path;
    em_lock *lock; /* of rank 0 */
} em_output_paths;

/*
 * Determines the paths from the config and locks the output. Errors: EM_EUSAGE when another run
 * has locked it, the folder is missing, the name is too long for those of the other files, one of
 * them is no regular file, or is read by this run; EM_EIO.
 */
em_status em_output_paths_take(const em_config *config, em_output_paths **out);

/* Releases the lock, and frees; NULL-safe. Keeps the error message. */
void em_output_paths_release(em_output_paths **paths);

/* Fails when another run has taken the lock, because it considered this run dead. Errors: EM_EIO.
 */
em_status em_output_paths_check(const em_output_paths *paths);

/* A file found at the path of an output. */
typedef struct em_existing_output {
    bool exists, readable; /* readable: an output of emass that HDF5 can open */
    bool complete;
    bool merged;         /* of several runs, by emass merge */
    bool has_checkpoint; /* in it: a finished one that can be extended */
    int64_t planned_draws;
    char *config, *data_hash; /* NULL where not readable; see em_existing_output_release */
    char *program_hash;       /* NULL: of no program */
    char *left_out;           /* why it has no checkpoint; NULL: it does not say */
} em_existing_output;

/*
 * Inspects the output, or the draws set aside. An empty file counts as none. A file that HDF5
 * cannot open, because a run was killed while writing it, is recognised as ours by the files beside
 * it. Local, rank 0. Errors: EM_EUSAGE, a file that is no output of emass; EM_EIO.
 */
em_status em_output_paths_find(const em_output_paths *paths, const char *path,
                               em_existing_output *out);
void em_existing_output_release(em_existing_output *existing);

/* Removes the output and all files beside it, before a new run. Errors: EM_EIO. */
em_status em_output_paths_clear(const em_output_paths *paths);

/* The same after a run has ended. Keeps the error message, unless this fails. */
em_status em_output_paths_remove(const em_config *config);

/* Makes an empty output, replacing an existing one, and records in the lock file that it is ours.
 * Errors: EM_EIO. */
em_status em_output_paths_make(const em_output_paths *paths);

/* Removes what em_output_paths_make made. Keeps the error message. */
void em_output_paths_unmake(const em_output_paths *paths);

/* The draws of an interrupted run. The functions rename the output to `draws`, unless that is done;
 * rename it back; and remove it. Errors: EM_EIO. */
em_status em_output_paths_set_aside(const em_output_paths *paths);
em_status em_output_paths_put_back(const em_output_paths *paths);
em_status em_output_paths_forget_draws(const em_output_paths *paths);

/*
 * Finishing a file writes HDF5 metadata, and a process killed meanwhile leaves it unreadable. The
 * first function saves a rollback journal of the flushed output before. The second restores the
 * output from the journal where a run was killed. The third removes the journal when all is
 * written. Errors: EM_EIO; EM_EUSAGE, the output is none of emass.
 */
em_status em_output_paths_prepare_finish(const em_output_paths *paths);
em_status em_output_paths_roll_back_finish(const em_output_paths *paths);
em_status em_output_paths_forget_journal(const em_output_paths *paths);

/* Removes the checkpoints of a run that has finished. Errors: EM_EIO. */
em_status em_output_paths_forget_checkpoints(const em_output_paths *paths);

/* Removes a new checkpoint that is not to replace the last one. Errors: EM_EIO. */
em_status em_output_paths_forget_fresh(const em_output_paths *paths);

/* Renames the newest checkpoint to `previous`, and the one just written to `checkpoint`. Errors:
 * EM_EIO. */
em_status em_output_paths_turn_checkpoint(const em_output_paths *paths);

#endif
