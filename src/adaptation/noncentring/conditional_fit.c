#include "adaptation/noncentring/noncentring_fit.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

enum {
    PASSES = 3,        /* of a fit: weights depend on it */
    LEAST_MEMBERS = 2, /* one derivative does not tell a hierarchy from a curved ridge */
    MOST_FITTED = 5,   /* children to which a degree is fitted */
    STEPS = 24,        /* of the search for a degree: to a relative precision of 1e-5 */
    CONSTANT = 0,      /* the first regressors, which are those of the data: the constant and x_i */
    LINEAR = 1
};

_Static_assert(4 + EM_MOST_PLAIN + EM_MOST_LOCATIONS <= EM_MOST_REGRESSORS,
               "the constant, x_i, e^(-2 u), the last one, and all terms");

/* The least gain in log likelihood of a derivative by the terms of the prior. least_of_member: for
 * a parameter that the draws have put in the group; least_of_new_member: for another one. What
 * chance adds comes on top. */
static const double least_of_member = 0.05, least_of_new_member = 0.1;

/* The share of a derivative that is left if its terms are certain, and that of rounding. */
static const double explained = 1e-3, rounding = 1e-18;

/* The least gain in log likelihood of a derivative by its data's precision and location, beyond
 * what chance adds. */
static const double least_of_data = 0.05;

/* The gain at which a parameter joins the group even if no member has its locations. */
static const double evident = 1;

/* A fit of g_i = -A e^(-2 u) (x_i - m - sum_j b_j x_j) - B x_i + C + sum_j d_j x_j, all less their
 * means. */
typedef struct conditional_fit {
    int64_t i;
    em_terms terms;
    bool has_data, has_shift;              /* else B and C are 0, or m is */
    double coefficient[EM_MOST_LOCATIONS]; /* b_j */
    double prior, information;             /* A and B; B >= 0 */
    double shift, constant;                /* m and C */
    double left, without, total; /* sums of squares: of residuals; without the terms of the prior;
                                    of derivatives */
} conditional_fit;

/* The gain in log likelihood of a derivative by more terms, which lower a sum of squares. */
static double gain_of(const conditional_fit *f, double before, double after)
{
    const double least = rounding * f->total;

    return 0.5 * log(fmax(before, least) / fmax(after, least));
}

static double gain_by_prior(const conditional_fit *f)
{
    return f->total > 0 ? gain_of(f, f->without, f->left) : 0;
}

void em_scale_precision(em_group_search *s, int64_t scale, double degree)
{
    const double *x = s->x + scale * s->n;

    for (int64_t r = 0; r < s->n; r++)
        s->factor[r] = exp(-2 * degree * x[r]);
}

/* Sets the weights of a regression: the error of a derivative is about the square root of the
 * precision. */
static void weigh(em_group_search *s, const conditional_fit *f)
{
    for (int64_t r = 0; r < s->n; r++)
        s->of.weight[r] = 1 / ((f->prior * s->factor[r] + f->information) * (double)s->n);
}

/* Adds x_p to the basis. */
static int add_plain(em_group_search *s, int n, int64_t p, double (*triangle)[EM_MOST_REGRESSORS])
{
    memcpy(s->column, s->x + p * s->n, (size_t)s->n * sizeof *s->column);
    return em_add_regressor(&s->of, n, s->column, triangle);
}

/* Adds e^(-2 u) (x_p + shift) to the basis; parent -1: there is none, else less the parent. */
static int add_scaled(em_group_search *s, int n, int64_t p, int64_t parent, double shift,
                      double (*triangle)[EM_MOST_REGRESSORS])
{
    const double *x = s->x + p * s->n, *of_parent = parent < 0 ? NULL : s->x + parent * s->n;

    for (int64_t r = 0; r < s->n; r++)
        s->column[r] = s->factor[r] * (x[r] - (of_parent ? of_parent[r] : 0) + shift);
    return em_add_regressor(&s->of, n, s->column, triangle);
}

/* The basis of all regressors: those of the data, e^(-2 u), e^(-2 u) x_j, and last e^(-2 u) (x_i -
 * x_p), with the parent p. Where m is 0, e^(-2 u) is left out, and the others are not less their
 * means. Returns their number, 0 if they are linearly dependent. */
