/*
 * Checkpoints of a run: one file beside the output, replaced only when the next one is whole, and
 * what
 * --resume makes of it. Everything here is Collective and returns agreed statuses.
 */
#ifndef EM_RUN_CHECKPOINT_H
#define EM_RUN_CHECKPOINT_H

#include "base/visitor.h"
#include "par/grid.h"
#include "run/config.h"

#include <stdbool.h>

/* Shows the state of a run to a visitor. Collective. */
typedef em_status em_visit(void *state, const em_visitor *visitor);

/*
 * Saves the state into <output>.checkpoint.new, which is forced to the disk and then takes the
 * place of <output>.checkpoint, the old one becoming <output>.checkpoint.previous. Errors: EM_EIO;
 * the last valid checkpoint is then still there.
 */
em_status em_checkpoint_save(const em_config *config, const em_grid *grid, uint64_t data_hash,
                             em_visit *visit, void *state);

/*
 * Restores the state from the newest valid checkpoint. *found is false where there is none, with
 * the reason in em_error_text() when a file was there. Errors: EM_ECONFIG when it is of another
 * config (naming the keys that differ; draws, stop rule and output may) or of other data; EM_EIO
 * when one that may be valid cannot be read.
 */
em_status em_checkpoint_restore(const em_config *config, const em_grid *grid, uint64_t data_hash,
                                em_visit *visit, void *state, bool *found);

/* Removes every checkpoint of this output, and draws set aside: a new run begins. */
em_status em_checkpoint_forget(const em_config *config);

/* What stands where the output of this config goes. */
typedef enum em_standing {
    EM_STANDS_NOTHING,  /* no output and no checkpoint */
    EM_STANDS_FINISHED, /* complete, and as many draws as are asked for */
    EM_STANDS_PARTIAL   /* something to go on from, or to start anew over */
} em_standing;

/* Errors: EM_ECONFIG when a complete output of another config stands there, naming the keys that
 * differ. */
em_status em_checkpoint_look(const em_config *config, em_standing *standing);

/*
 * The draws of an interrupted run are kept in <output>.draws while its file is made anew or
 * finished, so that a kill in the middle of that loses none of them.
 */
em_status
em_draws_set_aside(const em_config *config);        /* moves the output there, if nothing is yet */
em_status em_draws_copy(const em_config *config);   /* copies it there */
em_status em_draws_forget(const em_config *config); /* removes what is there */

/* <output><suffix>, for ".draws" and the like. Local. Freed by em_release. */
em_status em_beside(const em_config *config, const char *suffix, char **path);

#endif
