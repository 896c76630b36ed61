/* Compares optima. It finds which ascents ended in the same mode, the Laplace mass of each mode,
 * and the starts that are drawn again because the mass of their mode is negligible. */
#include "adaptation/starts/mode_comparison.h"

#include "base/memory.h"
#include "par/world.h"

#include <string.h>

/* The largest number of times that an ascent of a chain is continued from its end. */
enum { MOST_CONTINUED = 3 };

static const double negligible = 15; /* logs of mass below that of the largest mode */
static const double worth_telling = 4.6;

void em_point_to_modes(em_mode_search *search, int64_t n_mode, bool reads)
{
    const int64_t dim = search->dim, size = 2 + dim + dim * dim;

    for (int64_t m = 0; m < n_mode; m++) {
        double *from = search->modes + m * size;
        em_optimum_mode *mode = &search->mode[m];
        if (reads) {
            mode->log_density = from[0];
            mode->log_mass = from[1];
        }
        mode->centre = from + 2;
        mode->precision = from + 2 + dim;
    }
}

static const double *end_of(const em_ascents *a, int64_t e)
{
    return a->end + e * a->row;
}

void em_keep_end(em_ascents *a, int64_t i)
{
    const int64_t stride = a->search->stride;
    const em_optimum end = em_ascent_end(a->path);
    double *own = a->own + i * a->row, *rest = a->rest + i * 2 * stride;

    own[0] = end.log_density;
    own[1] = end.converged;
    memcpy(own + 2, end.theta, (size_t)a->search->dim * sizeof *own);
    memcpy(rest, end.gradient, (size_t)stride * sizeof *rest);
    memcpy(rest + stride, end.scale, (size_t)stride * sizeof *rest);
}

/* The log density on the line from the end of an ascent to the centre of a mode, at the fraction
 * `part`. If the evaluation fails, which says nothing about the density, a point a little further
 * on is tried. */
static em_status evaluate_between(em_ascents *a, int64_t e, const em_optimum_mode *m, double part,
                                  double *log_density)
{
    enum { MOST_TRIES = 4 };
    const em_mode_search *search = a->search;
    const bool may_fail = em_posterior_may_fail(a->posterior);
    const int64_t c = (e - em_first_own_ascent(a)) / search->n_each, chain = e / search->n_each;
    const double *end = end_of(a, e);
    double *between = a->path->point, *gradient = between + search->stride;
    em_status status = EM_OK;

    memset(between, 0, (size_t)search->stride * sizeof *between);
    *log_density = NAN;
    for (int t = 0; status >= 0 && isnan(*log_density) && t < (may_fail ? MOST_TRIES : 1); t++) {
        for (int64_t i = 0; i < search->dim; i++)
            between[i] = end[2 + i] + (part + 0.01 * t) * (m->centre[i] - end[2 + i]);
        status = em_posterior_evaluate(a->posterior, &(em_query){.n_chain = 1,
                                                                 .stride = search->stride,
                                                                 .chain = &chain,
                                                                 .theta = between,
                                                                 .log_density = log_density,
                                                                 .gradient = gradient});
        a->gradients[c]++;
    }
    return status;
}

/* Whether the end of an ascent is nearly as high as a mode, and the log density does not fall on
 * the line to its centre. */
static em_status is_of_mode(em_ascents *a, int64_t e, const em_optimum_mode *m, double *yes)
{
    const double *end = end_of(a, e), part[] = {0.5, 0.2};
    em_status status = EM_OK;

    *yes = end[0] > m->log_density - em_fall_of_draws(a->search->dim);
    for (size_t k = 0; status >= 0 && *yes != 0 && k < sizeof part / sizeof *part; k++) {
        double log_density;
        status = evaluate_between(a, e, m, part[k], &log_density);
        *yes = status == EM_OK && log_density > fmin(end[0], m->log_density) - 0.2;
    }
    return status < 0 ? status : EM_OK;
}

