#include "exchange/adapt.h"

#include "base/memory.h"
#include "exchange/engine.h"
#include "exchange/interval.h"
#include "mass/moments.h"
#include "math/order.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

static em_pool *pool_of(const em_adapt *adapt, int64_t chain)
{
    return &adapt->pools[adapt->shares ? 0 : chain];
}

/* Iterations until the chains of a pool have s_count samples together. */
static int64_t e_step_length(const em_adapt *adapt)
{
    const int64_t chains = em_chains_per_pool(adapt);

    return (adapt->s_count + chains - 1) / chains;
}

/* ---------------------------------------------------------------- set up */

/* Dense where the last window has the samples for it, whatever the structure of the mass. */
static em_status create_noise(em_adapt *adapt, const em_sampler_ops *sampler)
{
    const bool minibatches = em_takes_minibatches(sampler, adapt->sampler_options);
    const int64_t planned = em_schedule_last_window(&adapt->schedule, em_chains_per_pool(adapt));
    const bool dense = adapt->dim <= 200 && planned >= 10 * adapt->dim;

    if (adapt->estimator->noise && !minibatches)
        return em_fail(EM_ECONFIG,
                       "mass.estimator is noise but sampler %s takes no minibatches: "
                       "expected sampler.minibatch, or another estimator",
                       sampler->name);
    if (!minibatches || !(adapt->estimator->noise || sampler->uses_noise))
        return EM_OK;
    return em_gradient_noise_create(adapt->sampler_options, adapt->grid, adapt->shares,
                                    dense ? EM_MASS_DENSE : EM_MASS_DIAG, adapt->dim,
                                    &adapt->noise);
}

/* Q to begin with; NaN where it is not learned. */
static double first_thermostat_mass(const em_adapt *adapt, const em_sampler_ops *sampler)
{
    return sampler->thermostat_mass && em_learns(adapt)
               ? sampler->thermostat_mass(adapt->sampler_options, adapt->dim)
               : NAN;
}

static em_status create_pools(em_adapt *adapt, const em_sampler_ops *sampler)
{
    em_status status = em_allocate(adapt->n_pool, sizeof *adapt->pools, &adapt->pools);

    for (int64_t i = 0; !status && i < adapt->n_pool; i++) {
        em_pool *pool = &adapt->pools[i];
        pool->averaging.target = adapt->sampler_options->target_accept;
        pool->step_size = adapt->adapts_step ? 1 : adapt->sampler_options->step_size;
        pool->thermostat_mass = first_thermostat_mass(adapt, sampler);
        status = em_mass_identity_of(&adapt->form, &pool->mass);
        if (!status)
            status = em_allocate(adapt->dim, sizeof(double), &pool->centre);
        if (!status)
            status = em_allocate(adapt->most_m_steps, sizeof *pool->m_step, &pool->m_step);
    }
    return status;
}

void em_publish_to_chains(em_adapt *adapt)
{
    for (int64_t c = 0; c < adapt->n_local_chain; c++) {
        adapt->chain_mass[c] = pool_of(adapt, c)->mass;
        adapt->chain_step[c] = pool_of(adapt, c)->step_size;
        adapt->chain_thermostat[c] = pool_of(adapt, c)->thermostat_mass;
    }
}

static em_status allocate_work(em_adapt *adapt)
{
    const int64_t n = adapt->n_local_chain;
    em_status status = em_allocate(n, sizeof(em_mass *), &adapt->chain_mass);

    adapt->n_estimator = em_learns(adapt) ? em_estimator_size(adapt->estimator, &adapt->form) : 1;
    adapt->n_accumulator = adapt->n_estimator + adapt->dim;
    if (adapt->options->s_count_rule == EM_S_COUNT_INTERVAL)
        adapt->n_accumulator += em_interval_size(adapt->dim);
    if (adapt->thermostat)
        adapt->n_accumulator += 2;
    const struct {
        double **vector;
        int64_t size;
    } vectors[] = {{&adapt->chain_step, n},
                   {&adapt->chain_thermostat, n},
                   {&adapt->acceptance, n},
                   {&adapt->probe, n},
                   {&adapt->course.gradients, n},
                   {&adapt->accumulator, n * adapt->n_segment * adapt->n_accumulator},
                   {&adapt->pooled, adapt->n_accumulator},
                   {&adapt->sample, 2 * adapt->stride},
                   {&adapt->estimate, adapt->form.ops->size(&adapt->form)}};
    for (size_t i = 0; !status && i < sizeof vectors / sizeof *vectors; i++)
        status = em_allocate(vectors[i].size, sizeof(double), vectors[i].vector);
    return status;
}

