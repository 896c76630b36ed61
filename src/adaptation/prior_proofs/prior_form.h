/*
 * Private to the folder: what a regression of differences of gradients needs, to find the quadratic
 * form x^T M x of a scale (quadratic_form.c, sparse_form.c). All Local.
 */
#pragma once

#include "adaptation/prior_proofs/scale_test.h"

/* A regression of the involved H_i on the involved x_j. */
typedef struct em_form_regression {
    int64_t p, n;  /* parameters, draws */
    double *x, *y; /* [p][n] positions divided by their norm, H_i / (2 factor) */
    double *norm;  /* [p] */
    double *found; /* [p][p] M */
} em_form_regression;

/* The forms of a scale: degree and form alone. */
enum { EM_N_PRIOR_FORM = 6 };
extern const em_normal_prior em_prior_form[EM_N_PRIOR_FORM];

/* The factor of 2 (M x)_i in H_i at x_k: half the difference of e^(-2 a F(x_k)) over the step. */
double em_form_factor(const em_normal_prior *form, double x);

/* Set f->x and f->norm, and f->y for one form of the scale. */
void em_form_positions(em_form_regression *f, const em_scale_test *test);
void em_form_products(em_form_regression *f, const em_scale_test *test,
                      const em_normal_prior *form);

/* ---- sparse_form.c ---- */

/* Finds the form of the scale, and M, whose rows have few numbers, but for those of a few hubs.
 * There may be far fewer draws than parameters. *is_explained: all H_i are. Errors: EM_EMEMORY. */
em_status em_sparse_form(em_form_regression *f, const em_scale_test *test, em_normal_prior *out,
                         bool *is_explained);
