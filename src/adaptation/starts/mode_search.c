#include "adaptation/starts/mode_search.h"

#include "adaptation/starts/draw_mass.h"
#include "adaptation/starts/mode_comparison.h"
#include "adaptation/starts/probes.h"
#include "base/memory.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

/* The largest numbers of rounds of draws and ascents, of draws of one start until its density is
 * finite, and of draws of a start from which the ascent cannot move. */
enum { MOST_ROUNDS = 20, MOST_TRIES = 100, MOST_STILL = 5 };

/* Later draws of starts use random numbers from here on, so that they differ from those of the
 * first draws. */
enum { FIRST_REDRAW = 1 << 20, FIRST_EXTRA = 1 << 24 };

/* ---------------------------------------------------------------- set up */

em_status em_mode_search_create(em_grid *grid, int64_t dim, const em_search_plan *plan,
                                em_mode_search **out)
{
    const int64_t n_chain = em_grid_n_chain(grid);
    em_status status = em_allocate(1, sizeof **out, out);
    em_mode_search *search = *out;

    if (status)
        return status;
    search->grid = grid;
    search->dim = dim;
    search->stride = em_stride(dim);
    search->n_local = em_grid_n_local_chain(grid);
    search->n_each = dim > EM_MODE_SEARCH_MOST_DIM ? 1 : (plan->most + n_chain - 1) / n_chain;
    search->plan = *plan;
    search->plan.least = (plan->least + n_chain - 1) / n_chain;
    search->plan.gradients /= (double)n_chain;
    search->plan.probe_gradients /= (double)n_chain;
    search->least_modes = plan->keeps_one ? 1 : 2;
    search->every = dim > 50 ? 10 : 1;
    status = em_own_all(&search->memory, EM_ARRAY(search->redrawn, search->n_local),
                        EM_ARRAY(search->scale, search->n_local * search->stride));
    return status || !plan->notes_steep || dim > EM_MODE_SEARCH_MOST_DIM
               ? status
               : em_steep_search_create(&search->memory, grid, dim, &search->steep);
}

void em_mode_search_destroy(em_mode_search **out)
{
    if (*out) {
        em_mode_visits_release(&(*out)->visits);
        em_outer_mass_release(&(*out)->outer);
        em_release(&(*out)->modes);
    }
    em_release_owner(out);
}

static em_status create_ascents(em_ascents *a)
{
    const em_mode_search *search = a->search;
    const int64_t n = search->n_local, n_own = n * search->n_each;
    em_status status = em_ascent_create(&a->memory, search->dim, &a->path);

    if (!status && a->most > 0)
        a->path->most = a->most;
    a->compares = search->dim <= EM_MODE_SEARCH_MOST_DIM;
    a->n = em_grid_n_chain(search->grid) * search->n_each;
    a->row = a->compares ? 2 + search->dim : 0;
    const int64_t n_onward = a->compares ? EM_MOST_MODES * search->dim : 0;
    const int64_t n_rest = a->compares ? n_own * 2 * search->stride : 0;
    if (!status)
        status = em_own_all(&a->memory, EM_ARRAY(a->end, a->n * a->row), EM_ARRAY(a->mode, a->n),
                            EM_ARRAY(a->compared, a->n), EM_ARRAY(a->task, a->n),
                            EM_ARRAY(a->continued, a->n), EM_ARRAY(a->onward, n_onward),
                            EM_ARRAY(a->draws, n), EM_ARRAY(a->moved, n), EM_ARRAY(a->log_mass, n),
                            EM_ARRAY(a->further, search->stride), EM_ARRAY(a->own, n_own * a->row),
                            EM_ARRAY(a->rest, n_rest));
    for (int64_t e = 0; !status && e < a->n; e++) {
        a->task[e] = EM_ASCENT_DRAW;
        a->mode[e] = -1;
    }
    return status;
}

/* ---------------------------------------------------------------- ascents, of one chain each */

/* Draws a start with a finite density, and ascends from it. If the ascent cannot move, the start is
 * drawn again, a few times. */
