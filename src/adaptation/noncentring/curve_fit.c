/* Parameters with a curved location: stepwise regression of their derivatives. */
#include "adaptation/noncentring/curve_fit.h"

#include "adaptation/noncentring/noncentring_fit.h"
#include "adaptation/prior_proofs/scale_derivative.h"
#include "base/memory.h"
#include "math/linalg.h"
#include "math/order.h"

#include <math.h>
#include <string.h>

/* Draws that are used, because an identity needs few; and the parents that are tried. */
enum { MOST_DRAWS = 200, MOST_PARENTS = 5 };

_Static_assert(2 + 2 * MOST_PARENTS <= EM_MOST_REGRESSORS, "and those of all parents");

/* The largest unexplained share of a derivative that counts as rounding; the least share of the
 * rest that a further parent has to explain. */
static const double explained = 1e-6, least_by_parent = 0.02;

/* The least part of the location that is not due to rounding, in conditional standard deviations of
 * the parameter. */
static const double negligible = 1e-4;

/* The least standard deviation of a curved part of a location, in conditional standard deviations
 * of the parameter. If no row has it, a constant mass suits the density. If one has, all rows that
 * are not straight are kept: the derivatives by the parameters that they use contain theirs. */
static const double least_bend = 0.3;

typedef struct curve_search {
    int64_t dim, n;
    double *term;            /* [2 dim + 1][n] draws less their medians, the squares of these, 1 */
    double *median, *spread; /* [dim] of the draws; spread: 0 for a constant one */
    double *sd, *bend;       /* [dim] of the draws, and of the part of their squares that is not
                                linear in them */
    double *g;               /* [dim][n] derivatives in the coordinates of the map */
    double *rest, *column;   /* [n]; rest: that of the derivative */
    double *weighted;        /* [2 dim + 1][n] terms times the weights of draws */
    double *gram;            /* [2 dim + 1][2 dim + 1] products of terms */
    double *of_g;            /* [dim][2 dim + 1] those of derivatives with terms */
    double *along;           /* [EM_MOST_REGRESSORS][2 dim + 1] those of the basis with terms */
    double *square;          /* [3][dim] products of the parts of x and x^2 that are orthogonal to
                                the basis: of x, of both, of x^2 */
    double *of_rest;         /* [2 dim + 1] products of these parts with the rest */
    em_weighted_regression of;
    em_noncentring map;
    bool *is_bent;    /* [dim] parameters that are not linear in the coordinates of the map */
    bool *is_open;    /* [dim] parameters that are to be tried */
    bool *is_changed; /* [dim] parameters whose derivative a new row has changed */
    double most_bend; /* of the rows so far */
} curve_search;

static double median_of(int64_t n, const double *x, double *work)
{
    memcpy(work, x, (size_t)n * sizeof *work);
    em_sort_numbers(n, work);
    return em_sorted_median(n, work);
}

/* The standard deviations of column x and of what a regression on it leaves of its square. */
static void measure_bend(int64_t n, const double *x, const double *square, double *sd, double *bend)
{
    double mean = 0, mean_square = 0, xx = 0, xs = 0, ss = 0;

    for (int64_t r = 0; r < n; r++) {
        mean += x[r] / (double)n;
        mean_square += square[r] / (double)n;
    }
    for (int64_t r = 0; r < n; r++) {
        const double a = x[r] - mean, b = square[r] - mean_square;
        xx += a * a / (double)n;
        xs += a * b / (double)n;
        ss += b * b / (double)n;
    }
    *sd = sqrt(xx);
    *bend = xx > 0 ? sqrt(fmax(ss - xs * xs / xx, 0)) : 0;
}

/* Writes the terms of parameter i. The spread is that of a normal law with the same quartiles. */
static void take_terms(curve_search *s, const em_samples *samples, int64_t i)
{
    static const double spread_of_normal = 1.4826;
    double *x = s->term + i * s->n, *square = s->term + (s->dim + i) * s->n;

    for (int64_t r = 0; r < s->n; r++)
        x[r] = em_thinned_sample(samples, s->dim, s->n, r)[i];
    s->median[i] = median_of(s->n, x, s->column);
    for (int64_t r = 0; r < s->n; r++) {
        x[r] -= s->median[i];
        square[r] = fabs(x[r]);
    }
    s->spread[i] = spread_of_normal * median_of(s->n, square, s->column);
    for (int64_t r = 0; r < s->n; r++)
        square[r] = x[r] * x[r];
    measure_bend(s->n, x, square, &s->sd[i], &s->bend[i]);
}

