/*
 * The evaluations of a simulator since the last complete state of the run, the one after a whole
 * segment of iterations. If the simulator is lost, the checkpoint has that state and these
 * evaluations, and the resumed run does not repeat them. A rank keeps at most EM_MOST_UNSAVED of
 * them: a segment with more has fast evaluations.
 */
#pragma once

#include "emass/visitor.h"
#include "model/external/evaluation_table.h"

enum { EM_MOST_UNSAVED = 4096 };

/* Only the functions below change it. */
typedef struct em_unsaved_evaluations {
    em_evaluation_table own; /* of this rank, since the last complete state */
    em_evaluation_table
        earlier;   /* of all ranks, from the checkpoint of a simulator that was lost */
    int64_t until; /* iterations of the segment that these belong to */
} em_unsaved_evaluations;

/* Local. Errors: EM_EMEMORY. */
em_status em_unsaved_create(int64_t n, int64_t n_output, em_unsaved_evaluations **out);
void em_unsaved_destroy(em_unsaved_evaluations **unsaved); /* NULL-safe */

/* Whether the checkpoint had an evaluation, as em_evaluation_table_find. Local. */
static inline bool em_unsaved_find(const em_unsaved_evaluations *unsaved, em_evaluation *evaluation)
{
    return em_evaluation_table_find(&unsaved->earlier, evaluation);
}

/* Keeps an evaluation. Local. Errors: EM_EMEMORY. */
static inline em_status em_unsaved_add(em_unsaved_evaluations *unsaved,
                                       const em_evaluation *evaluation)
{
    return unsaved->own.positions.n < EM_MOST_UNSAVED
               ? em_evaluation_table_add(&unsaved->own, evaluation)
               : EM_OK;
}

/* Forgets what the state after `done` iterations, which is complete, makes superfluous. Local. */
void em_unsaved_forget(em_unsaved_evaluations *unsaved, int64_t done);

/* Saves the evaluations of all ranks; until: iterations of the segment that was not completed.
 * Saves nothing if there are none. Collective. Errors, agreed: EM_EMEMORY, those of the visitor. */
em_status em_unsaved_save(em_unsaved_evaluations *unsaved, int64_t until,
                          const em_visitor *visitor);

/* Restores them, if there are any. Collective. Errors as above. */
em_status em_unsaved_restore(em_unsaved_evaluations *unsaved, const em_visitor *visitor);
