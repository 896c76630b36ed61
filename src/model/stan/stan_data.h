/* The data of a Stan program: JSON as CmdStan reads it. */
#pragma once

#include "emass/model.h"

/* The largest number of values that are stored with the draws. */
enum { EM_STAN_MOST_KEPT = 100000 };

/* One variable of the data. */
typedef struct em_stan_datum {
    char *name;
    int n_axes;
    int64_t shape[EM_MAX_AXES];
    bool is_integer; /* all its numbers are written as integers */
    bool is_tuple;   /* the shape is that of an array of tuples */
    double *value;   /* [n_value] row-major; NULL: no values, a tuple, or too many values */
    int64_t n_value, capacity;
} em_stan_datum;

typedef struct em_stan_data {
    int64_t count, capacity;
    int64_t n_kept;       /* stored values of all variables: at most EM_STAN_MOST_KEPT */
    em_stan_datum *datum; /* [count] */
    char *text; /* the data as one line of JSON without the outer braces, with numbers as in the
                   file, and "NaN", "Inf" and "-Inf" */
} em_stan_data;

/*
 * Reads an object of numbers, rectangular arrays of numbers, and tuples {"1": ..., "2": ...}; NaN,
 * Infinity, Inf and their negatives may be bare or strings. Messages name `path`. Local. Errors:
 * EM_EDATA, naming file and line; EM_EMEMORY.
 */
em_status em_stan_data_read(const char *path, const char *text, em_stan_data **out);
void em_stan_data_destroy(em_stan_data **data); /* NULL-safe. */

/* The variable of a name; NULL: none. Local. */
const em_stan_datum *em_stan_data_find(const em_stan_data *data, const char *name);
const em_stan_datum *em_stan_data_find_word(const em_stan_data *data, const char *word,
                                            size_t length);
