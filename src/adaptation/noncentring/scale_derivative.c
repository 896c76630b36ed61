/*
 * If the members of a group have the prior x_i ~ N(x_p, e^(2 a x_k) / A), the derivative of the log
 * density by the log scale x_k is
 *
 *     g_k = a A e^(-2 a x_k) sum_i (x_i - x_p)^2 + (a function of x_k alone),
 *
 * whatever the data are, and at every position. If the scale has an upper bound, and x_k is its
 * logit, the factor of the sum is A (e^(-2 x_k) + e^(-x_k)). So stepwise regression of g_k on the
 * squares finds the members. Chance does not explain a derivative to one part in a thousand by
 * squares that have one coefficient. Fits to draws, and to derivatives by members, need normal data
 * or draws from the neck of the funnel for that.
 */
#include "adaptation/noncentring/scale_derivative.h"

#include "base/memory.h"
#include "math/linalg.h"

#include <math.h>
#include <string.h>

enum {
    LEAST_USED = 120, /* draws, and three for each parameter */
    MOST_SCALES = 16, /* that are tried */
    MOST_PARENTS = 6, /* that are tried for a scale, besides 0 */
    SMOOTH = 8,       /* functions of x_k alone, which are the first regressors */
    FIRST_STEPS = 16, /* of a regression, after which only the best one of a scale goes on */
    DRAWS_A_STEP = 3, /* there are at least as many draws for each square */
    LEAST_MEMBERS = 2
};

/* The least precision of data, in its standard errors. */
static const double least_of_data = 4;

/* The least standard deviation of the log of the scale. A constant mass suits narrower ones. */
static const double least_spread = 0.3;

/* The least skewness of g_k, which contains a sum of squares. */
static const double least_skewness = 0.3;

/* The unexplained share of g_k that a group leaves at most, and the share that may be rounding
 * after the smooth functions, which are nearly dependent. */
static const double most_left = 1e-3, rounding = 1e-4;

/* A regressor that is dependent on others has a smaller part that is not. */
static const double dependent = 1e-8;

/* A regression of g_k. The Gram matrix has rows for the smooth functions, the squares of all
 * parameters, and g_k. It has been swept by the regressors that are chosen. */
typedef struct scale_regression {
    em_proved_group of;
    int64_t dim, n, width; /* parameters, draws, rows */
    double before;         /* the sum of squares of g_k that the smooth functions do not explain */
    double *panel, *gram;  /* [width][n], [width][width] */
    double *factor;        /* [n] e^(-2 u), times the weight of a draw */
    double *norm;          /* [dim] of squares, which are divided by it */
    bool *is_chosen;       /* [dim] */
    int64_t n_chosen;
} scale_regression;

/* Sets the form of the scale, and the rows of the panel that depend on it alone. All rows are
 * weighted by the size of g_k, as draws from the start of warmup may be far off. */
static void set_form(em_group_search *s, scale_regression *f, em_proved_group form)
{
    const int64_t first = s->n - f->n, scale = form.scale;
    const double *x = s->x + scale * s->n + first;
    double *y = f->panel + (SMOOTH + f->dim) * f->n, size = 0;

    f->of = form;
    for (int64_t r = 0; r < f->n; r++) {
        y[r] = em_search_draw(s, first + r)[s->dim + scale];
        size += fabs(y[r]) / (double)f->n;
    }
    for (int64_t r = 0; r < f->n; r++) {
        const double root = 1 / (size + fabs(y[r])), u = form.degree * x[r], up = exp(u);
        const double odds = exp(x[r] + s->mean[scale]);
        const double smooth[SMOOTH] = {1,  u,       u * u,          u * u * u,
                                       up, up * up, 1 / (1 + odds), 1 / (up * up)};
        y[r] *= root;
        for (int q = 0; q < SMOOTH; q++)
            f->panel[q * f->n + r] = root * smooth[q];
        f->factor[r] = root * (form.is_bounded ? (1 / odds + 1) / odds : smooth[SMOOTH - 1]);
    }
}

