/*
 * Checkpoints of a run: one file beside the output, replaced only when the next one is whole, and
 * what --resume makes of it. Everything here is Collective and returns agreed statuses.
 */
#ifndef EM_RUN_CHECKPOINT_CHECKPOINT_H
#define EM_RUN_CHECKPOINT_CHECKPOINT_H

#include "emass/run.h"
#include "emass/visitor.h"
#include "par/grid.h"
#include "run/output/output_paths.h"

#include <stdbool.h>

/* Shows the state of a run to a visitor. Collective. */
typedef em_status em_visit(void *state, const em_visitor *visitor);

/*
 * Saves the state into the file beside the output for a new checkpoint, which is forced to the disk
 * and then takes the place of the last one, that becoming the one before. Errors: EM_EIO; the last
 * valid checkpoint is then still there.
 */
em_status em_checkpoint_save(const em_output_paths *place, const em_config *config,
                             const em_grid *grid, const em_model *model, em_visit *visit,
                             void *state);

typedef struct em_restored {
    bool found;       /* a valid checkpoint; else em_error_text() says why not */
    bool new_rule;    /* the rule to stop by is another one than it was saved under */
    bool finished;    /* the draws to go on from are a finished file */
    bool from_inside; /* the checkpoint was in that file: it is now place->fresh */
    const char *path; /* the checkpoint */
    char damage[512]; /* what is wrong with the one in that file; "": nothing, or there is none */
} em_restored;

/*
 * Restores the state from the newest valid checkpoint: that in a finished file, or the one beside
 * it. Errors: EM_ECONFIG when it is of another
 * config (naming the keys that differ and may not), another program or other data; EM_EIO when one
 * that may be valid cannot be read.
 */
em_status em_checkpoint_restore(const em_output_paths *place, const em_config *config,
                                const em_grid *grid, const em_model *model, em_visit *visit,
                                void *state, em_restored *restored);

/* What a run that is to go on finds. */
typedef enum em_standing {
    EM_STANDS_NOTHING,  /* no output and no checkpoint */
    EM_STANDS_FINISHED, /* complete, and as many draws as are asked for */
    EM_STANDS_PARTIAL   /* something to go on from, or to start anew over */
} em_standing;

/*
 * Looks at what stands at the place, for EM_RUN_RESUME only as to *standing. Changes nothing.
 * Errors: EM_EUSAGE when something stands there that must not be replaced: anything (EM_RUN_NEW),
 * or what is no output of emass; EM_ECONFIG when it is an output of another config and the run is
 * to go on from it, naming the keys that differ and may not; EM_EUSAGE when it is finished
 * and there is no checkpoint to extend it from.
 */
em_status em_checkpoint_look(const em_config *config, const em_output_paths *place,
                             em_run_mode mode, em_standing *standing);

/* The file with the draws to go on from: those set aside, or the output. Changes nothing. Errors:
 * EM_ECONFIG, they are of another program or other data. */
em_status em_checkpoint_find_draws(const em_output_paths *place, const em_model *model,
                                   const char **path);

#endif
