/*
 * Diagnoses of numbers, found again by their draws. Numbers with equal draws, as transformed
 * parameters that are copies of others, are diagnosed once. So are numbers that the last check of a
 * run and the summary after it both need. All Local.
 */
#pragma once

#include "base/hash_table.h"
#include "diagnostics/diag.h"
#include "emass/status.h"

/* Errors: EM_EMEMORY. */
em_status em_diagnoses_create(em_diagnoses **out);
void em_diagnoses_destroy(em_diagnoses **diagnoses); /* NULL-safe. */

/* The diagnosis of the draws with this hash; NULL: there is none. Borrowed until the next put. */
const em_diagnosis *em_diagnoses_find(const em_diagnoses *diagnoses, em_hash hash);

/* Keeps a diagnosis, in place of an earlier one of the same draws. Errors: EM_EMEMORY. */
em_status em_diagnoses_put(em_diagnoses *diagnoses, em_hash hash, const em_diagnosis *diagnosis);

/* Forgets all, and frees the memory of them. */
void em_diagnoses_clear(em_diagnoses *diagnoses);
