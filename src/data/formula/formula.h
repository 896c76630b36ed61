/*
 * Formulas as R has them: disease ~ age + sex * vessels. Terms are joined by + and -, a:b is the
 * product of a and b, a*b is a + b + a:b, 1 and 0 (or -1) say whether there is an intercept, a dot
 * is every other column; factor(a) says that a has categories; `a b` is a name with blanks; log(a),
 * exp(a), sqrt(a), I(a^2 + b) and poly(a, 2) are made of columns of numbers.
 */
#pragma once

#include "data/formula/derived.h"
#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { EM_MOST_IN_TERM = 4, EM_MOST_TERMS = 10000 };

/* The product of some columns, in the order in which the text first has them; from n_column of the
 * table on a number is that of what is derived. */
typedef struct em_term {
    int n;
    int64_t column[EM_MOST_IN_TERM];
} em_term;

typedef struct em_formula {
    bool intercept;
    int64_t response; /* a column */
    int64_t n_derived;
    em_derived *derived;      /* [n_derived] functions of columns, among them */
    int64_t response_derived; /* the one that the response column becomes; -1: none */
    int64_t n_term, capacity;
    em_term *term;   /* [n_term] as R orders them: single columns, products of two, ... */
    bool *is_factor; /* [n_column] said to have categories */
} em_formula;

/* What a formula is about. */
typedef struct em_formula_columns {
    int64_t n;
    char *const *name;     /* [n] */
    const int64_t *beside; /* [EM_N_BESIDE] no part of a dot; -1: none; NULL: none at all */
    bool chosen; /* they are the ones that the formula uses: terms taken away need not be there
                  */
    bool fitted; /* the columns that the terms of a run had: the response is none of them, and
                    terms taken away need not be */
} em_formula_columns;

/* Local. Errors: EM_ECONFIG, saying where in the text what was found and what was expected;
 * EM_EMEMORY; em_formula_release all the same. */
em_status em_formula_parse(const char *text, const em_formula_columns *columns, em_formula *out);
void em_formula_release(em_formula *formula);