/* Sets the parent and the rows of squares, each divided by its norm. */
static void set_parent(em_group_search *s, scale_regression *f, int64_t p)
{
    f->of.parent = p;
    for (int64_t i = 0; i < s->dim; i++) {
        double *row = f->panel + (SMOOTH + i) * f->n;
        em_subtract_parent(s, i, p, f->n, row);
        for (int64_t r = 0; r < f->n; r++)
            row[r] = f->factor[r] * row[r] * row[r];
        f->norm[i] = sqrt(em_dot(f->n, row, row));
        for (int64_t r = 0; r < f->n && f->norm[i] > 0; r++)
            row[r] /= f->norm[i];
    }
}

/* Sweeps the Gram matrix by a regressor. Entries of the last column are then the coefficients of
 * regressors that are swept, and products with what is left of g_k for the others. */
static void sweep(scale_regression *f, int64_t j)
{
    const int64_t w = f->width;
    double *of = f->gram + j * w;
    const double pivot = 1 / of[j];

    for (int64_t i = 0; i < w; i++) {
        double *row = f->gram + i * w;
        const double by = row[j] * pivot;
        if (i == j)
            continue;
        for (int64_t q = 0; q < w; q++)
            row[q] -= by * of[q];
        row[j] = -by;
    }
    for (int64_t q = 0; q < w; q++)
        of[q] *= pivot;
    of[j] = pivot;
}

/* The sum of squares of g_k that is not explained. */
static double left(const scale_regression *f)
{
    return f->gram[f->width * f->width - 1];
}

/* Computes the Gram matrix, and sweeps it by the smooth functions. */
static void sweep_smooth(scale_regression *f)
{
    em_gram(f->width, f->n, f->panel, f->gram);
    for (int q = 0; q < SMOOTH; q++) {
        const double *row = f->panel + q * f->n;
        if (f->gram[q * f->width + q] > dependent * em_dot(f->n, row, row))
            sweep(f, q);
    }
}

/* Begins a regression on squares about a parent. */
static void begin(em_group_search *s, scale_regression *f, int64_t parent)
{
    f->width = SMOOTH + f->dim + 1;
    set_parent(s, f, parent);
    sweep_smooth(f);
    const double *y = f->panel + (f->width - 1) * f->n;
    f->before = left(f) > rounding * em_dot(f->n, y, y) ? left(f) : 0;
    f->n_chosen = 0;
    memset(f->is_chosen, 0, (size_t)f->dim * sizeof *f->is_chosen);
}

/* The coefficient of a square, or the one that it would have if it were chosen next. */
static double coefficient(const scale_regression *f, int64_t i)
{
    const double *row = f->gram + (SMOOTH + i) * f->width;
    const double of = row[f->width - 1] / f->norm[i];

    return f->is_chosen[i] ? of : of / row[SMOOTH + i];
}

/* The coefficient of the chosen square that contributes most. */
static double main_coefficient(const scale_regression *f)
{
    double most = 0, out = 0;

    for (int64_t i = 0; i < f->dim; i++)
        if (f->is_chosen[i] && fabs(coefficient(f, i)) * f->norm[i] > most) {
            most = fabs(coefficient(f, i)) * f->norm[i];
            out = coefficient(f, i);
        }
    return out;
}

static bool is_about(double x, double y)
{
    return x / y > 0.5 && x / y < 2;
}

/* Chooses up to `most` squares, each time the one that explains most with a coefficient of the sign
 * of the degree. Once they explain the derivative, only those with about the same coefficient. */
static void choose(scale_regression *f, int64_t most)
{
    while (f->n_chosen < most) {
        const double same = left(f) < most_left * f->before ? main_coefficient(f) : 0;
        double gain = 0;
        int64_t best = -1;
        for (int64_t i = 0; i < f->dim; i++) {
            const double *row = f->gram + (SMOOTH + i) * f->width;
            const double square = row[SMOOTH + i], y = row[f->width - 1];
            if (f->is_chosen[i] || i == f->of.scale || i == f->of.parent ||
                !(y * f->of.degree > 0) || !(square > dependent) || !(y * y / square > gain) ||
                (same != 0 && !is_about(coefficient(f, i), same)))
                continue;
            gain = y * y / square;
            best = i;
        }
        if (best < 0)
            return;
        sweep(f, SMOOTH + best);
        f->is_chosen[best] = true;
        f->n_chosen++;
    }
}