static int add_regressors(em_group_search *s, const conditional_fit *f,
                          double (*triangle)[EM_MOST_REGRESSORS])
{
    const em_terms *terms = &f->terms;
    const int64_t parent = terms->has_parent ? terms->location[0] : -1;
    const double share = f->has_shift ? 0 : 1; /* of the means */
    const int expected =
        1 + 2 * f->has_data + f->has_shift + terms->n_plain + terms->n - terms->has_parent;
    int n = 0;

    if (f->has_data) {
        for (int64_t r = 0; r < s->n; r++)
            s->column[r] = 1;
        n = em_add_regressor(&s->of, n, s->column, triangle);
        n = add_plain(s, n, f->i, triangle);
    }
    for (int j = 0; j < terms->n_plain; j++)
        n = add_plain(s, n, terms->plain[j], triangle);
    if (f->has_shift) {
        memcpy(s->column, s->factor, (size_t)s->n * sizeof *s->column);
        n = em_add_regressor(&s->of, n, s->column, triangle);
    }
    for (int j = terms->has_parent; j < terms->n; j++)
        n = add_scaled(s, n, terms->location[j], -1, share * s->mean[terms->location[j]], triangle);
    n = add_scaled(s, n, f->i, parent, share * (s->mean[f->i] - (parent < 0 ? 0 : s->mean[parent])),
                   triangle);
    return n == expected ? n : 0;
}

/* m of x_i less its mean that is 0 of x_i. */
static double shift_of_zero(const em_group_search *s, const conditional_fit *f)
{
    double out = -s->mean[f->i];

    for (int j = 0; j < f->terms.n; j++)
        out += f->coefficient[j] * s->mean[f->terms.location[j]];
    return out;
}

/* Coefficients of the regressors at weights that are set. Returns whether they are a fit: a prior
 * has a positive precision. */
static bool regress(em_group_search *s, conditional_fit *f)
{
    double triangle[EM_MOST_REGRESSORS][EM_MOST_REGRESSORS] = {{0}}, along[EM_MOST_REGRESSORS],
           rest[EM_MOST_REGRESSORS];
    const int n = add_regressors(s, f, triangle), of_data = 2 * f->has_data + f->terms.n_plain,
              of_shift = of_data + f->has_shift - f->terms.has_parent;

    if (n == 0)
        return false;
    memcpy(s->residual, s->panel + f->i * s->n, (size_t)s->n * sizeof *s->residual);
    f->total = em_weighted_product(&s->of, s->residual, s->residual);
    em_project_out(&s->of, of_data, s->residual, along);
    f->without = em_weighted_product(&s->of, s->residual, s->residual);
    em_project_out(&s->of, n, s->residual, rest);
    f->left = em_weighted_product(&s->of, s->residual, s->residual);
    for (int q = 0; q < n; q++)
        along[q] = q < of_data ? along[q] + rest[q] : rest[q];
    em_solve_regression(n, triangle, along);
    f->prior = -along[n - 1];
    f->information = f->has_data ? fmax(-along[LINEAR], 0) : 0;
    f->constant = f->has_data ? along[CONSTANT] : 0;
    for (int j = 0; j < f->terms.n; j++)
        f->coefficient[j] = j < f->terms.has_parent ? 1 : along[of_shift + j] / f->prior;
    f->shift = f->has_shift ? along[of_data] / f->prior : shift_of_zero(s, f);
    return f->prior > 0 && isfinite(f->prior) && isfinite(f->shift) && f->total > 0;
}

/* Fits a derivative with the terms that are given. */
static bool fit_conditional(em_group_search *s, conditional_fit *f)
{
    f->prior = f->information = 1;
    for (int pass = 0; pass < PASSES; pass++) {
        weigh(s, f);
        if (!regress(s, f))
            return false;
    }
    return true;
}

/* Replaces the fit by one with fewer terms, if the others explain no more of the derivative than
 * `least`, in log likelihood. */
static void simplify(em_group_search *s, conditional_fit *f, conditional_fit with_fewer,
                     double least)
{
    weigh(s, f);
    if (!regress(s, &with_fewer) || gain_of(f, with_fewer.left, f->left) > least ||
        !fit_conditional(s, &with_fewer))
        return;
    with_fewer.without = f->without;
    *f = with_fewer;
}

