/*
 * In the non-centred form of a hierarchy the data depend on products e^(a x_k) x_i, and the x_i
 * have the prior N(0, 1). If x_k changes by t, and these x_i by the factor e^(-a t), the likelihood
 * stays as it is. So the derivatives g of the log density have
 *
 *     g_k = a sum_i x_i (g_i + x_i) + (a function of x_k),
 *
 * whatever the data are, and at every position. A regression on draws finds k and the members i. A
 * few gradients prove them, at pairs of positions with the same x_k. If the scale is another
 * function e^(a F) of x_k (em_scale_form), the derivative F' is a factor of the sum.
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
    double *derivative;        /* [n] g_k / F', likewise */
    double of_g;               /* its length */
    double *gram;              /* [dim][dim] of the terms, for a regression */
    double *rest;              /* [dim][dim] the Gram matrix of what functions of x_k leave */
    double *product;           /* [dim] of the terms with what they leave of g_k */
    double *square;            /* [dim] of the terms */
    double *coefficient;       /* [dim] of g_k by the terms */
    em_weighted_regression of; /* whose basis are n_function functions of x_k, with weights 1 */
    int n_function;
    double *column; /* [n] work */
    double *left;   /* [dim][n] what functions of x_k leave of the terms; with many parameters */
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

static void set_terms(factor_search *s, double *derivative, double *of_g)
{
    for (int64_t i = 0; i < s->dim; i++) {
        double *term = s->term + i * s->n, *g = derivative + i * s->n;
        for (int64_t r = 0; r < s->n; r++) {
            const double x = draw(s, r)[i];
            g[r] = draw(s, r)[s->dim + i];
            term[r] = x * (g[r] + x);
        }
        s->length[i] = normalise(s->n, term);
        of_g[i] = normalise(s->n, g);
    }
    if (s->dim <= EM_MOST_SEARCHED)
        em_gram(s->dim, s->n, s->term, s->gram);
}

static bool is_known(const factor_search *s, const em_normal_prior *prior, int64_t k)
{
    bool known = prior[k].precision > 0;

    for (int64_t i = 0; i < s->dim; i++)
        known |= prior[i].precision > 0 && (int64_t)prior[i].scale == k;
    return known;
}

/* ---------------------------------------------------------------- one range */

/* With many parameters, members are sought that are next to each other, as those of one vector are:
 * draws are then too few for a regression on all terms. */
typedef struct member_range {
    int64_t first, end;
    double gain; /* the part of the squares of g_k that is explained */
} member_range;

/* Finds the range whose sum, with one of the usual coefficients, explains most: product [dim] of
 * each term and g_k. Terms are taken as independent. */
static member_range find_range(const factor_search *s, const double *product)
{
    static const double degree[] = {1, 0.5, -1, -0.5};
    member_range best = {0, 0, 0};

    for (size_t q = 0; q < sizeof degree / sizeof *degree; q++) {
        member_range here = {0, 0, 0};
        for (int64_t i = 0; i < s->dim; i++) {
            if (here.gain <= 0)
                here = (member_range){i, i, 0};
            here.end = i + 1;
            here.gain += degree[q] * (2 * product[i] - degree[q] * s->square[i]);
            best = here.gain > best.gain ? here : best;
        }
    }
    return best;
}

/* Moves one end of the range to where the sum leaves least of y; the other end is fixed. Terms are
 * in s->left. Returns what is left. */
static double move_end(factor_search *s, bool moves_first, member_range *range)
{
    const int64_t n = s->n, fixed = moves_first ? range->end - 1 : range->first;
    const int64_t step = moves_first ? -1 : 1;
    const double whole = em_dot(n, s->derivative, s->derivative);
    double least = whole;

    memset(s->column, 0, (size_t)n * sizeof *s->column);
    for (int64_t i = fixed; i >= 0 && i < s->dim; i += step) {
        const double *term = s->left + i * n;
        for (int64_t r = 0; r < n; r++)
            s->column[r] += term[r];
        const double square = em_dot(n, s->column, s->column);
        const double product = em_dot(n, s->column, s->derivative);
        const double left = square > 0 ? whole - product * product / square : whole;
        if (left < least) {
            least = left;
            *(moves_first ? &range->first : &range->end) = moves_first ? i : i + 1;
        }
    }
    return least / whole;
}

