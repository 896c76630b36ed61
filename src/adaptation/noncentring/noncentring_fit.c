#include "adaptation/noncentring/noncentring_fit.h"

#include "base/memory.h"
#include "math/linalg.h"
#include "math/log_product.h"
#include "math/order.h"

#include <math.h>
#include <string.h>

/* A parameter joins the group of a log scale if its log derivative has at least this correlation
 * with it. */
static const double joins = 0.12;

/* The least gains in log likelihood of a draw: by a parameter with its own degree, by a parameter
 * with the degree of its group, and by a location for each parameter. */
static const double least_gain = 0.04, least_of_shared = 0.01, least_of_location = 0.02;

/* ---------------------------------------------------------------- weights and basis */

/* out = e^(a s) of the draws of a log scale. */
static void scale_draws(const em_group_search *s, int64_t scale, double a, double *out)
{
    const double *x = s->x + scale * s->n;

    for (int64_t r = 0; r < s->n; r++)
        out[r] = exp(a * x[r]);
}

/* Sets the weights for the degree whose e^(a s) is in s->factor, and the basis: this factor, the
 * constant and the free locations, in this order. Returns the size of the basis. added[j]: the
 * index of location j in the basis; -1: it is not in it. */
static int prepare(em_group_search *s, const em_group_fit *f,
                   double (*triangle)[EM_MOST_REGRESSORS], int added[EM_MOST_REGRESSORS])
{
    int n = 0;

    for (int64_t r = 0; r < s->n; r++)
        s->of.weight[r] = 1 / (s->factor[r] * s->factor[r] * (double)s->n);
    memcpy(s->column, s->factor, (size_t)s->n * sizeof *s->column);
    n = em_add_regressor(&s->of, 0, s->column, triangle);
    for (int j = -1; j < f->where.n; j++) {
        const int before = n;
        if (j < 0 ? !f->where.has_constant : f->where.is_one[j]) {
            added[j + 1] = -1;
            continue;
        }
        for (int64_t r = 0; r < s->n; r++)
            s->column[r] = j < 0 ? 1 : s->x[f->where.of[j] * s->n + r] + s->mean[f->where.of[j]];
        n = em_add_regressor(&s->of, n, s->column, triangle);
        added[j + 1] = n > before ? before : -1;
    }
    return n;
}

/* Child i minus the locations with coefficient 1. `centred`: the result has mean 0. */
static void leave_of_child(const em_group_search *s, const em_locations *where, int64_t i,
                           bool centred, double *out)
{
    double shift = s->mean[i];

    memcpy(out, s->x + i * s->n, (size_t)s->n * sizeof *out);
    for (int j = 0; j < where->n; j++) {
        const double *x = s->x + where->of[j] * s->n;
        if (!where->is_one[j])
            continue;
        shift -= s->mean[where->of[j]];
        for (int64_t r = 0; r < s->n; r++)
            out[r] -= x[r];
    }
    for (int64_t r = 0; r < s->n && !centred; r++)
        out[r] += shift;
}

/* ---------------------------------------------------------------- locations */

bool em_may_use(const em_group_search *s, uint32_t users, int64_t p)
{
    return s->sd[p] > 0 && !(s->group_of[p] >= 0 && (users >> s->group_of[p] & 1));
}

int64_t em_child_at(const em_group_fit *f, int64_t p)
{
    int64_t c = 0;

    while (c < f->n && f->child[c] != p)
        c++;
    return c < f->n ? c : -1;
}

static bool is_location(const em_locations *where, int64_t p)
{
    for (int j = 0; j < where->n; j++)
        if (where->of[j] == p)
            return true;
    return false;
}

static void remove_child(em_group_fit *f, int64_t c)
{
    f->n--;
    for (; c < f->n; c++) {
        f->child[c] = f->child[c + 1];
        f->degree[c] = f->degree[c + 1];
        f->gain[c] = f->gain[c + 1];
    }
}

void em_remove_child(em_group_fit *f, int64_t p)
{
    if (em_child_at(f, p) >= 0)
        remove_child(f, em_child_at(f, p));
}

uint32_t em_groups_under(const em_group_search *s, int64_t p)
{
    const int g = s->group_of[p];

    return g < 0 ? 0 : (uint32_t)1 << g | s->group[g].depends;
}

