/* Creates and destroys the adaptation engine, and sets its initial state. */
#include "adaptation/adaptation_internal.h"
#include "adaptation/mass_window/subsampling_interval.h"
#include "adaptation/prior_proofs/scale_derivative.h"
#include "base/memory.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

/* Creates the estimate of the gradient noise. Its covariance is dense if the last window has enough
 * samples for that, whatever the structure of the mass is. */
static em_status create_noise(em_adapt *adapt, const em_sampler_ops *sampler)
{
    const bool minibatches = em_takes_minibatches(sampler, adapt->sampler_options);

    if (adapt->estimator->noise && !minibatches)
        return em_fail(EM_ECONFIG,
                       "mass.estimator is noise but sampler %s takes no minibatches: "
                       "expected sampler.minibatch, or another estimator",
                       sampler->name);
    if (!minibatches || !(adapt->estimator->noise || sampler->uses_noise))
        return EM_OK;
    const int64_t planned =
        em_schedule_last_window(&adapt->windows->schedule, em_chains_per_pool(adapt));
    const bool dense = adapt->dim <= 200 && planned >= 10 * adapt->dim;
    return em_gradient_noise_create(&adapt->memory, adapt->sampler_options, adapt->grid,
                                    adapt->shares, dense ? EM_MASS_DENSE : EM_MASS_DIAG, adapt->dim,
                                    &adapt->noise);
}

/* The initial thermostat mass Q; NaN if it is not learned. */
static double first_thermostat_mass(const em_adapt *adapt, const em_sampler_ops *sampler)
{
    return sampler->thermostat_mass && em_learns(adapt)
               ? sampler->thermostat_mass(adapt->sampler_options, adapt->dim)
               : NAN;
}

static em_status create_pools(em_adapt *adapt, const em_sampler_ops *sampler)
{
    em_status status = em_own_all(&adapt->memory, EM_ARRAY(adapt->pools, adapt->n_pool));

    for (int64_t i = 0; !status && i < adapt->n_pool; i++) {
        em_pool *pool = &adapt->pools[i];
        pool->averaging.target = adapt->sampler_options->target_accept;
        pool->step_size = adapt->adapts_step ? 1 : adapt->sampler_options->step_size;
        pool->thermostat_mass = first_thermostat_mass(adapt, sampler);
        status = em_mass_identity_of(&adapt->form, &pool->mass);
        if (!status)
            status = em_own_all(&adapt->memory, EM_ARRAY(pool->centre, adapt->dim),
                                EM_ARRAY(pool->m_step, adapt->most_m_steps));
    }
    return status;
}

static em_status allocate_work(em_adapt *adapt)
{
    const int64_t n = adapt->n_local_chain;

    adapt->n_estimator = em_learns(adapt) ? em_estimator_size(adapt->estimator, &adapt->form) : 1;
    adapt->n_accumulator = adapt->n_estimator + adapt->dim;
    if (adapt->options->s_count_rule == EM_S_COUNT_INTERVAL)
        adapt->n_accumulator += em_subsampling_interval_size(adapt->dim);
    if (adapt->thermostat)
        adapt->n_accumulator += 2;
    const em_status status = em_own_all(
        &adapt->memory, EM_ARRAY(adapt->chain_mass, n), EM_ARRAY(adapt->chain_step, n),
        EM_ARRAY(adapt->chain_thermostat, n), EM_ARRAY(adapt->acceptance, n),
        EM_ARRAY(adapt->probe, n), EM_ARRAY(adapt->gradients, n), EM_ARRAY(adapt->step_factor, n),
        EM_ARRAY(adapt->outlying, adapt->n_chain),
        EM_ARRAY(adapt->accumulator, n * adapt->n_segment * adapt->n_accumulator),
        EM_ARRAY(adapt->pooled, adapt->n_accumulator), EM_ARRAY(adapt->sample, 2 * adapt->stride),
        EM_ARRAY(adapt->estimate, adapt->form.ops->size(&adapt->form)));
    for (int64_t c = 0; !status && c < n; c++)
        adapt->step_factor[c] = 1;
    return status;
}

/* A trajectory length is shared by all chains. Its unit is the standard deviation of the target,
 * which is estimated from draws or gradients: an estimator that does neither is an error. */
static em_status check_trajectory(const em_adapt *adapt, const em_sampler_ops *sampler,
                                  const em_trajectory *drawn)
{
    if (drawn->kind != EM_TRAJECTORY_TIME)
        return EM_OK;
    if (!adapt->shares)
        return em_fail(EM_ECONFIG,
                       "mass.share is none, but sampler %s learns one trajectory length for all "
                       "chains, in units of a mass that they share: expected "
                       "mass.share: all, sampler.leapfrog_steps: N, or sampler nuts",
                       sampler->name);
    return em_fail(
        EM_ECONFIG,
        "mass.estimator is %s, but sampler %s learns its trajectory length in standard deviations "
        "of the posterior, which that estimator does not learn: expected mass.estimator: "
        "fisher, sampler.leapfrog_steps: N, or sampler nuts",
        adapt->estimator->name, sampler->name);
}