/* Finds the members of parameter k, whose derivative is s->derivative, as one range. Returns the
 * share of its squares that is left. */
static double take_range(factor_search *s, int64_t k)
{
    enum { MOST_MOVES = 8 };
    const int64_t n = s->n;
    double left = 1;
    int64_t n_member = 0;

    for (int64_t i = 0; i < s->dim; i++) {
        double *term = s->left + i * n;
        for (int64_t r = 0; r < n; r++)
            term[r] = i == k ? 0 : s->length[i] / s->of_g * s->term[i * n + r];
        em_project_out(&s->of, s->n_function, term, NULL);
        s->product[i] = em_dot(n, term, s->derivative);
        s->square[i] = em_dot(n, term, term);
    }
    member_range range = find_range(s, s->product);
    for (int move = 0; range.end > range.first && move < MOST_MOVES; move++)
        left = move_end(s, move % 2 == 0, &range);
    for (int64_t i = 0; i < s->dim; i++) {
        s->is_member[i] = i >= range.first && i < range.end && s->square[i] > 0;
        n_member += s->is_member[i];
    }
    return n_member > 1 ? left : 1;
}

/* How much of g_k the terms of others may explain. */
static double score_of(const factor_search *s, int64_t k, double of_g, double *correlation)
{
    double sum = 0;

    correlation[k] = 0;
    for (int64_t i = 0; i < s->dim; i++)
        sum += pow(correlation[i], 2);
    if (s->dim <= EM_MOST_SEARCHED)
        return sum;
    for (int64_t i = 0; i < s->dim; i++) {
        correlation[i] *= s->length[i] * of_g;
        s->square[i] = i == k ? 0 : s->length[i] * s->length[i];
    }
    return of_g > 0 ? find_range(s, correlation).gain / (of_g * of_g) : 0;
}

/* Writes to scale [MOST_SCALES] the parameters whose derivatives are most correlated with the terms
 * of others; *n_scale: their number. */
