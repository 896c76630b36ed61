/* Creates and destroys the state of a warmup in phases. */
#include "adaptation/adaptation_internal.h"
#include "adaptation/trajectory/trajectory_criterion.h"
#include "base/memory.h"

bool em_warmup_has_phases(const em_mass_options *options, const em_sampler_ops *sampler,
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

em_status em_warmup_create(em_adapt *adapt, const em_trajectory *drawn, int64_t config_warmup)
{
    const int64_t n = adapt->n_local_chain;
    em_warmup *warmup = &adapt->warmup;
    em_status status;

    warmup->runs = true;
    warmup->many = em_grid_n_chain(adapt->grid) >= EM_MANY_CHAINS;
    warmup->depth_cap = em_first_depth(warmup);
    warmup->plan = em_warmup_plan_create(config_warmup, drawn);
    warmup->drawn = *drawn;
    warmup->drawn.time = warmup->plan.time;
    warmup->kept = warmup->drawn;
    warmup->kept_averaging.target = adapt->sampler_options->target_accept;
    warmup->phase = warmup->plan.warmup > 0 ? EM_PHASE_INITIAL : EM_PHASE_SAMPLING;
    warmup->ended = warmup->plan.warmup > 0 ? -1 : 0;
    warmup->window = em_warmup_next_window(&warmup->plan, 0);
    adapt->n_segment = EM_MOST_SEGMENTS;
    adapt->most_m_steps = count_windows(&warmup->plan);
    const struct {
        double **vector;
        int64_t size;
    } vectors[] = {{&warmup->history, n * warmup->plan.initial},
                   {&warmup->since, n},
                   {&warmup->step_factor, n},
                   {&warmup->depth_counts, warmup->many ? n * EM_DEPTHS : 0},
                   {&warmup->lag, warmup->plan.searches_length ? n * em_lag_size(adapt->dim) : 0},
                   {&warmup->kept_r, adapt->dim},
                   {&warmup->tried_r, adapt->dim}};
    status = em_allocate(em_grid_n_chain(adapt->grid), sizeof(bool), &warmup->outlying);
    if (!status)
        status = em_allocate(n, sizeof *warmup->statistics, &warmup->statistics);
    for (size_t i = 0; !status && i < sizeof vectors / sizeof *vectors; i++)
        status = em_allocate(vectors[i].size, sizeof(double), vectors[i].vector);
    for (int64_t c = 0; !status && c < n; c++)
        warmup->step_factor[c] = 1;
    return status;
}

void em_warmup_destroy(em_warmup *warmup)
{
    double **const vectors[] = {&warmup->history, &warmup->since,     &warmup->depth_counts,
                                &warmup->lag,     &warmup->gradients, &warmup->step_factor,
                                &warmup->kept_r,  &warmup->tried_r};

    em_release(&warmup->outlying);
    em_release(&warmup->statistics);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        em_release(vectors[i]);
}
