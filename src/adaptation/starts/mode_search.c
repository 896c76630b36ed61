#include "adaptation/starts/mode_search.h"

#include "adaptation/starts/ascent.h"
#include "base/memory.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

/* Ascents of a run, at least; dimensions up to which optima are compared; modes that are told
 * apart; rounds of draws and ascents; draws of one start until its density is finite. */
enum { LEAST_ASCENTS = 12, MOST_DIM = 200, MOST_MODES = 16, MOST_ROUNDS = 20, MOST_TRIES = 100 };

/* Further ascents of a chain from where the last one ended; draws of a start that cannot move. */
enum { MOST_CONTINUED = 3, MOST_STILL = 5 };

/* Draws of starts have numbers beyond those of the first ones. */
enum { FIRST_REDRAW = 1 << 20, FIRST_EXTRA = 1 << 24 };

static const double negligible = 15; /* logs of mass below that of the largest mode */
static const double worth_telling = 4.6;

/* One optimum and the normal law around it. */
typedef struct mode {
    double log_density, log_mass; /* NaN: not known */
    double *centre, *precision;   /* [dim], [dim][dim] */
} mode;

struct em_mode_search {
    em_grid *grid;
    int64_t dim, stride, n_local;
    int64_t n_each;  /* ascents of a chain: its own, and further ones */
    double *redrawn; /* [n_local] */
    double *scale;   /* [n_local][stride] the diagonal of the inverse curvature above a start */
    int64_t n_mode;
    mode mode[MOST_MODES];
    double *modes;  /* [n_mode][2 + dim + dim^2] all of the modes */
    double *visits; /* [n_local][MOST_MODES] */
    int64_t every;  /* iterations between counts of visits */
};

typedef enum task { TASK_NONE, TASK_DRAW, TASK_CONTINUE } task;

/* The search under way. Ends of ascents are known to all ranks, `row` numbers of each. */
typedef struct ascents {
    em_mode_search *search;
    em_posterior *posterior;
    em_start_law *law;
    void *context;
    em_block *block;
    double *gradients;
    em_ascent *path;
    bool compares;  /* ends are compared; else nothing is kept of them */
    int64_t n, row; /* ends of all chains; numbers of one: log density, converged, theta */
    double *end;    /* [n][row] */
    int *mode;      /* [n] which one it is; -1: none, or not known yet */
    int *compared;  /* [n] modes that it was compared with */
    task *task;     /* [n] what is to be done */
    int *continued; /* [n] how often */
    double *onward; /* [MOST_MODES][dim] the way up from where there is no optimum; else 0 */
    int64_t maker[MOST_MODES], n_weighed; /* ends that modes were made of; modes with a mass */
    double *draws;                        /* [n_local] so far */
    double *own;                          /* [n_local][n_each][row] */
    double *rest;                         /* [n_local][n_each][2][stride] gradient, scale */
    double *log_mass; /* [n_local] about that of the best point of the way to where it begins */
    double *further;  /* [stride] */
    bool *moved;      /* [n_local] the chain begins elsewhere than at its first draw */
} ascents;

/* ---------------------------------------------------------------- set up */

em_status em_mode_search_create(em_grid *grid, int64_t dim, em_mode_search **out)
{
    const int64_t n_chain = em_grid_n_chain(grid);
    em_mode_search *search = NULL;
    em_status status = em_allocate(1, sizeof *search, &search);

    *out = search;
    if (status)
        return status;
    search->grid = grid;
    search->dim = dim;
    search->stride = em_stride(dim);
    search->n_local = em_grid_n_local_chain(grid);
    search->n_each = dim > MOST_DIM ? 1 : (LEAST_ASCENTS + n_chain - 1) / n_chain;
    search->every = dim > 50 ? 10 : 1;
    status = em_allocate(search->n_local, sizeof *search->redrawn, &search->redrawn);
    if (!status)
        status =
            em_allocate(search->n_local * search->stride, sizeof *search->scale, &search->scale);
    if (!status)
        status = em_allocate(search->n_local * MOST_MODES, sizeof *search->visits, &search->visits);
    return status;
}