uint32_t em_users(const em_group_search *s, uint32_t users)
{
    const uint32_t direct = users;

    for (int g = 0; g < s->n_group; g++)
        if (s->group[g].depends & direct)
            users |= (uint32_t)1 << g;
    return users;
}

uint32_t em_group_users(const em_group_search *s, const em_group_fit *f)
{
    uint32_t users = 0;

    for (int64_t c = 0; c < f->n; c++)
        users |= s->used_by[f->child[c]];
    return em_users(s, users);
}

/* out = weight x */
static void weigh(const em_group_search *s, const double *x, double *out)
{
    for (int64_t r = 0; r < s->n; r++)
        out[r] = s->of.weight[r] * x[r];
}

/* Computes the residuals of all children for the current weights and basis, and their squares. */
static void residuals(em_group_search *s, em_group_fit *f, int n)
{
    for (int64_t c = 0; c < f->n; c++) {
        double *y = s->left + c * s->n;
        leave_of_child(s, &f->where, f->child[c], f->where.has_constant, y);
        em_project_out(&s->of, n, y, NULL);
        f->square[c] = em_weighted_product(&s->of, y, y);
    }
}

/* Weighted products of all parameters with all remaining residuals [f->n][n], the basis of n
 * columns and the constant: s->product [dim + 1][f->n + n + 1], where the last row is that of the
 * constant. */
static void multiply_all(em_group_search *s, const em_group_fit *f, int n)
{
    const int64_t width = f->n + n + 1;
    double *of_constant = s->product + s->dim * width;

    for (int64_t c = 0; c < f->n; c++)
        weigh(s, s->left + c * s->n, s->stack + c * s->n);
    for (int q = 0; q < n; q++)
        weigh(s, s->of.basis + q * s->n, s->stack + (f->n + q) * s->n);
    memcpy(s->stack + (width - 1) * s->n, s->of.weight, (size_t)s->n * sizeof *s->stack);
    em_multiply_by_rows(s->dim, s->n, width, s->x, s->stack, s->product);
    for (int64_t j = 0; j < width; j++) {
        of_constant[j] = 0;
        for (int64_t r = 0; r < s->n; r++)
            of_constant[j] += s->stack[j * s->n + r];
    }
}

/* A regressor that may be added to the basis. p -1: the constant. */
typedef struct proposal {
    int64_t p;
    double gain, of_one;
} proposal;

/*
 * The gain in log likelihood of a draw from p as a location, and the same with coefficient 1. A
 * child that becomes a location loses its own gain. The residuals are orthogonal to the basis, so
 * their products with a parameter are those with what the basis leaves of it.
 */
static proposal propose(const em_group_search *s, const em_group_fit *f, int n, int64_t p)
{
    const int64_t child = p < 0 ? -1 : em_child_at(f, p), width = f->n + n + 1, last = width - 1;
    const double *one = s->product + s->dim * width, *own = p < 0 ? one : s->product + p * width;
    const double mean = p < 0 ? 0 : s->mean[p], *x = s->x + p * s->n;
    double before = one[last];
    em_log_product free = {.product = 1}, of_one = {.product = 1};
    proposal out = {.p = p};

    if (p >= 0)
        before = em_weighted_product(&s->of, x, x) + mean * (2 * own[last] + mean * one[last]);
    double square = before;
    for (int64_t q = f->n; q < last; q++)
        square -= (own[q] + mean * one[q]) * (own[q] + mean * one[q]);
    if (!(square > 1e-6 * before))
        return out;
    for (int64_t c = 0; c < f->n; c++) {
        const double v = f->square[c], xy = own[c] + mean * one[c];
        if (c == child)
            continue;
        em_log_product_multiply(&free, fmax(1 - xy * xy / (square * v), 1e-12));
        em_log_product_multiply(&of_one, fmin(fmax((v - 2 * xy + square) / v, 1e-12), 1e30));
    }
    out.gain = -0.5 * em_log_product_value(&free) - (child >= 0 ? f->gain[child] : 0);
    out.of_one = -0.5 * em_log_product_value(&of_one) - (child >= 0 ? f->gain[child] : 0);
    return out;
}

