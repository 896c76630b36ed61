#include "adaptation/noncentring/noncentring_search.h"

#include "adaptation/noncentring/curve_fit.h"
#include "adaptation/noncentring/joint_fit.h"
#include "adaptation/noncentring/noncentring_fit.h"
#include "adaptation/noncentring/proved_groups.h"
#include "base/memory.h"
#include "math/linalg.h"

#include <math.h>
#include <string.h>

enum {
    MOST_TRIED = 4, /* log scales that are fitted before one is chosen */
    MOST_DRAWS_OF_MANY = 400,
    LEAST_SPARE = 10, /* gradients beyond the dimension, for a map of proved priors alone */
    MOST_REJECTED = 3 /* groups that make draws no more nearly normal, before the search ends */
};

/* The least gain of a group in log likelihood of a draw. group_by_chance / (number of draws) is
 * added, since that much gain is due to chance with few draws. */
static const double least_of_group = 0.3, group_by_chance = 60;

/* The least improvement in normality by a group, and what chance adds with few draws, times their
 * number; and the share of the whole departure from normality whose removal is enough. A proved
 * group that has a neck needs no improvement. */
static const double least_nearer = 1, nearer_by_chance = 300, most_of_departure = 0.75;

/* If a group is rejected because of its draws, its conditional laws may be used only if they leave
 * at most this share of the derivatives unexplained. */
static const double clear = 0.05;

/* Of the improvement that a group from the draws brings, its conditional laws have to bring this
 * share. They are then preferred, because they hold also where no draws have been. */
static const double share_of_draws = 0.75;

/* ---------------------------------------------------------------- the draws */

/* Correlations and slopes of the logs of all derivatives g [dim][n], which are overwritten, by all
 * parameters. */
static em_status correlate(em_group_search *s, double *g)
{
    const int64_t dim = s->dim;
    EM_SCOPED double *log_sd = NULL;
    em_status status = em_allocate_doubles(dim, &log_sd);

    status = status ? status : em_correlate_logs(dim, s->n, s->x, s->sd, g, log_sd, s->rho);
    for (int64_t i = 0; !status && i < dim; i++)
        for (int64_t k = 0; k < dim; k++)
            s->slope[i * dim + k] = s->sd[k] > 0 ? s->rho[i * dim + k] * log_sd[i] / s->sd[k] : 0;
    return status;
}

/* ---------------------------------------------------------------- groups */

/* Writes to out [MOST_TRIED] the log scales correlated with most log derivatives; returns their
 * number. */
static int candidates(const em_group_search *s, int64_t *out)
{
    double score[MOST_TRIED];
    int n = 0;

    for (int64_t k = 0; k < s->dim; k++) {
        double sum = 0;
        for (int64_t i = 0; i < s->dim; i++) {
            const double rho = s->rho[i * s->dim + k];
            if (s->group_of[i] < 0 && fabs(rho) > EM_EVIDENT_CORRELATION &&
                !em_belongs_elsewhere(s, i, k))
                sum -= 0.5 * log(1 - rho * rho);
        }
        if (sum == 0 || s->is_rejected[k])
            continue;
        n = em_insert_by_score(n, MOST_TRIED, sum, k, score, out);
    }
    return n;
}

/*
 * The improvement in normality that a group has to bring: half of the predicted one, as log
 * variances of draws and of derivatives should each fall by twice its gain; or most of what there
 * is to improve. Few draws and correlated ones make a gain too large: in 100 dimensions a funnel
 * had a departure of 566, a gain of 334, and after its map a departure of -54. The departure of n
 * independent normal draws is about -dim (dim + 1) / n.
 */
static double improvement_needed(const em_group_search *s, double gain)
{
    const double least = -(double)s->dim * (double)(s->dim + 1) / (double)s->n;

    return fmax(fmin(2 * gain, most_of_departure * (s->nearest - least)),
                least_nearer + nearer_by_chance / (double)s->n);
}

/* Adds the group with the conditional rows of its members, and then that of its means, if this
 * makes the draws more nearly normal. *n_added: the number of groups added. */
static em_status add_with_means(em_group_search *s, em_group_fit *f, double degree, double *now,
                                int *n_added)
{
    double with_means = INFINITY;
    em_status status = em_measure_group(s, f, s->conditional, now);

    *n_added = 1;
    if (status || em_is_factor(s->conditional[f->child[0]].form))
        return status;
    status = em_transform_draws(s, true);
    if (status)
        return status;
    em_fit_means(s, degree, f);
    if (f->n == 0)
        return EM_OK;
    status = em_measure_group(s, f, s->conditional, &with_means);
    if (!status && !(with_means < *now))
        return em_drop_group(s);
    *now = with_means;
    *n_added = 2;
    return status;
}

