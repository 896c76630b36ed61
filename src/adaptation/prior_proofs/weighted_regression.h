/*
 * Private to adaptation: weighted linear regression by an orthonormal basis, to which regressors
 * are added one after the other. All Local.
 */
#pragma once

#include <stdint.h>

enum { EM_MOST_REGRESSORS = 13 };

typedef struct em_weighted_regression {
    int64_t n;      /* draws */
    double *weight; /* [n] */
    double *basis;  /* [EM_MOST_REGRESSORS][n] orthonormal under the weights */
} em_weighted_regression;

/* sum_r weight_r x_r y_r */
double em_weighted_product(const em_weighted_regression *of, const double *x, const double *y);

/* Subtracts from x its projection on the first `n` vectors of the basis; coefficient NULL: not
 * needed. */
void em_project_out(const em_weighted_regression *of, int n, double *x, double *coefficient);

/* Adds a regressor to a basis of n vectors, and writes its coefficients to column n of `triangle`,
 * if that is not NULL. x then holds what is orthogonal to the basis before. Returns the number of
 * vectors, which is n if the regressor is linearly dependent. */
int em_add_regressor(em_weighted_regression *of, int n, double *x,
                     double (*triangle)[EM_MOST_REGRESSORS]);

/* Turns the coefficients of the n vectors of a basis into those of its regressors. */
void em_solve_regression(int n, double (*triangle)[EM_MOST_REGRESSORS], double *along);
