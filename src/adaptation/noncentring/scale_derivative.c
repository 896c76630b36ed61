/*
 * If parameters have a normal prior with a common scale e^(a x_k), the log density is
 *
 *     - e^(-2 a x_k) Q(x) / 2 + (a function of x_k) + (a function of all other parameters),
 *
 * where Q(x) = x^T M x is the sum of squares of members less their means, and the last term
 * includes the data. So the derivatives H_i of its derivative g_k by the other x_i are
 *
 *     H_i = 2 a e^(-2 a x_k) (M x)_i,    g_k = sum_i x_i H_i / 2 + (a function of x_k).
 *
 * These are identities. They hold whatever the data are, and at every position. The second one
 * tests whether x_k is a log scale at a few draws, and linear regression finds M. A triangular
 * factor of M then has the members, their precisions and their means. H_i is computed as a
 * difference of gradients. If the scale has an upper bound, and x_k is its logit, the factor is
 * e^(-2 x_k) + e^(-x_k) in place of a e^(-2 a x_k).
 */
#include "adaptation/noncentring/scale_derivative.h"

#include "adaptation/noncentring/noncentring_fit.h"
#include "base/memory.h"
#include "math/linalg.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
    MOST_SCALES = 16,  /* that are tested at one time */
    PAIRS = 2,         /* of draws for a first test */
    MOST_FAILURES = 2, /* after which a parameter is tested no more */
    TESTED = 20,       /* draws for the test */
    SMOOTH = 8,        /* functions of x_k */
    SPARE = 10,        /* draws for the regression, more than coefficients */
    LEAST_MEMBERS = 2
};

/* The step of x_k in a difference. The relative error of H_i is as large. */
static const double step = 1e-5;

/* The least standard deviation of the log of the scale. A constant mass suits narrower ones. */
static const double least_spread = 0.3;

/* The least skewness of g_k, which contains a sum of squares; one that none has. */
static const double least_skewness = 0.3, a_failure = 1e6;

/* The share of g_k that may be left of it by the test, and the share that may be rounding after the
 * smooth functions, which are nearly dependent. */
static const double most_left = 1e-3, rounding = 1e-4;

/* Draws of a pair are as near in x_k, in standard deviations, and the difference that is left. */
static const double near = 0.05, most_of_pair = 0.5;

/* The share of the squares of H_i that the regression may leave. */
static const double most_left_of_rows = 1e-4;

/* Elements of M below this are rounding, relative to its diagonal. So are differences of a
 * coefficient from a whole number. */
static const double zero = 1e-4, whole = 1e-5;

/* A regressor that is dependent on others has a smaller part that is not. */
static const double dependent = 1e-8;

/* A parameter that is tested, and the differences of gradients. */
typedef struct scale_test {
    int64_t dim, k;
    int64_t n, most;    /* draws, and room for them */
    int64_t *draw;      /* [most] their numbers */
    double *theta;      /* [most][dim] positions after the step */
    double *difference; /* [most][dim] H_i */
    int64_t *involved;  /* [dim] the n_involved parameters with H_i != 0 */
    int64_t n_involved;
} scale_test;

/* ---------------------------------------------------------------- differences */

static const double *draw_of(const em_samples *samples, int64_t dim, int64_t r)
{
    return samples->row + r * 2 * dim;
}

/* Lists up to `wanted` draws of the later half, no two with the same x_k: a chain that has not
 * moved repeats a draw. */
static void list_draws(scale_test *t, const em_samples *samples, int64_t wanted)
{
    const int64_t half = samples->n / 2, stride = em_most(1, half / wanted);

    for (int64_t first = 0; first < stride; first++)
        for (int64_t r = samples->n - 1 - first; r >= samples->n - half; r -= stride) {
            bool is_new = true;
            if (t->n == wanted)
                return;
            for (int64_t q = 0; q < t->n && is_new; q++)
                is_new =
                    draw_of(samples, t->dim, t->draw[q])[t->k] != draw_of(samples, t->dim, r)[t->k];
            if (is_new)
                t->draw[t->n++] = r;
        }
}