/* Adds the group with rows from the conditional laws of its members. */
static em_status add_conditionals(em_group_search *s, em_group_fit *f, double most_left,
                                  double *now, int *n_added)
{
    double degree = 0;
    em_status status = em_transform_draws(s, true);

    *n_added = 0;
    if (!status)
        degree = em_fit_conditionals(s, f, most_left);
    if (status || degree == 0 || s->n_group + 2 > EM_MOST_GROUPS)
        return status;
    return add_with_means(s, f, degree, now, n_added);
}

/*
 * Adds the group if it brings the improvement that it needs. Its rows are those from the
 * conditional laws, unless those from the draws alone make the draws more nearly normal. If the
 * group is rejected, its log scale is not tried again before a group is added.
 */
static em_status try_group(em_group_search *s, em_group_fit *f, bool *kept)
{
    const double enough = s->nearest - improvement_needed(s, f->total);
    double of_draws = INFINITY, of_conditionals = INFINITY;
    int n_added = 0;
    em_status status = em_measure_group(s, f, NULL, &of_draws);

    status = status ? status : em_drop_group(s);
    if (!status)
        status = add_conditionals(s, f, of_draws < enough ? 1 : clear, &of_conditionals, &n_added);
    *kept = of_conditionals < enough &&
            s->nearest - of_conditionals > share_of_draws * (s->nearest - of_draws);
    if (status || *kept) {
        s->nearest = of_conditionals;
        return status;
    }
    while (!status && n_added-- > 0)
        status = em_drop_group(s);
    *kept = of_draws < enough;
    if (!status && *kept) {
        em_fit_group(s, f->scale, f);
        return em_measure_group(s, f, NULL, &s->nearest);
    }
    s->is_rejected[f->scale] = true;
    return status;
}

/* Finds the log scale whose group gains most, and fits this group. Returns -1 if none gains enough.
 * gain [dim] caches the gains until a group is added; NaN: not yet computed. */
static int64_t fit_best(em_group_search *s, em_group_fit *fit, double *gain)
{
    double most = least_of_group + group_by_chance / (double)s->n;
    int64_t scale[MOST_TRIED], best = -1, fitted = -1;

    em_find_closest_scales(s);
    const int n = candidates(s, scale);
    for (int i = 0; i < n; i++) {
        const int64_t k = scale[i];
        if (isnan(gain[k])) {
            em_fit_group(s, k, fit);
            gain[k] = fit->total;
            fitted = k;
        }
        if (gain[k] > most) {
            most = gain[k];
            best = k;
        }
    }
    if (best >= 0 && best != fitted)
        em_fit_group(s, best, fit);
    return best;
}

/* Fits the rows of a proved group to what data tell. If the prior varies, its part of derivatives
 * is not known, and the group is non-centred wholly. */
static em_status fit_proved(em_group_search *s, const em_normal_prior *prior, em_group_fit *f)
{
    em_write_priors(s, prior, f);
    em_status status = em_set_group(s, f, s->conditional);
    if (!status && prior[f->child[0]].varies == 0)
        status = s->gradient ? em_probe_data(s, s->gradient, prior, f) : em_add_data(s, prior, f);
    const em_status dropped = em_drop_group(s);
    return status ? status : dropped;
}

/* Adds the proved groups, except those that make the draws clearly less nearly normal, and those
 * without a neck that do not make them more nearly normal. */
static em_status add_proved(em_group_search *s, const em_normal_prior *prior, em_group_fit *f)
{
    int64_t scale[EM_MOST_GROUPS];
    const int n = em_list_proved_scales(s->dim, prior, scale);
    em_status status = EM_OK;

    for (int g = 0; !status && g < n && s->n_group + 2 <= EM_MOST_GROUPS; g++) {
        const double degree = em_list_proved_group(s, prior, scale[g], f);
        const double least =
            em_has_neck(s, prior, f) ? -nearer_by_chance / (double)s->n : least_nearer;
        double now = INFINITY;
        int n_added = 0;
        if (f->n > 0)
            status = fit_proved(s, prior, f);
        if (status || f->n == 0)
            continue;
        status = add_with_means(s, f, degree, &now, &n_added);
        if (!status && now < s->nearest - least)
            s->nearest = now;
        else
            while (!status && n_added-- > 0)
                status = em_drop_group(s);
    }
    return status;
}