/* Compares with mode m the ends of ascents that belong to no mode yet. Collective. */
static em_status compare(em_ascents *a, int m)
{
    const em_mode_search *search = a->search;
    const int64_t n_own = search->n_local * search->n_each, own = em_first_own_ascent(a);
    EM_SCOPED double *mark = NULL, *all = NULL;
    em_status status = em_allocate_all(EM_ARRAY(mark, n_own), EM_ARRAY(all, a->n));

    for (int64_t i = 0; !status && i < n_own; i++)
        if (a->mode[own + i] < 0 && end_of(a, own + i)[1] != 0 && a->compared[own + i] <= m)
            status = is_of_mode(a, own + i, &search->mode[m], &mark[i]);
    status = em_agree(status);
    status = status ? status : em_grid_gather_chains(search->grid, search->n_each, mark, all);
    for (int64_t e = 0; !status && e < a->n; e++) {
        if (a->mode[e] < 0 && all[e] != 0)
            a->mode[e] = m;
        a->compared[e] = (int)em_most(a->compared[e], m + 1);
    }
    return status;
}

/* The end of an ascent with the highest density that belongs to no mode; -1: all belong to one. */
static int64_t highest_left(const em_ascents *a)
{
    int64_t best = -1;

    for (int64_t e = 0; e < a->n; e++)
        if (a->mode[e] < 0 && end_of(a, e)[1] != 0 &&
            (best < 0 || end_of(a, e)[0] > end_of(a, best)[0]))
            best = e;
    return best;
}

/* Adds a mode at end e of an ascent. */
static em_status add_mode(em_ascents *a, int64_t e)
{
    em_mode_search *search = a->search;
    const int64_t dim = search->dim, size = 2 + dim + dim * dim;
    em_status status = em_reallocate((search->n_mode + 1) * size, sizeof(double), &search->modes);

    if (status)
        return status;
    em_point_to_modes(search, search->n_mode + 1, false);
    em_optimum_mode *const new = &search->mode[search->n_mode];
    new->log_density = end_of(a, e)[0];
    new->log_mass = NAN;
    memcpy(new->centre, end_of(a, e) + 2, (size_t)dim * sizeof *new->centre);
    memset(new->precision, 0, (size_t)(dim * dim) * sizeof *new->precision);
    a->mode[e] = (int)search->n_mode++;
    return EM_OK;
}

/* The Laplace approximation of a mode. The rank whose ascent ended there computes it for all.
 * Collective. */
static em_status approximate(em_ascents *a, int64_t number)
{
    em_mode_search *search = a->search;
    em_optimum_mode *m = &search->mode[number];
    const int64_t dim = search->dim, n = 1 + dim + dim * dim;
    const int64_t e = a->maker[number], i = e - em_first_own_ascent(a), n_each = search->n_each;
    const bool own = i >= 0 && i < search->n_local * n_each;
    EM_SCOPED double *row = NULL;
    em_status status = em_agree(em_allocate(n, sizeof *row, &row));

    if (!status && own) {
        double *rest = a->rest + i * 2 * search->stride;
        const em_optimum at = {m->centre, rest, rest + search->stride, m->log_density, true};
        status = em_laplace(a->posterior, e / n_each, dim, &at, row + 1 + dim, row, row + 1);
        a->gradients[i / n_each] += 2 * (double)dim;
    }
    status = em_agree(status);
    status = status ? status : em_grid_begin_sum(search->grid, n);
    if (!status) {
        if (own)
            em_grid_add_to_sum(search->grid, n, row);
        em_grid_end_sum(search->grid, n, row);
        m->log_mass = row[0];
        memcpy(a->onward + number * dim, row + 1, (size_t)dim * sizeof *row);
        memcpy(m->precision, row + 1 + dim, (size_t)(dim * dim) * sizeof *row);
    }
    return status;
}

em_status em_sort_into_modes(em_ascents *a)
{
    em_mode_search *search = a->search;
    em_status status = EM_OK;

    for (int m = 0; !status && m < search->n_mode; m++)
        status = compare(a, m);
    for (int64_t e; !status && search->n_mode < EM_MOST_MODES && (e = highest_left(a)) >= 0;) {
        a->maker[search->n_mode] = e;
        status = em_agree(add_mode(a, e));
        status = status ? status : compare(a, (int)search->n_mode - 1);
    }
    while (!status && search->n_mode >= search->least_modes && a->n_weighed < search->n_mode)
        status = approximate(a, a->n_weighed++);
    return status;
}