/* Adds the regressor with the largest gain, if that is enough. */
static bool add_location(em_group_search *s, em_group_fit *f, double a, uint32_t users)
{
    const double enough = least_of_location * (double)f->n;
    double triangle[EM_MOST_REGRESSORS][EM_MOST_REGRESSORS];
    int added[EM_MOST_REGRESSORS];
    proposal best = {.p = -2, .gain = enough};
    scale_draws(s, f->scale, a, s->factor);
    const int n = prepare(s, f, triangle, added);
    residuals(s, f, n);
    multiply_all(s, f, n);
    for (int64_t p = -1; p < s->dim && f->n > 0; p++) {
        if (p < 0 ? f->where.has_constant
                  : f->where.n == EM_MOST_LOCATIONS || !em_may_use(s, users, p) ||
                        is_location(&f->where, p))
            continue;
        const proposal other = propose(s, f, n, p);
        if (fmax(other.gain, other.of_one) > fmax(best.gain, best.of_one))
            best = other;
    }
    if (best.p == -1)
        f->where.has_constant = true;
    if (best.p >= 0) {
        f->where.is_one[f->where.n] = best.of_one >= best.gain - enough;
        f->where.of[f->where.n++] = best.p;
        em_remove_child(f, best.p);
    }
    return best.p >= -1;
}

/* ---------------------------------------------------------------- degrees */

static double median_degree(const em_group_fit *f, double *scratch)
{
    memcpy(scratch, f->degree, (size_t)f->n * sizeof *scratch);
    em_sort_numbers(f->n, scratch);
    return em_sorted_median(f->n, scratch);
}

/* The position of the maximum of the parabola through three values at -1, 0, 1. */
static double vertex(const double *y)
{
    const double bend = y[-1] - 2 * y[0] + y[1];

    return bend < 0 ? fmax(-0.5, fmin(0.5, 0.5 * (y[-1] - y[1]) / bend)) : 0;
}

bool em_find_top(const double *y, double *degree, int *at)
{
    *at = EM_DEGREES;
    for (int q = 0; q < EM_N_DEGREE; q++)
        *at = y[q] > y[*at] ? q : *at;
    if (*at == 0 || *at == EM_N_DEGREE - 1)
        return false;
    *degree = *at - EM_DEGREES + vertex(y + *at);
    return true;
}

/* Uses one degree for all children if it fits as well as one degree for each. The gains are then
 * those at this degree. */
static bool share_degree(em_group_fit *f, double step)
{
    double sum[EM_N_DEGREE] = {0}, loss = 0, degree;
    int at;

    for (int64_t c = 0; c < f->n; c++)
        for (int q = 0; q < EM_N_DEGREE; q++)
            sum[q] += f->profile[c * EM_N_DEGREE + q];
    if (!em_find_top(sum, &degree, &at))
        return false;
    for (int64_t c = 0; c < f->n; c++)
        loss += f->profile[c * EM_N_DEGREE + EM_DEGREES] + f->gain[c] -
                f->profile[c * EM_N_DEGREE + at];
    if (!(loss < least_of_location * (double)f->n))
        return false;
    for (int64_t c = 0; c < f->n; c++) {
        f->degree[c] = degree * step;
        f->gain[c] = f->profile[c * EM_N_DEGREE + at] - f->profile[c * EM_N_DEGREE + EM_DEGREES];
    }
    return true;
}

/* Computes the weights s->weights [EM_N_DEGREE][n] of all degrees, and the weighted bases in
 * s->stack. The basis of degree q is in rows first[q] to first[q + 1] - 1. */
static void prepare_degrees(em_group_search *s, const em_group_fit *f, double step,
                            int64_t first[EM_N_DEGREE + 1])
{
    double triangle[EM_MOST_REGRESSORS][EM_MOST_REGRESSORS];
    int added[EM_MOST_REGRESSORS];

    scale_draws(s, f->scale, -EM_DEGREES * step, s->factor);
    scale_draws(s, f->scale, step, s->step_factor);
    first[0] = 0;
    for (int q = 0; q < EM_N_DEGREE; q++) {
        const int n = prepare(s, f, triangle, added);
        for (int64_t r = 0; r < s->n; r++)
            s->factor[r] *= s->step_factor[r];
        first[q + 1] = first[q] + n;
        for (int k = 0; k < n; k++)
            weigh(s, s->of.basis + k * s->n, s->stack + (first[q] + k) * s->n);
        memcpy(s->weights + q * s->n, s->of.weight, (size_t)s->n * sizeof *s->weights);
    }
}