/* A trajectory of a time is one for all chains, in units that only draws or gradients tell. */
static em_status check_trajectory(const em_adapt *adapt, const em_sampler_ops *sampler,
                                  const em_trajectory *drawn)
{
    if (adapt->course.runs || drawn->kind != EM_TRAJECTORY_TIME)
        return EM_OK;
    if (!adapt->shares)
        return em_fail(EM_ECONFIG,
                       "mass.share is none, but trajectories of sampler %s have a length that all "
                       "chains share, as they do the mass in whose units it is: expected "
                       "mass.share: all, sampler.leapfrog_steps: N, or sampler nuts",
                       sampler->name);
    return em_fail(EM_ECONFIG,
                   "mass.estimator is %s, but trajectories of sampler %s have a length in standard "
                   "deviations of the target, which that does not learn: expected mass.estimator: "
                   "fisher, sampler.leapfrog_steps: N, or sampler nuts",
                   adapt->estimator->name, sampler->name);
}

/* Samples of the first E-step. */
static em_status create_window(em_adapt *adapt)
{
    const em_schedule *schedule = &adapt->schedule;
    const em_status status = em_window_create(em_chains_per_pool(adapt), adapt->n_local_chain,
                                              adapt->dim, &adapt->window);

    if (status)
        return status;
    if (adapt->course.runs)
        em_window_aim(&adapt->window, em_course_later_half(adapt->course.window),
                      adapt->course.window);
    else if (schedule->n_window > 0)
        em_window_aim(&adapt->window, schedule->first, schedule->window_end[0]);
    return EM_OK;
}

static em_status set_up(em_adapt *adapt, const em_sampler_ops *sampler, int64_t config_warmup)
{
    const em_mass_options *options = adapt->options;
    const int64_t warmup =
        em_adapt_most_warmup(options, sampler, adapt->sampler_options, config_warmup);
    const int64_t every = sampler->by_model ? warmup + 1 : adapt->sampler_options->adapt_every;
    em_trajectory drawn = {.kind = EM_TRAJECTORY_OPTIONS};
    em_status status;

    if (options->s_count_rule == EM_S_COUNT_INTERVAL &&
        (adapt->estimator->windowed || !em_learns(adapt) || !adapt->shares))
        return em_fail(EM_ECONFIG, "mass.s_count_rule: interval is for the momentum estimator with "
                                   "share: all; use fixed");
    if (sampler->thermostat_mass && !em_learns(adapt) &&
        !isnan(sampler->thermostat_mass(adapt->sampler_options, adapt->dim)))
        return em_fail(EM_ECONFIG, "sampler.learn_thermostat_mass is true but mass.estimator is "
                                   "none: expected an estimator, whose M-steps learn both");
    adapt->course.runs = em_course_runs(options, sampler, adapt->sampler_options, &drawn);
    status = check_trajectory(adapt, sampler, &drawn);
    if (status)
        return status;
    status = em_schedule_create(warmup, every, options->init_buffer, options->term_buffer,
                                options->s_count, em_chains_per_pool(adapt), &adapt->schedule);
    if (!status)
        status = em_choose_form(adapt, sampler);
    adapt->n_segment = 1;
    adapt->s_count = options->s_count;
    adapt->e_step_from = adapt->schedule.first;
    adapt->most_m_steps =
        adapt->estimator->windowed
            ? adapt->schedule.n_window
            : (adapt->schedule.last - adapt->schedule.first) / e_step_length(adapt) + 1;
    if (!status && adapt->course.runs)
        status = em_course_create(adapt, &drawn, config_warmup);
    if (!status)
        status = create_noise(adapt, sampler);
    if (!status)
        status = create_pools(adapt, sampler);
    if (!status)
        status = allocate_work(adapt);
    if (!status && em_learns(adapt) && adapt->form.ops == &em_mass_low_rank)
        status = create_window(adapt);
    if (!status)
        em_publish_to_chains(adapt);
    return status;
}

