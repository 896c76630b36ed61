/*
 * A run on its course: what is observed in each stage, and the meetings at which windows and stages
 * end. Everything is decided from exact sums over the chains, or from rows of all of them, so that
 * it is the same on any number of ranks.
 */
#include "base/memory.h"
#include "exchange/engine.h"
#include "exchange/ladder.h"
#include "math/order.h"
#include "math/rng.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

/* Iterations after which a chain that others left behind may take the state of one of them; one
 * that never moved may do so earlier. */
enum { FIRST_RESCUE = 20 };

/* ---------------------------------------------------------------- set up */

bool em_course_runs(const em_mass_options *options, const em_sampler_ops *sampler,
                    const em_sampler_options *sampler_options, em_trajectory *drawn)
{
    const em_estimator_ops *estimator = em_estimators[options->estimator];

    *drawn = sampler->trajectory ? sampler->trajectory(sampler_options)
                                 : (em_trajectory){.kind = EM_TRAJECTORY_OPTIONS};
    return drawn->kind != EM_TRAJECTORY_OPTIONS && options->share == EM_SHARE_ALL &&
           (!estimator->estimate || estimator->windowed) && !estimator->noise;
}

static int64_t count_windows(const em_course_plan *plan)
{
    int64_t count = 0;

    for (int64_t end = 0; end < plan->arrive; count++)
        end = em_course_next_window(plan, end);
    return count;
}

em_status em_course_create(em_adapt *adapt, const em_trajectory *drawn, int64_t warmup)
{
    const int64_t n = adapt->n_local_chain;
    em_course *course = &adapt->course;
    em_status status;

    course->runs = true;
    course->plan = em_course_plan_create(warmup, drawn);
    course->drawn = *drawn;
    course->drawn.time = course->plan.time;
    course->kept = course->drawn;
    course->kept_averaging.target = adapt->sampler_options->target_accept;
    course->stage = course->plan.warmup > 0 ? EM_STAGE_ARRIVE : EM_STAGE_DRAW;
    course->ended = course->plan.warmup > 0 ? -1 : 0;
    course->window = em_course_next_window(&course->plan, 0);
    adapt->n_segment = EM_MOST_SEGMENTS;
    adapt->most_m_steps = count_windows(&course->plan);
    const struct {
        double **vector;
        int64_t size;
    } vectors[] = {{&course->history, n * course->plan.arrive},
                   {&course->since, n},
                   {&course->lag, course->plan.climbs ? n * em_lag_size(adapt->dim) : 0},
                   {&course->kept_r, adapt->dim},
                   {&course->tried_r, adapt->dim}};
    status = em_allocate(em_grid_n_chain(adapt->grid), sizeof(bool), &course->flagged);
    if (!status)
        status = em_allocate(n, sizeof *course->moves, &course->moves);
    for (size_t i = 0; !status && i < sizeof vectors / sizeof *vectors; i++)
        status = em_allocate(vectors[i].size, sizeof(double), vectors[i].vector);
    return status;
}

void em_course_destroy(em_course *course)
{
    double **const vectors[] = {&course->history, &course->since,  &course->gradients,
                                &course->lag,     &course->kept_r, &course->tried_r};

    em_release(&course->flagged);
    em_release(&course->moves);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        em_release(vectors[i]);
}

/* Medians of columns first .. first + n of |gradient|, into out[n]; rows are gathered into all. */
static em_status column_medians(em_adapt *adapt, const em_block *block, int64_t first, int64_t n,
                                double *local, double *all, double *out)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid);
    double *column = all + n_chain * n;
    em_status status;

    for (int64_t c = 0; c < block->n_chain; c++)
        for (int64_t i = 0; i < n; i++)
            local[c * n + i] = fabs(block->gradient[c * block->stride + first + i]);
    status = em_grid_gather_chains(adapt->grid, n, local, all);
    for (int64_t i = 0; !status && i < n; i++) {
        for (int64_t c = 0; c < n_chain; c++)
            column[c] = all[c * n + i];
        em_sort_numbers(n_chain, column);
        out[i] = em_sorted_median(n_chain, column);
    }
    return status;
}

/* W_0 = diag(1 / median |g_i|): the median, because one chain may start where g is out of all
 * proportion. Columns are gathered some at a time, to bound the memory. */