/* Keeps only those chosen squares that have about the same coefficient. Returns their number. */
static int64_t keep_equal(scale_regression *f)
{
    const double same = main_coefficient(f);
    int64_t n = 0;

    for (int64_t i = 0; i < f->dim; i++) {
        f->is_chosen[i] = f->is_chosen[i] && is_about(coefficient(f, i), same);
        n += f->is_chosen[i];
    }
    return n;
}

/* The unexplained share of g_k if all chosen squares have one coefficient, which becomes that of
 * the group. The panel is used. */
static double share_of_sum(scale_regression *f)
{
    double *sum = f->panel + SMOOTH * f->n, *y = sum + f->n;

    for (int64_t r = 0; r < f->n; r++) {
        double at = 0;
        for (int64_t i = 0; i < f->dim; i++)
            if (f->is_chosen[i])
                at += f->norm[i] * f->panel[(SMOOTH + i) * f->n + r];
        sum[r] = at;
        y[r] = f->panel[(f->width - 1) * f->n + r];
    }
    f->width = SMOOTH + 2;
    sweep_smooth(f);
    sweep(f, SMOOTH);
    f->of.precision = f->gram[SMOOTH * f->width + f->width - 1] / f->of.degree;
    return f->of.precision > 0 ? left(f) / f->before : 1;
}

/* ---------------------------------------------------------------- candidates */

static double skewness(const em_group_search *s, int64_t k, int64_t first)
{
    double sum[4] = {0};

    for (int64_t r = first; r < s->n; r++) {
        const double g = em_search_draw(s, r)[s->dim + k];
        sum[0] += 1;
        sum[1] += g;
    }
    for (int64_t r = first; r < s->n; r++) {
        const double off = em_search_draw(s, r)[s->dim + k] - sum[1] / sum[0];
        sum[2] += off * off / sum[0];
        sum[3] += off * off * off / sum[0];
    }
    return sum[3] / pow(sum[2], 1.5);
}

/* Writes possible log scales to out [MOST_SCALES], those first whose derivatives are most skewed,
 * and to sign those of their degrees. */
static int find_scales(const em_group_search *s, int64_t first, int64_t *out, double *sign)
{
    double score[MOST_SCALES];
    int n = 0;

    for (int64_t k = 0; k < s->dim; k++) {
        const double skew = s->sd[k] >= least_spread ? skewness(s, k, first) : 0;
        sign[k] = copysign(1, skew);
        if (fabs(skew) >= least_skewness)
            n = em_insert_by_score(n, MOST_SCALES, fabs(skew), k, score, out);
    }
    return n;
}

/* Writes possible parents to out [MOST_PARENTS]. Given the members of a group, the prior alone
 * determines their mean, so the log derivative by it is most correlated with the log scale. */
static int find_parents(const em_group_search *s, int64_t k, int64_t *out)
{
    double score[MOST_PARENTS];
    int n = 0;

    for (int64_t p = 0; p < s->dim; p++)
        if (p != k && s->sd[p] > 0)
            n = em_insert_by_score(n, MOST_PARENTS, fabs(s->rho[p * s->dim + k]), p, score, out);
    return n;
}

/* Begins the regression with the parent and the form that explain most of the derivative by
 * scale k in a few steps. Returns false if none explains anything. */