em_status em_adapt_create(const em_mass_options *options, const em_sampler_ops *sampler,
                          const em_sampler_options *sampler_options, em_grid *grid, int64_t dim,
                          int64_t warmup, uint64_t seed, em_adapt **out)
{
    em_adapt *adapt = NULL;
    em_status status = em_allocate(1, sizeof *adapt, &adapt);

    *out = NULL;
    if (!status) {
        adapt->options = options;
        adapt->sampler_options = sampler_options;
        adapt->estimator =
            em_estimators[sampler->by_model ? EM_ESTIMATOR_NONE : options->estimator];
        adapt->grid = grid;
        adapt->seed = seed;
        adapt->dim = dim;
        adapt->stride = em_stride(dim);
        adapt->n_local_chain = em_grid_n_local_chain(grid);
        adapt->adapts_step = isnan(sampler_options->step_size);
        adapt->shares = options->share == EM_SHARE_ALL;
        adapt->n_pool = adapt->shares ? 1 : adapt->n_local_chain;
        if (!isnan(first_thermostat_mass(adapt, sampler)))
            adapt->thermostat = sampler->thermostat;
        status = set_up(adapt, sampler, warmup);
    }
    status = em_agree(status);
    if (status)
        em_adapt_destroy(&adapt);
    *out = adapt;
    return status;
}

void em_adapt_destroy(em_adapt **out)
{
    em_adapt *adapt = *out;

    if (!adapt)
        return;
    for (int64_t i = 0; adapt->pools && i < adapt->n_pool; i++) {
        em_mass_destroy(&adapt->pools[i].mass);
        em_release(&adapt->pools[i].centre);
        em_release(&adapt->pools[i].m_step);
    }
    em_release(&adapt->pools);
    em_schedule_destroy(&adapt->schedule);
    em_course_destroy(&adapt->course);
    em_gradient_noise_destroy(&adapt->noise);
    em_window_release(&adapt->window);
    em_release(&adapt->part);
    em_release(&adapt->chain_mass);
    double **const vectors[] = {&adapt->chain_step, &adapt->chain_thermostat, &adapt->acceptance,
                                &adapt->probe,      &adapt->accumulator,      &adapt->pooled,
                                &adapt->sample,     &adapt->estimate};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        em_release(vectors[i]);
    em_release(out);
}

/* After a search dual averaging is drawn to longer steps; on a course to less longer ones. */
static double restart_factor(const em_adapt *adapt)
{
    return adapt->course.runs ? 2 : 10;
}

em_status em_adapt_begin_with(em_adapt *adapt, const em_mass *mass, double step_size, double time,
                              double jitter)
{
    em_status status = EM_OK;

    mass->ops->write(mass, &adapt->form, adapt->estimate);
    for (int64_t i = 0; !status && i < adapt->n_pool; i++) {
        em_mass_destroy(&adapt->pools[i].mass);
        status = em_mass_of(&adapt->form, adapt->estimate, &adapt->pools[i].mass);
        if (!status && adapt->adapts_step) {
            adapt->pools[i].step_size = step_size;
            em_dual_averaging_start(&adapt->pools[i].averaging, step_size, restart_factor(adapt));
        }
    }
    adapt->has_step = true;
    if (adapt->course.runs && adapt->course.plan.learned && !isnan(time)) {
        adapt->course.drawn.time = time;
        adapt->course.drawn.jitter = jitter;
    }
    em_publish_to_chains(adapt);
    return status;
}

/* ---------------------------------------------------------------- step size */

/* The mean over each pool of one number per chain, into out[n_pool]; without the chains that others
 * left behind, whose numbers are set to 0. Collective. */