/* The weight of a draw falls with the fourth power of its distance, so that no few distant draws
 * make the terms nearly dependent: at the end of a banana x_i and a square differ by little. */
static void set_weights(curve_search *s)
{
    for (int64_t r = 0; r < s->n; r++) {
        double most = 0;
        for (int64_t i = 0; i < s->dim; i++)
            if (s->spread[i] > 0)
                most = fmax(most, fabs(s->term[i * s->n + r]) / s->spread[i]);
        s->of.weight[r] = 1 / ((1 + most * most) * (1 + most * most) * (double)s->n);
    }
}

/* The regression of a derivative: on a constant, the parameter itself, and the parents in the order
 * in which they were chosen. A parent has two terms: it and its square. */
enum { CONSTANT, ITSELF, FIRST };

typedef struct terms {
    int n, n_parent; /* n: of terms */
    int64_t parent[MOST_PARENTS];
    double triangle[EM_MOST_REGRESSORS][EM_MOST_REGRESSORS];
} terms;

/* Products of all terms, by which parents are chosen. What is chosen is then fitted to the draws
 * themselves, because differences of products have only half of the digits. */
static void multiply_terms(curve_search *s)
{
    const int64_t width = 2 * s->dim + 1;

    for (int64_t p = 0; p < width; p++)
        for (int64_t r = 0; r < s->n; r++)
            s->weighted[p * s->n + r] = s->of.weight[r] * s->term[p * s->n + r];
    em_multiply_by_rows(width, s->n, width, s->weighted, s->term, s->gram);
}

/* Begins with the derivative by parameter i and no basis. */
static void begin_products(curve_search *s, int64_t i)
{
    const int64_t dim = s->dim, width = 2 * dim + 1;

    memcpy(s->of_rest, s->of_g + i * width, (size_t)width * sizeof *s->of_rest);
    for (int64_t k = 0; k < dim; k++) {
        s->square[k] = s->gram[k * width + k];
        s->square[dim + k] = s->gram[k * width + dim + k];
        s->square[2 * dim + k] = s->gram[(dim + k) * width + dim + k];
    }
}

/* Subtracts the products with the part of a term that is orthogonal to the first q vectors of the
 * basis, which becomes vector q. */
static void orthogonalise(curve_search *s, int64_t term, int q)
{
    const int64_t dim = s->dim, width = 2 * dim + 1;
    double *own = s->along + q * width;

    memcpy(own, s->gram + term * width, (size_t)width * sizeof *own);
    for (int p = 0; p < q; p++) {
        const double *other = s->along + p * width, by = other[term];
        for (int64_t j = 0; j < width; j++)
            own[j] -= by * other[j];
    }
    const double length = sqrt(own[term]), of_rest = s->of_rest[term] / length;
    for (int64_t j = 0; j < width; j++) {
        own[j] /= length;
        s->of_rest[j] -= of_rest * own[j];
    }
    for (int64_t k = 0; k < dim; k++) {
        s->square[k] -= own[k] * own[k];
        s->square[dim + k] -= own[k] * own[dim + k];
        s->square[2 * dim + k] -= own[dim + k] * own[dim + k];
    }
}

/* How much of the rest of the derivative parent k and its square explain together. */
static double explained_by(const curve_search *s, int64_t k)
{
    static const double dependent = 1e-10;
    const int64_t dim = s->dim, width = 2 * dim + 1;
    const double xx = s->square[k], xs = s->square[dim + k], ss = s->square[2 * dim + k],
                 xr = s->of_rest[k], sr = s->of_rest[dim + k], determinant = xx * ss - xs * xs;
    const bool is_new = xx > dependent * s->gram[k * width + k] &&
                        ss > dependent * s->gram[(dim + k) * width + dim + k];

    return is_new && determinant > dependent * xx * ss
               ? (ss * xr * xr - 2 * xs * xr * sr + xx * sr * sr) / determinant
               : 0;
}

