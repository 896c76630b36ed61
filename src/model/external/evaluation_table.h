/* Evaluations of a simulator in memory, by their positions. All Local. */
#pragma once

#include "base/hash_table.h"
#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { EM_WHY_BYTES = 200 };

/* An evaluation at x [n] with n_output outputs. */
typedef struct em_evaluation {
    int64_t chain;
    const double *x;
    double *output;         /* [n_output] */
    double *gradient;       /* [n]; NULL: not wanted */
    char why[EM_WHY_BYTES]; /* reason of the failure; "": none */
    double seconds;
} em_evaluation;

/* All members except the sizes are zero at first. A record has `width` numbers: the text `why`, x
 * [n], output [n_output] and gradient [n] (NaN: none). */
typedef struct em_evaluation_table {
    int64_t n, n_output, width;
    int64_t capacity;
    double *record; /* [positions.n][width] */
    em_hash_table positions;
} em_evaluation_table;

em_evaluation_table em_evaluation_table_of(int64_t n, int64_t n_output);
void em_evaluation_table_release(em_evaluation_table *table); /* leaves it empty */

/* The parts of a record. */
char *em_record_why(double *record);
double *em_record_x(double *record);
double *em_record_output(const em_evaluation_table *table, double *record);

static inline double *em_record_gradient(const em_evaluation_table *table, double *record)
{
    return em_record_output(table, record) + table->n_output;
}

/* Copies a record [width] into the table, in place of an earlier one of the same position. Errors:
 * EM_EMEMORY. */
em_status em_evaluation_table_put(em_evaluation_table *table, const double *record);

/* The same for an evaluation. */
em_status em_evaluation_table_add(em_evaluation_table *table, const em_evaluation *evaluation);

/* Whether the table has an evaluation at x, with a gradient if one is wanted; fills in output,
 * gradient and why. */
bool em_evaluation_table_find(const em_evaluation_table *table, em_evaluation *evaluation);