static em_status pool_means(em_adapt *adapt, double *chain_value, double *out)
{
    const bool *flagged = adapt->course.runs ? adapt->course.flagged : NULL;
    const int64_t first = em_grid_first_chain(adapt->grid), n = em_grid_n_chain(adapt->grid);
    double n_flagged = 0;
    em_status status;

    if (!adapt->shares) {
        memcpy(out, chain_value, (size_t)adapt->n_pool * sizeof *out);
        return EM_OK;
    }
    for (int64_t c = 0; flagged && c < n; c++)
        n_flagged += flagged[c];
    for (int64_t c = 0; flagged && c < adapt->n_local_chain; c++)
        if (flagged[first + c])
            chain_value[c] = 0;
    status = em_grid_sum_chains(adapt->grid, 1, chain_value, out);
    *out /= (double)n - n_flagged;
    return status;
}

/* Likewise the median of all chains, which one that starts far off does not move. Collective. */
static em_status pool_medians(em_adapt *adapt, const double *chain_value, double *out)
{
    const int64_t n = em_grid_n_chain(adapt->grid);
    double *all = NULL;
    em_status status;

    if (!adapt->shares) {
        memcpy(out, chain_value, (size_t)adapt->n_pool * sizeof *out);
        return EM_OK;
    }
    status = em_agree(em_allocate(n, sizeof *all, &all));
    if (!status)
        status = em_grid_gather_chains(adapt->grid, 1, chain_value, all);
    if (!status) {
        em_sort_numbers(n, all);
        *out = em_sorted_median(n, all);
    }
    em_release(&all);
    return status;
}

static em_step_context context_of(const em_adapt *adapt, em_posterior *posterior, int64_t done)
{
    return (em_step_context){.posterior = posterior,
                             .mass = adapt->chain_mass,
                             .step_size = adapt->chain_step,
                             .seed = adapt->seed,
                             .iteration = done,
                             .noise = em_adapt_noise(adapt),
                             .thermostat_mass = em_adapt_thermostat_mass(adapt),
                             .trajectory = em_adapt_trajectory(adapt, done)};
}

/* Acceptance of one leapfrog step, the median of each pool. Collective; errors agreed. */
static em_status probe(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                       const em_block *block, int64_t done, double *pool_acceptance)
{
    const em_step_context context = context_of(adapt, posterior, done);
    em_status status = em_agree(sampler->ops->probe(sampler, &context, block, adapt->probe));

    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        em_adapt_count_gradients(adapt, c, 1);
    return status ? status : pool_medians(adapt, adapt->probe, pool_acceptance);
}

/*
 * Doubles or halves the step size of each pool until one leapfrog step crosses the target
 * acceptance (Hoffman & Gelman 2014, Algorithm 4), then starts dual averaging there. With share:
 * none every rank goes on until the slowest pool of the run is done, so that all meet equally
 * often.
 */
static em_status search_step_size(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                                  const em_block *block, int64_t done)
{
    double *acceptance = adapt->acceptance; /* free between meetings */
    double searching = 1;
    em_status status = EM_OK;

    if (!adapt->adapts_step || !sampler->ops->probe)
        return EM_OK;
    for (int64_t i = 0; i < adapt->n_pool; i++)
        adapt->pools[i].averaging.count = 0; /* its direction while searching: -1, 0 or 1 */
    for (int round = 0; !status && searching > 0 && round < 100; round++) {
        status = probe(adapt, sampler, posterior, block, done, acceptance);
        searching = 0;
        for (int64_t i = 0; !status && i < adapt->n_pool; i++) {
            em_pool *pool = &adapt->pools[i];
            const double direction = acceptance[i] > pool->averaging.target ? 1 : -1;
            if (round == 0)
                pool->averaging.count = direction;
            if (pool->averaging.count == 0)
                continue;
            if (direction != pool->averaging.count) {
                pool->averaging.count = 0;
                continue;
            }
            pool->step_size *= direction > 0 ? 2 : 0.5;
            searching = 1;
        }
        em_publish_to_chains(adapt);
        if (!adapt->shares)
            em_grid_maximum(adapt->grid, 1, &searching);
    }
    for (int64_t i = 0; i < adapt->n_pool; i++)
        em_dual_averaging_start(&adapt->pools[i].averaging, adapt->pools[i].step_size,
                                restart_factor(adapt));
    memset(adapt->acceptance, 0, (size_t)adapt->n_local_chain * sizeof(double));
    adapt->n_since = 0;
    return status;
}