void em_mode_search_destroy(em_mode_search **out)
{
    if (*out) {
        em_release(&(*out)->redrawn);
        em_release(&(*out)->scale);
        em_release(&(*out)->modes);
        em_release(&(*out)->visits);
    }
    em_release(out);
}

static em_status create_ascents(ascents *a)
{
    const em_mode_search *search = a->search;
    const int64_t n_own = search->n_local * search->n_each;
    em_status status;

    a->compares = search->dim <= MOST_DIM;
    a->n = em_grid_n_chain(search->grid) * search->n_each;
    a->row = a->compares ? 2 + search->dim : 0;
    status = em_ascent_create(search->dim, &a->path);
    if (!status)
        status = em_allocate(a->n * a->row, sizeof *a->end, &a->end);
    if (!status)
        status = em_allocate(a->n, sizeof *a->mode, &a->mode);
    if (!status)
        status = em_allocate(a->n, sizeof *a->compared, &a->compared);
    if (!status)
        status = em_allocate(a->n, sizeof *a->task, &a->task);
    if (!status)
        status = em_allocate(a->n, sizeof *a->continued, &a->continued);
    if (!status)
        status =
            em_allocate(a->compares ? MOST_MODES * search->dim : 0, sizeof *a->onward, &a->onward);
    if (!status)
        status = em_allocate(search->n_local, sizeof *a->draws, &a->draws);
    if (!status)
        status = em_allocate(search->n_local, sizeof *a->moved, &a->moved);
    if (!status)
        status = em_allocate(search->n_local, sizeof *a->log_mass, &a->log_mass);
    if (!status)
        status = em_allocate(search->stride, sizeof *a->further, &a->further);
    if (!status)
        status = em_allocate(n_own * a->row, sizeof *a->own, &a->own);
    if (!status)
        status =
            em_allocate(a->compares ? n_own * 2 * search->stride : 0, sizeof *a->rest, &a->rest);
    for (int64_t e = 0; !status && e < a->n; e++) {
        a->task[e] = TASK_DRAW;
        a->mode[e] = -1;
    }
    return status;
}

static void destroy_ascents(ascents *a)
{
    em_ascent_destroy(&a->path);
    em_release(&a->end);
    em_release(&a->mode);
    em_release(&a->compared);
    em_release(&a->task);
    em_release(&a->continued);
    em_release(&a->onward);
    em_release(&a->draws);
    em_release(&a->moved);
    em_release(&a->log_mass);
    em_release(&a->further);
    em_release(&a->own);
    em_release(&a->rest);
}

/* ---------------------------------------------------------------- ascents, of one chain each */

static int64_t first_own(const ascents *a)
{
    return em_grid_first_chain(a->search->grid) * a->search->n_each;
}

/* A draw from the law of starts, and the way up from there: one that has a density and can move, or
 * one of a few that have a density, where none can. */
static em_status draw_and_ascend(ascents *a, int64_t c, int64_t k, double *theta)
{
    const int64_t chain = em_grid_first_chain(a->search->grid) + c;
    const uint64_t first = k == 0 ? FIRST_REDRAW + (uint64_t)a->draws[c] * MOST_TRIES
                                  : FIRST_EXTRA + (uint64_t)k * MOST_TRIES;
    int n_still = 0;
    em_status status = EM_OK;

    for (uint64_t t = 0; !status && t < MOST_TRIES; t++) {
        status = a->law(a->context, chain, first + t, theta);
        if (!status)
            status = em_ascend(a->posterior, chain, theta, NULL, a->path);
        a->gradients[c] += (double)a->path->gradients;
        if (k == 0)
            a->search->redrawn[c]++;
        if (!a->path->stuck || (!isnan(a->path->log_density[0]) && ++n_still == MOST_STILL))
            break;
    }
    return !status && k == 0 && isnan(a->path->log_density[0])
               ? em_fail(EM_EMODEL, "chain %lld: no finite log density in %d draws of its start",
                         (long long)chain, MOST_TRIES)
               : status;
}

/* The way up from where the last ascent ended, or from beside it, where that is no optimum. */
static em_status ascend_further(ascents *a, int64_t c, int m, const double *end,
                                const double *scale)
{
    const int64_t dim = a->search->dim;
    double *theta = a->further;

    memset(theta, 0, (size_t)a->search->stride * sizeof *theta);
    for (int64_t i = 0; i < dim; i++)
        theta[i] = end[i] + (m < 0 ? 0 : a->onward[m * dim + i]);
    return em_ascend(a->posterior, em_grid_first_chain(a->search->grid) + c, theta, scale, a->path);
}