bool em_refuse_negligible_modes(em_ascents *a)
{
    const em_mode_search *search = a->search;
    const double least = em_largest_log_mass(search) - negligible;
    bool any = false;

    for (int64_t e = 0; e < a->n; e += search->n_each)
        if (a->mode[e] >= 0 && search->mode[a->mode[e]].log_mass < least) {
            a->task[e] = EM_ASCENT_DRAW;
            a->continued[e] = 0;
            any = true;
        }
    return any;
}

/* The log density of the highest mode with a known Laplace mass; -infinity if there is none. The
 * mass is not computed if there is only one mode. */
static double highest_optimum(const em_mode_search *search)
{
    double highest = -INFINITY;

    for (int64_t m = 0; m < search->n_mode; m++)
        if (!isnan(search->mode[m].log_mass))
            highest = fmax(highest, search->mode[m].log_density);
    return highest;
}

/* Whether an ascent belongs to no mode and ended far below `height`. */
static bool ended_early(const em_ascents *a, int64_t e, double height)
{
    const em_mode_search *search = a->search;

    return (a->mode[e] < 0 || (a->n_weighed > 0 && isnan(search->mode[a->mode[e]].log_mass))) &&
           end_of(a, e)[0] < height - em_fall_of_draws(search->dim);
}

em_status em_continue_ascents(em_ascents *a, bool *any)
{
    em_mode_search *search = a->search;
    em_status status = EM_OK;

    for (int64_t e = 0; !status && search->n_mode == 1 && e < a->n; e += search->n_each)
        if (ended_early(a, e, search->mode[0].log_density))
            status = em_weigh_lone_mode(a);
    for (int64_t e = 0; !status && e < a->n; e += search->n_each)
        if (ended_early(a, e, highest_optimum(search)) && a->continued[e]++ < MOST_CONTINUED) {
            a->task[e] = EM_ASCENT_CONTINUE;
            *any = true;
        }
    return status;
}

em_status em_weigh_lone_mode(em_ascents *a)
{
    return a->search->n_mode == 1 && a->n_weighed == 0 ? approximate(a, a->n_weighed++) : EM_OK;
}

em_status em_judge_lone_mode(em_ascents *a)
{
    em_mode_search *search = a->search;
    const int64_t n_local = a->chains->n_chain, n_chain = em_grid_n_chain(search->grid);
    double *below = NULL, n_below = 0;

    if (search->n_mode != 1 || a->n_weighed > 0)
        return EM_OK;
    em_status status = em_agree(em_allocate(n_local, sizeof *below, &below));
    for (int64_t c = 0; !status && c < n_local; c++)
        below[c] = a->chains->log_density[c] < em_least_inside(&search->mode[0], search->dim);
    status = status ? status : em_grid_sum_chains(search->grid, 1, below, &n_below);
    if (!status && 2 * n_below > (double)n_chain) {
        search->least_modes = 1;
        status = em_weigh_lone_mode(a);
    }
    em_release(&below);
    return status;
}

void em_keep_modes(em_mode_search *search)
{
    const double least = em_largest_log_mass(search) - worth_telling;
    const int64_t dim = search->dim, size = 2 + dim + dim * dim;
    int64_t n = 0;

    for (int64_t m = 0; m < search->n_mode; m++) {
        if (!(search->mode[m].log_mass >= least))
            continue;
        double *to = search->modes + n * size;
        memmove(to + 2, search->mode[m].centre, (size_t)(size - 2) * sizeof *to);
        to[0] = search->mode[m].log_density;
        to[1] = search->mode[m].log_mass;
        n++;
    }
    search->n_mode = n >= search->least_modes ? n : 0;
    em_point_to_modes(search, search->n_mode, true);
}