em_status em_course_begin(em_adapt *adapt, const em_block *block)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid), dim = adapt->dim;
    const int64_t fit = (1 << 20) / n_chain + 1, batch = fit < dim ? fit : dim;
    double *work = NULL;
    em_mass *mass = NULL;
    em_status status = em_agree(em_allocate(
        adapt->n_local_chain * batch + n_chain * (batch + 1) + dim, sizeof *work, &work));

    if (status)
        return status;
    double *all = work + adapt->n_local_chain * batch, *scale = all + n_chain * (batch + 1);
    for (int64_t first = 0; !status && first < dim; first += batch)
        status = column_medians(adapt, block, first, dim - first < batch ? dim - first : batch,
                                work, all, scale + first);
    for (int64_t i = 0; i < dim; i++)
        scale[i] = 1 / fmin(fmax(scale[i], 1e-10), 1e10);
    if (!status)
        status = em_agree(em_mass_of_diagonal(&adapt->form, scale, &mass));
    if (!status) {
        em_mass_destroy(&adapt->pools->mass);
        adapt->pools->mass = mass;
        em_publish_to_chains(adapt);
    }
    em_release(&work);
    return status;
}

/* ---------------------------------------------------------------- what is observed */

/* Iterations of tune and of each climb after which the autocorrelation is looked at. */
static int64_t first_lag(const em_course *course)
{
    return course->begun + course->plan.tune / 5;
}

static bool is_measured(const em_course *course)
{
    return course->plan.climbs && course->drawn.kind == EM_TRAJECTORY_TIME &&
           (course->stage == EM_STAGE_TUNE || course->stage == EM_STAGE_CLIMB);
}

static void observe_arrival(em_adapt *adapt, const em_block *block, int64_t iteration)
{
    em_course *course = &adapt->course;

    if (iteration > 0 && em_course_splits(&course->plan, iteration))
        course->segment_from[++course->segment] = iteration;
    for (int64_t c = 0; c < block->n_chain; c++) {
        course->history[c * course->plan.arrive + iteration] = block->log_density[c];
        if (em_learns(adapt))
            em_collect(adapt, block, c, false);
    }
    em_window_take(&adapt->window, block, iteration);
}

/* Whether this is a stage in which trajectories of one length may turn out not to fit. */
static bool is_tried(const em_course *course)
{
    return course->plan.learned && course->drawn.kind == EM_TRAJECTORY_TIME &&
           (course->stage == EM_STAGE_TUNE || course->stage == EM_STAGE_CLIMB);
}

static void observe_moves(em_adapt *adapt, const em_block *block)
{
    for (int64_t c = 0; c < block->n_chain; c++)
        em_moves_observe(block->acceptance[c], block->stat[EM_STAT_DIVERGING][c] != 0,
                         &adapt->course.moves[c]);
}

static void observe_lag(em_adapt *adapt, const em_block *block, int64_t iteration)
{
    const em_course *course = &adapt->course;
    const int64_t size = em_lag_size(adapt->dim);

    for (int64_t c = 0; c < block->n_chain; c++) {
        for (int64_t i = 0; i < adapt->dim; i++)
            adapt->sample[i] = block->theta[c * block->stride + i] - adapt->pools->centre[i];
        em_lag_observe(adapt->dim, adapt->sample, block->n_step[c], iteration - first_lag(course),
                       course->lag + c * size);
    }
}

void em_course_observe(em_adapt *adapt, const em_block *block, int64_t iteration)
{
    const em_course *course = &adapt->course;

    if (course->stage == EM_STAGE_ARRIVE)
        observe_arrival(adapt, block, iteration);
    else if (iteration >= first_lag(course)) {
        if (is_tried(course))
            observe_moves(adapt, block);
        if (is_measured(course))
            observe_lag(adapt, block, iteration);
    }
}

/* ---------------------------------------------------------------- the end of a window */

/* The log densities of all chains since the later half of the window began. Collective. */
static em_status gather_stretches(em_adapt *adapt, int64_t done, em_stretch *all)
{
    const em_course *course = &adapt->course;
    const int64_t from = em_course_later_half(done), n = sizeof *all / sizeof(double);
    em_stretch *local = NULL;
    em_status status = em_agree(em_allocate(adapt->n_local_chain, sizeof *local, &local));

    for (int64_t c = 0; !status && c < adapt->n_local_chain; c++) {
        const int64_t since = (int64_t)course->since[c], first = since > from ? since : from;
        local[c] = em_stretch_of(done - first, course->history + c * course->plan.arrive + first);
    }
    if (!status)
        status = em_grid_gather_chains(adapt->grid, n, (const double *)local, (double *)all);
    em_release(&local);
    return status;
}

