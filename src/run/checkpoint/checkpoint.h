/*
 * Checkpoints of a run, and how --resume uses them. A checkpoint is a file beside the output. It is
 * replaced only when the next one is complete. All functions are Collective and return agreed
 * statuses.
 */
#ifndef EM_RUN_CHECKPOINT_CHECKPOINT_H
#define EM_RUN_CHECKPOINT_CHECKPOINT_H

#include "emass/run.h"
#include "emass/visitor.h"
#include "par/grid.h"
#include "run/output/output_paths.h"

#include <stdbool.h>

/* Passes the state of a run to a visitor, which saves or restores it. Collective. */
typedef em_status em_visit(void *state, const em_visitor *visitor);

/*
 * Saves the state into a new file, forces it to the disk, and renames it to the checkpoint. The
 * last checkpoint is kept as the previous one. Errors: EM_EIO; the last valid checkpoint then
 * remains.
 */
em_status em_checkpoint_save(const em_output_paths *paths, const em_config *config,
                             const em_grid *grid, const em_model *model, em_visit *visit,
                             void *state);

typedef struct em_restored {
    bool found;       /* a valid checkpoint; else em_error_text() says why not */
    bool new_rule;    /* the stop rule differs from the one it was saved under */
    bool finished;    /* the draws to continue are those of a finished file */
    bool from_inside; /* the checkpoint was in that file: it is now paths->fresh */
    const char *path; /* the checkpoint */
    char damage[512]; /* why the one in that file is invalid; "": it is valid, or there is none */
} em_restored;

/*
 * Restores the state from the newest valid checkpoint: that in a finished file, or the one beside
 * it. Errors: EM_ECONFIG when it is of another
 * config (naming the keys that differ and may not), another program or other data; EM_EIO when one
 * that may be valid cannot be read.
 */
em_status em_checkpoint_restore(const em_output_paths *paths, const em_config *config,
                                const em_grid *grid, const em_model *model, em_visit *visit,
                                void *state, em_restored *restored);

/* What a run finds at its output. */
typedef enum em_standing {
    EM_STANDS_NOTHING,  /* no output and no checkpoint */
    EM_STANDS_FINISHED, /* complete, with as many draws as the config says */
    EM_STANDS_PARTIAL   /* something to continue, or to replace by a new start */
} em_standing;

/*
 * Checks the existing output and checkpoints; changes nothing. *standing is set for EM_RUN_RESUME
 * only. Errors: EM_EUSAGE when a file exists that must not be replaced: any file (EM_RUN_NEW), or
 * one that is no output of emass; EM_ECONFIG when a run of another config is to be resumed, naming
 * the keys that differ and may not; EM_EUSAGE when it is finished and has no checkpoint to extend
 * it from.
 */
em_status em_checkpoint_check(const em_config *config, const em_output_paths *paths,
                              em_run_mode mode, em_standing *standing);

/* The file with the draws to continue: those set aside, or the output. Changes nothing. Errors:
 * EM_ECONFIG, they are of another program or other data. */
em_status em_checkpoint_find_draws(const em_output_paths *paths, const em_model *model,
                                   const char **path);

#endif