/* Sets the map of the proved groups at positions that are no draws, so that their normality tells
 * nothing. A prior that varies is left out, because its row does not hold everywhere. */
static em_status set_proved(em_group_search *s, const em_normal_prior *prior, em_group_fit *f,
                            double *u)
{
    int64_t scale[EM_MOST_GROUPS];
    const int n = em_list_proved_scales(s->dim, prior, scale);
    em_status status = EM_OK;

    em_take_columns(s, u);
    s->panel = u; /* the derivatives are taken anew */
    for (int g = 0; !status && g < n; g++) {
        em_list_proved_group(s, prior, scale[g], f);
        if (f->n == 0 || prior[f->child[0]].varies != 0)
            continue;
        status = fit_proved(s, prior, f);
        const bool is_valid = status != EM_EDATA;
        status = status ? status : em_set_group(s, f, s->conditional);
        if (status == EM_EDATA) /* a number is not finite */
            status = is_valid ? em_drop_group(s) : EM_OK;
    }
    return status;
}

/* Adds the parameters with a curved location as one group. They come first, so that derivatives by
 * the parameters that they use do not contain theirs. */
static em_status add_curves(em_group_search *s, const em_normal_prior *prior, em_group_fit *f)
{
    em_status status = em_curve_fit(s->dim, s->samples, prior, s->row);

    f->n = 0;
    for (int64_t i = 0; i < s->dim; i++)
        if (s->row[i].form == EM_SCALE_CONSTANT)
            f->child[f->n++] = i;
    if (status || f->n == 0)
        return status;
    f->scale = (int64_t)s->row[f->child[0]].scale;
    em_add_group(s, f, s->row);
    status = em_set_map(s, s->row);
    return status ? status : em_find_departure(s, &s->nearest);
}

/* Adds groups one after the other, each time the one that gains most. */
static em_status find_groups(em_group_search *s, em_group_fit *fit, double *gain)
{
    bool kept = true;
    em_status status = EM_OK;

    for (int rejected = 0; !status && s->n_group < EM_MOST_GROUPS && rejected < MOST_REJECTED;
         rejected += !kept) {
        for (int64_t k = 0; kept && k < s->dim; k++) {
            gain[k] = NAN;
            s->is_rejected[k] = false; /* the derivatives in the new coordinates may tell more */
        }
        if (fit_best(s, fit, gain) < 0)
            break;
        status = try_group(s, fit, &kept);
    }
    return status > 0 ? EM_OK : status;
}

/* Sets the map to these rows if they make the draws more nearly normal, by *now; else it stays.
 * s->row and s->nearest are left to the caller. */
static em_status set_if_nearer(em_group_search *s, const em_noncentring_row *row, bool *is_nearer,
                               double *now)
{
    em_status status = em_set_map(s, row);

    status = status ? status : em_find_departure(s, now);
    *is_nearer = !status && *now < s->nearest - least_nearer - nearer_by_chance / (double)s->n;
    if (!*is_nearer && (status >= 0 || status == EM_EDATA))
        status = em_set_map(s, s->row);
    return status;
}

/* Adds second log scales, if they make the draws more nearly normal. */
static em_status refine_scales(em_group_search *s)
{
    const double least = least_of_group + group_by_chance / (double)s->n;
    EM_SCOPED em_noncentring_row *refined = NULL;
    bool is_nearer = false;
    double now;
    em_status status = em_allocate(s->dim, sizeof *refined, &refined);

    if (!status)
        memcpy(refined, s->row, (size_t)s->dim * sizeof *refined);
    status = status ? status : em_transform_draws(s, true);
    if (!status) {
        memcpy(s->left, s->panel, (size_t)(s->dim * s->n) * sizeof *s->left);
        status = correlate(s, s->panel);
    }
    status = status ? status : em_transform_draws(s, false);
    if (!status && em_add_second_scales(s, s->left, least, refined)) {
        status = set_if_nearer(s, refined, &is_nearer, &now);
        if (is_nearer)
            memcpy(s->row, refined, (size_t)s->dim * sizeof *refined);
    }
    return status > 0 ? EM_OK : status;
}

/* Moves the rows of the block to a group of their own. */
static em_status add_block(em_group_search *s, const em_noncentring_row *joined, em_group_fit *f)
{
    f->n = 0;
    for (int64_t i = 0; i < s->dim; i++)
        if (joined[i].form == EM_SCALE_JOINT) {
            f->child[f->n++] = i;
            s->group_of[i] = -1;
        }
    f->scale = (int64_t)joined[f->child[0]].scale;
    return em_set_group(s, f, joined);
}