static em_status update_step_size(em_adapt *adapt)
{
    em_status status = EM_OK;

    if (!adapt->adapts_step || adapt->n_since == 0)
        return EM_OK;
    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        adapt->probe[c] = adapt->acceptance[c] / (double)adapt->n_since;
    status = pool_means(adapt, adapt->probe, adapt->acceptance);
    for (int64_t i = 0; i < adapt->n_pool; i++)
        adapt->pools[i].step_size =
            em_dual_averaging_update(&adapt->pools[i].averaging, adapt->acceptance[i]);
    memset(adapt->acceptance, 0, (size_t)adapt->n_local_chain * sizeof(double));
    adapt->n_since = 0;
    return status;
}

/* What follows a new mass: momenta and thermostats that belong to it, and a step size, unless an
 * earlier run has found the first one. Collective. */
static em_status settle(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                        em_block *block, int64_t done)
{
    const em_step_context context = context_of(adapt, posterior, done);
    em_status status = EM_OK;

    if (sampler->ops->refresh)
        status = em_agree(sampler->ops->refresh(sampler, &context, block));
    if (!status && !(adapt->has_step && done == 0))
        status = search_step_size(adapt, sampler, posterior, block, done);
    return status;
}

/* ---------------------------------------------------------------- E-step */

/* The first centre is the mean of where the chains stand. */
em_status em_adapt_start(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                         em_block *block)
{
    em_status status = EM_OK;

    if (adapt->shares) {
        for (int64_t c = 0; c < block->n_chain; c++)
            memcpy(adapt->accumulator + c * adapt->dim, block->theta + c * block->stride,
                   (size_t)adapt->dim * sizeof(double));
        status =
            em_grid_sum_chains(adapt->grid, adapt->dim, adapt->accumulator, adapt->pools[0].centre);
        for (int64_t i = 0; i < adapt->dim; i++)
            adapt->pools[0].centre[i] /= (double)em_grid_n_chain(adapt->grid);
    } else {
        for (int64_t c = 0; c < block->n_chain; c++)
            memcpy(adapt->pools[c].centre, block->theta + c * block->stride,
                   (size_t)adapt->dim * sizeof(double));
    }
    memset(adapt->accumulator, 0,
           (size_t)(adapt->n_local_chain * adapt->n_segment * adapt->n_accumulator) *
               sizeof(double));
    adapt->e_step_from = adapt->schedule.first;
    if (!status && adapt->course.runs && em_learns(adapt) && !adapt->has_step)
        status = em_course_begin(adapt, block);
    if (!status)
        status = settle(adapt, sampler, posterior, block, 0);
    return status;
}

int64_t em_thermostat_sums(const em_adapt *adapt)
{
    return adapt->n_accumulator - 2;
}

static void collect_thermostat(em_adapt *adapt, const em_block *block, int64_t chain)
{
    const em_step_context context = context_of(adapt, NULL, 0);
    const double q = adapt->thermostat(&context, block, chain);
    double *sums = em_accumulators(adapt, chain, adapt->course.segment) + em_thermostat_sums(adapt);

    sums[0] += q;
    sums[1] += q * q;
}

void em_collect(em_adapt *adapt, const em_block *block, int64_t chain, bool subsample)
{
    const double *theta = block->theta + chain * block->stride;
    const em_observation sample = {adapt->sample, block->gradient + chain * block->stride,
                                   block->momentum + chain * block->stride,
                                   adapt->noise ? em_gradient_noise_last(adapt->noise, chain)
                                                : NULL};
    double *accumulator = em_accumulators(adapt, chain, adapt->course.segment);
    double *position = accumulator + adapt->n_estimator;

    if (!em_all_finite(adapt->dim, sample.gradient) ||
        (sample.noise && !em_all_finite(adapt->dim, sample.noise)))
        return;
    for (int64_t i = 0; i < adapt->dim; i++) {
        adapt->sample[i] = theta[i] - pool_of(adapt, chain)->centre[i];
        position[i] += adapt->sample[i];
    }
    em_estimator_observe(adapt->estimator, &adapt->form, &sample, accumulator);
    if (adapt->thermostat)
        collect_thermostat(adapt, block, chain);
    if (subsample) {
        double *velocity = adapt->sample + adapt->stride;
        em_mass_velocity(&adapt->chain_mass[chain], 1, sample.momentum, velocity);
        em_interval_observe(adapt->dim, sample.momentum, velocity, position + adapt->dim);
    }
}