/* out[n_local_chain][n_accumulator] = the sums over the later half, of chains that are not flagged.
 * Local. */
static void add_later_half(const em_adapt *adapt, int64_t done, double *out)
{
    const em_course *course = &adapt->course;
    const int64_t first_chain = em_grid_first_chain(adapt->grid), n = adapt->n_accumulator;
    const int64_t from = em_course_later_half(done);

    memset(out, 0, (size_t)(adapt->n_local_chain * n) * sizeof *out);
    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        for (int64_t k = 0; !course->flagged[first_chain + c] && k <= course->segment; k++) {
            const double *x = em_accumulators(adapt, c, k);
            for (int64_t i = 0; course->segment_from[k] >= from && i < n; i++)
                out[c * n + i] += x[i];
        }
}

/* What is measured from the centre follows it to where publish has moved it: the mean of the pooled
 * positions. Local. */
static void recentre(em_adapt *adapt)
{
    const double n = adapt->pooled[0], *position = adapt->pooled + adapt->n_estimator;

    for (int64_t i = 0; i < adapt->dim; i++)
        adapt->sample[i] = position[i] / n;
    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        for (int64_t k = 0; k <= adapt->course.segment; k++) {
            double *x = em_accumulators(adapt, c, k);
            for (int64_t i = 0; i < adapt->dim; i++)
                x[adapt->n_estimator + i] -= x[0] * adapt->sample[i];
            em_estimator_recentre(adapt->estimator, &adapt->form, adapt->sample, x);
        }
}

/* The mass from the sums over the later half, and a step size for it. Collective. */
static em_status learn_mass(em_adapt *adapt, int64_t done)
{
    em_pool *pool = adapt->pools;
    double *half = NULL;
    bool refused = false;
    em_status status =
        em_agree(em_allocate(adapt->n_local_chain * adapt->n_accumulator, sizeof *half, &half));

    if (!status) {
        add_later_half(adapt, done, half);
        adapt->s_count = em_grid_n_chain(adapt->grid) * (done - em_course_later_half(done));
        status = em_pooled_m_step(adapt, half, done, &refused);
    }
    if (!status && !refused) {
        recentre(adapt);
        if (adapt->adapts_step)
            em_dual_averaging_start(&pool->averaging, pool->step_size, 2);
    }
    em_release(&half);
    return status;
}

/* Forgets the segments that windows to come do not look back on. Local. */
static void drop_segments(em_adapt *adapt)
{
    em_course *course = &adapt->course;
    const int64_t from = em_course_later_half(course->window), size = adapt->n_accumulator;
    int64_t first = 0;

    while (first < course->segment && course->segment_from[first] < from)
        first++;
    course->segment -= first;
    memmove(course->segment_from, course->segment_from + first,
            (size_t)(course->segment + 1) * sizeof *course->segment_from);
    for (int64_t c = 0; first > 0 && c < adapt->n_local_chain; c++) {
        memmove(em_accumulators(adapt, c, 0), em_accumulators(adapt, c, first),
                (size_t)((course->segment + 1) * size) * sizeof(double));
        memset(em_accumulators(adapt, c, course->segment + 1), 0,
               (size_t)((adapt->n_segment - course->segment - 1) * size) * sizeof(double));
    }
}

/* A row of all that a chain is. */
static void pack_chain(const em_block *block, int64_t c, double *row)
{
    memcpy(row, block->theta + c * block->stride, (size_t)block->dim * sizeof *row);
    memcpy(row + block->dim, block->gradient + c * block->stride, (size_t)block->dim * sizeof *row);
    row[2 * block->dim] = block->log_density[c];
}

static void unpack_chain(const double *row, em_block *block, int64_t c)
{
    memcpy(block->theta + c * block->stride, row, (size_t)block->dim * sizeof *row);
    memcpy(block->gradient + c * block->stride, row + block->dim, (size_t)block->dim * sizeof *row);
    block->log_density[c] = row[2 * block->dim];
}

/* Which chains are not flagged, into out[n_chain]; returns how many. */
static int64_t list_leaders(const em_adapt *adapt, int64_t *out)
{
    int64_t n = 0;

    for (int64_t c = 0; c < em_grid_n_chain(adapt->grid); c++)
        if (!adapt->course.flagged[c])
            out[n++] = c;
    return n;
}