/*
 * Degrees and gains of all children from their likelihoods: from the weighted square of a child
 * less that of its projection on the basis. A mean that the basis has is left out, so that the
 * difference is not small.
 */
static void fit_degrees(em_group_search *s, em_group_fit *f)
{
    double *const left = s->left;
    const double step = EM_DEGREE_STEP / s->sd[f->scale];
    int64_t first[EM_N_DEGREE + 1];

    prepare_degrees(s, f, step, first);
    for (int64_t c = 0; c < f->n; c++)
        leave_of_child(s, &f->where, f->child[c], f->where.has_constant, left + c * s->n);
    em_multiply_by_rows(f->n, s->n, first[EM_N_DEGREE], left, s->stack, s->product);
    for (int64_t k = 0; k < f->n * s->n; k++)
        left[k] *= left[k];
    em_multiply_by_rows(f->n, s->n, EM_N_DEGREE, left, s->weights, f->profile);
    for (int64_t c = 0; c < f->n; c++)
        for (int q = 0; q < EM_N_DEGREE; q++) {
            double *of = &f->profile[c * EM_N_DEGREE + q], square = *of;
            for (int64_t k = first[q]; k < first[q + 1]; k++)
                square -= pow(s->product[c * first[EM_N_DEGREE] + k], 2);
            *of = -0.5 * log(fmax(square, 1e-14 * *of));
        }
    for (int64_t c = 0; c < f->n; c++) {
        const double *y = f->profile + c * EM_N_DEGREE;
        int at;
        f->degree[c] = f->gain[c] = 0;
        if (em_find_top(y, &f->degree[c], &at))
            f->gain[c] = y[at] - y[EM_DEGREES];
        f->degree[c] *= step;
    }
}

/* Drops children that do not gain more than `least`. */
static void drop_children(em_group_fit *f, double least)
{
    int64_t kept = 0;

    f->total = 0;
    for (int64_t c = 0; c < f->n; c++) {
        if (!(f->gain[c] > least))
            continue;
        f->child[kept] = f->child[c];
        f->degree[kept] = f->degree[c];
        memmove(f->profile + kept * EM_N_DEGREE, f->profile + c * EM_N_DEGREE,
                EM_N_DEGREE * sizeof *f->profile);
        f->gain[kept] = f->gain[c];
        f->total += f->gain[kept++];
    }
    f->n = kept;
}

void em_find_closest_scales(em_group_search *s)
{
    memset(s->votes, 0, (size_t)s->dim * sizeof *s->votes);
    for (int64_t i = 0; i < s->dim; i++) {
        double most = EM_EVIDENT_CORRELATION;
        s->closest[i] = -1;
        for (int64_t k = 0; k < s->dim && s->group_of[i] < 0; k++)
            if (!s->is_rejected[k] && fabs(s->rho[i * s->dim + k]) > most) {
                most = fabs(s->rho[i * s->dim + k]);
                s->closest[i] = k;
            }
        if (s->closest[i] >= 0)
            s->votes[s->closest[i]]++;
    }
    for (int g = 0; g < s->n_group; g++)
        s->votes[s->group[g].scale] = 0;
    for (int64_t i = 0; i < s->dim; i++)
        if (s->closest[i] >= 0 && s->votes[s->closest[i]] < 2)
            s->closest[i] = -1;
}

bool em_belongs_elsewhere(const em_group_search *s, int64_t i, int64_t k)
{
    static const double clearly = 0.1;
    const int64_t other = s->closest[i];

    if (other < 0 || other == k)
        return false;
    const double of_other = s->rho[i * s->dim + other], of_k = s->rho[i * s->dim + k];
    return 0.5 * log((1 - of_k * of_k) / (1 - of_other * of_other)) >
           clearly + EM_GAIN_BY_CHANCE / (double)s->n;
}

