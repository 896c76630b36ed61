/* Selects the columns of a file by their names, before a row is read: which are used, and in which
 * role. */
#pragma once

#include "base/memory.h"
#include "data/table/table.h"

typedef enum em_use {
    EM_USE_NOT,
    EM_USE_NUMBER,
    EM_USE_ANY,  /* numbers or texts; with texts it is a factor */
    EM_USE_LEVEL /* levels of a factor, or labels: numbers and texts */
} em_use;

/* Columns that are no features; -1: none. */
typedef struct em_set_aside {
    int64_t response, beside[EM_N_BESIDE];
} em_set_aside;

typedef struct em_choice {
    em_owner memory; /* of its arrays */
    int64_t n_column, n_used;
    em_use *use;         /* [n_column] */
    const char **factor; /* [n_column] as em_table has it */
    em_set_aside set_aside;
    bool drops; /* rows with a missing value are left out */
} em_choice;

/* Applies the options to a table whose columns have their names, or no names yet. *out is NULL
 * if no option chooses columns: all are then used as numbers. Local. Errors: EM_EDATA, EM_ECONFIG,
 * EM_EMEMORY. */
em_status em_choice_make(const em_table_options *options, const em_table *table, em_choice **out);

/* The column that an option names by its name or its number from 1; -1: there is none. Local.
 * Errors: EM_EDATA for two columns of that name. */
em_status em_choice_find(const em_table *table, const char *name, int64_t *column);

/* Finds by their names the columns that are not features, and then the response. (The weights of
 * new rows to predict need not be there.) If no response is named, it is the last other column.
 * Local. Errors: EM_EDATA. */
em_status em_set_aside_find_beside(const em_table_options *options, const em_table *table,
                                   em_set_aside *out);
em_status em_set_aside_find_response(const em_table_options *options, const em_table *table,
                                     em_set_aside *set_aside);

/* Whether the options may remove columns or rows. A file that is not text is then first read as a
 * whole. Local. */
bool em_choice_is_asked(const em_table_options *options);

/* The number of features of sparse data, if the option `columns` is one number; below 1: as many as
 * there are. Local. */
int64_t em_choice_count(const em_table_options *options);

/* Whether text stands for a missing value. Local. */
bool em_is_missing(const char *text);

/* Marks in a table of the used columns those that are factors and those that are no features. The
 * texts are borrowed from the options. Local. Errors: EM_EMEMORY. */
em_status em_choice_mark(const em_choice *choice, em_table *table);

/* Removes what is not chosen from a table of numbers: columns, and rows with a missing value (NaN).
 * Collective. Errors, agreed: EM_EDATA for a missing value that is not allowed, or one that is not
 * finite; EM_EMEMORY. */
em_status em_choice_apply(const em_choice *choice, em_table **table);