/*
 * Sets B and C, and m, to 0 if chance explains them. Errors of them would put a wall into the map
 * where no draws have been: m moves draws off the neck of a funnel where that is narrower than the
 * error; and if B is nearly 0, the location C / B of the data is anywhere, and the map moves x_i
 * towards it where the precision of the prior is small.
 */
static void drop_chance_terms(em_group_search *s, conditional_fit *f)
{
    const double chance = EM_GAIN_BY_CHANCE / (double)s->n;
    conditional_fit with_fewer = *f;

    with_fewer.has_data = false;
    simplify(s, f, with_fewer, least_of_data + chance);
    with_fewer = *f;
    with_fewer.has_shift = false;
    simplify(s, f, with_fewer, chance);
}

/* Selects the terms of the parameter and fits. The locations are among those that are allowed and
 * do not depend on it. */
static bool find_conditional(em_group_search *s, conditional_fit *f)
{
    const uint32_t users = em_users(s, s->used_by[f->i]);

    for (int64_t p = 0; p < s->dim; p++)
        s->candidate[p] = p != f->i && s->allowed[p] && em_may_use(s, users, p);
    em_select_terms(&s->selection, f->i, s->panel + f->i * s->n, s->candidate, &f->terms);
    return fit_conditional(s, f);
}

/* Sets the degree for searches of terms. */
static void set_degree(em_group_search *s, const em_group_fit *group, double degree)
{
    em_scale_precision(s, group->scale, degree);
    em_selection_prepare(&s->selection, s->x, s->factor, s->sd);
}

/* ---------------------------------------------------------------- the group */

/* The mean over children of the log of the unexplained share of the derivatives, at this degree. */
static double left_at(em_group_search *s, const em_group_fit *group, double degree,
                      conditional_fit *fit)
{
    double sum = 0;

    em_scale_precision(s, group->scale, degree);
    for (int64_t c = 0; c < group->n && c < MOST_FITTED; c++)
        if (fit_conditional(s, &fit[c]))
            sum += log(fmax(fit[c].left / fit[c].total, 1e-24));
    return sum;
}

/* The degree of the child with the largest gain. The degrees of children that the data determine
 * are nearer to 0. */
static double strongest_degree(const em_group_fit *group)
{
    int64_t best = 0;

    for (int64_t c = 1; c < group->n; c++)
        if (group->gain[c] > group->gain[best])
            best = c;
    return group->n > 0 ? group->degree[best] : 0;
}

/* Finds the locations of the first children at a degree. Returns the mean log of the unexplained
 * share of their derivatives. */
static double structure_at(em_group_search *s, const em_group_fit *group, double degree,
                           conditional_fit *fit)
{
    double sum = 0;

    set_degree(s, group, degree);
    for (int64_t c = 0; c < group->n && c < MOST_FITTED; c++) {
        fit[c] = (conditional_fit){.i = group->child[c], .has_data = true, .has_shift = true};
        if (find_conditional(s, &fit[c]))
            sum += log(fmax(fit[c].left / fit[c].total, 1e-24));
    }
    return sum;
}

/* The degree on a coarse grid at which locations explain most. Draws of members that the data
 * determine show too small a degree, so most of the grid is above the degree that the draws show.
 * The degree is 1 if u is a log standard deviation, and 1/2 if it is a log variance. *share: the
 * unexplained share of the derivatives at the result. */
static double find_start(em_group_search *s, const em_group_fit *group, double *share)
{
    static const double ratio[] = {1, 1.25, 1.6, 2, 0.75}, natural[] = {1, 0.5};
    enum { N_RATIO = sizeof ratio / sizeof *ratio, N_NATURAL = sizeof natural / sizeof *natural };
    const double of_draws = strongest_degree(group);
    conditional_fit fit[MOST_FITTED];
    double best = of_draws, least = INFINITY;

    for (int q = 0; q < N_RATIO + N_NATURAL; q++) {
        const double degree =
            q < N_RATIO ? ratio[q] * of_draws : copysign(natural[q - N_RATIO], of_draws);
        const double most = q < N_RATIO ? 2.5 : 4;
        if (fabs(degree) < 0.6 * fabs(of_draws) || fabs(degree) > most * fabs(of_draws))
            continue;
        const double left = structure_at(s, group, degree, fit);
        if (left < least) {
            least = left;
            best = degree;
        }
    }
    *share = exp(least / (double)em_least(group->n, MOST_FITTED));
    return best;
}