/* Computes the differences of draws first .. n - 1, and drops draws that have none. */
static em_status differentiate(scale_test *t, const em_samples *samples, int64_t first,
                               const em_gradient_function *gradient)
{
    const int64_t dim = t->dim;
    int64_t kept = first;

    if (t->n == first)
        return EM_OK;
    for (int64_t q = first; q < t->n; q++) {
        double *theta = t->theta + q * dim;
        memcpy(theta, draw_of(samples, dim, t->draw[q]), (size_t)dim * sizeof *theta);
        theta[t->k] += step;
    }
    const em_status status = gradient->evaluate(
        gradient->context, t->n - first, t->theta + first * dim, t->difference + first * dim);
    for (int64_t q = first; !status && q < t->n; q++) {
        const double *x = draw_of(samples, dim, t->draw[q]);
        const double by = t->theta[q * dim + t->k] - x[t->k];
        bool is_finite = true;
        for (int64_t i = 0; i < dim; i++) {
            const double h = (t->difference[q * dim + i] - x[dim + i]) / by;
            t->difference[kept * dim + i] = h;
            is_finite &= isfinite(h);
        }
        t->draw[kept] = t->draw[q];
        kept += is_finite;
    }
    t->n = kept;
    return status;
}

/* ---------------------------------------------------------------- the test */

/* The part of y [n] that smooth functions of x [n] do not explain, as a sum of squares. */
static double unexplained(int64_t n, const double *x, const double *weight, const double *y)
{
    double basis[SMOOTH + 1][TESTED], mean = 0, sum = 0;
    int n_basis = 0;

    for (int64_t r = 0; r < n; r++)
        mean += x[r] / (double)n;
    for (int q = 0; q <= SMOOTH; q++) {
        double *b = basis[n_basis], before = 0, after = 0;
        for (int64_t r = 0; r < n; r++) {
            const double u = x[r] - mean, up = exp(u), odds = exp(x[r]);
            const double smooth[SMOOTH + 1] = {
                1, u, u * u, u * u * u, up, up * up, 1 / (1 + odds), 1 / (up * up), y[r]};
            b[r] = weight[r] * smooth[q];
            before += b[r] * b[r];
        }
        for (int pass = 0; pass < 2; pass++)
            for (int p = 0; p < n_basis; p++) {
                const double along = em_dot(n, basis[p], b);
                for (int64_t r = 0; r < n; r++)
                    b[r] -= along * basis[p][r];
            }
        after = em_dot(n, b, b);
        if (q == SMOOTH)
            sum = after;
        if (q == SMOOTH || !(after > dependent * before))
            continue;
        for (int64_t r = 0; r < n; r++)
            b[r] /= sqrt(after);
        n_basis++;
    }
    return sum;
}

/* g_k less sum_i x_i H_i / 2 at draw number q. */
static double rest_of(const scale_test *t, const em_samples *samples, int64_t q)
{
    const double *x = draw_of(samples, t->dim, t->draw[q]), *h = t->difference + q * t->dim;

    return x[t->dim + t->k] - 0.5 * (em_dot(t->dim, x, h) - x[t->k] * h[t->k]);
}

/* The draw with nearly the x_k of draw r whose g_k differs most; -1: there is none. */
static int64_t find_partner(const scale_test *t, const em_samples *samples, int64_t r, double sd)
{
    const double *here = draw_of(samples, t->dim, r);
    double most = 0;
    int64_t best = -1;

    for (int64_t q = samples->n / 2; q < samples->n; q++) {
        const double *there = draw_of(samples, t->dim, q);
        const double by = fabs(there[t->dim + t->k] - here[t->dim + t->k]);
        if (fabs(there[t->k] - here[t->k]) < near * sd && by > most) {
            most = by;
            best = q;
        }
    }
    return best;
}

