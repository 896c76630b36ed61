/*
 * Failed evaluations of a model: a simulation ended, took too long or returned no number. Each is a
 * rejection of the proposed position. They are counted, and the first ones of each chain are listed
 * with their positions, warmup included.
 */
#pragma once

#include "base/memory.h"
#include "emass/model.h"
#include "emass/visitor.h"

enum {
    EM_MOST_FAILURES = 4,
    EM_FAILURE_BYTES = 512
}; /* number listed for a chain; length of a text */

/* Only the functions below change it. */
typedef struct em_failures {
    em_owner memory;              /* of its arrays */
    int64_t first_chain, n_chain; /* of this rank */
    double
        *evaluations; /* [n_chain]; negative: not known, in a run that an earlier version began */
    double *count;    /* [n_chain] failures */
    double *text;     /* [n_chain][EM_MOST_FAILURES] texts of EM_FAILURE_BYTES, as checkpoints keep
                         them: a JSON object each, or "" */
    char first[256];  /* the message of the first failure since the start; "": none */
} em_failures;

/* Creates the counts for the chains of the context. Local. Errors: EM_EMEMORY. */
em_status em_failures_create(const em_model_context *context, em_failures **out);

/* Counts an evaluation of a chain, whether it fails or not. Local. */
void em_failures_count_evaluation(em_failures *failures, int64_t chain);

/* Counts a failure of a chain at x [n], and keeps it if it is one of the first. Local. */
void em_failures_add(em_failures *failures, int64_t chain, int64_t n, const double *x,
                     const char *why);

/* Passes counts and lists to a visitor. Collective. Errors: the visitor's. */
em_status em_failures_visit(em_failures *failures, const em_visitor *visitor);