static em_status draw_and_ascend(em_ascents *a, int64_t c, int64_t k, double *theta)
{
    const int64_t chain = em_grid_first_chain(a->search->grid) + c;
    const uint64_t first = k == 0 ? FIRST_REDRAW + (uint64_t)a->draws[c] * MOST_TRIES
                                  : FIRST_EXTRA + (uint64_t)k * MOST_TRIES;
    int n_still = 0;
    em_status status = EM_OK;

    for (uint64_t t = 0; !status && t < MOST_TRIES; t++) {
        status = a->law(a->context, chain, first + t, theta);
        status = status ? status : em_ascend(a->posterior, chain, theta, a->scale, a->path);
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

/* Ascends from the end of the last ascent, or from a point beside it if the end is no optimum. */
static em_status ascend_further(em_ascents *a, int64_t c, int m, const double *end,
                                const double *scale)
{
    const int64_t dim = a->search->dim;
    double *theta = a->further;

    memset(theta, 0, (size_t)a->search->stride * sizeof *theta);
    for (int64_t i = 0; i < dim; i++)
        theta[i] = end[i] + (m < 0 ? 0 : a->onward[m * dim + i]);
    return em_ascend(a->posterior, em_grid_first_chain(a->search->grid) + c, theta, scale, a->path);
}

/* Sets the start of chain c to a point of the last ascent. If an earlier part of the ascent has set
 * a start already, the start with more mass is used. */
static void choose_start(em_ascents *a, int64_t c, bool further)
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

/* Makes or continues the ascent number k of chain c. */
static em_status follow(em_ascents *a, int64_t c, int64_t k)
{
    const int64_t stride = a->search->stride;
    const int64_t i = c * a->search->n_each + k, e = em_first_own_ascent(a) + i;
    const bool further = a->task[e] == EM_ASCENT_CONTINUE;
    double *theta = k == 0 ? a->block->theta + c * stride : a->further;
    em_status status = EM_OK;

    a->path->stuck = true;
    a->path->gradients = 0;
    if (further)
        status = ascend_further(a, c, a->mode[e], a->own + i * a->row + 2,
                                a->rest + (2 * i + 1) * stride);
    else if (k == 0 && a->draws[c] == 0)
        status = em_ascend(a->posterior, a->block->chain[c], theta, a->scale, a->path);
    a->gradients[c] += (double)a->path->gradients;
    if (!status && a->path->stuck && !further)
        status = draw_and_ascend(a, c, k, theta);
    if (status || (further && a->path->stuck))
        return status;
    if (a->compares)
        em_keep_end(a, i);
    if (k == 0) {
        choose_start(a, c, further);
        a->draws[c]++;
    }
    return EM_OK;
}

/* Whether ascent i of this rank is left out because its chain has used its limit of gradients. */
static bool is_too_many(const em_ascents *a, int64_t i)
{
    const em_mode_search *search = a->search;

    return i % search->n_each >= search->plan.least &&
           a->gradients[i / search->n_each] >= search->plan.gradients;
}

/* Makes all ascents that are pending. Collective. */
static em_status follow_all(em_ascents *a)
{
    const em_mode_search *search = a->search;
    const int64_t n_each = search->n_each, own = em_first_own_ascent(a);
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < search->n_local * n_each; i++)
        if (a->task[own + i] != EM_ASCENT_DONE && !is_too_many(a, i))
            status = follow(a, i / n_each, i % n_each);
    status = em_agree(status);
    for (int64_t e = 0; e < a->n; e++)
        if (a->task[e] != EM_ASCENT_DONE) {
            a->mode[e] = -1;
            a->compared[e] = 0;
            a->task[e] = EM_ASCENT_DONE;
        }
    if (!status && a->compares)
        status = em_grid_gather_chains(search->grid, n_each * a->row, a->own, a->end);
    return status;
}

em_status em_create_visits(const em_mode_search *search, em_mode_visits *out)
{
    const int64_t n = search->n_mode > 0 ? search->n_local : 0;

    return em_agree(em_mode_visits_create(n, search->dim, out));
}

static em_status search_modes(em_ascents *a)
{
    em_status status = em_agree(create_ascents(a));
    bool goes_on = true;

    for (int round = 0; !status && goes_on && round < MOST_ROUNDS; round++) {
        status = follow_all(a);
        goes_on = false;
        if (!status && a->compares) {
            status = em_sort_into_modes(a);
            goes_on = !status && em_refuse_negligible_modes(a);
            status = status ? status : em_continue_ascents(a, &goes_on);
        }
    }
    if (!status && a->compares && a->chains)
        status = em_judge_lone_mode(a);
    if (!status && a->compares && a->search->plan.farthest > 0)
        status = em_probe_modes(a);
    if (!status)
        em_keep_modes(a->search);
    return status ? status : em_create_visits(a->search, &a->search->visits);
}

em_status em_mode_search_start(em_mode_search *search, em_posterior *posterior, em_start_law *law,
                               void *context, em_block *block, double *gradients)
{
    em_ascents a = {.search = search,
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
    em_release_owned(&a.memory);
    return em_agree(status < 0 ? status : EM_OK);
}

em_status em_make_ascents(em_ascents *a)
{
    em_status status = search_modes(a);

    em_release_owned(&a->memory);
    return em_agree(status < 0 ? status : EM_OK);
}

em_steep_points *em_mode_search_steep_points(em_mode_search *search)
{
    return search->steep.kept ? &search->steep.points : NULL;
}

em_status em_mode_search_outside(em_mode_search *search, em_posterior *posterior,
                                 const em_block *block, const double *scale, double *gradients)
{
    return em_outer_mass_search(posterior, search->grid, block, scale, search->plan.seed, gradients,
                                &search->outer);
}

const double *em_mode_search_scale(const em_mode_search *search)
{
    return search->dim > EM_ASCENT_MOST_DIM ? NULL : search->scale;
}

int64_t em_mode_search_n_mode(const em_mode_search *search)
{
    return search->n_mode;
}

em_mode_law em_mode_search_mode(const em_mode_search *search, int64_t m)
{
    const em_optimum_mode *mode = &search->mode[m];

    return (em_mode_law){mode->log_mass, mode->centre, mode->precision};
}

/* ---------------------------------------------------------------- modes that draws visit */

/* A mode is missed, too, if it has less than this share of the draws that its mass leads to expect,
 * whatever the plan's share is, and its mass is notable beside that of the draws inside of no mode.
 */
static const double least_share = 0.02;

/* Counts a draw of chain c of this rank. */
static void count(const em_mode_search *search, em_mode_visits *visits, em_outer_mass *outer,
                  int64_t c, const double *theta, double log_density)
{
    if (search->n_mode > 0)
        em_mode_visits_count(visits, c, search->dim, search->n_mode, search->mode, theta,
                             log_density);
    if (outer->exists)
        em_outer_mass_count(outer, c, search->dim, theta, log_density);
}

void em_mode_search_observe(em_mode_search *search, const em_block *block, int64_t iteration)
{
    em_steep_search_observe(&search->steep, block, iteration);
    if ((search->n_mode == 0 && !search->outer.exists) || iteration % search->every != 0)
        return;
    for (int64_t c = 0; c < block->n_chain; c++)
        count(search, &search->visits, &search->outer, c, block->theta + c * block->stride,
              block->log_density[c]);
}

/* Compares the counts of draws with the masses of the modes. */
static void find_missed(const em_mode_search *search, const em_mode_counts *counts,
                        em_mode_findings *out)
{
    const double largest = em_largest_log_mass(search);
    const double outside = exp(counts->log_mass_outside - largest);
    double all_near = 0, all_mass = 0, missed = 0, seen = 0;
    bool any_inside_missed = false;

    for (int64_t m = 0; m < search->n_mode; m++) {
        all_near += counts->near[m];
        all_mass += exp(search->mode[m].log_mass - largest);
    }
    for (int64_t m = 0; m < search->n_mode; m++) {
        const double mass = exp(search->mode[m].log_mass - largest);
        const bool far = counts->near[m] <= search->plan.share * mass / all_mass * all_near;
        const bool above = !far && mass > exp(EM_MISSED_LOG_MASS_LIMIT) * outside &&
                           counts->inside[m] <= fmax(least_share, search->plan.share) * mass /
                                                    (all_mass + outside) * all_near;
        out->n_missed += far || above;
        any_inside_missed |= above;
        *(far || above ? &missed : &seen) += mass;
    }
    if (out->n_missed > 0)
        out->log_mass = log(missed / (seen + (any_inside_missed ? outside : 0)));
}

static em_status conclude(em_mode_search *search, const em_mode_visits *visits,
                          const em_outer_mass *outer, em_mode_findings *out)
{
    double redrawn = 0;
    em_mode_counts counts;
    em_status status = em_grid_sum_chains(search->grid, 1, search->redrawn, &redrawn);

    *out = (em_mode_findings){
        .n_mode = search->n_mode, .n_redrawn = (int64_t)redrawn, .log_mass = NAN};
    if (!status && search->n_mode > 0)
        status = em_mode_visits_sum(visits, search->grid, search->dim, &counts);
    if (!status && search->n_mode > 0)
        find_missed(search, &counts, out);
    /* The mass of a mode is known better than that of the outer part, to which it may belong. */
    if (!status && out->n_missed == 0)
        status = em_outer_mass_missed(outer, search->grid, search->dim, &out->log_mass);
    return status;
}

em_status em_mode_search_conclude(em_mode_search *search, em_mode_findings *out)
{
    return conclude(search, &search->visits, &search->outer, out);
}

em_status em_mode_search_judge(em_mode_search *search, em_posterior *posterior, int64_t n,
                               const double *theta, em_mode_findings *out)
{
    const int64_t n_draw = search->n_mode > 0 || search->outer.exists ? search->n_local * n : 0;
    const int64_t first = em_grid_first_chain(search->grid);
    EM_SCOPED_BY(em_mode_visits_release) em_mode_visits visits = {0};
    EM_SCOPED_BY(em_outer_mass_release) em_outer_mass outer = {.exists = false};
    EM_SCOPED double *gradient = NULL;
    em_status status = em_create_visits(search, &visits);

    if (!status)
        status = em_outer_mass_copy(&search->outer, search->n_local, search->dim, &outer);
    status = status ? status : em_allocate(search->stride, sizeof *gradient, &gradient);
    status = em_agree(status);
    for (int64_t i = 0; !status && i < n_draw; i++) {
        const double *at = theta + i * search->stride;
        double log_density = NAN;
        status =
            em_evaluate_point(posterior, first + i / n, search->dim, at, gradient, &log_density);
        if (!status && !isnan(log_density))
            count(search, &visits, &outer, i / n, at, log_density);
    }
    status = em_agree(status);
    return status ? status : conclude(search, &visits, &outer, out);
}

/* ---------------------------------------------------------------- checkpoints */

/* Added to the number of modes in a checkpoint that has the counts of draws inside of modes, in one
 * with an outer part, and in one with positions kept beside steep points. Earlier versions stored
 * none of these. */
enum { HAS_INSIDE = 64, HAS_OUTER = 128, HAS_STEEP = 256 };

static em_status visit_counts(em_mode_search *search, const em_visitor *visitor, bool has_inside)
{
    em_mode_visits *visits = &search->visits;
    const size_t n = (size_t)(search->n_local * EM_MOST_MODES);
    em_status status =
        visitor->chains(visitor->context, "mode_visits", EM_MOST_MODES, visits->near);

    if (!status && !has_inside)
        memcpy(visits->inside, visits->near, n * sizeof *visits->inside);
    if (!status && has_inside)
        status = visitor->chains(visitor->context, "mode_inside", EM_MOST_MODES, visits->inside);
    if (!status && has_inside)
        status =
            visitor->chains(visitor->context, "mode_outside", visits->n_outside, visits->outside);
    return status;
}

static em_status visit_modes(em_mode_search *search, const em_visitor *visitor, int64_t n_mode,
                             bool has_inside)
{
    const int64_t dim = search->dim, size = 2 + dim + dim * dim;
    em_status status = EM_OK;

    if (visitor->restores) {
        search->n_mode = n_mode;
        em_mode_visits_release(&search->visits);
        status = em_agree(em_reallocate(n_mode * size, sizeof(double), &search->modes));
        status = status ? status : em_create_visits(search, &search->visits);
    }
    if (!status)
        status = visitor->shared(visitor->context, "modes", n_mode * size, search->modes);
    if (!status)
        em_point_to_modes(search, n_mode, true);
    return status ? status : visit_counts(search, visitor, has_inside);
}

em_status em_mode_search_visit(em_mode_search *search, const em_visitor *visitor)
{
    double n = (double)search->n_mode;

    n += (search->n_mode > 0 ? HAS_INSIDE : 0) + (search->outer.exists ? HAS_OUTER : 0) +
         (search->steep.n > 0 ? HAS_STEEP : 0);
    em_status status = visitor->shared(visitor->context, "n_mode", 1, &n);
    const bool has_steep = n >= HAS_STEEP;
    n -= has_steep ? HAS_STEEP : 0;
    const bool has_outer = n >= HAS_OUTER;
    n -= has_outer ? HAS_OUTER : 0;
    const bool has_inside = n >= HAS_INSIDE;
    n -= has_inside ? HAS_INSIDE : 0;
    if (!status && !(n >= 0 && n <= EM_MOST_MODES && n == floor(n)))
        status = em_fail(EM_EDATA, "a checkpoint has %g modes, expected 0 to %d", n, EM_MOST_MODES);
    status = status ? status : visitor->chains(visitor->context, "redrawn", 1, search->redrawn);
    if (!status && n > 0)
        status = visit_modes(search, visitor, (int64_t)n, has_inside);
    if (!status && has_outer)
        status = em_outer_mass_visit(&search->outer, search->n_local, search->dim, visitor);
    if (!status && has_steep && !search->steep.kept)
        status = em_fail(EM_EDATA, "a checkpoint has steep points, which this run does not record");
    return status || !has_steep ? status : em_steep_search_visit(&search->steep, visitor);
}
