/*
 * The place of a run's output: the file, those beside it, and the hold of this run on all of them.
 * An output that is a link is what the link leads to. Collective, with agreed statuses; the work is
 * rank 0's.
 */
#ifndef EM_RUN_OUTPUT_OUTPUT_PATHS_H
#define EM_RUN_OUTPUT_OUTPUT_PATHS_H

#include "run/config/config.h"

typedef struct em_lock em_lock;

typedef struct em_output_paths {
    char *output;
    char *checkpoint, *previous, *fresh; /* the newest one, the one before, one being written */
    char *draws;                         /* of an interrupted run while its file is made anew */
    char *undo, *part; /* what brings back a file that is being finished; the same being written */
    char *lock_path;
    em_lock *lock; /* of rank 0 */
} em_output_paths;

/*
 * Finds the place that the config names and takes hold of it. Errors: EM_EUSAGE when another run
 * holds it, the folder is missing, the name leaves no room for those of the other files, one of
 * them is no regular file, or is read by this run; EM_EIO.
 */
em_status em_output_paths_take(const em_config *config, em_output_paths **out);

/* Lets go of it, and frees; NULL-safe. The error message stays what it was. */
void em_output_paths_release(em_output_paths **place);

/* Fails when another run took the place, having taken this one for dead. Errors: EM_EIO. */
em_status em_output_paths_check(const em_output_paths *place);

/* What a file at the place of an output is. */
typedef struct em_existing_output {
    bool exists, readable; /* readable: an output of emass, whole enough to be read */
    bool complete;
    bool merged;         /* of several runs, by emass merge */
    bool has_checkpoint; /* in it: a finished one that can be extended */
    int64_t planned_draws;
    char *config, *data_hash; /* NULL where not readable; see em_existing_output_release */
    char *program_hash;       /* NULL: of no program */
    char *left_out;           /* why it has no checkpoint; NULL: it does not say */
} em_existing_output;

/*
 * Looks at the output or at the draws set aside. What is empty is as good as nothing, and what a
 * killed run left torn is ours by what stands beside it. Local, rank 0. Errors: EM_EUSAGE, a file
 * that is no output of emass; EM_EIO.
 */
em_status em_output_paths_find(const em_output_paths *place, const char *path,
                               em_existing_output *out);
void em_existing_output_release(em_existing_output *found);

/* Removes the output and all beside it: a new run begins. Errors: EM_EIO. */
em_status em_output_paths_clear(const em_output_paths *place);

/* The same for a run that has ended. The error message stays what it was, unless this fails. */
em_status em_output_paths_remove(const em_config *config);

/* Makes an empty output, in place of one that is there, and writes down that it is ours. Errors:
 * EM_EIO. */
em_status em_output_paths_make(const em_output_paths *place);

/* Removes what em_output_paths_make made. The error message stays what it was. */
void em_output_paths_unmake(const em_output_paths *place);

/* Draws of an interrupted run: moves the output there, unless they are; moves them back; removes
 * them. Errors: EM_EIO. */
em_status em_output_paths_set_aside(const em_output_paths *place);
em_status em_output_paths_put_back(const em_output_paths *place);
em_status em_output_paths_forget_draws(const em_output_paths *place);

/*
 * To finish a file is to write metadata of HDF5, of which a kill may leave half: keeps what brings
 * the flushed output back first; brings it back where a run was killed then; and forgets it when
 * all is written. Errors: EM_EIO; EM_EUSAGE, the output is none of emass.
 */
em_status em_output_paths_prepare_finish(const em_output_paths *place);
em_status em_output_paths_undo_finish(const em_output_paths *place);
em_status em_output_paths_forget_undo(const em_output_paths *place);

/* Removes the checkpoints, of a run that has finished. Errors: EM_EIO. */
em_status em_output_paths_forget_checkpoints(const em_output_paths *place);

/* Removes a checkpoint that was not to take the place of the last one. Errors: EM_EIO. */
em_status em_output_paths_forget_fresh(const em_output_paths *place);

/* Has the checkpoint just written take its place, the old one becoming the one before. Errors:
 * EM_EIO. */
em_status em_output_paths_turn_checkpoint(const em_output_paths *place);

#endif