/* One of them, for a chain that is flagged. */
static int64_t choose_leader(const em_adapt *adapt, int64_t n_leader, const int64_t *leader,
                             int64_t chain, int64_t done)
{
    const em_stream stream = {adapt->seed, (uint64_t)chain, (uint64_t)done, EM_RNG_RESCUE};

    return leader[em_uniform_below(&stream, 0, (uint64_t)n_leader)];
}

/* Chain `chain` goes on from where `row` says, and what it was before is forgotten. Local. */
static void follow(em_adapt *adapt, em_block *block, int64_t chain, const double *row, int64_t done)
{
    const int64_t c = chain - em_grid_first_chain(adapt->grid);

    if (c < 0 || c >= block->n_chain)
        return;
    unpack_chain(row, block, c);
    memset(em_accumulators(adapt, c, 0), 0,
           (size_t)(adapt->n_segment * adapt->n_accumulator) * sizeof(double));
    em_window_forget(&adapt->window, c);
    adapt->course.since[c] = (double)done;
}

/* Moves the chains marked in `lost` to where others stand. Collective. */
static em_status move_lost(em_adapt *adapt, em_block *block, int64_t done, const bool *lost)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid), width = 2 * block->dim + 1;
    double *local = NULL, *all = NULL;
    int64_t *leader = NULL;
    em_status status = em_allocate(block->n_chain * width, sizeof *local, &local);

    if (!status)
        status = em_allocate(n_chain * width, sizeof *all, &all);
    if (!status)
        status = em_allocate(n_chain, sizeof *leader, &leader);
    status = em_agree(status);
    for (int64_t c = 0; !status && c < block->n_chain; c++)
        pack_chain(block, c, local + c * width);
    if (!status)
        status = em_grid_gather_chains(adapt->grid, width, local, all);
    const int64_t n_leader = status ? 0 : list_leaders(adapt, leader);
    for (int64_t c = 0; !status && c < n_chain; c++)
        if (lost[c])
            follow(adapt, block, c, all + choose_leader(adapt, n_leader, leader, c, done) * width,
                   done);
    em_release(&local);
    em_release(&all);
    em_release(&leader);
    return status;
}

/* Collective, where there is somebody to rescue. */
static em_status rescue(em_adapt *adapt, em_block *block, const em_stretch *stretch, int64_t done)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid);
    em_course *course = &adapt->course;
    bool *lost = NULL;
    int64_t n = 0;
    em_status status;

    if (!adapt->options->rescue)
        return EM_OK;
    status = em_agree(em_allocate(n_chain, sizeof *lost, &lost));
    for (int64_t c = 0; !status && c < n_chain; c++) {
        lost[c] = course->flagged[c] &&
                  (done >= FIRST_RESCUE || em_stands_still(&stretch[c], adapt->dim));
        n += lost[c];
    }
    if (!status && n > 0) {
        status = move_lost(adapt, block, done, lost);
        course->n_rescued += n;
        course->last_rescue = done;
    }
    for (int64_t c = 0; !status && c < n_chain; c++)
        course->flagged[c] &= !lost[c];
    em_release(&lost);
    return status;
}

static void enter(em_course *course, em_stage_id stage, int64_t done)
{
    course->stage = stage;
    course->begun = done;
}

/* The step size that a stage ends with: the averaged one. Local. */
static double final_step_size(const em_adapt *adapt)
{
    const em_pool *pool = adapt->pools;

    return adapt->adapts_step ? em_dual_averaging_final(&pool->averaging) : pool->step_size;
}

/* What was learned in the stage that ends. Collective. */
static em_status record(em_adapt *adapt, em_stage_end why, int64_t done)
{
    em_course *course = &adapt->course;
    const bool timed = course->stage != EM_STAGE_ARRIVE && course->drawn.kind == EM_TRAJECTORY_TIME;
    em_stage_record *out = &course->record[course->n_stage++];

    *out = (em_stage_record){.stage = course->stage,
                             .iteration = (double)done,
                             .end = why,
                             .time = timed ? course->drawn.time : NAN,
                             .step_size = final_step_size(adapt)};
    return em_grid_sum_chains(adapt->grid, 1, course->gradients, &out->gradients);
}

