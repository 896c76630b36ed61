/*
 * In the non-centred form of a hierarchy the data depend on products e^(a x_k) x_i, and the x_i
 * have the prior N(0, 1). If x_k changes by t, and these x_i by the factor e^(-a t), the likelihood
 * stays as it is. So the derivatives g of the log density have
 *
 *     g_k = a sum_i x_i (g_i + x_i) + (a function of x_k),
 *
 * whatever the data are, and at every position. A regression on draws finds k and the members i. A
 * few gradients prove them, at pairs of positions with the same x_k.
 */
#include "adaptation/prior_proofs/draw_columns.h"
#include "adaptation/prior_proofs/scale_derivative.h"
#include "adaptation/prior_proofs/weighted_regression.h"
#include "base/memory.h"
#include "math/finite.h"
#include "math/linalg.h"

#include <math.h>
#include <string.h>

enum {
    MOST_SCALES = 4, /* that are tested at one time */
    PAIRS = 8,       /* of positions in a proof */
    FUNCTIONS = 6    /* that stand for the function of x_k in a regression */
};

/* The least sum of squared correlations of g_k and the terms x_i (g_i + x_i), and the largest share
 * of the squares of g_k that the regression may leave. */
static const double least_correlation = 0.4, most_left = 1e-3;

typedef struct factor_search {
    const em_samples *samples;
    const em_gradient_function *gradients;
    int64_t dim, n;
    double *term;              /* [dim][n] x_i (g_i + x_i) less their means, of length 1 */
    double *length;            /* [dim] before */
    double *derivative;        /* [dim][n] g_k, likewise */
    double *of_g;              /* [dim] the lengths */
    double *gram;              /* [dim][dim] of the terms */
    double *correlation;       /* [dim][dim] of each g_k and term i */
    double *rest;              /* [dim][dim] the Gram matrix of what functions of x_k leave */
    double *product;           /* [dim] of the terms with what they leave of g_k */
    double *coefficient;       /* [dim] of g_k by the terms */
    em_weighted_regression of; /* whose basis are n_function functions of x_k, with weights 1 */
    int n_function;
    double *column; /* [n] work */
    double *along;  /* [FUNCTIONS][dim] products of the functions and the terms */
    double *theta;  /* [PAIRS][dim] positions, and the gradients there */
    double *gradient;
    bool *is_member; /* [dim] */
} factor_search;

static const double *draw(const factor_search *s, int64_t r)
{
    return em_thinned_sample(s->samples, s->dim, s->n, r);
}

/* Divides x [n], less its mean, by its length, which is returned. */
static double normalise(int64_t n, double *x)
{
    double mean;
    const double length = sqrt((double)n) * em_centre_column(n, x, &mean);

    for (int64_t r = 0; length > 0 && r < n; r++)
        x[r] /= length;
    return length;
}

static void set_terms(factor_search *s)
{
    for (int64_t i = 0; i < s->dim; i++) {
        double *term = s->term + i * s->n, *derivative = s->derivative + i * s->n;
        for (int64_t r = 0; r < s->n; r++) {
            const double x = draw(s, r)[i], g = draw(s, r)[s->dim + i];
            term[r] = x * (g + x);
            derivative[r] = g;
        }
        s->length[i] = normalise(s->n, term);
        s->of_g[i] = normalise(s->n, derivative);
    }
    em_gram(s->dim, s->n, s->term, s->gram);
    em_multiply_by_rows(s->dim, s->n, s->dim, s->derivative, s->term, s->correlation);
}

static bool is_known(const factor_search *s, const em_normal_prior *prior, int64_t k)
{
    bool known = prior[k].precision > 0;

    for (int64_t i = 0; i < s->dim; i++)
        known |= prior[i].precision > 0 && (int64_t)prior[i].scale == k;
    return known;
}

/* Writes to scale [MOST_SCALES] the parameters whose derivatives are most correlated with the terms
 * of others; returns their number. */