/* Where chain c begins: on the way that was just gone or, if it has already begun on another part
 * of that, where there is more mass. */
static void choose_start(ascents *a, int64_t c, bool further)
{
    const int64_t stride = a->search->stride;
    const int64_t start = em_ascent_start(a->path);

    if (further && !(a->path->best_mass > a->log_mass[c]))
        return;
    a->log_mass[c] = a->path->best_mass;
    a->moved[c] |= start > 0 || further || a->draws[c] > 0 || a->search->redrawn[c] > 0;
    memcpy(a->search->scale + c * stride, a->path->best_scale, (size_t)stride * sizeof(double));
    memcpy(a->block->theta + c * stride, a->path->point + start * stride,
           (size_t)stride * sizeof(double));
}

/* Keeps where ascent i of this rank ended. */
static void keep_end(ascents *a, int64_t i)
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

/* The ascent from one start. */
static em_status follow(ascents *a, int64_t c, int64_t k)
{
    const int64_t stride = a->search->stride;
    const int64_t i = c * a->search->n_each + k, e = first_own(a) + i;
    const bool further = a->task[e] == TASK_CONTINUE;
    double *theta = k == 0 ? a->block->theta + c * stride : a->further;
    em_status status = EM_OK;

    a->path->stuck = true;
    a->path->gradients = 0;
    if (further)
        status = ascend_further(a, c, a->mode[e], a->own + i * a->row + 2,
                                a->rest + (2 * i + 1) * stride);
    else if (k == 0 && a->draws[c] == 0)
        status = em_ascend(a->posterior, a->block->chain[c], theta, NULL, a->path);
    a->gradients[c] += (double)a->path->gradients;
    if (!status && a->path->stuck && !further)
        status = draw_and_ascend(a, c, k, theta);
    if (status || (further && a->path->stuck))
        return status;
    if (a->compares)
        keep_end(a, i);
    if (k == 0) {
        choose_start(a, c, further);
        a->draws[c]++;
    }
    return EM_OK;
}

/* All that is pending. Collective. */
static em_status follow_all(ascents *a)
{
    const em_mode_search *search = a->search;
    const int64_t n_each = search->n_each, own = first_own(a);
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < search->n_local * n_each; i++)
        if (a->task[own + i] != TASK_NONE)
            status = follow(a, i / n_each, i % n_each);
    status = em_agree(status);
    for (int64_t e = 0; e < a->n; e++)
        if (a->task[e] != TASK_NONE) {
            a->mode[e] = -1;
            a->compared[e] = 0;
            a->task[e] = TASK_NONE;
        }
    if (!status && a->compares)
        status = em_grid_gather_chains(search->grid, n_each * a->row, a->own, a->end);
    return status;
}

/* ---------------------------------------------------------------- which modes there are */

static const double *end_of(const ascents *a, int64_t e)
{
    return a->end + e * a->row;
}

/* Whether the end of an ascent is nearly as high as a mode, and the log density does not fall on
 * the line to its centre. */
static em_status is_of_mode(ascents *a, int64_t e, const mode *m, double *yes)
{
    const em_mode_search *search = a->search;
    const int64_t c = (e - first_own(a)) / search->n_each, chain = e / search->n_each;
    const double *end = end_of(a, e), part[] = {0.5, 0.2};
    double *between = a->path->point, *gradient = between + search->stride;
    em_status status = EM_OK;

    *yes = end[0] > m->log_density - em_fall_of_draws(search->dim);
    memset(between, 0, (size_t)search->stride * sizeof *between);
    for (size_t k = 0; status >= 0 && *yes != 0 && k < sizeof part / sizeof *part; k++) {
        double log_density = NAN;
        for (int64_t i = 0; i < search->dim; i++)
            between[i] = end[2 + i] + part[k] * (m->centre[i] - end[2 + i]);
        status = em_posterior_evaluate(a->posterior, &(em_query){.n_chain = 1,
                                                                 .stride = search->stride,
                                                                 .chain = &chain,
                                                                 .theta = between,
                                                                 .log_density = &log_density,
                                                                 .gradient = gradient});
        a->gradients[c]++;
        *yes = status == EM_OK && log_density > fmin(end[0], m->log_density) - 0.2;
    }
    return status < 0 ? status : EM_OK;
}