/* A first test, at a few draws, which nearly all log scales pass and few others: at two draws with
 * nearly the same x_k, g_k less sum_i x_i H_i / 2 differs less than g_k does. */
static em_status test_pairs(scale_test *t, const em_samples *samples,
                            const em_gradient_function *gradient, double sd, bool *passes)
{
    em_status status;
    double g[PAIRS] = {0};

    t->n = 0;
    for (int64_t p = 0; p < PAIRS; p++) {
        const int64_t r = samples->n - 1 - p * (samples->n / 4);
        const int64_t partner = find_partner(t, samples, r, sd);
        if (partner < 0)
            continue;
        g[t->n / 2] = draw_of(samples, t->dim, r)[t->dim + t->k] -
                      draw_of(samples, t->dim, partner)[t->dim + t->k];
        t->draw[t->n++] = r;
        t->draw[t->n++] = partner;
    }
    const int64_t n = t->n;
    status = differentiate(t, samples, 0, gradient);
    *passes = n == 0 || t->n == n;
    for (int64_t p = 0; !status && *passes && p < n / 2; p++)
        *passes = fabs(rest_of(t, samples, 2 * p) - rest_of(t, samples, 2 * p + 1)) <
                  most_of_pair * fabs(g[p]);
    return status;
}

/* Whether g_k less sum_i x_i H_i / 2 is a function of x_k, and g_k is none. Draws from the start of
 * warmup may be far off, so they are weighted by the size of g_k. */
static bool is_log_scale(const scale_test *t, const em_samples *samples)
{
    const int64_t dim = t->dim, n = t->n;
    double x[TESTED], g[TESTED], rest[TESTED], weight[TESTED], size = 0, whole_square = 0;

    if (n < TESTED * 3 / 4)
        return false;
    for (int64_t q = 0; q < n; q++) {
        const double *draw = draw_of(samples, dim, t->draw[q]);
        x[q] = draw[t->k];
        g[q] = draw[dim + t->k];
        rest[q] = rest_of(t, samples, q);
        size += fabs(g[q]) / (double)n;
    }
    for (int64_t q = 0; q < n; q++) {
        weight[q] = 1 / (size + fabs(g[q]));
        whole_square += pow(weight[q] * g[q], 2);
    }
    const double before = unexplained(n, x, weight, g);
    return before > rounding * whole_square && unexplained(n, x, weight, rest) < most_left * before;
}

/* Lists the parameters that have a difference in some draw which is more than rounding. */
static void list_involved(scale_test *t, const em_samples *samples)
{
    const int64_t dim = t->dim;
    double size = 0;

    for (int64_t q = 0; q < t->n; q++)
        size += fabs(draw_of(samples, dim, t->draw[q])[dim + t->k]) / (double)t->n;
    t->n_involved = 0;
    for (int64_t i = 0; i < dim; i++) {
        double most = 0;
        for (int64_t q = 0; q < t->n; q++)
            most =
                fmax(most, fabs(t->difference[q * dim + i] * draw_of(samples, dim, t->draw[q])[i]));
        if (i != t->k && most > 1e-7 * size)
            t->involved[t->n_involved++] = i;
    }
}

/* ---------------------------------------------------------------- the quadratic form */

/* The factor of 2 (M x)_i in H_i. */
static double factor_of(const em_normal_prior *form, double x)
{
    return form->is_bounded != 0 ? exp(-2 * x) + exp(-x)
                                 : form->degree * exp(-2 * form->degree * x);
}

/* A regression of the involved H_i on the involved x_j. */
typedef struct form_regression {
    int64_t p, n;      /* parameters, draws */
    double *x, *y;     /* [p][n] positions divided by their norm, H_i / (2 factor) */
    double *norm;      /* [p] */
    double *inverse;   /* [p][p] of the Gram matrix of x */
    double *product;   /* [p][p] of y and x */
    double *m, *found; /* [p][p] M by the last form, and by the best one */
} form_regression;

