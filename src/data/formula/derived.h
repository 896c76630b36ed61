/*
 * Columns that a formula computes from others: log(x), I(x^2 + 1), poly(x, 2). Each gives a number,
 * or the columns of a polynomial, for each row.
 */
#pragma once

#include "data/table/table.h"

enum { EM_MOST_DERIVED = 100, EM_MOST_DEGREE = 20, EM_MOST_STEPS = 200 };

/* Steps of a calculation on a stack; the functions of one number come last. */
typedef enum em_operator {
    EM_OP_NUMBER,
    EM_OP_COLUMN,
    EM_OP_ADD,
    EM_OP_SUBTRACT,
    EM_OP_MULTIPLY,
    EM_OP_DIVIDE,
    EM_OP_POWER,
    EM_OP_NEGATE,
    EM_OP_LOG,
    EM_OP_LOG2,
    EM_OP_LOG10,
    EM_OP_LOG1P,
    EM_OP_EXP,
    EM_OP_SQRT,
    EM_OP_ABS,
    EM_N_OPERATOR
} em_operator;

typedef struct em_step {
    em_operator op;
    double number;
    int64_t column;
} em_step;

typedef struct em_derived {
    char *name; /* as R writes it */
    int n_step;
    em_step step[EM_MOST_STEPS]; /* column numbers are those of the table */
    int degree;                  /* of a polynomial; 0: a number */
    bool raw;                    /* its columns are powers; else they are orthogonal polynomials */
    double *coding; /* [2 degree + 2] the mean of the numbers, then R's alpha [degree] and norm2
                       [degree + 1] of the centred numbers; NULL: not yet known */
} em_derived;

/* Frees what is in it. Local. */
void em_derived_release(em_derived *derived);

/* The number of columns that it makes; em_derived_make writes them for a row of numbers. Local. */
static inline int em_derived_size(const em_derived *derived)
{
    return derived->degree > 0 ? derived->degree : 1;
}

void em_derived_make(const em_derived *derived, const double *row, double *out);

/* The calculated value, before a polynomial is made from it. Local. */
double em_derived_value(const em_derived *derived, const double *row);

/* Checks that the numbers are finite in all rows of a table that is not sparse. Collective. Errors,
 * agreed: EM_EDATA, naming the line. */
em_status em_derived_check(const em_derived *derived, const em_table *table);

/* Finds the coding of an orthogonal polynomial from all rows of a table; the bits do not depend on
 * the distribution of the rows. Collective. Errors, agreed: EM_EDATA if there are too few different
 * values, EM_EMEMORY. */
em_status em_derived_find(em_derived *derived, const em_table *table);

/* How many numbers that takes. Local. */
static inline int64_t em_derived_coding_size(const em_derived *derived)
{
    return derived->degree > 0 && !derived->raw ? 2 * derived->degree + 2 : 0;
}