/* Compares ends that are of no mode yet with mode number m. Collective. */
static em_status compare(ascents *a, int m)
{
    const em_mode_search *search = a->search;
    const int64_t n_own = search->n_local * search->n_each, own = first_own(a);
    double *mark = NULL, *all = NULL;
    em_status status = em_allocate(n_own, sizeof *mark, &mark);

    if (!status)
        status = em_allocate(a->n, sizeof *all, &all);
    for (int64_t i = 0; !status && i < n_own; i++)
        if (a->mode[own + i] < 0 && end_of(a, own + i)[1] != 0 && a->compared[own + i] <= m)
            status = is_of_mode(a, own + i, &search->mode[m], &mark[i]);
    status = em_agree(status);
    if (!status)
        status = em_grid_gather_chains(search->grid, search->n_each, mark, all);
    for (int64_t e = 0; !status && e < a->n; e++) {
        if (a->mode[e] < 0 && all[e] != 0)
            a->mode[e] = m;
        a->compared[e] = a->compared[e] > m ? a->compared[e] : m + 1;
    }
    em_release(&mark);
    em_release(&all);
    return status;
}

/* The highest end that is of no mode; -1: all are. */
static int64_t highest_left(const ascents *a)
{
    int64_t best = -1;

    for (int64_t e = 0; e < a->n; e++)
        if (a->mode[e] < 0 && end_of(a, e)[1] != 0 &&
            (best < 0 || end_of(a, e)[0] > end_of(a, best)[0]))
            best = e;
    return best;
}

/* Adds a mode at end e of an ascent. */
static em_status add_mode(ascents *a, int64_t e)
{
    em_mode_search *search = a->search;
    const int64_t dim = search->dim, size = 2 + dim + dim * dim;
    em_status status = em_reallocate((search->n_mode + 1) * size, sizeof(double), &search->modes);

    for (int64_t m = 0; !status && m <= search->n_mode; m++) {
        search->mode[m].centre = search->modes + m * size + 2;
        search->mode[m].precision = search->mode[m].centre + dim;
    }
    if (status)
        return status;
    mode *const new = &search->mode[search->n_mode];
    new->log_density = end_of(a, e)[0];
    new->log_mass = NAN;
    memcpy(new->centre, end_of(a, e) + 2, (size_t)dim * sizeof *new->centre);
    memset(new->precision, 0, (size_t)(dim * dim) * sizeof *new->precision);
    a->mode[e] = (int)search->n_mode++;
    return EM_OK;
}

/* The Laplace approximation of a mode, by the rank that has followed end e to it, for all.
 * Collective. */
static em_status approximate(ascents *a, mode *m, int64_t e)
{
    em_mode_search *search = a->search;
    const int64_t dim = search->dim, n = 1 + dim + dim * dim;
    const int64_t i = e - first_own(a), n_each = search->n_each;
    const bool own = i >= 0 && i < search->n_local * n_each;
    double *row = NULL;
    em_status status = em_allocate(n, sizeof *row, &row);

    if (!status && own) {
        double *rest = a->rest + i * 2 * search->stride;
        const em_optimum at = {m->centre, rest, rest + search->stride, m->log_density, true};
        status = em_laplace(a->posterior, e / n_each, dim, &at, row + 1 + dim, row, row + 1);
        a->gradients[i / n_each] += 2 * (double)dim;
    }
    status = em_agree(status);
    if (!status)
        status = em_grid_begin_sum(search->grid, n);
    if (!status) {
        if (own)
            em_grid_add_to_sum(search->grid, n, row);
        em_grid_end_sum(search->grid, n, row);
        m->log_mass = row[0];
        memcpy(a->onward + (m - search->mode) * dim, row + 1, (size_t)dim * sizeof *row);
        memcpy(m->precision, row + 1 + dim, (size_t)(dim * dim) * sizeof *row);
    }
    em_release(&row);
    return status;
}