static em_status set_positions(form_regression *f, const scale_test *t, const em_samples *samples)
{
    for (int64_t i = 0; i < f->p; i++) {
        double *x = f->x + i * f->n;
        for (int64_t q = 0; q < f->n; q++)
            x[q] = draw_of(samples, t->dim, t->draw[q])[t->involved[i]];
        f->norm[i] = sqrt(em_dot(f->n, x, x));
        for (int64_t q = 0; q < f->n; q++)
            x[q] /= f->norm[i];
    }
    em_gram(f->p, f->n, f->x, f->inverse);
    return em_invert_spd(f->p, f->inverse, f->p);
}

/* Computes M for one form of the scale. Returns the largest share of the squares of an H_i that is
 * left. */
static double regress(form_regression *f, const scale_test *t, const em_samples *samples,
                      const em_normal_prior *form)
{
    const int64_t p = f->p, n = f->n;
    double worst = 0;

    for (int64_t q = 0; q < n; q++) {
        const double factor = 2 * factor_of(form, draw_of(samples, t->dim, t->draw[q])[t->k]);
        for (int64_t i = 0; i < p; i++)
            f->y[i * n + q] = t->difference[q * t->dim + t->involved[i]] / factor;
    }
    em_multiply_by_rows(p, n, p, f->y, f->x, f->product);
    em_multiply_into(p, p, p, f->product, f->inverse, f->m);
    for (int64_t i = 0; i < p; i++) {
        double *m = f->m + i * p, left = 0;
        for (int64_t q = 0; q < n; q++) {
            double rest = f->y[i * n + q];
            for (int64_t j = 0; j < p; j++)
                rest -= m[j] * f->x[j * n + q];
            left += rest * rest;
        }
        worst = fmax(worst, left / em_dot(n, f->y + i * n, f->y + i * n));
        for (int64_t j = 0; j < p; j++)
            m[j] /= f->norm[j];
    }
    return worst;
}

/* Finds the form of the scale, and M for it. Returns whether M explains all H_i, and is symmetric.
 */
static bool find_form(form_regression *f, const scale_test *t, const em_samples *samples,
                      em_normal_prior *out)
{
    static const em_normal_prior form[] = {{.degree = 1},
                                           {.degree = 1, .is_bounded = 1},
                                           {.degree = -1},
                                           {.degree = 0.5},
                                           {.degree = -0.5}};
    const int64_t p = f->p;
    double least = INFINITY;

    for (size_t q = 0; q < sizeof form / sizeof *form; q++) {
        const double left = regress(f, t, samples, &form[q]);
        if (!(left < least))
            continue;
        least = left;
        *out = form[q];
        memcpy(f->found, f->m, (size_t)(p * p) * sizeof *f->m);
    }
    for (int64_t i = 0; i < p; i++)
        for (int64_t j = 0; j < i; j++) {
            double *above = &f->found[j * p + i], *below = &f->found[i * p + j];
            const double mean = 0.5 * (*above + *below);
            const double size = sqrt(fabs(f->found[i * p + i] * f->found[j * p + j]));
            if (!(fabs(*above - *below) <= 10 * zero * size))
                return false;
            *above = *below = fabs(mean) < zero * size ? 0 : mean;
        }
    return least < most_left_of_rows;
}

/* ---------------------------------------------------------------- members */

/* A triangular factor of M: row i has the member's precision and its mean. */
typedef struct elimination {
    int64_t p;
    double *m, *diagonal; /* [p][p], [p] of M at first */
    bool *is_done;        /* [p] */
} elimination;

/* The number of parameters on which the mean of i would depend; -1: i is no member. */
static int count_locations(const elimination *e, int64_t i)
{
    const double *row = e->m + i * e->p;
    int n = 0;

    if (e->is_done[i] || !(row[i] > 10 * zero * e->diagonal[i]))
        return -1;
    for (int64_t j = 0; j < e->p; j++)
        n +=
            j != i && !e->is_done[j] && fabs(row[j]) > zero * sqrt(e->diagonal[i] * e->diagonal[j]);
    return n;
}