/* Draws that are kept where the mass is of low rank. */
enum { MOST_MAPPED_DRAWS = 2000 };

/* Whether the initial phase keeps draws, and not sums alone: for a dense mass, and for one of low
 * rank if it may be that of non-centred coordinates. */
static bool keeps_draws(const em_adapt *adapt)
{
    if (!em_learns(adapt) || !adapt->initial)
        return false;
    return adapt->form.most_rank == 0
               ? adapt->form.ops->structure == EM_MASS_DENSE
               : adapt->options->noncentring != EM_NONCENTRING_OFF && adapt->shares &&
                     em_suffices_for_proofs(adapt->dim, MOST_MAPPED_DRAWS);
}

/* Makes the window of draws, and sets which iterations its first estimate uses. A dense matrix is
 * estimated from most_draws at most. With more draws the sampling error is small compared with the
 * error of using one matrix where curvature varies. */
static em_status create_window(em_adapt *adapt)
{
    const int64_t most_draws =
        adapt->form.most_rank > 0 ? MOST_MAPPED_DRAWS : em_most(4000, 20 * adapt->dim);
    const int64_t longest =
        adapt->keeps_draws ? adapt->plan->initial - em_warmup_window_begin(adapt->plan->initial)
                           : INT64_MAX;
    const em_status status = em_window_create(
        &adapt->memory, em_chains_per_pool(adapt), adapt->n_local_chain, adapt->dim, longest,
        adapt->keeps_draws ? most_draws : em_window_span(adapt->dim), &adapt->window);

    if (status)
        return status;
    if (adapt->initial)
        em_window_aim(&adapt->window, em_warmup_window_begin(adapt->initial->window),
                      adapt->initial->window);
    else if (adapt->windows->schedule.n_window > 0)
        em_window_aim(&adapt->window, adapt->windows->schedule.first,
                      adapt->windows->schedule.window_end[0]);
    return EM_OK;
}

/* ---------------------------------------------------------------- the schedule */

/* Whether these options lead to a warmup with an initial phase, and which trajectories it ends
 * with. */
static bool warmup_has_phases(const em_mass_options *options, const em_sampler_ops *sampler,
                              const em_sampler_options *sampler_options, em_trajectory *drawn)
{
    const em_estimator_ops *estimator = em_estimators[options->estimator];

    *drawn = sampler->trajectory ? sampler->trajectory(sampler_options)
                                 : (em_trajectory){.kind = EM_TRAJECTORY_OPTIONS};
    return drawn->kind != EM_TRAJECTORY_OPTIONS && options->share == EM_SHARE_ALL &&
           (!estimator->estimate || estimator->windowed) && !estimator->noise;
}

static int64_t count_windows(const em_warmup_plan *plan)
{
    int64_t count = 0;

    for (int64_t end = 0; end < plan->initial; count++)
        end = em_warmup_next_window(plan, end);
    return count;
}

static em_status create_initial_phase(em_adapt *adapt)
{
    const int64_t n = adapt->n_local_chain;
    em_status status = em_own_all(&adapt->memory, EM_ARRAY(adapt->initial, 1));

    if (status)
        return status;
    adapt->initial->end = adapt->plan->initial;
    adapt->initial->window = em_warmup_next_window(adapt->plan, 0);
    status =
        em_own_all(&adapt->memory, EM_ARRAY(adapt->initial->history, n * adapt->plan->initial),
                   EM_ARRAY(adapt->initial->since, n),
                   EM_ARRAY(adapt->initial->outlying_row, n * em_outlying_row_size(adapt->dim)),
                   EM_ARRAY(adapt->initial->outlying_mass, n));
    if (!status && adapt->n_chain >= EM_MANY_CHAINS)
        status = em_own_all(&adapt->memory, EM_ARRAY(adapt->tree_depth, 1));
    if (status || !adapt->tree_depth)
        return status;
    adapt->tree_depth->cap = EM_FIRST_DEPTH;
    return em_own_all(&adapt->memory, EM_ARRAY(adapt->tree_depth->count, n * EM_DEPTHS));
}