em_status em_adapt_observe(em_adapt *adapt, em_posterior *posterior, const em_block *block,
                           int64_t iteration)
{
    em_status status = EM_OK;

    for (int64_t c = 0; c < block->n_chain; c++) {
        adapt->acceptance[c] += block->acceptance[c];
        em_adapt_count_gradients(adapt, c, (int64_t)block->n_step[c]);
    }
    adapt->n_since++;
    if (adapt->course.runs) {
        em_course_observe(adapt, block, iteration);
        return EM_OK;
    }
    if (iteration < adapt->schedule.first || iteration >= adapt->schedule.last)
        return EM_OK;
    if (adapt->noise)
        status = em_gradient_noise_sample(adapt->noise, posterior, adapt->seed, iteration, block);
    if (status || !em_learns(adapt))
        return status;
    const bool subsample = adapt->options->s_count_rule == EM_S_COUNT_INTERVAL &&
                           em_interval_takes(adapt->options, adapt->seed, adapt->n_m_step,
                                             iteration - adapt->e_step_from + 1);
    for (int64_t c = 0; c < block->n_chain; c++)
        em_collect(adapt, block, c, subsample);
    em_window_take(&adapt->window, block, iteration);
    return EM_OK;
}

/* The end of the window that iteration `done` is in; warmup where there is none. */
static int64_t next_window_end(const em_adapt *adapt, int64_t done)
{
    const em_schedule *schedule = &adapt->schedule;

    for (int64_t i = 0; i < schedule->n_window; i++)
        if (schedule->window_end[i] > done)
            return schedule->window_end[i];
    return schedule->warmup;
}

static int64_t next_m_step(const em_adapt *adapt, int64_t done)
{
    const em_schedule *schedule = &adapt->schedule;
    const int64_t next = adapt->e_step_from + e_step_length(adapt);

    if (!em_learns(adapt))
        return schedule->warmup;
    if (adapt->estimator->windowed)
        return next_window_end(adapt, done);
    return next > done && next <= schedule->last ? next : schedule->warmup;
}

static bool m_step_is_due(const em_adapt *adapt, int64_t done)
{
    return em_learns(adapt) && done > 0 && adapt->n_m_step < adapt->most_m_steps &&
           done <= adapt->schedule.last && next_m_step(adapt, done - 1) == done;
}

static em_status m_step(em_adapt *adapt, int64_t done)
{
    const double start = em_clock();
    bool refused = false;
    const em_status status = em_take_m_step(adapt, done, &refused);

    if (adapt->estimator->windowed)
        em_window_aim(&adapt->window, refused ? (int64_t)adapt->window.from : done,
                      next_window_end(adapt, done));
    em_publish_to_chains(adapt);
    adapt->m_step_seconds += em_clock() - start;
    return status;
}

/* ---------------------------------------------------------------- meetings */

int64_t em_adapt_next_meeting(const em_adapt *adapt, int64_t done)
{
    const int64_t every = adapt->schedule.adapt_every, warmup = adapt->schedule.warmup;
    const int64_t often =
        adapt->course.runs && done < em_course_meets_often(&adapt->course.plan) ? 1 : every;
    const int64_t update = adapt->adapts_step ? (done / often + 1) * often : warmup;
    const int64_t m =
        adapt->course.runs ? em_course_next_meeting(&adapt->course) : next_m_step(adapt, done);
    const int64_t noise = adapt->noise ? next_window_end(adapt, done) : warmup;
    int64_t next = update < m ? update : m;

    next = next < noise ? next : noise;
    return next < warmup ? next : warmup;
}

static void freeze(em_adapt *adapt)
{
    for (int64_t i = 0; adapt->adapts_step && i < adapt->n_pool; i++)
        adapt->pools[i].step_size = em_dual_averaging_final(&adapt->pools[i].averaging);
}

