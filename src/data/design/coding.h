/* Private to the room: the columns of a table become those of a design. */
#pragma once

#include "data/formula/formula.h"
#include "data/table/table.h"

typedef struct em_factor {
    int64_t n;
    double *level; /* [n] the reference first; texts as em_level_value */
} em_factor;

typedef struct em_coding {
    bool intercept;
    int64_t n;         /* columns of the table */
    bool *is_factor;   /* [n] */
    em_factor *factor; /* [n] to be filled in for those */
    int64_t n_term;
    em_term *term;
    int64_t n_derived; /* columns from n on of the terms */
    em_derived *derived;
} em_coding;

/* What the options say of a table whose response is taken; `fitted`: which columns are factors, as
 * in the run that it is to be like; NULL: the options say. *out is NULL where all columns are
 * numbers as they are. Local. Errors: EM_ECONFIG, EM_EDATA, EM_EMEMORY. */
em_status em_coding_create(const em_table_options *options, const em_table *table,
                           const bool *fitted, em_coding **out);
void em_coding_destroy(em_coding **coding); /* NULL-safe. */

/* Makes the columns. Collective. Errors, agreed: EM_EDATA for a level that is none of the factor's,
 * or for too many columns; EM_EMEMORY. */
em_status em_coding_apply(const em_coding *coding, em_table *table);

/* Numbers in their order, and behind them texts by their codes. */
int em_level_compare(double a, double b);