/* Adds to f the parameters that are in no group and whose log derivatives have at least this
 * correlation with its log scale. */
static void take_children(const em_group_search *s, double least, em_group_fit *f)
{
    const int64_t k = f->scale;

    f->n = 0;
    for (int64_t i = 0; i < s->dim; i++) {
        const double rho = s->rho[i * s->dim + k];
        const bool is_user = s->group_of[k] >= 0 && (s->used_by[i] >> s->group_of[k] & 1);
        if (i == k || s->group_of[i] >= 0 || is_user || !(s->sd[i] > 0) || fabs(rho) < least ||
            is_location(&f->where, i) || em_belongs_elsewhere(s, i, k))
            continue;
        f->child[f->n] = i;
        f->gain[f->n] = -0.5 * log(1 - rho * rho);
        f->degree[f->n++] = -s->slope[i * s->dim + k];
    }
}

/* Finds locations, degrees and gains of the children, and drops those that gain too little. Returns
 * whether the rest share a degree. */
static bool fit_children(em_group_search *s, em_group_fit *f, double a)
{
    const uint32_t users = em_group_users(s, f);

    f->where = (em_locations){0};
    while (f->n > 0 && add_location(s, f, a, users))
        continue;
    fit_degrees(s, f);
    drop_children(f, 0);
    const bool shared = f->n > 0 && share_degree(f, EM_DEGREE_STEP / s->sd[f->scale]);
    drop_children(f, shared ? least_of_shared : least_gain);
    return shared;
}

/* Fits the group of log scale k to the parameters that are in no group. The first fit is to those
 * whose derivatives are correlated with the log scale. If these share a degree, all parameters that
 * gain at this degree are added. */
void em_fit_group(em_group_search *s, int64_t k, em_group_fit *f)
{
    f->scale = k;
    f->where = (em_locations){0};
    take_children(s, joins, f);
    const bool shared = f->n > 0 && fit_children(s, f, median_degree(f, f->profile));
    if (f->n > 0) {
        const double a = median_degree(f, f->profile);
        if (shared) {
            take_children(s, 0, f);
            fit_degrees(s, f);
            const int at = EM_DEGREES + (int)lround(a / (EM_DEGREE_STEP / s->sd[k]));
            for (int64_t c = 0; c < f->n; c++)
                f->gain[c] =
                    f->profile[c * EM_N_DEGREE + at] - f->profile[c * EM_N_DEGREE + EM_DEGREES];
            drop_children(f, least_of_shared);
        }
        fit_children(s, f, a);
    }
    if (f->n > 0 && !em_may_use(s, em_group_users(s, f), k))
        f->n = 0;
    if (f->n == 1 && is_location(&f->where, k)) /* a curved ridge, not a hierarchy */
        f->n = 0;
    f->total = f->n > 0 ? f->total : 0;
}

/* ---------------------------------------------------------------- the map of a child */

/* The coefficients of child c, from the regression at its own degree. */
void em_write_child(em_group_search *s, const em_group_fit *f, int64_t c, em_noncentring_row *row)
{
    double triangle[EM_MOST_REGRESSORS][EM_MOST_REGRESSORS] = {{0}},
           along[EM_MOST_REGRESSORS] = {0};
    int added[EM_MOST_REGRESSORS], n;

    *row = (em_noncentring_row){.level = 1,
                                .scale = (double)f->scale,
                                .degree = f->degree[c],
                                .origin = s->mean[f->scale],
                                .width = em_noncentring_width(f->degree[c], s->sd[f->scale])};
    scale_draws(s, f->scale, f->degree[c], s->factor);
    n = prepare(s, f, triangle, added);
    leave_of_child(s, &f->where, f->child[c], false, s->residual);
    em_project_out(&s->of, n, s->residual, along);
    em_solve_regression(n, triangle, along);
    if (added[0] >= 0)
        row->shift = along[added[0]];
    for (int j = 0; j < EM_MOST_LOCATIONS; j++) {
        row->location[j] = j < f->where.n ? (double)f->where.of[j] : -1;
        if (j < f->where.n)
            row->coefficient[j] = f->where.is_one[j]  ? 1
                                  : added[j + 1] >= 0 ? along[added[j + 1]]
                                                      : 0;
    }
}
