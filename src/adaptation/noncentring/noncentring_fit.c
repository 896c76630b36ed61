#include "adaptation/noncentring/noncentring_fit.h"

#include "math/log_product.h"
#include "math/order.h"

#include <math.h>
#include <string.h>

/* In standard deviations of the log scale. */
static const double degree_step = 0.1;

/* The correlation of a log derivative with a log scale that lets a parameter join its group. */
static const double joins = 0.12;

/* Least gains in log likelihood of a draw: of a parameter with its own degree, or with the degree
 * of its group; and of a location, for each parameter. */
static const double least_gain = 0.04, least_of_shared = 0.01, least_of_location = 0.02;

/* ---------------------------------------------------------------- weights and basis */

/* out = e^(a s) of the draws of a log scale. */
static void scale_draws(const em_group_search *s, int64_t scale, double a, double *out)
{
    const double *x = s->x + scale * s->n;

    for (int64_t r = 0; r < s->n; r++)
        out[r] = exp(a * x[r]);
}

/* The weights at the degree whose e^(a s) is in s->factor, and the basis of this, the constant and
 * the free locations, in this order. Returns their number; `added[j]`: that of each, or -1. */
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

/* Child i minus the locations with coefficient 1. */
static void leave_of_child(const em_group_search *s, const em_locations *where, int64_t i,
                           double *out)
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
    for (int64_t r = 0; r < s->n; r++)
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

/* The gain in log likelihood of a draw, over the group without child `but`, from the regressor in
 * s->column after its projection on the basis is removed. *of_one: with coefficient 1. left
 * [f->n][n]: residuals, with their squares in f->square. */
static double gain_of(const em_group_search *s, const em_group_fit *f, int64_t but,
                      const double *left, double *of_one)
{
    const double square = em_weighted_product(&s->of, s->column, s->column);
    em_log_product free = {.product = 1}, one = {.product = 1};

    for (int64_t c = 0; c < f->n; c++) {
        if (c == but)
            continue;
        const double v = f->square[c], xy = em_weighted_product(&s->of, s->column, left + c * s->n);
        em_log_product_multiply(&free, fmax(1 - xy * xy / (square * v), 1e-12));
        em_log_product_multiply(&one, fmin(fmax((v - 2 * xy + square) / v, 1e-12), 1e30));
    }
    *of_one = -0.5 * em_log_product_value(&one);
    return -0.5 * em_log_product_value(&free);
}

/* Residuals of all children at the weights and the basis that are set, and their squares. */
static void residuals(em_group_search *s, em_group_fit *f, int n, double *left)
{
    for (int64_t c = 0; c < f->n; c++) {
        double *y = left + c * s->n;
        leave_of_child(s, &f->where, f->child[c], y);
        em_project_out(&s->of, n, y, NULL);
        f->square[c] = em_weighted_product(&s->of, y, y);
    }
}

/* A regressor that may be added; p -1: the constant. */
typedef struct proposal {
    int64_t p;
    double gain, of_one;
} proposal;

/* The gain from p as a location. A child that becomes a location loses its own gain. */
static proposal propose(em_group_search *s, const em_group_fit *f, int n, int64_t p,
                        const double *left)
{
    const int64_t child = p < 0 ? -1 : em_child_at(f, p);
    proposal out = {.p = p};

    for (int64_t r = 0; r < s->n; r++)
        s->column[r] = p < 0 ? 1 : s->x[p * s->n + r] + s->mean[p];
    const double before = em_weighted_product(&s->of, s->column, s->column);
    em_project_out(&s->of, n, s->column, NULL);
    if (!(em_weighted_product(&s->of, s->column, s->column) > 1e-6 * before))
        return out;
    out.gain = gain_of(s, f, child, left, &out.of_one);
    if (child >= 0) {
        out.gain -= f->gain[child];
        out.of_one -= f->gain[child];
    }
    return out;
}