/* From here on the kernel is the one that draws. Collective. */
static em_status leave_arrival(em_adapt *adapt, bool arrived, int64_t done)
{
    em_course *course = &adapt->course;
    em_pool *pool = adapt->pools;
    em_status status = record(adapt, arrived ? EM_END_ARRIVED : EM_END_PLANNED, done);

    enter(course, EM_STAGE_TUNE, done);
    course->time_from = done;
    if (adapt->adapts_step && course->drawn.kind == EM_TRAJECTORY_TIME)
        em_dual_averaging_start(&pool->averaging, pool->step_size, 1);
    return status;
}

/* Whether arrive ends with this window. */
static bool arrival_ends(em_adapt *adapt, const em_stretch *stretch, int64_t done, bool *arrived)
{
    em_course *course = &adapt->course;
    const int64_t n_chain = em_grid_n_chain(adapt->grid);
    const bool dense = adapt->form.ops == &em_mass_dense;
    const double whole = 4 * (double)adapt->dim; /* what a whole matrix takes */
    const double wanted = fmax(200, dense ? whole : fmin(whole, 800));
    double n_sample = 0;

    for (int64_t c = 0; c < n_chain; c++)
        n_sample += stretch[c].length;
    course->n_arrived =
        em_have_arrived(n_chain, stretch, course->flagged) ? course->n_arrived + 1 : 0;
    *arrived = course->n_arrived >= 2 && n_sample >= wanted;
    return done == course->plan.arrive || (*arrived && !course->plan.given);
}

static em_status end_window(em_adapt *adapt, em_block *block, int64_t done)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid);
    em_course *course = &adapt->course;
    em_stretch *stretch = NULL;
    double *scratch = NULL;
    bool ends = false, arrived = false;
    em_status status = em_allocate(n_chain, sizeof *stretch, &stretch);

    if (!status)
        status = em_allocate(n_chain, sizeof *scratch, &scratch);
    status = em_agree(status);
    if (!status)
        status = gather_stretches(adapt, done, stretch);
    if (!status) {
        em_gate(n_chain, stretch, adapt->dim, scratch, course->flagged);
        ends = arrival_ends(adapt, stretch, done, &arrived);
        if (em_learns(adapt))
            status = learn_mass(adapt, done);
    }
    if (!status)
        status = rescue(adapt, block, stretch, done);
    course->window = em_course_next_window(&course->plan, done);
    em_window_aim(&adapt->window, em_course_later_half(course->window), course->window);
    drop_segments(adapt);
    if (!status && ends)
        status = leave_arrival(adapt, arrived, done);
    em_release(&stretch);
    em_release(&scratch);
    return status;
}

/* ---------------------------------------------------------------- the end of a stage */

/* The autocorrelation of the stage, pooled. Collective. */
static em_status measure(em_adapt *adapt)
{
    em_course *course = &adapt->course;
    const int64_t size = em_lag_size(adapt->dim), n_chain = em_grid_n_chain(adapt->grid);
    double *pooled = NULL, n = 0;
    em_status status = em_agree(em_allocate(size, sizeof *pooled, &pooled));

    for (int64_t c = 0; c < n_chain; c++)
        n += !course->flagged[c];
    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        if (course->flagged[em_grid_first_chain(adapt->grid) + c])
            memset(course->lag + c * size, 0, (size_t)size * sizeof(double));
    if (!status)
        status = em_grid_sum_chains(adapt->grid, size, course->lag, pooled);
    if (!status)
        em_lag_estimate(adapt->dim, n,
                        (double)(course->begun + course->plan.tune - first_lag(course)), pooled,
                        course->tried_r, &course->tried_steps);
    memset(course->lag, 0, (size_t)(adapt->n_local_chain * size) * sizeof(double));
    em_release(&pooled);
    return status;
}

/* Whether curvature varies too much for trajectories of one step size. Collective. */
static em_status look_at_moves(em_adapt *adapt, bool *uneven)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid), n = sizeof(em_moves) / sizeof(double);
    em_moves *all = NULL;
    em_status status = em_agree(em_allocate(n_chain, sizeof *all, &all));

    if (!status)
        status = em_grid_gather_chains(adapt->grid, n, (const double *)adapt->course.moves,
                                       (double *)all);
    if (!status)
        *uneven = em_moves_are_uneven(n_chain, all, adapt->course.flagged);
    em_release(&all);
    return status;
}

/* Whether what was tried is better than what was kept, and whether longer is worth a try: as rank 0
 * computes it. Collective. */