/* Writes the prior of member i, and subtracts its square from Q. */
static void eliminate(elimination *e, int64_t i, const int64_t *parameter, em_normal_prior *out)
{
    double *row = e->m + i * e->p;
    const double pivot = row[i];
    int n = 0;

    out->precision = pivot;
    for (int q = 0; q < EM_MOST_LOCATIONS; q++)
        out->location[q] = -1;
    for (int64_t j = 0; j < e->p; j++) {
        if (j == i || e->is_done[j] ||
            !(fabs(row[j]) > zero * sqrt(e->diagonal[i] * e->diagonal[j])))
            continue;
        const double b = -row[j] / pivot;
        out->location[n] = (double)parameter[j];
        out->coefficient[n++] = fabs(b - round(b)) < whole ? round(b) : b;
    }
    e->is_done[i] = true;
    for (int64_t j = 0; j < e->p; j++)
        for (int64_t l = 0; l < e->p; l++)
            if (!e->is_done[j] && !e->is_done[l])
                e->m[j * e->p + l] -= row[j] * row[l] / pivot;
}

/* Takes members out of Q one after the other, those first whose mean depends on the fewest others:
 * so members come before what they are distributed about. Of equal ones the last comes first.
 * Writes their priors to `found` [p]; returns their number. */
static int64_t find_members(elimination *e, const int64_t *parameter, const em_normal_prior *prior,
                            const em_normal_prior *form, em_normal_prior *found)
{
    int64_t n = 0;

    for (int64_t i = 0; i < e->p; i++) {
        e->diagonal[i] = e->m[i * e->p + i];
        found[i].precision = 0;
    }
    for (;;) {
        int64_t best = -1;
        int least = EM_MOST_LOCATIONS;
        for (int64_t i = e->p - 1; i >= 0; i--) {
            const int here = prior[parameter[i]].precision > 0 ? -1 : count_locations(e, i);
            if (here < 0 || here > least || (here == least && best >= 0))
                continue;
            least = here;
            best = i;
        }
        if (best < 0)
            return n;
        found[best] = *form;
        eliminate(e, best, parameter, &found[best]);
        n++;
    }
}

/* Adds the priors of the members of the tested scale to prior [dim], if M has been found. */
static em_status add_members(const scale_test *t, const em_samples *samples, em_normal_prior *prior)
{
    const int64_t p = t->n_involved, n = t->n;
    form_regression f = {.p = p, .n = n};
    elimination e = {.p = p};
    em_normal_prior form = {.degree = 0}, *found = NULL;
    em_status status = em_allocate_all(
        EM_ARRAY(f.x, p * n), EM_ARRAY(f.y, p * n), EM_ARRAY(f.norm, p), EM_ARRAY(f.inverse, p * p),
        EM_ARRAY(f.product, p * p), EM_ARRAY(f.m, p * p), EM_ARRAY(f.found, p * p),
        EM_ARRAY(e.diagonal, p), EM_ARRAY(e.is_done, p), EM_ARRAY(found, p));
    bool is_proved = false;

    status = status ? status : set_positions(&f, t, samples);
    if (!status && find_form(&f, t, samples, &form)) {
        e.m = f.found;
        form.scale = (double)t->k;
        is_proved = find_members(&e, t->involved, prior, &form, found) >= LEAST_MEMBERS;
    }
    for (int64_t i = 0; is_proved && i < p; i++)
        if (found[i].precision > 0) {
            found[i].failures = prior[t->involved[i]].failures;
            prior[t->involved[i]] = found[i];
        }
    if (!is_proved)
        prior[t->k].failures++;
    em_release_all(&f.x, &f.y, &f.norm, &f.inverse, &f.product, &f.m, &f.found);
    em_release_all(&e.diagonal, &e.is_done, &found);
    return status > 0 ? EM_OK : status;
}

