/*
 * Parses formulas as in R: disease ~ age + sex * vessels. + and - add and remove terms. a:b is the
 * product of a and b, and a*b is a + b + a:b. 1 includes an intercept, 0 or -1 removes it. A dot
 * means all other columns. factor(a), or C(a), has categories; `a b` is a name with blanks. log(a),
 * exp(a), sqrt(a), I(a^2 + b) and poly(a, 2) are computed from columns of numbers.
 */
#pragma once

#include "data/formula/derived.h"
#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { EM_MOST_IN_TERM = 4, EM_MOST_TERMS = 10000 };

/* A product of columns, in the order of their first appearance in the text. The number n_column + k
 * stands for derived column k. */
typedef struct em_term {
    int n;
    int64_t column[EM_MOST_IN_TERM];
} em_term;

typedef struct em_formula {
    bool intercept;
    int64_t response; /* a column */
    int64_t n_derived;
    em_derived *derived;      /* [n_derived] functions of columns, among them */
    int64_t response_derived; /* the derived column that is the response; -1: none */
    int64_t n_term, capacity;
    em_term *term;   /* [n_term] as R orders them: single columns, products of two, ... */
    bool *is_factor; /* [n_column] said to have categories */
} em_formula;

/* The columns that a formula may name. */
typedef struct em_formula_columns {
    int64_t n;
    char *const *name; /* [n] */
    /* [EM_N_BESIDE] columns that a dot excludes; -1: none; NULL: none at all */
    const int64_t *beside;
    /* With `chosen` or `fitted`, a subtracted term may name a column that does not exist. */
    bool chosen;  /* these are only the columns that the formula uses */
    bool fitted;  /* these are only the columns of the terms of an earlier run, without response */
    bool unnamed; /* the data do not name their columns; these names are x1, x2, ... */
} em_formula_columns;

/* Parses a formula with the columns of a table. Local. Errors: EM_ECONFIG, saying where in the text
 * what was found and what was expected; EM_EMEMORY; call em_formula_release even then. */
em_status em_formula_parse(const char *text, const em_formula_columns *columns, em_formula *out);
void em_formula_release(em_formula *formula);