/* Adds the regressor with the largest gain, if that is enough. */
static bool add_location(em_group_search *s, em_group_fit *f, double a, uint32_t users,
                         double *left)
{
    const double enough = least_of_location * (double)f->n;
    double triangle[EM_MOST_REGRESSORS][EM_MOST_REGRESSORS];
    int added[EM_MOST_REGRESSORS];
    proposal best = {.p = -2, .gain = enough};
    scale_draws(s, f->scale, a, s->factor);
    const int n = prepare(s, f, triangle, added);
    residuals(s, f, n, left);
    for (int64_t p = -1; p < s->dim && f->n > 0; p++) {
        if (p < 0 ? f->where.has_constant
                  : f->where.n == EM_MOST_LOCATIONS || !em_may_use(s, users, p) ||
                        is_location(&f->where, p))
            continue;
        const proposal other = propose(s, f, n, p, left);
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

/* The top of the parabola through three values at -1, 0, 1. */
static double vertex(const double *y)
{
    const double bend = y[-1] - 2 * y[0] + y[1];

    return bend < 0 ? fmax(-0.5, fmin(0.5, 0.5 * (y[-1] - y[1]) / bend)) : 0;
}

/* The degree at the top of a profile, in steps from 0; false: it has none. */
static bool top_of(const double *y, double *degree, int *at)
{
    *at = EM_DEGREES;
    for (int q = 0; q < EM_N_DEGREE; q++)
        *at = y[q] > y[*at] ? q : *at;
    if (*at == 0 || *at == EM_N_DEGREE - 1)
        return false;
    *degree = *at - EM_DEGREES + vertex(y + *at);
    return true;
}

/* Uses one degree for all children if it fits as well as one for each. Gains are then at that
 * degree. */
static bool share_degree(em_group_fit *f, double step)
{
    double sum[EM_N_DEGREE] = {0}, loss = 0, degree;
    int at;

    for (int64_t c = 0; c < f->n; c++)
        for (int q = 0; q < EM_N_DEGREE; q++)
            sum[q] += f->profile[c * EM_N_DEGREE + q];
    if (!top_of(sum, &degree, &at))
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

/* Degrees and gains of all children from their likelihoods. left [f->n][n] is work space. */
static void fit_degrees(em_group_search *s, em_group_fit *f, double *left)
{
    const double step = degree_step / s->sd[f->scale];
    double triangle[EM_MOST_REGRESSORS][EM_MOST_REGRESSORS];
    int added[EM_MOST_REGRESSORS];

    for (int64_t c = 0; c < f->n; c++)
        leave_of_child(s, &f->where, f->child[c], left + c * s->n);
    scale_draws(s, f->scale, -EM_DEGREES * step, s->factor);
    scale_draws(s, f->scale, step, s->step_factor);
    for (int q = 0; q < EM_N_DEGREE; q++) {
        const int n = prepare(s, f, triangle, added);
        for (int64_t r = 0; r < s->n; r++)
            s->factor[r] *= s->step_factor[r];
        for (int64_t c = 0; c < f->n; c++) {
            memcpy(s->residual, left + c * s->n, (size_t)s->n * sizeof *s->residual);
            em_project_out(&s->of, n, s->residual, NULL);
            f->profile[c * EM_N_DEGREE + q] =
                -0.5 * log(em_weighted_product(&s->of, s->residual, s->residual));
        }
    }
    for (int64_t c = 0; c < f->n; c++) {
        const double *y = f->profile + c * EM_N_DEGREE;
        int at;
        f->degree[c] = f->gain[c] = 0;
        if (top_of(y, &f->degree[c], &at))
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
            is_location(&f->where, i))
            continue;
        f->child[f->n] = i;
        f->gain[f->n] = -0.5 * log(1 - rho * rho);
        f->degree[f->n++] = -s->slope[i * s->dim + k];
    }
}

/* Locations, degrees and gains of the children; those that gain too little are dropped. Returns
 * whether they share a degree. */
static bool fit_children(em_group_search *s, em_group_fit *f, double a, double *left)
{
    const uint32_t users = em_group_users(s, f);
    bool shared;

    f->where = (em_locations){0};
    while (f->n > 0 && add_location(s, f, a, users, left))
        continue;
    fit_degrees(s, f, left);
    drop_children(f, 0);
    shared = f->n > 0 && share_degree(f, degree_step / s->sd[f->scale]);
    drop_children(f, shared ? least_of_shared : least_gain);
    return shared;
}

/* Fits the group of log scale k to the parameters that are in no group: first to those whose
 * derivatives are correlated with it, then, if these share a degree, to all that gain at this
 * degree. */
void em_fit_group(em_group_search *s, int64_t k, em_group_fit *f, double *left)
{
    f->scale = k;
    f->where = (em_locations){0};
    take_children(s, joins, f);
    const bool shared = f->n > 0 && fit_children(s, f, median_degree(f, f->profile), left);
    if (f->n > 0) {
        const double a = median_degree(f, f->profile);
        if (shared) {
            take_children(s, 0, f);
            fit_degrees(s, f, left);
            const int at = EM_DEGREES + (int)lround(a / (degree_step / s->sd[k]));
            for (int64_t c = 0; c < f->n; c++)
                f->gain[c] =
                    f->profile[c * EM_N_DEGREE + at] - f->profile[c * EM_N_DEGREE + EM_DEGREES];
            drop_children(f, least_of_shared);
        }
        fit_children(s, f, a, left);
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
                                .width = s->sd[f->scale]};
    scale_draws(s, f->scale, f->degree[c], s->factor);
    n = prepare(s, f, triangle, added);
    leave_of_child(s, &f->where, f->child[c], s->residual);
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