static em_status find_scales(factor_search *s, const em_normal_prior *prior, int64_t *scale,
                             int *n_scale)
{
    const int64_t dim = s->dim;
    double score[MOST_SCALES];
    EM_SCOPED double *derivative = NULL, *of_g = NULL, *correlation = NULL;
    em_status status = em_allocate_all(EM_ARRAY(derivative, dim * s->n), EM_ARRAY(of_g, dim),
                                       EM_ARRAY(correlation, dim * dim));

    *n_scale = 0;
    if (status)
        return status;
    set_terms(s, derivative, of_g);
    em_multiply_by_rows(dim, s->n, dim, derivative, s->term, correlation);
    for (int64_t k = 0; k < dim; k++) {
        double mean, sd;
        em_sample_moments(dim, s->samples, k, &mean, &sd);
        if (sd < em_least_spread(dim) || is_known(s, prior, k))
            continue;
        const double found = score_of(s, k, of_g[k], correlation + k * dim);
        if (found > least_correlation)
            *n_scale = em_insert_by_score(*n_scale, MOST_SCALES, found, k, score, scale);
    }
    return EM_OK;
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

/* Sets y to g_k / F' for a form of the scale, less what functions of x_k explain of it. */
static void set_derivative(factor_search *s, int64_t k, double form)
{
    for (int64_t r = 0; r < s->n; r++) {
        double slope;
        em_log_scale(form, draw(s, r)[k], &slope);
        s->derivative[r] = draw(s, r)[s->dim + k] / slope;
    }
    s->of_g = normalise(s->n, s->derivative);
    set_functions(s, k);
    em_project_out(&s->of, s->n_function, s->derivative, NULL);
}

/* Regresses g_k on the terms of all others and on functions of x_k. *left: the share of the squares
 * of g_k, less those functions, that stays. */
static em_status regress(factor_search *s, int64_t k, double *left)
{
    const int64_t dim = s->dim, n = s->n;
    const double *g = s->derivative;

    em_multiply_by_rows(s->n_function, n, dim, s->of.basis, s->term, s->along);
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
        s->coefficient[i] *= s->length[i] > 0 ? s->of_g / s->length[i] : 0;
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
static em_status prove_identity(factor_search *s, int64_t k, double form, double *degree,
                                bool *holds)
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
        double slope;
        em_log_scale(form, x[k], &slope);
        left[p] = (g[k] - x[dim + k]) / slope;
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

/* Tests parameter k with a form of the scale. */
static em_status test_form(factor_search *s, int64_t k, double form, double *degree, bool *holds)
{
    double left = 1;
    bool passes;
    em_status status = EM_OK;

    set_derivative(s, k, form);
    if (s->dim > EM_MOST_SEARCHED) {
        passes = take_range(s, k) < most_left;
    } else {
        status = regress(s, k, &left);
        passes = !status && left < most_left && find_members(s) > 1;
    }
    *holds = false;
    return passes ? prove_identity(s, k, form, degree, holds) : status;
}

/* Tests parameter k, and adds the priors of its members. */
static em_status test_scale(factor_search *s, int64_t k, em_normal_prior *prior)
{
    static const double form_of[][2] = {{EM_SCALE_EXP, EM_SCALE_OF_FACTOR},
                                        {EM_SCALE_LOGISTIC, EM_SCALE_OF_LOGISTIC_FACTOR}};
    double degree;
    bool holds = false;
    em_status status = EM_OK;
    int q = -1;

    while (status >= 0 && !holds && ++q < 2)
        status = test_form(s, k, form_of[q][0], &degree, &holds);
    for (int64_t i = 0; holds && i < s->dim; i++)
        holds = !(s->is_member[i] && prior[i].precision > 0);
    for (int64_t i = 0; holds && i < s->dim; i++)
        if (s->is_member[i])
            prior[i] = (em_normal_prior){.precision = 1,
                                         .scale = (double)k,
                                         .degree = degree,
                                         .form = form_of[q][1],
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
    const int64_t regressed = dim > EM_MOST_SEARCHED ? 0 : dim;
    int n_scale = 0;

    if (!em_suffices_for_proofs(dim, samples->n))
        return EM_OK;
    em_status status = em_own_all(
        &memory, EM_ARRAY(s.term, dim * n), EM_ARRAY(s.length, dim), EM_ARRAY(s.derivative, n),
        EM_ARRAY(s.gram, regressed * dim), EM_ARRAY(s.rest, regressed * dim),
        EM_ARRAY(s.product, dim), EM_ARRAY(s.square, dim), EM_ARRAY(s.coefficient, dim),
        EM_ARRAY(s.of.basis, FUNCTIONS * n), EM_ARRAY(s.of.weight, n), EM_ARRAY(s.column, n),
        EM_ARRAY(s.left, (dim - regressed) * n), EM_ARRAY(s.along, FUNCTIONS * dim),
        EM_ARRAY(s.theta, PAIRS * dim), EM_ARRAY(s.gradient, PAIRS * dim),
        EM_ARRAY(s.is_member, dim));
    if (status)
        return status;
    for (int64_t r = 0; r < n; r++)
        s.of.weight[r] = 1;
    status = find_scales(&s, prior, scale, &n_scale);
    for (int q = 0; !status && q < n_scale; q++)
        status = test_scale(&s, scale[q], prior);
    return status;
}