/* Assigns ends of ascents to modes, makes new modes of the rest, and weighs all where there are
 * several. Collective. */
static em_status sort_into_modes(ascents *a)
{
    em_mode_search *search = a->search;
    em_status status = EM_OK;

    for (int m = 0; !status && m < search->n_mode; m++)
        status = compare(a, m);
    for (int64_t e; !status && search->n_mode < MOST_MODES && (e = highest_left(a)) >= 0;) {
        a->maker[search->n_mode] = e;
        status = em_agree(add_mode(a, e));
        if (!status)
            status = compare(a, (int)search->n_mode - 1);
    }
    for (; !status && search->n_mode > 1 && a->n_weighed < search->n_mode; a->n_weighed++)
        status = approximate(a, &search->mode[a->n_weighed], a->maker[a->n_weighed]);
    return status;
}

static double largest_mass(const em_mode_search *search)
{
    double largest = -INFINITY;

    for (int64_t m = 0; m < search->n_mode; m++)
        largest = fmax(largest, search->mode[m].log_mass);
    return largest;
}

/* Has chains whose start leads to a mode of no mass draw another; false: none does. */
static bool refuse_negligible(ascents *a)
{
    const em_mode_search *search = a->search;
    const double least = largest_mass(search) - negligible;
    bool any = false;

    for (int64_t e = 0; e < a->n; e += search->n_each)
        if (a->mode[e] >= 0 && search->mode[a->mode[e]].log_mass < least) {
            a->task[e] = TASK_DRAW;
            a->continued[e] = 0;
            any = true;
        }
    return any;
}

/* The log density of the highest mode whose Laplace mass is known; -infinity where there is none:
 * the mass of a single mode is not computed. */
static double highest_optimum(const em_mode_search *search)
{
    double highest = -INFINITY;

    for (int64_t m = 0; m < search->n_mode; m++)
        if (!isnan(search->mode[m].log_mass))
            highest = fmax(highest, search->mode[m].log_density);
    return highest;
}

/* Whether an ascent ended in no mode, and far below `height`. */
static bool ended_early(const ascents *a, int64_t e, double height)
{
    const em_mode_search *search = a->search;

    return (a->mode[e] < 0 || (a->n_weighed > 0 && isnan(search->mode[a->mode[e]].log_mass))) &&
           end_of(a, e)[0] < height - em_fall_of_draws(search->dim);
}

/* Has chains go on upwards whose ascent ended early; false: none does. Collective. */
static em_status continue_ascents(ascents *a, bool *any)
{
    em_mode_search *search = a->search;
    em_status status = EM_OK;

    for (int64_t e = 0; !status && search->n_mode == 1 && a->n_weighed == 0 && e < a->n;
         e += search->n_each)
        if (ended_early(a, e, search->mode[0].log_density))
            status = approximate(a, &search->mode[a->n_weighed++], a->maker[0]);
    for (int64_t e = 0; !status && e < a->n; e += search->n_each)
        if (ended_early(a, e, highest_optimum(search)) && a->continued[e]++ < MOST_CONTINUED) {
            a->task[e] = TASK_CONTINUE;
            *any = true;
        }
    return status;
}

/* Keeps the modes that have mass, where there are several. */
static void keep_modes(em_mode_search *search)
{
    const double least = largest_mass(search) - worth_telling;
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
    search->n_mode = n > 1 ? n : 0;
    for (int64_t m = 0; m < search->n_mode; m++) {
        double *from = search->modes + m * size;
        search->mode[m] = (mode){from[0], from[1], from + 2, from + 2 + dim};
    }
}

static em_status search_modes(ascents *a)
{
    em_status status = em_agree(create_ascents(a));
    bool goes_on = true;

    for (int round = 0; !status && goes_on && round < MOST_ROUNDS; round++) {
        status = follow_all(a);
        goes_on = false;
        if (!status && a->compares) {
            status = sort_into_modes(a);
            goes_on = !status && refuse_negligible(a);
            if (!status)
                status = continue_ascents(a, &goes_on);
        }
    }
    if (!status)
        keep_modes(a->search);
    return status;
}