/* The parent that explains most of the rest of the derivative of parameter i; -1: none explains
 * enough. */
static int64_t best_parent(const curve_search *s, int64_t i)
{
    double most = least_by_parent * em_weighted_product(&s->of, s->rest, s->rest);
    int64_t best = -1;

    for (int64_t k = 0; k < s->dim; k++) {
        const double now = k == i || s->spread[k] == 0 ? 0 : explained_by(s, k);
        if (now > most) {
            most = now;
            best = k;
        }
    }
    return best;
}

/* Adds a term to the regression. Returns false if it depends linearly on those before. */
static bool add_term(curve_search *s, int64_t term, terms *t)
{
    memcpy(s->column, s->term + term * s->n, (size_t)s->n * sizeof *s->column);
    if (em_add_regressor(&s->of, t->n, s->column, t->triangle) == t->n)
        return false;
    orthogonalise(s, term, t->n++);
    return true;
}

static bool add_parent(curve_search *s, int64_t k, terms *t)
{
    t->parent[t->n_parent++] = k;
    return add_term(s, k, t) && add_term(s, s->dim + k, t);
}

/* Writes the row of parameter i from the coefficients of the terms of its derivative, along [t->n].
 * Returns the standard deviation of the curved part of its location; 0: a row has no room for the
 * terms, or the location is linear in the coordinates of the map. */
static double write_row(const curve_search *s, int64_t i, const terms *t, const double *along,
                        em_noncentring_row *row)
{
    const double precision = -along[ITSELF];
    double bend = 0;
    int n_location = 0, n_square = 0;

    *row = (em_noncentring_row){.level = 1, .form = EM_SCALE_CONSTANT};
    row->shift = s->median[i] + along[CONSTANT] / precision;
    for (int p = 0; p < t->n_parent; p++) {
        const int64_t k = t->parent[p];
        const int q = FIRST + 2 * p;
        const double linear = along[q] / precision, square = along[q + 1] / precision,
                     size = fabs(square) * s->bend[k] * sqrt(precision);
        const double along_parent = fabs(linear) * s->sd[k] * sqrt(precision);
        if (along_parent > negligible) {
            if (n_location == EM_MOST_LOCATIONS)
                return 0;
            bend = fmax(bend, s->is_bent[k] ? along_parent : 0);
            row->location[n_location] = (double)k;
            row->coefficient[n_location++] = linear;
            row->shift -= linear * s->median[k];
        }
        if (size <= negligible && p > 0)
            continue; /* the first one stays, because a row has to have an x_k */
        if (n_square == 2)
            return 0;
        *(n_square ? &row->second_scale : &row->scale) = (double)k;
        *(n_square ? &row->second_degree : &row->degree) = square;
        *(n_square ? &row->second_origin : &row->origin) = s->median[k];
        n_square++;
        bend = fmax(bend, size);
    }
    for (int j = n_location; j < EM_MOST_LOCATIONS; j++)
        row->location[j] = -1;
    return precision > 0 && bend > negligible ? bend : 0;
}

/* Subtracts from the derivative by parameter i its projection on the basis; returns what is left,
 * squared. */
static double project(curve_search *s, int64_t i, const terms *t, double *along)
{
    memcpy(s->rest, s->g + i * s->n, (size_t)s->n * sizeof *s->rest);
    em_project_out(&s->of, t->n, s->rest, along);
    return em_weighted_product(&s->of, s->rest, s->rest);
}

/* Regresses the derivative by parameter i on parents that are chosen one after the other. Returns
 * the curved part of its location; 0: there is none, or they do not explain the derivative. */
static double fit(curve_search *s, int64_t i, em_noncentring_row *row)
{
    double along[EM_MOST_REGRESSORS];
    terms t = {0};

    begin_products(s, i);
    add_term(s, 2 * s->dim, &t);
    const double rounding = explained * project(s, i, &t, along);
    if (!add_term(s, i, &t))
        return 0;
    for (int64_t k; project(s, i, &t, along) > rounding;) {
        if (t.n_parent == MOST_PARENTS)
            return 0;
        k = best_parent(s, i);
        if (k < 0 || !add_parent(s, k, &t))
            return 0;
    }
    em_solve_regression(t.n, t.triangle, along);
    return write_row(s, i, &t, along, row);
}

