/*
 * The quadratic form of a scale (quadratic_form.c) of many members. A row of M has few numbers if
 * its parameter is distributed about few others, so a few draws determine it. The rows of hubs,
 * such as a mean about which all are distributed, follow from the others, as M is symmetric.
 */
#include "adaptation/prior_proofs/prior_form.h"
#include "adaptation/prior_proofs/weighted_regression.h"
#include "base/memory.h"
#include "math/linalg.h"

#include <math.h>
#include <string.h>

enum { MOST_TERMS = EM_MOST_REGRESSORS - 1, MOST_HUBS = MOST_TERMS, PROBED_ROWS = 16 };

/* The share of the squares of a row's H_i that its terms may leave. Its differences are exact to
 * about the square root of it. */
static const double exact = 1e-10;

typedef struct sparse_rows {
    em_form_regression *f;
    em_weighted_regression of; /* with weights 1 */
    double *away;              /* [p][n] what the basis leaves of all positions */
    double *rest;              /* [n] and of a row's H_i */
    double *column;            /* [n] work */
    double triangle[EM_MOST_REGRESSORS][EM_MOST_REGRESSORS];
    double along[EM_MOST_REGRESSORS];
    int64_t term[MOST_TERMS], before[MOST_TERMS]; /* those of this row, and of the row before */
    int n_term, n_before;
} sparse_rows;

static void begin(sparse_rows *s, const double *y)
{
    s->n_term = 0;
    memcpy(s->rest, y, (size_t)s->f->n * sizeof *y);
}

/* Adds a term, and returns the sum of squares that is left. */
static double add_term(sparse_rows *s, int64_t j)
{
    const int64_t n = s->f->n;

    memcpy(s->column, s->f->x + j * n, (size_t)n * sizeof *s->column);
    if (em_add_regressor(&s->of, s->n_term, s->column, s->triangle) > s->n_term) {
        const double *b = s->of.basis + s->n_term * n;
        const double along = em_dot(n, b, s->rest);
        for (int64_t q = 0; q < n; q++)
            s->rest[q] -= along * b[q];
        s->along[s->n_term] = along;
        s->term[s->n_term++] = j;
    }
    return em_dot(n, s->rest, s->rest);
}

/* The parameter that explains most of the rest, after an update of what the last term leaves of all
 * of them. */
static int64_t find_term(sparse_rows *s)
{
    static const double dependent = 1e-14;
    const int64_t n = s->f->n;
    const double *b = s->of.basis + (s->n_term - 1) * n;
    double most = 0;
    int64_t best = -1;

    for (int64_t j = 0; j < s->f->p; j++) {
        double *away = s->away + j * n;
        const double along = em_dot(n, b, away);
        for (int64_t q = 0; q < n; q++)
            away[q] -= along * b[q];
        const double square = em_dot(n, away, away), product = em_dot(n, away, s->rest);
        if (square > dependent && product * product > most * square) {
            most = product * product / square;
            best = j;
        }
    }
    return best;
}

/* Fits the terms of the row before to row i: i in place of that row, and others moved by `shift`,
 * those of a random walk by 1. Returns the share of squares that is left. */
static double fit_as_before(sparse_rows *s, int64_t i, int64_t shift)
{
    const double *y = s->f->y + i * s->f->n;
    double left;

    begin(s, y);
    left = add_term(s, i);
    for (int q = 1; q < s->n_before; q++) {
        const int64_t j = s->before[q] + shift;
        if (j != i && j >= 0 && j < s->f->p)
            left = add_term(s, j);
    }
    return left / em_dot(s->f->n, y, y);
}

/* Fits to row i the terms that explain most, one after the other. Returns the share that is left.
 */
static double fit_new_terms(sparse_rows *s, int64_t i)
{
    const int64_t n = s->f->n;
    const double *y = s->f->y + i * n, whole = em_dot(n, y, y);
    double left;
    int was = 0;

    begin(s, y);
    memcpy(s->away, s->f->x, (size_t)(s->f->p * n) * sizeof *s->away);
    left = add_term(s, i);
    while (left > exact * whole && s->n_term > was && s->n_term < MOST_TERMS) {
        const int64_t j = find_term(s);
        was = s->n_term;
        left = j < 0 ? left : add_term(s, j);
    }
    return left / whole;
}

