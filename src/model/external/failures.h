/*
 * Failed evaluations of a model: a simulation ended, took too long or returned no number. Each is a
 * rejection of the proposed position. They are counted, and the first ones of each chain are listed
 * with their positions, warmup included.
 */
#pragma once

#include "emass/model.h"
#include "emass/visitor.h"

enum {
    EM_MOST_FAILURES = 4,
    EM_FAILURE_BYTES = 512
}; /* number listed for a chain; length of a text */

typedef struct em_failures em_failures;

/* Creates the counts for the chains of the context. Local. Errors: EM_EMEMORY. */
em_status em_failures_create(const em_model_context *context, em_failures **out);
void em_failures_destroy(em_failures **failures); /* NULL-safe */

/* Counts an evaluation of a chain, whether it fails or not. Local. */
void em_failures_count_evaluation(em_failures *failures, int64_t chain);

/* Counts a failure of a chain at x [n], and keeps it if it is one of the first. Local. */
void em_failures_add(em_failures *failures, int64_t chain, int64_t n, const double *x,
                     const char *why);

/* The numbers of evaluations (negative: not known, in a run that an earlier version began), and of
 * failures, of the chains of this rank, [n_chain]; the message of the first one on this rank since
 * the start, "": none. Local. */
const double *em_failures_evaluations(const em_failures *failures);
const double *em_failures_count(const em_failures *failures);
const char *em_failures_first(const em_failures *failures);

/* The lists of the chains of this rank, EM_MOST_FAILURES texts of EM_FAILURE_BYTES each, a JSON
 * object or "". Local. */
const char *em_failures_texts(const em_failures *failures);

/* Passes counts and lists to a visitor. Collective. Errors: the visitor's. */
em_status em_failures_visit(em_failures *failures, const em_visitor *visitor);