static em_status create_length_search(em_adapt *adapt, const em_trajectory *drawn)
{
    const int64_t n = adapt->n_local_chain, dim = adapt->dim;
    const int64_t n_lag = adapt->plan->searches_length ? n * em_lag_size(dim) : 0;
    em_status status = em_own_all(&adapt->memory, EM_ARRAY(adapt->search, 1));

    if (status)
        return status;
    em_length_search *search = adapt->search;
    search->drawn = *drawn;
    search->drawn.time = adapt->plan->time;
    /* It is tried first, so there must be iterations left for leapfrog. */
    search->drawn.multistage = adapt->plan->multistage && adapt->plan->searches_length;
    search->kept = search->drawn;
    search->kept_averaging.target = adapt->sampler_options->target_accept;
    return em_own_all(&adapt->memory, EM_ARRAY(search->statistics, n), EM_ARRAY(search->lag, n_lag),
                      EM_ARRAY(search->kept_r, dim), EM_ARRAY(search->tried_r, dim));
}

/* The schedule with an initial phase. */
static em_status plan_phases(em_adapt *adapt, const em_trajectory *drawn, int64_t config_warmup)
{
    em_status status = em_own_all(&adapt->memory, EM_ARRAY(adapt->plan, 1));

    if (status)
        return status;
    *adapt->plan = em_warmup_plan_create(config_warmup, drawn);
    adapt->phase = adapt->warmup > 0 ? EM_PHASE_INITIAL : EM_PHASE_SAMPLING;
    adapt->ended = adapt->warmup > 0 ? -1 : 0;
    adapt->often = em_warmup_updates_often(adapt->plan);
    adapt->n_segment = EM_MOST_SEGMENTS;
    adapt->most_m_steps = count_windows(adapt->plan);
    status = create_initial_phase(adapt);
    /* 10 as in Hoffman & Gelman (2014); less here, where restarts are frequent, and none with many
     * chains, whose mean acceptance is precise from the first update on. */
    adapt->restart = adapt->tree_depth ? 1 : 2;
    return status ? status : create_length_search(adapt, drawn);
}

/* The schedule of windows. */
static em_status plan_windows(em_adapt *adapt)
{
    const em_mass_options *options = adapt->options;
    em_status status = em_own_all(&adapt->memory, EM_ARRAY(adapt->windows, 1));

    if (status)
        return status;
    em_schedule *schedule = &adapt->windows->schedule;
    status = em_schedule_create(&adapt->memory, adapt->warmup, options->init_buffer,
                                options->term_buffer, options->s_count, em_chains_per_pool(adapt),
                                schedule);
    adapt->windows->e_step_from = schedule->first;
    adapt->phase = adapt->warmup > 0 ? EM_PHASE_FIRST_BUFFER : EM_PHASE_SAMPLING;
    adapt->ended = adapt->warmup;
    adapt->n_segment = 1;
    adapt->restart = 10;
    adapt->most_m_steps = adapt->estimator->windowed
                              ? schedule->n_window
                              : (schedule->last - schedule->first) / em_e_step_length(adapt) + 1;
    return status;
}

/* ---------------------------------------------------------------- the engine */

static em_status check_rules(const em_adapt *adapt, const em_sampler_ops *sampler)
{
    if (adapt->options->s_count_rule == EM_S_COUNT_INTERVAL &&
        (adapt->estimator->windowed || !em_learns(adapt) || !adapt->shares))
        return em_fail(EM_ECONFIG, "mass.s_count_rule: interval is for the momentum estimator with "
                                   "share: all; use fixed");
    if (sampler->without_gradient && em_learns(adapt) && adapt->estimator != &em_estimator_variance)
        return em_fail(EM_ECONFIG,
                       "mass.estimator is %s, but sampler %s computes no gradients nor momenta: "
                       "expected variance or none",
                       adapt->estimator->name, sampler->name);
    if (sampler->thermostat_mass && !em_learns(adapt) &&
        !isnan(sampler->thermostat_mass(adapt->sampler_options, adapt->dim)))
        return em_fail(EM_ECONFIG,
                       "sampler.learn_thermostat_mass is true but mass.estimator is "
                       "none: expected another estimator, because M-steps learn that mass");
    return EM_OK;
}

