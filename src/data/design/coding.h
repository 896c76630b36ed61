/* Private to this folder: codes the columns of a table as the columns of a design. */
#pragma once

#include "data/formula/formula.h"
#include "data/table/table.h"

typedef struct em_factor {
    int64_t n;
    double *level; /* [n] the reference level first; texts are coded by em_level_value */
} em_factor;

typedef struct em_coding {
    bool intercept;
    int64_t n;         /* columns of the table */
    bool *is_factor;   /* [n] */
    em_factor *factor; /* [n] set where is_factor */
    int64_t n_term;
    em_term *term;
    int64_t n_derived; /* the columns of the terms, from column n on */
    em_derived *derived;
} em_coding;

/* Finds the coding of a table whose response has been taken out, from the options. `fitted` says
 * which columns are factors, for predictions from an earlier run; NULL: the options say it. *out is
 * NULL where no column is coded. Local. Errors: EM_ECONFIG, EM_EDATA, EM_EMEMORY. */
em_status em_coding_create(const em_table_options *options, const em_table *table,
                           const bool *fitted, em_coding **out);
void em_coding_destroy(em_coding **coding); /* NULL-safe. */

/* Replaces the columns of a table by the coded ones. Collective. Errors, agreed: EM_EDATA for an
 * unknown level of a factor, or for too many columns; EM_EMEMORY. */
em_status em_coding_apply(const em_coding *coding, em_table *table);

/* Compares two levels as qsort does: numbers come first, in ascending order, then texts by code. */
int em_level_compare(double a, double b);

/* For qsort: orders structures by their first member, a level. Local. */
int em_by_first_level(const void *a, const void *b);