/* Finds the terms of row i. Returns the share that is left. */
static double fit_row(sparse_rows *s, int64_t i)
{
    double left = fit_as_before(s, i, 0);

    left = left <= exact ? left : fit_as_before(s, i, 1);
    left = left <= exact ? left : fit_new_terms(s, i);
    s->n_before = left <= exact ? s->n_term : 0;
    memcpy(s->before, s->term, sizeof s->before);
    return left;
}

/* Writes the coefficients of the last fit to row i of M, by positions that are not normalised. */
static void write_row(sparse_rows *s, int64_t i)
{
    double *m = s->f->found + i * s->f->p;

    em_solve_regression(s->n_term, s->triangle, s->along);
    for (int q = 0; q < s->n_term; q++)
        m[s->term[q]] = s->along[q] / s->f->norm[s->term[q]];
}

/* The number of rows, of some, that the form explains. */
static int count_explained(sparse_rows *s)
{
    const int64_t p = s->f->p, rows = em_least(p, PROBED_ROWS);
    int n = 0;

    for (int64_t r = 0; r < rows; r++) {
        s->n_before = 0;
        n += fit_row(s, r * p / rows) <= exact;
    }
    return n;
}

/* Completes the rows of hubs. Returns whether they are explained. */
static bool fit_hubs(sparse_rows *s, const int64_t *hub, int n_hub, const bool *is_hub)
{
    const int64_t p = s->f->p, n = s->f->n;

    for (int h = 0; h < n_hub; h++) {
        double *m = s->f->found + hub[h] * p, *y = s->f->y + hub[h] * n;
        const double whole = em_dot(n, y, y);
        double left = whole;
        for (int64_t j = 0; j < p; j++) {
            m[j] = is_hub[j] ? 0 : s->f->found[j * p + hub[h]];
            for (int64_t q = 0; m[j] != 0 && q < n; q++)
                y[q] -= m[j] * s->f->norm[j] * s->f->x[j * n + q];
        }
        begin(s, y);
        for (int g = 0; g < n_hub; g++)
            left = add_term(s, hub[g]);
        if (!(left <= exact * whole))
            return false;
        write_row(s, hub[h]);
    }
    return true;
}

/* Fits all rows. Returns whether they are explained. */
static bool fit_all(sparse_rows *s, bool *is_hub)
{
    const int64_t p = s->f->p;
    int64_t hub[MOST_HUBS];
    int n_hub = 0;

    memset(s->f->found, 0, (size_t)(p * p) * sizeof *s->f->found);
    s->n_before = 0;
    for (int64_t i = 0; i < p; i++) {
        const double left = fit_row(s, i);
        if (left <= exact) {
            write_row(s, i);
            continue;
        }
        if (n_hub == MOST_HUBS)
            return false;
        is_hub[i] = true;
        hub[n_hub++] = i;
    }
    return fit_hubs(s, hub, n_hub, is_hub);
}

em_status em_sparse_form(em_form_regression *f, const em_scale_test *t, em_normal_prior *out,
                         bool *is_explained)
{
    const int64_t p = f->p, n = f->n;
    EM_SCOPED_BY(em_release_owned) em_owner memory = {NULL};
    sparse_rows s = {.f = f, .of.n = n};
    bool *is_hub;
    int most = 0;
    em_status status = em_own_all(
        &memory, EM_ARRAY(s.of.weight, n), EM_ARRAY(s.of.basis, EM_MOST_REGRESSORS * n),
        EM_ARRAY(s.away, p * n), EM_ARRAY(s.rest, n), EM_ARRAY(s.column, n), EM_ARRAY(is_hub, p));

    *is_explained = false;
    if (status)
        return status;
    for (int64_t q = 0; q < n; q++)
        s.of.weight[q] = 1;
    for (int form = 0; form < EM_N_PRIOR_FORM; form++) {
        em_form_products(f, t, &em_prior_form[form]);
        const int explained = count_explained(&s);
        if (explained <= most)
            continue;
        most = explained;
        *out = em_prior_form[form];
    }
    if (most == 0)
        return EM_OK;
    em_form_products(f, t, out);
    *is_explained = fit_all(&s, is_hub);
    return EM_OK;
}