/* Adds a row to the map, unless the parameters it uses depend on parameter i. */
static bool add_row(curve_search *s, int64_t i, const em_noncentring_row *found,
                    em_noncentring_row *row)
{
    row[i] = *found;
    em_noncentring_set_levels(s->dim, row);
    if (em_noncentring_set(&s->map, row)) {
        row[i] = (em_noncentring_row){0};
        em_noncentring_set_levels(s->dim, row);
        return false;
    }
    s->is_bent[i] = true;
    s->is_changed[(int64_t)found->scale] = true;
    if (found->second_degree != 0)
        s->is_changed[(int64_t)found->second_scale] = true;
    for (int j = 0; j < EM_MOST_LOCATIONS && found->location[j] >= 0; j++)
        s->is_changed[(int64_t)found->location[j]] = true;
    return true;
}

/* Tries all open parameters in the coordinates of the map so far. A row changes the derivatives by
 * the parameters that it uses, which are tried again with the new map. Returns whether a row was
 * added. */
static bool add_rows(curve_search *s, em_noncentring_row *row)
{
    bool any = false;

    memset(s->is_changed, 0, (size_t)s->dim * sizeof *s->is_changed);
    for (int64_t i = 0; i < s->dim; i++) {
        em_noncentring_row found;
        const double bend = s->is_open[i] && !s->is_changed[i] ? fit(s, i, &found) : 0;
        if (bend > 0 && add_row(s, i, &found, row)) {
            s->most_bend = fmax(s->most_bend, bend);
            any = true;
        }
    }
    for (int64_t i = 0; i < s->dim; i++)
        s->is_open[i] = s->is_changed[i] && row[i].level == 0;
    return any;
}

em_status em_curve_fit(int64_t dim, const em_samples *samples, const em_normal_prior *prior,
                       em_noncentring_row *row)
{
    EM_SCOPED_BY(em_release_owned) em_owner memory = {NULL};
    curve_search s = {.dim = dim, .n = em_least(samples->n, MOST_DRAWS)};
    const int64_t width = 2 * dim + 1;
    bool again = true;

    if (!em_suffices_for_noncentring(dim, samples->n))
        return EM_OK;
    s.of.n = s.n;
    em_status status = em_noncentring_create(dim, &s.map);
    status =
        status
            ? status
            : em_own_all(&memory, EM_ARRAY(s.term, width * s.n), EM_ARRAY(s.median, dim),
                         EM_ARRAY(s.spread, dim), EM_ARRAY(s.sd, dim), EM_ARRAY(s.bend, dim),
                         EM_ARRAY(s.g, dim * s.n), EM_ARRAY(s.weighted, width * s.n),
                         EM_ARRAY(s.gram, width * width), EM_ARRAY(s.of_g, dim * width),
                         EM_ARRAY(s.along, EM_MOST_REGRESSORS * width), EM_ARRAY(s.square, 3 * dim),
                         EM_ARRAY(s.of_rest, width), EM_ARRAY(s.rest, s.n), EM_ARRAY(s.column, s.n),
                         EM_ARRAY(s.of.weight, s.n), EM_ARRAY(s.of.basis, EM_MOST_REGRESSORS * s.n),
                         EM_ARRAY(s.is_bent, dim), EM_ARRAY(s.is_open, dim),
                         EM_ARRAY(s.is_changed, dim));
    status = status ? status : em_noncentring_set(&s.map, row);
    for (int64_t i = 0; !status && i < dim; i++) {
        take_terms(&s, samples, i);
        s.is_bent[i] = prior && prior[i].precision > 0;
        s.is_open[i] = !s.is_bent[i];
    }
    for (int64_t r = 0; !status && r < s.n; r++)
        s.term[2 * dim * s.n + r] = 1;
    if (!status) {
        set_weights(&s);
        multiply_terms(&s);
    }
    while (!status && again) {
        status = em_transform_samples(&s.map, samples, s.n, dim, dim, s.g);
        if (!status)
            em_multiply_by_rows(dim, s.n, width, s.g, s.weighted, s.of_g);
        again = !status && add_rows(&s, row);
    }
    if (s.most_bend <= least_bend)
        memset(row, 0, (size_t)dim * sizeof *row);
    em_noncentring_release(&s.map);
    return status;
}
