#include "adaptation/prior_proofs/scale_test.h"

#include "base/memory.h"
#include "math/linalg.h"

#include <math.h>
#include <string.h>

enum {
    PAIRS = 2 /* of draws for a first test */,
    TRIED = 8 /* pairs, for one */,
    SMOOTH = 9 /* functions of x_k */
};

/* The share of g_k that may be left of it by the test, and the share that may be rounding after the
 * smooth functions, which are nearly dependent. */
static const double most_left = 1e-3, rounding = 1e-4;

/* Draws of a pair are as near in x_k, in standard deviations, and the difference that is left. */
static const double near = 0.05, most_of_pair = 0.3;

/* A product of H_i and x_i below this is rounding, relative to g_k. */
static const double no_difference = 1e-7;

/* A regressor that is dependent on others has a smaller part that is not. */
static const double dependent = 1e-8;

em_status em_scale_test_create(em_owner *owner, int64_t dim, const em_samples *samples,
                               const em_gradient_function *gradients, em_scale_test *out)
{
    const int64_t most =
        dim > EM_MOST_SEARCHED ? EM_TESTED_DRAWS : em_most(EM_TESTED_DRAWS, dim + EM_SPARE_DRAWS);

    *out = (em_scale_test){.samples = samples, .gradients = gradients, .dim = dim, .most = most};
    return em_own_all(owner, EM_ARRAY(out->draw, most), EM_ARRAY(out->theta, 2 * most * dim),
                      EM_ARRAY(out->gradient, 2 * most * dim),
                      EM_ARRAY(out->difference, most * dim), EM_ARRAY(out->involved, dim));
}

/* ---------------------------------------------------------------- differences */

/* Lists up to `wanted` draws of the later half, no two with the same x_k: a chain that has not
 * moved repeats a draw. */
static void list_draws(em_scale_test *t, int64_t wanted)
{
    const int64_t half = t->samples->n / 2, stride = em_most(1, half / wanted);

    for (int64_t first = 0; first < stride; first++)
        for (int64_t r = t->samples->n - 1 - first; r >= t->samples->n - half; r -= stride) {
            bool is_new = true;
            if (t->n == wanted)
                return;
            for (int64_t q = 0; q < t->n && is_new; q++)
                is_new = em_scale_test_draw(t, t->draw[q])[t->k] != em_scale_test_draw(t, r)[t->k];
            if (is_new)
                t->draw[t->n++] = r;
        }
}

/* Writes the difference of two gradients to row `to`. Returns whether it is finite. */
static bool set_difference(em_scale_test *t, int64_t to, const double *before,
                           const double *g_before, const double *after, const double *g_after)
{
    const double by = after[t->k] - before[t->k];
    bool is_finite = true;

    for (int64_t i = 0; i < t->dim; i++) {
        const double h = (g_after[i] - g_before[i]) / by;
        t->difference[to * t->dim + i] = h;
        is_finite &= isfinite(h);
    }
    return is_finite;
}

/* Computes the differences of draws first .. n - 1, and drops draws that have none. If a parameter
 * is held, at its mean in place of its value. */
static em_status differentiate(em_scale_test *t, int64_t first)
{
    const int64_t dim = t->dim, more = t->n - first;
    double *after = t->theta + first * dim, *before = after + t->most * dim;
    double *g_after = t->gradient + first * dim, *g_before = g_after + t->most * dim;
    em_status status = EM_OK;
    int64_t kept = first;

    if (more == 0)
        return EM_OK;
    for (int64_t q = 0; q < more; q++) {
        const double *draw = em_scale_test_draw(t, t->draw[first + q]);
        memcpy(before + q * dim, draw, (size_t)dim * sizeof *before);
        memcpy(g_before + q * dim, draw + dim, (size_t)dim * sizeof *before);
        if (t->held >= 0)
            before[q * dim + t->held] = t->mean;
        memcpy(after + q * dim, before + q * dim, (size_t)dim * sizeof *after);
        after[q * dim + t->k] += EM_DIFFERENCE_STEP;
    }
    status = t->gradients->evaluate(t->gradients->context, more, after, g_after);
    if (!status && t->held >= 0)
        status = t->gradients->evaluate(t->gradients->context, more, before, g_before);
    for (int64_t q = 0; !status && q < more; q++) {
        const bool is_finite = set_difference(t, kept, before + q * dim, g_before + q * dim,
                                              after + q * dim, g_after + q * dim);
        memmove(t->theta + (t->most + kept) * dim, before + q * dim, (size_t)dim * sizeof *before);
        t->draw[kept] = t->draw[first + q];
        kept += is_finite;
    }
    t->n = kept;
    return status;
}

/* ---------------------------------------------------------------- the test */