static int find_scales(const factor_search *s, const em_normal_prior *prior, int64_t *scale)
{
    double score[MOST_SCALES];
    int n = 0;

    for (int64_t k = 0; k < s->dim; k++) {
        double sum = 0, mean, sd;
        for (int64_t i = 0; i < s->dim; i++)
            sum += i == k ? 0 : pow(s->correlation[k * s->dim + i], 2);
        em_sample_moments(s->dim, s->samples, k, &mean, &sd);
        if (sum > least_correlation && sd >= EM_LEAST_SPREAD && !is_known(s, prior, k))
            n = em_insert_by_score(n, MOST_SCALES, sum, k, score, scale);
    }
    return n;
}

/* Sets a basis of functions of x_k: powers and exponentials, but for those that depend on others.
 */
static void set_functions(factor_search *s, int64_t k)
{
    enum { POWERS = 4 };
    double mean, sd;

    em_sample_moments(s->dim, s->samples, k, &mean, &sd);
    s->n_function = 0;
    for (int q = 0; q < FUNCTIONS; q++) {
        for (int64_t r = 0; r < s->n; r++) {
            const double away = draw(s, r)[k] - mean;
            s->column[r] = q < POWERS ? pow(away / sd, q + 1) : exp((q + 1 - POWERS) * away);
        }
        normalise(s->n, s->column);
        s->n_function = em_add_regressor(&s->of, s->n_function, s->column, NULL);
    }
}

/* Regresses g_k on the terms of all others and on functions of x_k. *left: the share of the squares
 * of g_k, less those functions, that stays. */
static em_status regress(factor_search *s, int64_t k, double *left)
{
    const int64_t dim = s->dim, n = s->n;
    double *g = s->derivative + k * n;

    set_functions(s, k);
    em_multiply_by_rows(s->n_function, n, dim, s->of.basis, s->term, s->along);
    em_project_out(&s->of, s->n_function, g, NULL);
    for (int64_t i = 0; i < dim; i++) {
        const bool is_left_out = i == k || s->length[i] == 0;
        s->product[i] = is_left_out ? 0 : em_dot(n, s->term + i * n, g);
        for (int64_t j = 0; j < dim; j++) {
            double product = s->gram[i * dim + j];
            for (int q = 0; q < s->n_function; q++)
                product -= s->along[q * dim + i] * s->along[q * dim + j];
            s->rest[i * dim + j] = is_left_out || j == k ? 0 : product;
        }
        s->rest[i * dim + i] = is_left_out ? 1 : s->rest[i * dim + i] * (1 + 1e-10);
    }
    const em_status status = em_invert_spd(dim, s->rest, dim);
    const double square = em_dot(n, g, g);
    *left = 1;
    for (int64_t i = 0; !status && i < dim; i++) {
        s->coefficient[i] = em_dot(dim, s->rest + i * dim, s->product);
        *left -= s->coefficient[i] * s->product[i] / square;
    }
    for (int64_t i = 0; !status && i < dim; i++)
        s->coefficient[i] *= s->length[i] > 0 ? s->of_g[k] / s->length[i] : 0;
    return status;
}

/* Marks the members, whose coefficients are the same while those of others are 0; returns their
 * number, or 0 if they are not. */
static int64_t find_members(factor_search *s)
{
    static const double small = 0.5, most_error = 0.1;
    double largest = 0, sum = 0;
    int64_t n = 0;

    for (int64_t i = 0; i < s->dim; i++)
        largest = fmax(largest, fabs(s->coefficient[i]));
    for (int64_t i = 0; i < s->dim; i++) {
        s->is_member[i] = fabs(s->coefficient[i]) > small * largest;
        n += s->is_member[i];
        sum += s->is_member[i] ? s->coefficient[i] : 0;
    }
    for (int64_t i = 0; i < s->dim; i++) {
        const double expected = s->is_member[i] ? sum / (double)n : 0;
        if (fabs(s->coefficient[i] - expected) > most_error * fabs(sum / (double)n))
            return 0;
    }
    return n;
}

/* The sum over the members, at a position and its gradient; adds the sizes of its terms. */
static double sum_terms(const factor_search *s, const double *x, const double *g, double *size)
{
    double sum = 0;

    for (int64_t i = 0; i < s->dim; i++)
        if (s->is_member[i]) {
            sum += x[i] * (g[i] + x[i]);
            *size += fabs(x[i] * g[i]) + x[i] * x[i];
        }
    return sum;
}