em_status em_adapt_meet(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                        em_block *block, int64_t done)
{
    const double start = em_clock();
    em_status status = update_step_size(adapt);

    if (adapt->course.runs) {
        adapt->exchange_seconds += em_clock() - start;
        if (!status)
            status = em_course_meet(adapt, block, done);
        em_publish_to_chains(adapt);
        return status;
    }
    const bool publishes = adapt->noise && em_schedule_window_ends(&adapt->schedule, done);
    const bool m_steps = m_step_is_due(adapt, done);
    if (!status && publishes)
        status = em_gradient_noise_publish(adapt->noise);
    adapt->exchange_seconds += em_clock() - start;
    if (!status && m_steps)
        status = m_step(adapt, done);
    if (!status && (publishes || m_steps))
        status = settle(adapt, sampler, posterior, block, done);
    if (done == adapt->schedule.warmup)
        freeze(adapt);
    em_publish_to_chains(adapt);
    return status;
}

/* ---------------------------------------------------------------- what was learned */

int64_t em_adapt_most_warmup(const em_mass_options *options, const em_sampler_ops *sampler,
                             const em_sampler_options *sampler_options, int64_t warmup)
{
    enum { WARMUP_OF_WINDOWS = 1000 };
    em_trajectory drawn;

    if (warmup != INT64_MIN)
        return warmup;
    return em_course_runs(options, sampler, sampler_options, &drawn)
               ? em_course_plan_create(warmup, &drawn).warmup
               : WARMUP_OF_WINDOWS;
}

int64_t em_adapt_warmup(const em_adapt *adapt)
{
    return adapt->course.runs ? adapt->course.ended : adapt->schedule.warmup;
}

/* The best of some points is nearer: with 4 of them all of 4 chains settled in the lower mode of
 * lotka_volterra for 2 of 12 seeds, with 16 for 1 of 36, at a sixtieth of what warmup costs. */
int64_t em_adapt_n_start(const em_adapt *adapt)
{
    return adapt->course.runs ? 16 : 1;
}

void em_adapt_count_gradients(em_adapt *adapt, int64_t chain, int64_t n)
{
    adapt->course.gradients[chain] += (double)n;
}

em_trajectory em_adapt_trajectory(const em_adapt *adapt, int64_t iteration)
{
    const em_course *course = &adapt->course;
    em_trajectory out = {.kind = EM_TRAJECTORY_OPTIONS};

    if (!course->runs)
        return out;
    if (course->stage == EM_STAGE_ARRIVE)
        return (em_trajectory){.kind = EM_TRAJECTORY_U_TURN,
                               .max_depth = em_course_depth(iteration)};
    out = course->drawn;
    out.number = iteration - course->time_from + 1;
    return out;
}

int64_t em_adapt_n_stage(const em_adapt *adapt)
{
    return adapt->course.n_stage;
}

const em_stage_record *em_adapt_stages(const em_adapt *adapt)
{
    return adapt->course.record;
}

int64_t em_adapt_n_rescued(const em_adapt *adapt)
{
    return adapt->course.n_rescued;
}

const em_mass *const *em_adapt_mass(const em_adapt *adapt)
{
    return adapt->chain_mass;
}

const double *em_adapt_step_size(const em_adapt *adapt)
{
    return adapt->chain_step;
}

const double *em_adapt_thermostat_mass(const em_adapt *adapt)
{
    return adapt->thermostat ? adapt->chain_thermostat : NULL;
}

const em_noise *const *em_adapt_noise(const em_adapt *adapt)
{
    return adapt->noise ? em_gradient_noise_published(adapt->noise) : NULL;
}

int64_t em_adapt_n_m_step(const em_adapt *adapt)
{
    return adapt->n_m_step;
}

int64_t em_adapt_n_pool(const em_adapt *adapt)
{
    return adapt->shares ? 1 : em_grid_n_chain(adapt->grid);
}

const em_m_step *em_adapt_m_steps(const em_adapt *adapt, int64_t local_pool)
{
    return adapt->pools[local_pool].m_step;
}

const em_mass_form *em_adapt_form(const em_adapt *adapt)
{
    return &adapt->form;
}

void em_adapt_seconds(const em_adapt *adapt, double *exchange, double *m_steps)
{
    *exchange = adapt->exchange_seconds;
    *m_steps = adapt->m_step_seconds;
}
