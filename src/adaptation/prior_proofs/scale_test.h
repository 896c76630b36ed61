/*
 * Private to the folder: the test whether a parameter is a log scale (scale_derivative.c). All
 * Local apart from the evaluations of gradients.
 */
#pragma once

#include "adaptation/prior_proofs/scale_derivative.h"

enum { EM_TESTED_DRAWS = 20, EM_SPARE_DRAWS = 10 /* for a regression, more than coefficients */ };

/* The step of x_k in a difference. As a derivative, its relative error is as large. */
#define EM_DIFFERENCE_STEP 1e-5

/* A parameter x_k that is tested, and differences of gradients. */
typedef struct em_scale_test {
    const em_samples *samples;
    const em_gradient_function *gradients;
    int64_t dim, k;
    int64_t n, most;    /* draws, and room for them */
    int64_t *draw;      /* [most] their numbers */
    double *theta;      /* [2][most][dim] positions after the step of x_k, and before it */
    double *gradient;   /* [2][most][dim] there */
    double *difference; /* [most][dim] H_i */
    int64_t held;       /* a parameter on which M depends; -1: there is none */
    double mean;        /* of its draws */
    /* If one is held, of the draws of the test: numbers, and sum_i x_i H_i over the involved ones
     */
    int64_t n_tested, tested[EM_TESTED_DRAWS];
    double sum[EM_TESTED_DRAWS];
    int64_t *involved; /* [dim] the n_involved parameters with H_i != 0 */
    int64_t n_involved;
} em_scale_test;

/* `samples` and `gradients` must outlive the test. Errors: EM_EMEMORY. */
em_status em_scale_test_create(em_owner *owner, int64_t dim, const em_samples *samples,
                               const em_gradient_function *gradients, em_scale_test *out);

/* A first test of n parameters k [n], in one evaluation at a few draws, which nearly all log scales
 * pass and few others. sd [dim]: standard deviations of draws; writes passes [dim]. Errors:
 * EM_EMEMORY, those of the evaluations. */
em_status em_scale_test_pairs(em_scale_test *test, int n, const int64_t *k, const double *sd,
                              bool *passes);

/* Whether parameter k is a log scale. Errors: those of the evaluations. */
em_status em_scale_test_run(em_scale_test *test, int64_t k, bool *is_log_scale);

/* After a test that has passed: computes the differences of as many draws as the involved
 * parameters need. *suffices: there are as many. Errors: those of the evaluations. */
em_status em_scale_test_measure(em_scale_test *test, bool *suffices);

/* A draw: position and gradient [2 dim]. */
static inline const double *em_scale_test_draw(const em_scale_test *test, int64_t r)
{
    return test->samples->row + r * 2 * test->dim;
}

/* The position of draw number q at which its difference was computed. */
static inline const double *em_scale_test_position(const em_scale_test *test, int64_t q)
{
    return test->theta + (test->most + q) * test->dim;
}

/* ---- quadratic_form.c ---- */

/* Adds the priors of the members of the tested scale to prior [dim], if M explains the differences
 * and has two members or more, or one with two log scales, which were in no group. Else the test of
 * the scale has failed. Errors: EM_EMEMORY. */
em_status em_add_members(const em_scale_test *test, em_normal_prior *prior);