/* Maps members that are distributed about each other together, if this makes the draws more nearly
 * normal. */
static em_status join_members(em_group_search *s, const em_normal_prior *prior, em_group_fit *f)
{
    EM_SCOPED em_noncentring_row *joined = NULL;
    bool is_nearer = false;
    double now;
    int64_t n = 0;
    em_status status = em_allocate(s->dim, sizeof *joined, &joined);

    if (!status)
        memcpy(joined, s->row, (size_t)s->dim * sizeof *joined);
    status = status ? status : em_fit_block(s, prior, joined, &n);
    if (status || n == 0 || s->n_group == EM_MOST_GROUPS)
        return status > 0 ? EM_OK : status;
    status = set_if_nearer(s, joined, &is_nearer, &now);
    if (!is_nearer)
        return status;
    s->nearest = now;
    return add_block(s, joined, f);
}

/* Whether members of the group are distributed about others, as in a random walk: the map of each
 * one alone does not suit them. */
static bool is_walk(const em_normal_prior *prior, const em_group_fit *f)
{
    for (int64_t c = 0; c < f->n; c++) {
        const em_normal_prior *own = &prior[f->child[c]];
        for (int j = 0; j < EM_MOST_LOCATIONS && own->location[j] >= 0; j++) {
            const em_normal_prior *of_location = &prior[(int64_t)own->location[j]];
            if (of_location->precision > 0 && of_location->scale == own->scale)
                return true;
        }
    }
    return false;
}

/* Adds the proved groups of a model with many parameters, and those of walks together. A prior that
 * varies is left out. */
static em_status add_many(em_group_search *s, const em_normal_prior *prior, em_group_fit *f,
                          double *u)
{
    int64_t scale[EM_MOST_GROUPS];
    const int n = em_list_proved_scales(s->dim, prior, scale);

    em_take_columns(s, u);
    s->panel = u; /* the derivatives are taken anew */
    em_status status = em_find_departure(s, &s->nearest);
    for (int g = 0; !status && g < n && s->n_group < EM_MOST_GROUPS; g++) {
        em_list_proved_group(s, prior, scale[g], f);
        if (f->n == 0 || prior[f->child[0]].varies != 0 || is_walk(prior, f))
            continue;
        const double least =
            em_has_neck(s, prior, f) ? -nearer_by_chance / (double)s->n : least_nearer;
        double now = INFINITY;
        status = fit_proved(s, prior, f);
        if (status || f->n == 0)
            continue;
        status = em_measure_group(s, f, s->conditional, &now);
        if (!status && now < s->nearest - least)
            s->nearest = now;
        else if (!status)
            status = em_drop_group(s);
    }
    return status ? status : join_members(s, prior, f);
}

/* ---------------------------------------------------------------- the search */

/* Lays out all arrays of doubles in one allocation. */
static em_status lay_out(em_group_search *s, em_group_fit *f, double **memory, double **u)
{
    const int64_t dim = s->dim, n = s->n, width = s->selection.width;
    const struct {
        double **to;
        int64_t count;
    } part[] = {{&s->x, dim * n},
                {u, dim * n},
                {&s->left, dim * n},
                {&s->transformed, 2 * dim * n},
                {&s->rho, dim * dim},
                {&s->slope, dim * dim},
                {&s->moment, dim * dim},
                {&s->mean, dim},
                {&s->sd, dim},
                {&f->profile, dim * EM_N_DEGREE},
                {&f->degree, dim},
                {&f->gain, dim},
                {&s->of.basis, EM_MOST_REGRESSORS * n},
                {&s->of.weight, n},
                {&s->residual, n},
                {&s->column, n},
                {&s->factor, n},
                {&s->step_factor, n},
                {&f->square, dim},
                {&s->weights, EM_N_DEGREE * n},
                {&s->stack, EM_FIT_STACK(dim) * n},
                {&s->product, EM_FIT_STACK(dim) * (dim + 1)},
                {&s->selection.panel, (width + 1) * n},
                {&s->selection.gram, width * width},
                {&s->selection.of_y, width + 1},
                {&s->selection.basis, (width + 1) * EM_MOST_REGRESSORS}};
    enum { PARTS = sizeof part / sizeof *part };
    int64_t total = 0;

    for (int i = 0; i < PARTS; i++)
        total += part[i].count;
    const em_status status = em_allocate_doubles(total, memory);
    double *at = *memory;
    for (int i = 0; !status && i < PARTS; at += part[i++].count)
        *part[i].to = at;
    return status;
}