/* ---------------------------------------------------------------- log scales */

/* The size of the skewness of the derivatives by parameter k, and its standard deviation. */
static double skewness(const em_samples *samples, int64_t dim, int64_t k, double *sd)
{
    const double n = (double)samples->n;
    double mean[2] = {0}, spread = 0, square = 0, cube = 0;

    for (int64_t r = 0; r < samples->n; r++) {
        mean[0] += draw_of(samples, dim, r)[k] / n;
        mean[1] += draw_of(samples, dim, r)[dim + k] / n;
    }
    for (int64_t r = 0; r < samples->n; r++) {
        const double off = draw_of(samples, dim, r)[dim + k] - mean[1];
        spread += pow(draw_of(samples, dim, r)[k] - mean[0], 2) / n;
        square += off * off / n;
        cube += off * off * off / n;
    }
    *sd = sqrt(spread);
    return fabs(cube) / pow(square, 1.5);
}

/* Writes possible log scales to out [MOST_SCALES], those first that have failed in fewer tests, and
 * then those whose derivatives are most skewed. Returns their number. */
static int find_scales(int64_t dim, const em_samples *samples, const em_normal_prior *prior,
                       bool *is_known, double *sd, int64_t *out)
{
    double score[MOST_SCALES];
    int n = 0;

    for (int64_t i = 0; i < dim; i++)
        if (prior[i].precision > 0)
            is_known[(int64_t)prior[i].scale] = true;
    for (int64_t k = 0; k < dim; k++) {
        if (is_known[k] || prior[k].failures >= MOST_FAILURES)
            continue;
        const double skew = skewness(samples, dim, k, &sd[k]);
        if (skew >= least_skewness && sd[k] >= least_spread)
            n = em_insert_by_score(n, MOST_SCALES, skew - a_failure * prior[k].failures, k, score,
                                   out);
    }
    return n;
}

/* Tests parameter t->k, and adds the priors of its members. */
static em_status try_scale(scale_test *t, const em_samples *samples, double sd,
                           const em_gradient_function *gradient, em_normal_prior *prior)
{
    bool passes = false;
    em_status status = test_pairs(t, samples, gradient, sd, &passes);

    if (!status && passes) {
        t->n = 0;
        list_draws(t, samples, TESTED);
        status = differentiate(t, samples, 0, gradient);
    }
    if (status)
        return status;
    if (!passes || !is_log_scale(t, samples)) {
        prior[t->k].failures++;
        return EM_OK;
    }
    list_involved(t, samples);
    const int64_t wanted = t->n_involved + SPARE, tested = t->n;
    if (tested < wanted) {
        list_draws(t, samples, wanted);
        status = differentiate(t, samples, tested, gradient);
    }
    if (status || t->n < wanted - SPARE / 2)
        return status;
    return add_members(t, samples, prior);
}

em_status em_prove_priors(int64_t dim, const em_samples *samples,
                          const em_gradient_function *gradient, em_normal_prior *prior)
{
    scale_test t = {.dim = dim, .most = em_most(TESTED, dim + SPARE)};
    int64_t scale[MOST_SCALES];
    bool *is_known = NULL;
    double *sd = NULL;
    em_status status =
        em_allocate_all(EM_ARRAY(t.draw, t.most), EM_ARRAY(t.theta, t.most * dim),
                        EM_ARRAY(t.difference, t.most * dim), EM_ARRAY(t.involved, dim),
                        EM_ARRAY(is_known, dim), EM_ARRAY(sd, dim));
    const bool suffices = !status && em_suffices_for_noncentring(dim, samples->n);
    const int n = suffices ? find_scales(dim, samples, prior, is_known, sd, scale) : 0;

    for (int q = 0; !status && q < n; q++) {
        t.k = scale[q];
        status = try_scale(&t, samples, sd[t.k], gradient, prior);
    }
    em_release_all(&t.draw, &t.theta, &t.difference, &t.involved, &is_known, &sd);
    return status;
}