static bool begin_best(em_group_search *s, scale_regression *f, int64_t k, double sign)
{
    const em_proved_group form[] = {{.scale = k, .degree = sign},
                                    {.scale = k, .degree = sign, .is_bounded = true},
                                    {.scale = k, .degree = 0.5 * sign}};
    em_proved_group best = {.scale = -1};
    int64_t parent[1 + MOST_PARENTS] = {-1};
    const int n = 1 + find_parents(s, k, parent + 1);
    double least = 1;

    for (int q = 0; q < 3; q++) {
        if (fabs(form[q].degree) * s->sd[k] < least_spread || (form[q].is_bounded && sign < 0))
            continue;
        set_form(s, f, form[q]);
        for (int p = 0; p < n; p++) {
            begin(s, f, parent[p]);
            choose(f, em_least(FIRST_STEPS, f->n / DRAWS_A_STEP));
            if (f->before > 0 && left(f) < least * f->before) {
                least = left(f) / f->before;
                best = f->of;
            }
        }
    }
    if (best.scale < 0)
        return false;
    set_form(s, f, best);
    begin(s, f, best.parent);
    return true;
}

/* Tries one scale, and adds its group if that is proved. */
static void try_scale(em_group_search *s, scale_regression *f, int64_t k, double sign,
                      em_proved_groups *out)
{
    if (!begin_best(s, f, k, sign))
        return;
    choose(f, em_least(f->dim, f->n / DRAWS_A_STEP));
    if (!(left(f) < most_left * f->before) || keep_equal(f) < LEAST_MEMBERS)
        return;
    for (int64_t i = 0; i < f->dim; i++)
        if (f->is_chosen[i] && out->of[i] >= 0)
            return;
    if (!(share_of_sum(f) < most_left))
        return;
    for (int64_t i = 0; i < f->dim; i++)
        if (f->is_chosen[i])
            out->of[i] = out->n;
    out->group[out->n++] = f->of;
}

/* Whether the parent or the scale of group g is a member of group h. */
static bool depends(const em_proved_groups *groups, int g, int h)
{
    const em_proved_group *own = &groups->group[g];

    return groups->of[own->scale] == h || (own->parent >= 0 && groups->of[own->parent] == h);
}

static void exchange(int64_t dim, em_proved_groups *groups, int g, int h)
{
    const em_proved_group own = groups->group[g];

    groups->group[g] = groups->group[h];
    groups->group[h] = own;
    for (int64_t i = 0; i < dim; i++)
        groups->of[i] = groups->of[i] == g ? h : groups->of[i] == h ? g : groups->of[i];
}

/* Puts groups that depend on members of others before these. */
static void order(int64_t dim, em_proved_groups *groups)
{
    for (int pass = 0; pass < groups->n; pass++)
        for (int g = 0; g < groups->n; g++)
            for (int h = g + 1; h < groups->n; h++)
                if (depends(groups, h, g))
                    exchange(dim, groups, g, h);
}

void em_list_proved(const em_group_search *s, const em_proved_groups *proved, int g,
                    em_group_fit *out)
{
    const em_proved_group *own = &proved->group[g];
    const uint32_t used =
        em_groups_under(s, own->scale) | (own->parent < 0 ? 0 : em_groups_under(s, own->parent));

    out->scale = own->scale;
    out->n = 0;
    for (int64_t i = 0; i < s->dim; i++)
        if (proved->of[i] == g && em_may_join(s, out, used, i))
            out->child[out->n++] = i;
}

/* Writes the inverse of the lower factor of the Gram matrix of all parameters. */
static em_status invert_gram(const em_group_search *s, double *out)
{
    const int64_t dim = s->dim;

    em_gram(dim, s->n, s->x, out);
    for (int64_t j = 0; j < dim; j++)
        out[j * dim + j] = s->sd[j] > 0 ? out[j * dim + j] * (1 + 1e-10) : 1;
    const em_status status = em_cholesky(dim, out, dim);
    return status ? status : em_invert_lower(dim, out, dim);
}

