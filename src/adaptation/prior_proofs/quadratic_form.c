#include "adaptation/prior_proofs/prior_form.h"

#include "base/memory.h"
#include "math/linalg.h"

#include <math.h>
#include <string.h>

/* The largest residual of the log of x^T M x, for a second log scale. */
static const double residual_of_second = 1e-3;

/* The share of the squares of H_i that the regression may leave. */
static const double most_left = 1e-4;

/* Elements of M below this are rounding, relative to its diagonal. So are differences of a
 * coefficient from a whole number. */
static const double zero = 1e-4, whole = 1e-5;

/* A regression with more draws than parameters. */
typedef struct dense_form {
    em_form_regression of;
    double *inverse; /* [p][p] of the Gram matrix of x */
    double *product; /* [p][p] of y and x */
    double *m;       /* [p][p] M by the last form */
} dense_form;

/* Computes M for one form of the scale. Returns the largest share of the squares of an H_i that is
 * left. */
static double regress(dense_form *dense, const em_scale_test *t, const em_normal_prior *form)
{
    em_form_regression *f = &dense->of;
    const int64_t p = f->p, n = f->n;
    double worst = 0;

    em_form_products(f, t, form);
    em_multiply_by_rows(p, n, p, f->y, f->x, dense->product);
    em_multiply_into(p, p, p, dense->product, dense->inverse, dense->m);
    for (int64_t i = 0; i < p; i++) {
        double *m = dense->m + i * p, left = 0;
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

/* Finds the form of the scale, and M for it. *is_explained: it explains all H_i. */
static em_status find_form(em_form_regression *f, const em_scale_test *t, em_normal_prior *out,
                           bool *is_explained)
{
    const int64_t p = f->p;
    EM_SCOPED_BY(em_release_owned) em_owner memory = {NULL};
    dense_form dense = {.of = *f};
    double least = INFINITY;
    em_status status = em_own_all(&memory, EM_ARRAY(dense.inverse, p * p),
                                  EM_ARRAY(dense.product, p * p), EM_ARRAY(dense.m, p * p));

    if (status)
        return status;
    em_gram(p, f->n, f->x, dense.inverse);
    status = em_invert_spd(p, dense.inverse, p);
    for (int q = 0; !status && q < EM_N_PRIOR_FORM; q++) {
        const double left = regress(&dense, t, &em_prior_form[q]);
        if (!(left < least))
            continue;
        least = left;
        *out = em_prior_form[q];
        memcpy(f->found, dense.m, (size_t)(p * p) * sizeof *f->found);
    }
    *is_explained = least < most_left;
    return status;
}

/* Makes M symmetric, and its elements that are rounding 0. Returns whether it nearly was. */
static bool make_symmetric(em_form_regression *f)
{
    const int64_t p = f->p;

    for (int64_t i = 0; i < p; i++)
        for (int64_t j = 0; j < i; j++) {
            double *above = &f->found[j * p + i], *below = &f->found[i * p + j];
            const double mean = 0.5 * (*above + *below);
            const double size = sqrt(fabs(f->found[i * p + i] * f->found[j * p + j]));
            if (!(fabs(*above - *below) <= 10 * zero * size))
                return false;
            *above = *below = fabs(mean) < zero * size ? 0 : mean;
        }
    return true;
}

/* ---------------------------------------------------------------- members */

enum { NEVER = -2 };

/* A triangular factor of M: row i has the member's precision and its mean. */
typedef struct elimination {
    int64_t p;
    double *m, *diagonal; /* [p][p], [p] of M at first */
    bool *is_done;        /* [p] */
    bool *is_hub;         /* [p] parameters on which many others depend, such as a mean */
    int *rank;            /* [p] by rank_member; NEVER: it is a member already */
} elimination;

/* Whether the mean of i would depend on j. */
static bool depends(const elimination *e, int64_t i, int64_t j)
{
    return j != i && !e->is_done[j] &&
           fabs(e->m[i * e->p + j]) > zero * sqrt(e->diagonal[i] * e->diagonal[j]);
}

/* How bad a member i would be: mainly by the number of parameters on which its mean would depend,
 * then whether many others depend on it, then by the number of negative coefficients. -1: i is no
 * member, or its mean would depend on too many. */
static int rank_member(const elimination *e, int64_t i)
{
    enum { LOCATION = 100, HUB = 50 };
    int n = 0, n_negative = 0;

    if (e->is_done[i] || !(e->m[i * e->p + i] > 10 * zero * e->diagonal[i]))
        return -1;
    for (int64_t j = 0; j < e->p; j++)
        if (depends(e, i, j)) {
            n++;
            n_negative += e->m[i * e->p + j] > 0;
        }
    return n > EM_MOST_LOCATIONS ? -1 : n * LOCATION + e->is_hub[i] * HUB + n_negative;
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
        if (!depends(e, i, j))
            continue;
        const double b = -row[j] / pivot;
        out->location[n] = (double)parameter[j];
        out->coefficient[n++] = fabs(b - round(b)) < whole ? round(b) : b;
    }
    e->is_done[i] = true;
    e->rank[i] = NEVER;
    for (int64_t j = 0; j < e->p; j++)
        for (int64_t l = 0; row[j] != 0 && l < e->p; l++)
            if (!e->is_done[j] && !e->is_done[l])
                e->m[j * e->p + l] -= row[j] * row[l] / pivot;
    for (int64_t j = 0; j < e->p; j++)
        if (row[j] != 0 && e->rank[j] != NEVER)
            e->rank[j] = rank_member(e, j);
}

/* Takes members out of Q one after the other, those first whose mean depends on the fewest others:
 * so members come before what they are distributed about. Of equal ones those come first that are
 * sums rather than differences: in a trend, x_t about x_(t-1) + d_(t-1), and not d_(t-1) about
 * x_t - x_(t-1). Of these the last comes first. Writes their priors to `found` [p]; returns their
 * number. */
static int64_t find_members(elimination *e, const int64_t *parameter, const em_normal_prior *prior,
                            const em_normal_prior *form, em_normal_prior *found)
{
    int64_t n = 0;

    for (int64_t i = 0; i < e->p; i++) {
        e->diagonal[i] = e->m[i * e->p + i];
        found[i].precision = 0;
    }
    for (int64_t i = 0; i < e->p; i++) {
        int others = 0;
        for (int64_t j = 0; j < e->p; j++)
            others += depends(e, i, j);
        e->is_hub[i] = others > 2 * EM_MOST_LOCATIONS;
    }
    for (int64_t i = 0; i < e->p; i++)
        e->rank[i] = prior[parameter[i]].precision > 0 ? NEVER : rank_member(e, i);
    for (;;) {
        int64_t best = -1;
        for (int64_t i = e->p - 1; i >= 0; i--)
            if (e->rank[i] >= 0 && (best < 0 || e->rank[i] < e->rank[best]))
                best = i;
        if (best < 0)
            return n;
        found[best] = *form;
        eliminate(e, best, parameter, &found[best]);
        n++;
    }
}

/*
 * Whether the held parameter is a second log scale: x^T M x is then e^(-2 a' x_l) times what it is
 * by M at the mean of x_l. Sets the scales of the form, the held one first: in a horseshoe it is
 * the one that members have in common.
 */
static bool find_second_scale(const em_scale_test *t, const em_form_regression *f,
                              em_normal_prior *form)
{
    const double n = (double)t->n_tested;
    double y[EM_TESTED_DRAWS], u[EM_TESTED_DRAWS], product = 0, square = 0, left = 0;

    for (int64_t q = 0; q < t->n_tested; q++) {
        const double *x = em_scale_test_draw(t, t->tested[q]);
        double by_mean = 0;
        for (int64_t i = 0; i < f->p; i++)
            for (int64_t j = 0; j < f->p; j++)
                by_mean += f->found[i * f->p + j] * x[t->involved[i]] * x[t->involved[j]];
        y[q] = log(t->sum[q] / (2 * em_form_factor(form, x[t->k]) * by_mean));
        u[q] = x[t->held] - t->mean;
    }
    for (int64_t q = 0; q < t->n_tested; q++) {
        product += u[q] * y[q];
        square += u[q] * u[q];
    }
    const double degree = round(-product / square) / 2; /* a whole or a half */
    for (int64_t q = 0; q < t->n_tested; q++)
        left += pow(y[q] + 2 * degree * u[q], 2) / n;
    if (degree == 0 || form->form != EM_SCALE_EXP || !(sqrt(left) < residual_of_second))
        return false;
    form->second_scale = form->scale;
    form->second_degree = form->degree;
    form->scale = (double)t->held;
    form->degree = degree;
    return true;
}

em_status em_add_members(const em_scale_test *t, em_normal_prior *prior)
{
    const int64_t p = t->n_involved, n = t->n;
    EM_SCOPED_BY(em_release_owned) em_owner memory = {NULL};
    em_form_regression f = {.p = p, .n = n};
    elimination e = {.p = p};
    em_normal_prior form = {.degree = 0}, *found = NULL;
    bool is_explained = false, is_proved = false;
    em_status status =
        em_own_all(&memory, EM_ARRAY(f.x, p * n), EM_ARRAY(f.y, p * n), EM_ARRAY(f.norm, p),
                   EM_ARRAY(f.found, p * p), EM_ARRAY(e.diagonal, p), EM_ARRAY(e.is_done, p),
                   EM_ARRAY(e.is_hub, p), EM_ARRAY(e.rank, p), EM_ARRAY(found, p));

    if (status)
        return status;
    em_form_positions(&f, t);
    status = n > p ? find_form(&f, t, &form, &is_explained)
                   : em_sparse_form(&f, t, &form, &is_explained);
    if (!status && is_explained && make_symmetric(&f)) {
        e.m = f.found;
        form.scale = (double)t->k;
        const bool has_second = t->held >= 0 && find_second_scale(t, &f, &form);
        form.varies = t->held >= 0 && !has_second;
        is_proved = find_members(&e, t->involved, prior, &form, found) > 0;
    }
    for (int64_t i = 0; is_proved && i < p; i++)
        if (found[i].precision > 0) { /* at 0 of a second log scale */
            if (form.second_degree != 0)
                found[i].precision *= exp(2 * form.degree * t->mean);
            found[i].failures = prior[t->involved[i]].failures;
            prior[t->involved[i]] = found[i];
        }
    if (!is_proved)
        prior[t->k].failures++;
    return status > 0 ? EM_OK : status;
}
