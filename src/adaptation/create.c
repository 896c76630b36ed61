/* Creates and destroys the adaptation engine, and sets what it begins with. */
#include "adaptation/adaptation_internal.h"
#include "adaptation/mass_window/subsampling_interval.h"
#include "base/memory.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

/* The estimate of gradient noise is dense where the last window has enough samples for that,
 * whatever the structure of the mass. */
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

static em_status allocate_work(em_adapt *adapt)
{
    const int64_t n = adapt->n_local_chain;
    em_status status = em_allocate(n, sizeof(em_mass *), &adapt->chain_mass);

    adapt->n_estimator = em_learns(adapt) ? em_estimator_size(adapt->estimator, &adapt->form) : 1;
    adapt->n_accumulator = adapt->n_estimator + adapt->dim;
    if (adapt->options->s_count_rule == EM_S_COUNT_INTERVAL)
        adapt->n_accumulator += em_subsampling_interval_size(adapt->dim);
    if (adapt->thermostat)
        adapt->n_accumulator += 2;
    const struct {
        double **vector;
        int64_t size;
    } vectors[] = {{&adapt->chain_step, n},
                   {&adapt->chain_thermostat, n},
                   {&adapt->acceptance, n},
                   {&adapt->probe, n},
                   {&adapt->warmup.gradients, n},
                   {&adapt->accumulator, n * adapt->n_segment * adapt->n_accumulator},
                   {&adapt->pooled, adapt->n_accumulator},
                   {&adapt->sample, 2 * adapt->stride},
                   {&adapt->estimate, adapt->form.ops->size(&adapt->form)}};
    for (size_t i = 0; !status && i < sizeof vectors / sizeof *vectors; i++)
        status = em_allocate(vectors[i].size, sizeof(double), vectors[i].vector);
    return status;
}

/* A trajectory length is shared by all chains. Its unit is the standard deviation of the target,
 * which is estimated from draws or gradients: an estimator that does neither is an error. */
static em_status check_trajectory(const em_adapt *adapt, const em_sampler_ops *sampler,
                                  const em_trajectory *drawn)
{
    if (adapt->warmup.runs || drawn->kind != EM_TRAJECTORY_TIME)
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

/* The number of draws that a matrix is estimated from, at most. With more of them the sampling
 * error is small compared with the error of using one matrix where curvature varies. */
static int64_t most_draws(int64_t dim)
{
    const int64_t least = 4000, each = 20;

    return each * dim > least ? each * dim : least;
}

/* Makes the window of draws, and sets which iterations its first estimate uses. */
static em_status create_window(em_adapt *adapt)
{
    const em_schedule *schedule = &adapt->schedule;
    const int64_t initial = adapt->warmup.plan.initial;
    const em_status status = em_window_create(
        em_chains_per_pool(adapt), adapt->n_local_chain, adapt->dim,
        adapt->keeps_draws ? initial - em_warmup_window_begin(initial) : INT64_MAX,
        adapt->keeps_draws ? most_draws(adapt->dim) : em_window_span(adapt->dim), &adapt->window);

    if (status)
        return status;
    if (adapt->warmup.runs)
        em_window_aim(&adapt->window, em_warmup_window_begin(adapt->warmup.window),
                      adapt->warmup.window);
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
    adapt->warmup.runs = em_warmup_has_phases(options, sampler, adapt->sampler_options, &drawn);
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
            : (adapt->schedule.last - adapt->schedule.first) / em_e_step_length(adapt) + 1;
    if (!status && adapt->warmup.runs)
        status = em_warmup_create(adapt, &drawn, config_warmup);
    adapt->keeps_draws = em_learns(adapt) && adapt->warmup.runs && adapt->form.most_rank == 0 &&
                         adapt->form.ops->structure == EM_MASS_DENSE;
    if (adapt->keeps_draws)
        adapt->n_segment = 0;
    if (!status)
        status = create_noise(adapt, sampler);
    if (!status)
        status = create_pools(adapt, sampler);
    if (!status)
        status = allocate_work(adapt);
    if (!status && em_learns(adapt) && (adapt->form.most_rank > 0 || adapt->keeps_draws))
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
    em_warmup_destroy(&adapt->warmup);
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
            em_dual_averaging_start(&adapt->pools[i].averaging, step_size,
                                    em_restart_factor(adapt));
        }
    }
    adapt->has_step = true;
    if (adapt->warmup.runs && adapt->warmup.plan.learned && !isnan(time))
        adapt->warmup.drawn = adapt->warmup.kept = em_trajectory_of_time(time, jitter);
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
    return em_warmup_has_phases(options, sampler, sampler_options, &drawn)
               ? em_warmup_plan_create(warmup, &drawn).warmup
               : WARMUP_OF_WINDOWS;
}