em_status em_prove_groups(em_group_search *s, em_proved_groups *out)
{
    const int64_t dim = s->dim, width = SMOOTH + dim + 1;
    scale_regression f = {.dim = dim, .n = em_least(s->n, LEAST_USED + 3 * dim)};
    int64_t scale[MOST_SCALES];
    double *sign = NULL;
    em_status status = em_allocate_all(
        EM_ARRAY(f.panel, width * f.n), EM_ARRAY(f.gram, width * width), EM_ARRAY(f.factor, f.n),
        EM_ARRAY(f.norm, dim), EM_ARRAY(f.is_chosen, dim), EM_ARRAY(sign, dim));

    out->n = 0;
    for (int64_t i = 0; i < dim; i++)
        out->of[i] = -1;
    const int n = status ? 0 : find_scales(s, s->n - f.n, scale, sign);
    for (int k = 0; k < n && out->n < EM_MOST_GROUPS; k++)
        try_scale(s, &f, scale[k], sign[scale[k]], out);
    order(dim, out);
    if (out->n > 0)
        status = invert_gram(s, out->inverse);
    em_release_all(&f.panel, &f.gram, &f.factor, &f.norm, &f.is_chosen, &sign);
    return status;
}

/* ---------------------------------------------------------------- rows */

/* Writes the derivative by x_i that data cause: that of its prior is subtracted. */
static void set_data_derivative(em_group_search *s, const em_proved_group *own, int64_t i,
                                double *out)
{
    const double *g = s->panel + i * s->n;

    em_subtract_parent(s, i, own->parent, s->n, out);
    for (int64_t r = 0; r < s->n; r++)
        out[r] = g[r] + own->precision * s->factor[r] * out[r];
}

/* Sets s->factor to the precision of the prior, relative to own->precision. Returns own->precision
 * times the factor of e^(-2 u) in it. */
static double set_prior(em_group_search *s, const em_proved_group *own)
{
    const double mean = s->mean[own->scale];

    em_scale_precision(s, own->scale, own->degree);
    if (!own->is_bounded)
        return own->precision;
    for (int64_t r = 0; r < s->n; r++)
        s->factor[r] = pow(1 + exp(-mean - s->x[own->scale * s->n + r]), 2);
    return own->precision * exp(-2 * mean);
}

/* Sets the precision and the location of the data, in units of `unit`. inverse [dim][dim]: of the
 * lower factor of the Gram matrix of all parameters. */
static void set_data(em_group_search *s, const em_proved_group *own, double unit,
                     const double *inverse, int64_t i, em_noncentring_row *row)
{
    const int64_t dim = s->dim;
    double *y = s->residual, mean, coefficient = 0, square = 0, rest;

    set_data_derivative(s, own, i, y);
    em_centre_column(s->n, y, &mean);
    rest = em_dot(s->n, y, y);
    for (int64_t j = 0; j < dim; j++)
        s->selection.of_y[j] = em_dot(s->n, s->x + j * s->n, y);
    for (int64_t q = 0; q < dim; q++) {
        const double along = em_dot(q + 1, inverse + q * dim, s->selection.of_y);
        rest -= along * along;
        coefficient += q >= i ? inverse[q * dim + i] * along : 0;
        square += q >= i ? pow(inverse[q * dim + i], 2) : 0;
    }
    const double error = sqrt(fmax(rest, 0) * square / (double)(s->n - dim));
    if (!(-coefficient > least_of_data * error))
        return;
    row->information = -coefficient / unit;
    row->centre = s->mean[i] - mean / coefficient;
}

void em_fit_proved(em_group_search *s, const em_proved_groups *proved, int g,
                   const em_group_fit *group, bool *is_location, em_noncentring_row *row)
{
    const em_proved_group *own = &proved->group[g];
    const double unit = set_prior(s, own);
    for (int64_t p = 0; p < s->dim; p++)
        is_location[p] = p == own->parent;
    for (int64_t c = 0; c < group->n; c++) {
        em_noncentring_row *child = &row[group->child[c]];
        *child = (em_noncentring_row){.level = 1,
                                      .scale = (double)own->scale,
                                      .degree = own->degree,
                                      .origin = s->mean[own->scale],
                                      .width = s->sd[own->scale]};
        for (int j = 0; j < EM_MOST_LOCATIONS; j++)
            child->location[j] = -1;
        child->location[0] = (double)own->parent;
        child->coefficient[0] = own->parent < 0 ? 0 : 1;
        set_data(s, own, unit, proved->inverse, group->child[c], child);
    }
}