em_status em_mode_search_start(em_mode_search *search, em_posterior *posterior, em_start_law *law,
                               void *context, em_block *block, double *gradients)
{
    ascents a = {.search = search,
                 .posterior = posterior,
                 .law = law,
                 .context = context,
                 .block = block,
                 .gradients = gradients};
    em_status status = search->dim > EM_ASCENT_MOST_DIM ? EM_OK : search_modes(&a);

    bool any = false;
    for (int64_t c = 0; !status && a.moved && c < search->n_local; c++) {
        any |= a.moved[c];
        gradients[c] += a.moved[c];
    }
    if (any)
        status = em_block_evaluate(posterior, block);
    destroy_ascents(&a);
    return em_agree(status < 0 ? status : EM_OK);
}

const double *em_mode_search_scale(const em_mode_search *search)
{
    return search->dim > EM_ASCENT_MOST_DIM ? NULL : search->scale;
}

/* ---------------------------------------------------------------- which of them are visited */

/* The logarithm of the normal law of a mode, times its mass. */
static double log_law(const mode *m, int64_t dim, const double *theta)
{
    double square = 0;

    for (int64_t i = 0; i < dim; i++) {
        const double d = theta[i] - m->centre[i];
        double sum = m->precision[i * dim + i] * d / 2;
        for (int64_t j = 0; j < i; j++)
            sum += m->precision[i * dim + j] * (theta[j] - m->centre[j]);
        square += 2 * d * sum;
    }
    return m->log_density - square / 2;
}

void em_mode_search_observe(em_mode_search *search, const em_block *block, int64_t iteration)
{
    if (search->n_mode == 0 || iteration % search->every != 0)
        return;
    for (int64_t c = 0; c < block->n_chain; c++) {
        int64_t nearest = 0;
        double most = -INFINITY;
        for (int64_t m = 0; m < search->n_mode; m++) {
            const double law =
                log_law(&search->mode[m], search->dim, block->theta + c * block->stride);
            if (law > most) {
                most = law;
                nearest = m;
            }
        }
        search->visits[c * MOST_MODES + nearest]++;
    }
}

em_status em_mode_search_conclude(em_mode_search *search, em_mode_findings *out)
{
    const double largest = largest_mass(search);
    double visits[MOST_MODES], redrawn = 0, missed = 0, seen = 0;
    em_status status = em_grid_sum_chains(search->grid, 1, search->redrawn, &redrawn);

    *out = (em_mode_findings){.n_mode = search->n_mode, .log_mass = NAN};
    if (!status && search->n_mode > 0)
        status = em_grid_sum_chains(search->grid, MOST_MODES, search->visits, visits);
    if (status)
        return status;
    out->n_redrawn = (int64_t)redrawn;
    for (int64_t m = 0; m < search->n_mode; m++) {
        const double mass = exp(search->mode[m].log_mass - largest);
        out->n_missed += visits[m] == 0;
        *(visits[m] == 0 ? &missed : &seen) += mass;
    }
    if (out->n_missed > 0)
        out->log_mass = log(missed / seen);
    return EM_OK;
}

/* ---------------------------------------------------------------- checkpoints */

em_status em_mode_search_visit(em_mode_search *search, const em_visitor *visitor)
{
    const int64_t dim = search->dim, size = 2 + dim + dim * dim;
    double n = (double)search->n_mode;
    em_status status = visitor->shared(visitor->context, "n_mode", 1, &n);

    if (!status && !(n >= 0 && n <= MOST_MODES && n == floor(n)))
        status = em_fail(EM_EDATA, "a checkpoint has %g modes, expected 0 to %d", n, MOST_MODES);
    if (!status)
        status = visitor->chains(visitor->context, "redrawn", 1, search->redrawn);
    if (status || n == 0)
        return status;
    if (visitor->restores) {
        search->n_mode = (int64_t)n;
        status = em_agree(em_reallocate(search->n_mode * size, sizeof(double), &search->modes));
    }
    if (!status)
        status = visitor->shared(visitor->context, "modes", search->n_mode * size, search->modes);
    for (int64_t m = 0; !status && m < search->n_mode; m++) {
        double *from = search->modes + m * size;
        search->mode[m] = (mode){from[0], from[1], from + 2, from + 2 + dim};
    }
    return status ? status
                  : visitor->chains(visitor->context, "mode_visits", MOST_MODES, search->visits);
}