/* Whether the identity holds for pairs of positions with the same x_k: a draw, and another one
 * whose x_k is replaced. *degree: a. */
static em_status prove_identity(factor_search *s, int64_t k, double *degree, bool *holds)
{
    static const double most_error = 1e-6;
    const int64_t dim = s->dim, half = s->n / (2 * PAIRS);
    double left[PAIRS], right[PAIRS], size[PAIRS] = {0}, both = 0, square = 0;

    for (int p = 0; p < PAIRS; p++) {
        memcpy(s->theta + p * dim, draw(s, (2 * p + 1) * half), (size_t)dim * sizeof *s->theta);
        s->theta[p * dim + k] = draw(s, 2 * p * half)[k];
    }
    const em_status status =
        s->gradients->evaluate(s->gradients->context, PAIRS, s->theta, s->gradient);
    *holds = !status && em_all_finite(PAIRS * dim, s->gradient);
    for (int p = 0; *holds && p < PAIRS; p++) {
        const double *x = draw(s, 2 * p * half), *g = s->gradient + p * dim;
        left[p] = g[k] - x[dim + k];
        right[p] =
            sum_terms(s, s->theta + p * dim, g, &size[p]) - sum_terms(s, x, x + dim, &size[p]);
        both += left[p] * right[p];
        square += right[p] * right[p];
    }
    *degree = both / square;
    for (int p = 0; *holds && p < PAIRS; p++)
        *holds = fabs(left[p] - *degree * right[p]) <= most_error * fabs(*degree) * size[p];
    return status;
}

/* Tests parameter k, and adds the priors of its members. */
static em_status test_scale(factor_search *s, int64_t k, em_normal_prior *prior)
{
    double left, degree;
    bool holds = false;
    em_status status = regress(s, k, &left);

    if (!status && left < most_left && find_members(s) > 1)
        status = prove_identity(s, k, &degree, &holds);
    for (int64_t i = 0; holds && i < s->dim; i++)
        holds = !(s->is_member[i] && prior[i].precision > 0);
    for (int64_t i = 0; holds && i < s->dim; i++)
        if (s->is_member[i])
            prior[i] = (em_normal_prior){.precision = 1,
                                         .scale = (double)k,
                                         .degree = degree,
                                         .form = EM_SCALE_OF_FACTOR,
                                         .location = {-1},
                                         .failures = prior[i].failures};
    return status > 0 ? EM_OK : status; /* terms that depend on each other */
}

em_status em_prove_factors(int64_t dim, const em_samples *samples,
                           const em_gradient_function *gradients, em_normal_prior *prior)
{
    const int64_t n = em_least(samples->n, EM_MOST_NONCENTRING_DRAWS);
    EM_SCOPED_BY(em_release_owned) em_owner memory = {NULL};
    factor_search s = {.samples = samples, .gradients = gradients, .dim = dim, .n = n, .of.n = n};
    int64_t scale[MOST_SCALES];
    int n_scale;

    if (!em_suffices_for_noncentring(dim, samples->n))
        return EM_OK;
    em_status status = em_own_all(
        &memory, EM_ARRAY(s.term, dim * n), EM_ARRAY(s.length, dim),
        EM_ARRAY(s.derivative, dim * n), EM_ARRAY(s.of_g, dim), EM_ARRAY(s.gram, dim * dim),
        EM_ARRAY(s.correlation, dim * dim), EM_ARRAY(s.rest, dim * dim), EM_ARRAY(s.product, dim),
        EM_ARRAY(s.coefficient, dim), EM_ARRAY(s.of.basis, FUNCTIONS * n), EM_ARRAY(s.of.weight, n),
        EM_ARRAY(s.column, n), EM_ARRAY(s.along, FUNCTIONS * dim), EM_ARRAY(s.theta, PAIRS * dim),
        EM_ARRAY(s.gradient, PAIRS * dim), EM_ARRAY(s.is_member, dim));
    if (status)
        return status;
    for (int64_t r = 0; r < n; r++)
        s.of.weight[r] = 1;
    set_terms(&s);
    n_scale = find_scales(&s, prior, scale);
    for (int q = 0; !status && q < n_scale; q++)
        status = test_scale(&s, scale[q], prior);
    return status;
}