static em_status judge(em_adapt *adapt, bool *keeps, bool *goes_on)
{
    em_course *course = &adapt->course;
    double *scratch = NULL;
    em_status status = em_agree(em_allocate(2 * adapt->dim, sizeof *scratch, &scratch));
    bool verdict[2] = {true, false};

    if (!status && course->stage == EM_STAGE_CLIMB)
        verdict[0] = em_ladder_keeps(adapt->dim, course->kept_r, course->kept_steps,
                                     course->tried_r, course->tried_steps, scratch);
    verdict[1] = verdict[0] && em_lag_is_long(adapt->dim, course->tried_r);
    em_broadcast(verdict, sizeof verdict);
    *keeps = verdict[0];
    *goes_on = verdict[1];
    em_release(&scratch);
    return status;
}

/* Keeps what was tried, or goes back to what was kept. Local. */
static void settle_on(em_adapt *adapt, bool keeps)
{
    em_course *course = &adapt->course;
    em_pool *pool = adapt->pools;

    if (keeps) {
        course->kept = course->drawn;
        course->kept_averaging = pool->averaging;
        course->kept_steps = course->tried_steps;
        memcpy(course->kept_r, course->tried_r, (size_t)adapt->dim * sizeof(double));
    } else {
        course->drawn = course->kept;
        pool->averaging = course->kept_averaging;
    }
    pool->step_size = final_step_size(adapt);
}

/* Trajectories that end where they turn back, from the step size that chains arrived with. Local.
 */
static void go_on_by_u_turn(em_adapt *adapt)
{
    em_course *course = &adapt->course;
    em_pool *pool = adapt->pools;

    course->drawn = course->kept = (em_trajectory){.kind = EM_TRAJECTORY_U_TURN};
    if (!adapt->adapts_step)
        return;
    pool->step_size = course->record[0].step_size;
    em_dual_averaging_start(&pool->averaging, pool->step_size, 1);
}

/* What follows the end of a stage whose setting is kept or given up. Local. */
static void go_on(em_adapt *adapt, bool climbs, bool tunes, int64_t done)
{
    em_course *course = &adapt->course;
    em_trajectory longer;

    memset(course->moves, 0, (size_t)adapt->n_local_chain * sizeof *course->moves);
    if (climbs && em_course_longer(&course->plan, &course->kept, done, &longer)) {
        enter(course, EM_STAGE_CLIMB, done);
        course->drawn = longer;
        if (adapt->adapts_step)
            em_dual_averaging_start(&adapt->pools->averaging, adapt->pools->step_size, 1);
    } else if (course->plan.given && done < course->plan.warmup) {
        enter(course, EM_STAGE_REST, done);
    } else if (tunes && done < course->plan.warmup) {
        enter(course, EM_STAGE_TUNE, done);
    } else {
        enter(course, EM_STAGE_DRAW, done);
        course->ended = done;
    }
}

static em_status end_stage(em_adapt *adapt, int64_t done)
{
    em_course *course = &adapt->course;
    bool keeps = true, longer = false, uneven = false;
    em_status status = is_tried(course) ? look_at_moves(adapt, &uneven) : EM_OK;

    if (!status && !uneven && is_measured(course)) {
        status = measure(adapt);
        if (!status)
            status = judge(adapt, &keeps, &longer);
    }
    if (!status)
        status = record(adapt,
                        uneven  ? EM_END_UNEVEN
                        : keeps ? EM_END_PLANNED
                                : EM_END_REFUSED,
                        done);
    if (uneven)
        go_on_by_u_turn(adapt);
    else
        settle_on(adapt, keeps);
    go_on(adapt, longer, uneven, done);
    return status;
}

/* ---------------------------------------------------------------- meetings */

int64_t em_course_next_meeting(const em_course *course)
{
    switch (course->stage) {
    case EM_STAGE_ARRIVE:
        return course->window;
    case EM_STAGE_TUNE:
    case EM_STAGE_CLIMB:
        return course->begun + course->plan.tune;
    default:
        return course->plan.warmup;
    }
}

em_status em_course_meet(em_adapt *adapt, em_block *block, int64_t done)
{
    const em_course *course = &adapt->course;
    em_status status = EM_OK;

    if (course->stage == EM_STAGE_ARRIVE && done == course->window)
        status = end_window(adapt, block, done);
    /* A short warmup has no iterations to tune in. */
    if (!status && course->stage != EM_STAGE_ARRIVE && course->stage != EM_STAGE_DRAW &&
        done == em_course_next_meeting(course))
        status = end_stage(adapt, done);
    return status;
}
