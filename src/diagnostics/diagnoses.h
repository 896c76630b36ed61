/*
 * Diagnoses of numbers, found again by their draws. Numbers with equal draws, as transformed
 * parameters that are copies of others, are diagnosed once. So are numbers that the last check of a
 * run and the summary after it both need. Draws are told apart by a hash of 128 bits. All Local.
 */
#pragma once

#include "diagnostics/diag.h"
#include "emass/status.h"

#include <stdint.h>

/* The hash of the draws of a number. */
typedef struct em_draws_key {
    uint64_t low, high;
} em_draws_key;

em_draws_key em_draws_key_of(int64_t n, const double *draws);

/* Errors: EM_EMEMORY. */
em_status em_diagnoses_create(em_diagnoses **out);
void em_diagnoses_destroy(em_diagnoses **diagnoses); /* NULL-safe. */

/* The diagnosis of the draws with this key; NULL: there is none. Borrowed until the next put. */
const em_diagnosis *em_diagnoses_find(const em_diagnoses *diagnoses, em_draws_key key);

/* Keeps a diagnosis, in place of an earlier one of the same draws. Errors: EM_EMEMORY. */
em_status em_diagnoses_put(em_diagnoses *diagnoses, em_draws_key key,
                           const em_diagnosis *diagnosis);

/* Forgets all, and frees the memory of them. */
void em_diagnoses_clear(em_diagnoses *diagnoses);