static em_status set_up(em_adapt *adapt, const em_sampler_ops *sampler, int64_t config_warmup)
{
    em_trajectory drawn;
    const bool has_phases =
        warmup_has_phases(adapt->options, sampler, adapt->sampler_options, &drawn);
    em_status status = check_rules(adapt, sampler);

    if (!status && !has_phases)
        status = check_trajectory(adapt, sampler, &drawn);
    if (!status)
        status = has_phases ? plan_phases(adapt, &drawn, config_warmup) : plan_windows(adapt);
    if (sampler->without_gradient) /* acceptance falls slowly with the step size: no overshoot */
        adapt->restart = 1;
    status = status ? status : em_choose_form(adapt, sampler);
    adapt->keeps_draws = !status && keeps_draws(adapt);
    if (adapt->keeps_draws)
        adapt->n_segment = 0;
    status = status ? status : create_noise(adapt, sampler);
    if (adapt->noise)
        adapt->learner[adapt->n_learner++] = &em_noise_learner;
    if (adapt->thermostat)
        adapt->learner[adapt->n_learner++] = &em_thermostat_learner;
    if (adapt->tree_depth)
        adapt->learner[adapt->n_learner++] = &em_tree_depth_learner;
    status = status ? status : create_pools(adapt, sampler);
    status = status ? status : allocate_work(adapt);
    if (!status && em_learns(adapt) && (adapt->form.most_rank > 0 || adapt->keeps_draws))
        status = create_window(adapt);
    status = status ? status : em_noncentred_create(adapt);
    if (!status)
        em_publish_to_chains(adapt);
    return status;
}

em_status em_adapt_create(const em_mass_options *options, const em_sampler_ops *sampler,
                          const em_sampler_options *sampler_options, em_grid *grid, int64_t dim,
                          int64_t warmup, uint64_t seed, em_adapt **out)
{
    em_status status = em_allocate(1, sizeof **out, out);
    em_adapt *adapt = *out;

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
        adapt->n_chain = em_grid_n_chain(grid);
        adapt->first_chain = em_grid_first_chain(grid);
        adapt->warmup = em_adapt_most_warmup(options, sampler, sampler_options, warmup);
        adapt->adapt_every = sampler->by_model ? adapt->warmup + 1 : sampler_options->adapt_every;
        adapt->s_count = options->s_count;
        adapt->adapts_step = isnan(sampler_options->step_size);
        adapt->shares = options->share == EM_SHARE_ALL;
        adapt->n_pool = adapt->shares ? 1 : adapt->n_local_chain;
        if (!isnan(first_thermostat_mass(adapt, sampler)))
            adapt->thermostat = sampler->thermostat;
        status = set_up(adapt, sampler, warmup);
    }
    status = em_agree(status);
    if (status)
        em_adapt_destroy(out);
    return status;
}

void em_adapt_destroy(em_adapt **out)
{
    em_adapt *adapt = *out;

    if (!adapt)
        return;
    for (int64_t i = 0; adapt->pools && i < adapt->n_pool; i++)
        em_mass_destroy(&adapt->pools[i].mass);
    if (adapt->initial && adapt->initial->outlying_mass)
        em_drop_outlying_masses(adapt);
    if (adapt->noncentred) {
        em_posterior_destroy(&adapt->noncentred->posterior);
        em_noncentring_release(&adapt->noncentred->map);
        em_release(&adapt->noncentred->found); /* which changes places with a row of the map */
    }
    em_release(&adapt->part);
    em_release_owned(&adapt->memory);
    em_release(out);
}

em_status em_adapt_begin_with(em_adapt *adapt, const em_mass *mass, double step_size,
                              const em_trajectory *earlier)
{
    const bool multistage = earlier->multistage && adapt->plan && adapt->plan->multistage;
    em_status status = EM_OK;

    /* Leapfrog, also that of the initial phase, needs shorter steps. */
    if (earlier->multistage && (!multistage || adapt->warmup > 0))
        step_size /= 2;

    mass->ops->write(mass, &adapt->form, adapt->estimate);
    for (int64_t i = 0; !status && i < adapt->n_pool; i++) {
        em_mass_destroy(&adapt->pools[i].mass);
        status = em_mass_of(&adapt->form, adapt->estimate, &adapt->pools[i].mass);
        if (!status && adapt->adapts_step) {
            adapt->pools[i].step_size = step_size;
            em_dual_averaging_start(&adapt->pools[i].averaging, step_size, adapt->restart);
        }
    }
    adapt->has_step = true;
    if (adapt->plan && adapt->plan->learned && !isnan(earlier->time)) {
        adapt->search->drawn = em_trajectory_of_time(earlier->time, earlier->jitter);
        adapt->search->drawn.multistage = multistage;
        adapt->search->kept = adapt->search->drawn;
    }
    em_publish_to_chains(adapt);
    return status;
}

int64_t em_adapt_most_warmup(const em_mass_options *options, const em_sampler_ops *sampler,
                             const em_sampler_options *sampler_options, int64_t warmup)
{
    enum { WARMUP_OF_WINDOWS = 1000 };
    em_trajectory drawn;

    if (warmup != INT64_MIN)
        return warmup;
    return warmup_has_phases(options, sampler, sampler_options, &drawn)
               ? em_warmup_plan_create(warmup, &drawn).warmup
               : WARMUP_OF_WINDOWS;
}