/* The part of y [n] that smooth functions of x [n] do not explain, as a sum of squares. */
static double unexplained(int64_t n, const double *x, const double *weight, const double *y)
{
    double basis[SMOOTH + 1][EM_TESTED_DRAWS], mean = 0, sum = 0;
    int n_basis = 0;

    for (int64_t r = 0; r < n; r++)
        mean += x[r] / (double)n;
    for (int q = 0; q <= SMOOTH; q++) {
        double *b = basis[n_basis], before = 0, after = 0;
        for (int64_t r = 0; r < n; r++) {
            const double u = x[r] - mean, up = exp(u);
            double of_logistic, of_softplus;
            em_log_scale(EM_SCALE_LOGISTIC, x[r], &of_logistic);
            em_log_scale(EM_SCALE_SOFTPLUS, x[r], &of_softplus);
            const double smooth[SMOOTH + 1] = {
                1, u, u * u, u * u * u, up, up * up, of_logistic, 1 / (up * up), of_softplus, y[r]};
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

/* g_k less sum_i x_i H_i / 2 at draw number q, without the term of the held parameter. */
static double rest_of(const em_scale_test *t, int64_t q)
{
    const double *x = em_scale_test_draw(t, t->draw[q]), *h = t->difference + q * t->dim;
    const double sum = em_dot(t->dim, x, h) - x[t->k] * h[t->k];

    return x[t->dim + t->k] - 0.5 * (t->held < 0 ? sum : sum - x[t->held] * h[t->held]);
}

/* Finds the draw with nearly the x_k of draw r whose g_k differs most, and if it does by more than
 * *most, writes the pair. Returns whether it does. */
static bool find_partner(const em_scale_test *t, int64_t r, double sd, double *most, int64_t *pair)
{
    const double *here = em_scale_test_draw(t, r);
    bool found = false;

    for (int64_t q = t->samples->n / 2; q < t->samples->n; q++) {
        const double *there = em_scale_test_draw(t, q);
        const double by = fabs(there[t->dim + t->k] - here[t->dim + t->k]);
        if (!(fabs(there[t->k] - here[t->k]) < near * sd && by > *most))
            continue;
        *most = by;
        pair[0] = r;
        pair[1] = q;
        found = true;
    }
    return found;
}

/* Whether g_k less sum_i x_i H_i / 2 differs less than g_k does between the draws of all pairs. */
static bool pairs_pass(const em_scale_test *t)
{
    for (int64_t q = 0; q < t->n; q += 2) {
        const double g = em_scale_test_draw(t, t->draw[q])[t->dim + t->k] -
                         em_scale_test_draw(t, t->draw[q + 1])[t->dim + t->k];
        if (!(fabs(rest_of(t, q) - rest_of(t, q + 1)) < most_of_pair * fabs(g)))
            return false;
    }
    return true;
}

/* Whether g_k less sum_i x_i H_i / 2 is a function of x_k, and g_k is none. Draws from the start of
 * warmup may be far off, so they are weighted by the size of g_k. */
static bool identity_holds(const em_scale_test *t)
{
    const int64_t dim = t->dim, n = t->n;
    double x[EM_TESTED_DRAWS], g[EM_TESTED_DRAWS], rest[EM_TESTED_DRAWS], weight[EM_TESTED_DRAWS],
        size = 0, whole_square = 0;

    if (n < EM_TESTED_DRAWS * 3 / 4)
        return false;
    for (int64_t q = 0; q < n; q++) {
        const double *draw = em_scale_test_draw(t, t->draw[q]);
        x[q] = draw[t->k];
        g[q] = draw[dim + t->k];
        rest[q] = rest_of(t, q);
        size += fabs(g[q]) / (double)n;
    }
    for (int64_t q = 0; q < n; q++) {
        weight[q] = 1 / (size + fabs(g[q]));
        whole_square += pow(weight[q] * g[q], 2);
    }
    const double before = unexplained(n, x, weight, g);
    return before > rounding * whole_square && unexplained(n, x, weight, rest) < most_left * before;
}

/* Whether a test passes, with no parameter held or, of not too many, with one of them, to which
 * t->held is set. */
static bool passes_with_one(em_scale_test *t, bool (*test)(const em_scale_test *))
{
    for (t->held = -1; t->held < (t->dim > EM_MOST_SEARCHED ? 0 : t->dim); t->held++)
        if (t->held != t->k && test(t))
            return true;
    t->held = -1;
    return false;
}

/* Writes pairs of draws with nearly the same x_k to draw [2 PAIRS]; returns the number of draws.
 * The larger the difference of their g_k, the less of it can be due to that of x_k. */
static int64_t list_pairs(const em_scale_test *t, double sd, int64_t *draw)
{
    const int64_t stride = t->samples->n / (2 * PAIRS * TRIED);
    int64_t n = 0;

    for (int64_t p = 0; p < PAIRS; p++) {
        double most = 0;
        bool found = false;
        for (int64_t q = p * TRIED; q < (p + 1) * TRIED; q++)
            found |= find_partner(t, t->samples->n - 1 - q * stride, sd, &most, draw + n);
        n += found ? 2 : 0;
    }
    return n;
}

/* Lists the parameters that have a difference in some draw which is more than rounding. */
static void list_involved(em_scale_test *t)
{
    const int64_t dim = t->dim;
    double size = 0;

    for (int64_t q = 0; q < t->n; q++)
        size += fabs(em_scale_test_draw(t, t->draw[q])[dim + t->k]) / (double)t->n;
    t->n_involved = 0;
    for (int64_t i = 0; i < dim; i++) {
        double most = 0;
        for (int64_t q = 0; q < t->n; q++)
            most =
                fmax(most, fabs(t->difference[q * dim + i] * em_scale_test_draw(t, t->draw[q])[i]));
        if (i != t->k && i != t->held && most > no_difference * size)
            t->involved[t->n_involved++] = i;
    }
}

/* ---------------------------------------------------------------- the steps of a test */

/* Whether the pairs of parameter t->k pass; theta and gradient [n][dim] are those after the steps.
 */
static bool check_pairs(em_scale_test *t, const double *theta, const double *gradient)
{
    bool are_finite = true;

    t->held = -1;
    for (int64_t q = 0; q < t->n; q++) {
        const double *draw = em_scale_test_draw(t, t->draw[q]);
        are_finite &=
            set_difference(t, q, draw, draw + t->dim, theta + q * t->dim, gradient + q * t->dim);
    }
    return are_finite && passes_with_one(t, pairs_pass);
}

em_status em_scale_test_pairs(em_scale_test *t, int n, const int64_t *k, const double *sd,
                              bool *passes)
{
    const int64_t dim = t->dim, most = 2 * PAIRS;
    EM_SCOPED double *theta = NULL, *gradient = NULL;
    EM_SCOPED int64_t *draw = NULL, *count = NULL;
    int64_t total = 0;
    em_status status =
        em_allocate_all(EM_ARRAY(theta, n * most * dim), EM_ARRAY(gradient, n * most * dim),
                        EM_ARRAY(draw, n * most), EM_ARRAY(count, n));

    for (int p = 0; !status && p < n; p++) {
        t->k = k[p];
        count[p] = list_pairs(t, sd[k[p]], draw + total);
        for (int64_t q = 0; q < count[p]; q++, total++) {
            memcpy(theta + total * dim, em_scale_test_draw(t, draw[total]),
                   (size_t)dim * sizeof *theta);
            theta[total * dim + t->k] += EM_DIFFERENCE_STEP;
        }
    }
    if (!status && total > 0)
        status = t->gradients->evaluate(t->gradients->context, total, theta, gradient);
    total = 0;
    for (int p = 0; !status && p < n; p++) {
        t->k = k[p];
        t->n = count[p];
        memcpy(t->draw, draw + total, (size_t)t->n * sizeof *draw);
        passes[k[p]] = check_pairs(t, theta + total * dim, gradient + total * dim);
        total += t->n;
    }
    return status;
}

em_status em_scale_test_run(em_scale_test *t, int64_t k, bool *is_log_scale)
{
    t->k = k;
    t->n = 0;
    t->held = -1;
    list_draws(t, EM_TESTED_DRAWS);
    const em_status status = differentiate(t, 0);
    *is_log_scale = !status && passes_with_one(t, identity_holds);
    return status;
}

/* Keeps what the search for a second log scale needs of the draws of the test. */
static void keep_sums(em_scale_test *t)
{
    t->n_tested = t->n;
    for (int64_t q = 0; q < t->n; q++) {
        t->tested[q] = t->draw[q];
        t->sum[q] = 0;
        for (int64_t i = 0; i < t->n_involved; i++)
            t->sum[q] += em_scale_test_draw(t, t->draw[q])[t->involved[i]] *
                         t->difference[q * t->dim + t->involved[i]];
    }
}

em_status em_scale_test_measure(em_scale_test *t, bool *suffices)
{
    em_status status = EM_OK;

    list_involved(t);
    const int64_t wanted = em_least(t->n_involved + EM_SPARE_DRAWS, t->most);
    if (t->held >= 0) {
        keep_sums(t);
        t->n = 0;
        t->mean = 0;
        for (int64_t r = 0; r < t->samples->n; r++)
            t->mean += em_scale_test_draw(t, r)[t->held] / (double)t->samples->n;
    }
    const int64_t before = t->n;
    if (before < wanted) {
        list_draws(t, wanted);
        status = differentiate(t, before);
    }
    *suffices = !status && t->n >= wanted - EM_SPARE_DRAWS / 2;
    return status;
}
