/* The design matrix and the response of a regression: the rows that this shard holds. */
#pragma once

#include "data/shard/shard_assignment.h"
#include "data/table/table.h"
#include "math/simd/panel.h"
#include "par/node_shared_array.h"

#include <stdbool.h>
#include <stdint.h>

/* The scaling of columns: (x - centre) / scale; both [n_column of the design]. Both NULL: none. */
typedef struct em_scaling {
    const double *centre, *scale;
} em_scaling;

/* Row i of sparse data has the entries start[i] <= k < start[i + 1]: value[k] in column[k]. */
typedef struct em_design {
    em_share rows;
    int64_t n_row, n_column; /* rows of this shard; an intercept is column 0 */
    char **name;             /* [n_column] */
    double *centre, *scale;  /* [n_column] a column is (x - centre) / scale of the stored x; NULL: 0
                                and 1. Dense columns are stored after that, sparse ones before it. */
    double *response;        /* [n_row] */
    double *offset; /* [n_row + 1], terms of the linear predictor: offset plus log exposure of each
                       row, then 0; NULL: none */
    double *weight; /* [n_row + 1], then 0; NULL: 1 */
    /* subtracted from the response by em_design_shift; [n_row + 1], NULL: 0 */
    double origin, *shift;
    uint64_t hash; /* of the whole table */
    bool sparse;
    em_tiled dense; /* if not sparse */
    double *row;    /* if not sparse and asked for: [n_row + 1][row_stride], the columns again,
                       then the response, then zeros; the last row is zero */
    int64_t row_stride;
    int64_t *start; /* if sparse; three arrays */
    int32_t *column;
    double *value;
    /* the ranks of this shard on this node share one copy of all arrays */
    em_node_array *node_array;
} em_design;

/* Sparse data with more non-zero entries than this fraction become dense. Below it the sparse
 * kernel of model/regression/glm.c is faster for eight chains, but near it no longer for one
 * (tests/bench/bench_model.c). */
#define EM_SPARSE_DENSITY 0.15

/* Makes the design of shard `shard` of `n_shard` (em_shard_rows) from a table whose response has
 * been taken out. The options say whether there is an intercept and whether columns are
 * standardised, which `scaling` does in place of the table's own, unless it is NULL. A constant
 * column causes a warning on standard error. Collective. Errors, agreed: EM_EDATA when no column is
 * left, EM_EMEMORY. */
em_status em_design_create(const em_table *table, const em_table_options *options,
                           const em_scaling *scaling, int64_t shard, int64_t n_shard,
                           em_design **out);

/* The mean and the standard deviation (divisor n - 1) of each column of a table. That of a constant
 * column is set to 1, with a warning. Both NULL: only the warnings. Collective. Errors, agreed:
 * EM_EDATA where the sums of a column overflow, EM_EMEMORY. */
em_status em_design_scaling(const em_table *table, double *mean, double *sd);
void em_design_destroy(em_design **design); /* NULL-safe. Local. */

/* Stores a second copy of a dense design row by row, each row with its response, for minibatches.
 * Collective. Errors: EM_EMEMORY, agreed among the ranks that share the arrays. */
em_status em_design_store_rows(em_design *design);

/* Row i of this shard, scaled: row[n_column]. Local. */
void em_design_row(const em_design *design, int64_t i, double *row);

/* Adds the products of the scaled columns and `coefficient` [n_column] to the offset. Collective
 * over the ranks that share the arrays. Errors, agreed among them: EM_EMEMORY. */
em_status em_design_add_offset(em_design *design, const double *coefficient);

/* Subtracts `origin` and the offset from the response, for a likelihood that depends on residuals
 * alone. Collective over the ranks that share the arrays. */
void em_design_shift(em_design *design, double origin);

/* Multiplies the design matrix and the response by a number. To be called after em_design_shift and
 * before em_design_store_rows. Collective. */
void em_design_scale(em_design *design, double factor);