/* Finds the degree of all children by a search near `start`. */
static double find_degree(em_group_search *s, const em_group_fit *group, double start)
{
    static const double golden = 0.6180339887498949, ratio = 1.3;
    const double most = 0.1 * EM_DEGREES / s->sd[group->scale];
    conditional_fit fit[MOST_FITTED];

    structure_at(s, group, start, fit);
    double low = start / ratio, high = start * ratio;
    double a = high - golden * (high - low), b = low + golden * (high - low);
    double at_a = left_at(s, group, a, fit), at_b = left_at(s, group, b, fit);
    for (int step = 0; step < STEPS; step++) {
        if (at_a < at_b) {
            high = b;
            b = a;
            at_b = at_a;
            a = high - golden * (high - low);
            at_a = left_at(s, group, a, fit);
        } else {
            low = a;
            a = b;
            at_a = at_b;
            b = low + golden * (high - low);
            at_b = left_at(s, group, b, fit);
        }
    }
    const double found = 0.5 * (low + high);
    return fabs(found) < most ? found : copysign(most, found);
}

static void write_row(const em_group_search *s, const conditional_fit *f, int64_t scale,
                      double degree)
{
    em_noncentring_row *row = &s->conditional[f->i];

    *row = (em_noncentring_row){.level = 1,
                                .scale = (double)scale,
                                .degree = degree,
                                .origin = s->mean[scale],
                                .width = em_noncentring_width(degree, s->sd[scale]),
                                .shift = f->shift + s->mean[f->i]};
    for (int j = 0; j < EM_MOST_LOCATIONS; j++) {
        row->location[j] = j < f->terms.n ? (double)f->terms.location[j] : -1;
        row->coefficient[j] = j < f->terms.n ? f->coefficient[j] : 0;
        if (j < f->terms.n)
            row->shift -= f->coefficient[j] * s->mean[f->terms.location[j]];
    }
    if (f->information > 1e-8 * f->prior) {
        row->information = f->information / f->prior;
        row->centre = s->mean[f->i] + f->constant / f->information;
    }
}

/* Allows as locations all parameters except the log scale and the children. */
static void allow_others(em_group_search *s, const em_group_fit *group)
{
    for (int64_t p = 0; p < s->dim; p++)
        s->allowed[p] = p != group->scale;
    for (int64_t c = 0; c < group->n; c++)
        s->allowed[group->child[c]] = false;
}

/* Removes from the group a child that is the mean of other children: of most of them and at least
 * of two, or of one whose derivative this explains. Returns whether there are any. */
static bool remove_means(em_group_search *s, em_group_fit *group, double degree)
{
    const int64_t n = group->n;

    memset(s->votes, 0, (size_t)s->dim * sizeof *s->votes);
    set_degree(s, group, degree);
    for (int64_t c = 0; c < n; c++) {
        conditional_fit f = {.i = group->child[c], .has_data = true, .has_shift = true};
        if (!find_conditional(s, &f) || !f.terms.has_parent)
            continue;
        const bool is_explained = f.left < explained * f.total;
        s->votes[f.terms.location[0]] += is_explained ? 2 * n : 1;
        if (is_explained)
            s->votes[f.i] -= 4 * n * n;
    }
    for (int64_t c = n - 1; c >= 0; c--) {
        const int64_t votes = s->votes[group->child[c]];
        if (votes >= 2 && 2 * votes >= n - 1)
            em_remove_child(group, group->child[c]);
    }
    return group->n < n;
}

/* Allows only the locations that explain a derivative and that members share: as the parent of two
 * members or of half of them, or with a free coefficient in half of them. */
static void allow_shared(em_group_search *s, const em_group_fit *group)
{
    const int64_t half = (group->n + 1) / 2, few = em_least(2, half);

    for (int64_t p = 0; p < s->dim; p++)
        s->votes[p] = 0;
    for (int64_t c = 0; c < group->n; c++) {
        conditional_fit f = {.i = group->child[c], .has_data = true, .has_shift = true};
        if (!find_conditional(s, &f))
            continue;
        const int64_t all = f.left < explained * f.total ? half * few : 0;
        for (int j = 0; j < f.terms.n; j++)
            s->votes[f.terms.location[j]] += all ? all : j < f.terms.has_parent ? half : few;
    }
    for (int64_t p = 0; p < s->dim; p++)
        s->allowed[p] = s->allowed[p] && s->votes[p] >= half * few;
}

