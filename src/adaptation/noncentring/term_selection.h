/*
 * Private to the folder: which other parameters appear in the derivative by a parameter,
 *
 *     g_i = -A e^(-2 u) (x_i - m - sum_j b_j x_j) - B x_i + C + sum_j d_j x_j,
 *
 * where the first term is that of its prior, with precision A e^(-2 u), and the others are those of
 * its data. Terms are chosen one after the other, as in stepwise regression, from the Gram matrix
 * of all candidates under one set of weights. All Local.
 */
#pragma once

#include "adaptation/prior_proofs/weighted_regression.h"
#include "posterior/noncentring.h"

#include <stdbool.h>

enum { EM_MOST_PLAIN = 5 };

/* What chance adds to a gain in log likelihood of a draw or a derivative, times the number of
 * draws. */
#define EM_GAIN_BY_CHANCE 10.0

typedef struct em_terms {
    int n; /* of b_j; the first has the coefficient 1 if has_parent: x_i is distributed about it */
    bool has_parent;
    int64_t location[EM_MOST_LOCATIONS];
    int n_plain; /* of d_j */
    int64_t plain[EM_MOST_PLAIN];
} em_terms;

typedef struct em_selection {
    int64_t dim, n; /* parameters, draws */
    int64_t width;  /* 2 + 2 dim regressors: the constant, e^(-2 u), x, e^(-2 u) x */
    double *panel;  /* [width + 1][n] times the roots of weights; the last row: a derivative */
    double *gram;   /* [width][width] */
    double *basis;  /* work: [EM_MOST_REGRESSORS][width + 1], the last column: of the derivative */
    double *of_y;   /* [width + 1] products of the derivative with the regressors and itself */
} em_selection;

/* Computes the Gram matrix for x [dim][n] and e^(-2 u) [n]; sd [dim] of x, 0: constant. */
void em_selection_prepare(em_selection *s, const double *x, const double *factor, const double *sd);

/* Selects the terms of parameter i with the derivatives g [n]. candidate [dim]: those that may be
 * locations. */
void em_select_terms(em_selection *s, int64_t i, const double *g, const bool *candidate,
                     em_terms *out);
