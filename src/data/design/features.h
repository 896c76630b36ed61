/*
 * The terms of a design: columns of numbers, factors with one column for each level but the first
 * (treatment coding), and the products of these that a formula names.
 */
#pragma once

#include "data/table/table.h"
#include "emass/model/prediction.h"

enum { EM_FEATURES_ARRAYS = 3 };

/* The features of a table. Where none of them is coded, n is 0: the columns are the features. */
typedef struct em_features {
    bool intercept;
    int64_t n;
    char **name;     /* [n] */
    double *n_level; /* [n] of a factor; 0: a number */
    /* levels of all factors, factor by factor, each with its reference level first */
    int64_t n_all;
    char **level;  /* [n_all] name[level] */
    double *value; /* [n_all] levels that are numbers; NaN: the level is a text */
    int64_t n_poly;
    double *poly; /* [n_poly] the codings of orthogonal polynomials, one after the other */
} em_features;

/* Reads a table, takes out its response and codes its features, which become its columns. With
 * `fitted` the table has new rows to predict: their features are coded like those of the run, and
 * their response is 0. Collective. Errors, agreed: EM_EDATA, EM_ECONFIG, EM_EMEMORY. */
em_status em_features_read(const em_table_options *options, const em_fitted *fitted,
                           em_table **table, em_features **out);
void em_features_destroy(em_features **features); /* NULL-safe. Local. */

/* Gives the arrays that em_features_read needs from the group constant_data of a run; returns how
 * many. Local. */
int em_features_data(const em_features *features, em_datum data[EM_FEATURES_ARRAYS]);