/* Fits all children, removes those that are not explained from the group, and marks the locations.
 * Returns whether at least half of the children are explained. */
static bool fit_members(em_group_search *s, em_group_fit *group, double degree)
{
    const double least = least_of_member + EM_GAIN_BY_CHANCE / (double)s->n;
    const int64_t n = group->n;
    int64_t kept = 0;

    set_degree(s, group, degree);
    allow_shared(s, group);
    for (int64_t c = 0; c < n; c++) {
        conditional_fit f = {.i = group->child[c], .has_data = true, .has_shift = true};
        if (!find_conditional(s, &f) || !(gain_by_prior(&f) > least))
            continue;
        for (int j = 0; j < f.terms.n; j++)
            s->is_location[f.terms.location[j]] = true;
        drop_chance_terms(s, &f);
        write_row(s, &f, group->scale, degree);
        group->child[kept] = group->child[c];
        group->degree[kept] = degree;
        group->gain[kept++] = group->gain[c];
    }
    group->n = kept;
    return kept > 0 && 2 * kept >= n;
}

/* The set of groups on which a group with this log scale and the marked locations depends. */
static uint32_t groups_used(const em_group_search *s, int64_t scale)
{
    uint32_t used = 0;

    for (int64_t p = 0; p < s->dim; p++)
        if (p == scale || s->is_location[p])
            used |= em_groups_under(s, p);
    return used;
}

bool em_may_join(const em_group_search *s, const em_group_fit *group, uint32_t used, int64_t i)
{
    return i != group->scale && s->group_of[i] < 0 && s->sd[i] > 0 && em_child_at(group, i) < 0 &&
           (s->used_by[i] & used) == 0;
}

/* Adds the other parameters whose derivatives are explained by the locations that are allowed. */
static void add_members(em_group_search *s, em_group_fit *group, double degree, double least)
{
    for (int64_t i = 0; i < s->dim; i++) {
        conditional_fit f = {.i = i, .has_data = true, .has_shift = true};
        if (s->is_location[i] || em_belongs_elsewhere(s, i, group->scale) ||
            !em_may_join(s, group, groups_used(s, group->scale), i) || !find_conditional(s, &f) ||
            !(gain_by_prior(&f) > least))
            continue;
        for (int j = 0; j < f.terms.n; j++)
            s->is_location[f.terms.location[j]] = true;
        s->allowed[i] = false;
        group->child[group->n] = i;
        group->degree[group->n] = degree;
        group->gain[group->n++] = 0;
        drop_chance_terms(s, &f);
        write_row(s, &f, group->scale, degree);
    }
}

/* Removes children so that no cycle arises: no child may be used by a group on which this group
 * depends. */
static void remove_cycles(em_group_search *s, em_group_fit *group)
{
    const uint32_t used = groups_used(s, group->scale);

    for (int64_t c = group->n - 1; c >= 0; c--)
        if (s->used_by[group->child[c]] & used)
            em_remove_child(group, group->child[c]);
}

double em_fit_conditionals(em_group_search *s, em_group_fit *group, double most_left)
{
    for (int64_t p = 0; p < s->dim; p++) {
        s->allowed[p] = p != group->scale;
        s->is_location[p] = false;
    }
    if (group->n < LEAST_MEMBERS)
        return 0;
    double left;
    const double start = find_start(s, group, &left);
    if (left > most_left)
        return 0;
    while (remove_means(s, group, start))
        continue;
    allow_others(s, group);
    const double degree = find_degree(s, group, start);
    if (!fit_members(s, group, degree))
        return 0;
    remove_cycles(s, group);
    memcpy(s->allowed, s->is_location, (size_t)s->dim * sizeof *s->allowed);
    add_members(s, group, degree, least_of_new_member + EM_GAIN_BY_CHANCE / (double)s->n);
    allow_others(s, group);
    add_members(s, group, degree, evident);
    remove_cycles(s, group);
    return group->n > 0 ? degree : 0;
}