/* What a search adds. */
typedef enum search_kind { PROVED_ALONE, PROVED_OF_MANY, ALL_ROWS, ALL_AND_BLOCK } search_kind;

/* Finds all groups, in the order of levels. */
static em_status find_all(em_group_search *s, const em_normal_prior *prior, bool may_join,
                          em_group_fit *tried, double *gain, double *u)
{
    em_take_columns(s, u);
    em_status status = correlate(s, u);
    s->panel = u; /* which has served */
    status = status ? status : em_find_departure(s, &s->nearest);
    status = status ? status : add_curves(s, prior, tried);
    if (!status && prior)
        status = add_proved(s, prior, tried);
    if (!status && prior && may_join)
        status = join_members(s, prior, tried);
    status = status ? status : find_groups(s, tried, gain);
    return !status && s->map.n_child > 0 ? refine_scales(s) : status;
}

static em_status search(int64_t dim, const em_samples *samples,
                        const em_gradient_function *gradient, const em_normal_prior *prior,
                        search_kind kind, em_noncentring_row *row, int64_t *n_child)
{
    const int64_t most = kind == PROVED_OF_MANY ? MOST_DRAWS_OF_MANY : EM_MOST_NONCENTRING_DRAWS;
    const int64_t n = em_least(samples->n, most);
    em_group_search s = {
        .dim = dim,
        .n = n,
        .samples = samples,
        .gradient = gradient,
        .row = row,
        .of.n = n,
        .selection = {.dim = dim, .n = n, .width = kind == PROVED_OF_MANY ? 0 : 2 + 2 * dim}};
    em_group_fit tried = {0};
    EM_SCOPED_BY(em_release_owned) em_owner memory = {NULL};
    EM_SCOPED double *columns = NULL;
    double *u = NULL, *gain = NULL;

    *n_child = 0;
    memset(row, 0, (size_t)dim * sizeof *row);
    if (kind == PROVED_ALONE
            ? samples->n < dim + LEAST_SPARE
            : kind != PROVED_OF_MANY && !em_suffices_for_noncentring(dim, samples->n))
        return EM_OK;
    em_status status = em_own_all(
        &memory, EM_ARRAY(s.group_of, dim), EM_ARRAY(s.used_by, dim), EM_ARRAY(tried.child, dim),
        EM_ARRAY(gain, dim), EM_ARRAY(s.closest, dim), EM_ARRAY(s.votes, dim),
        EM_ARRAY(s.candidate, dim), EM_ARRAY(s.is_location, dim), EM_ARRAY(s.is_rejected, dim),
        EM_ARRAY(s.allowed, dim), EM_ARRAY(s.conditional, dim));
    status = status ? status : em_noncentring_create(dim, &s.map);
    status = status ? status : lay_out(&s, &tried, &columns, &u);
    for (int64_t i = 0; !status && i < dim; i++)
        s.group_of[i] = -1;
    if (!status && kind == PROVED_ALONE)
        status = set_proved(&s, prior, &tried, u);
    else if (!status && kind == PROVED_OF_MANY)
        status = add_many(&s, prior, &tried, u);
    else if (!status)
        status = find_all(&s, prior, kind == ALL_AND_BLOCK, &tried, gain, u);
    *n_child = s.map.n_child;
    em_noncentring_release(&s.map);
    return status > 0 ? EM_OK : status; /* draws that determine no regression */
}

em_status em_noncentring_search(int64_t dim, const em_samples *samples,
                                const em_normal_prior *prior, bool may_join,
                                em_noncentring_row *row, int64_t *n_child)
{
    return search(dim, samples, NULL, prior, may_join ? ALL_AND_BLOCK : ALL_ROWS, row, n_child);
}

em_status em_noncentring_of_priors(int64_t dim, const em_samples *samples,
                                   const em_normal_prior *prior, em_noncentring_row *row,
                                   int64_t *n_child)
{
    return search(dim, samples, NULL, prior, PROVED_ALONE, row, n_child);
}

em_status em_noncentring_of_many(int64_t dim, const em_samples *samples,
                                 const em_gradient_function *gradient, const em_normal_prior *prior,
                                 em_noncentring_row *row, int64_t *n_child)
{
    return search(dim, samples, gradient, prior, PROVED_OF_MANY, row, n_child);
}
