/* Makes what a course keeps. */
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

    for (int64_t end = 0; end < plan->arrive; count++)
        end = em_warmup_next_window(plan, end);
    return count;
}

em_status em_warmup_create(em_adapt *adapt, const em_trajectory *drawn, int64_t warmup)
{
    const int64_t n = adapt->n_local_chain;
    em_warmup *course = &adapt->course;
    em_status status;

    course->runs = true;
    course->many = em_grid_n_chain(adapt->grid) >= EM_MANY_CHAINS;
    course->deepest = em_first_depth(course);
    course->plan = em_warmup_plan_create(warmup, drawn);
    course->drawn = *drawn;
    course->drawn.time = course->plan.time;
    course->kept = course->drawn;
    course->kept_averaging.target = adapt->sampler_options->target_accept;
    course->stage = course->plan.warmup > 0 ? EM_PHASE_INITIAL : EM_PHASE_SAMPLING;
    course->ended = course->plan.warmup > 0 ? -1 : 0;
    course->window = em_warmup_next_window(&course->plan, 0);
    adapt->n_segment = EM_MOST_SEGMENTS;
    adapt->most_m_steps = count_windows(&course->plan);
    const struct {
        double **vector;
        int64_t size;
    } vectors[] = {{&course->history, n * course->plan.arrive},
                   {&course->since, n},
                   {&course->step_factor, n},
                   {&course->depths, course->many ? n * EM_DEPTHS : 0},
                   {&course->lag, course->plan.climbs ? n * em_lag_size(adapt->dim) : 0},
                   {&course->kept_r, adapt->dim},
                   {&course->tried_r, adapt->dim}};
    status = em_allocate(em_grid_n_chain(adapt->grid), sizeof(bool), &course->flagged);
    if (!status)
        status = em_allocate(n, sizeof *course->moves, &course->moves);
    for (size_t i = 0; !status && i < sizeof vectors / sizeof *vectors; i++)
        status = em_allocate(vectors[i].size, sizeof(double), vectors[i].vector);
    for (int64_t c = 0; !status && c < n; c++)
        course->step_factor[c] = 1;
    return status;
}

void em_warmup_destroy(em_warmup *course)
{
    double **const vectors[] = {&course->history, &course->since,     &course->depths,
                                &course->lag,     &course->gradients, &course->step_factor,
                                &course->kept_r,  &course->tried_r};

    em_release(&course->flagged);
    em_release(&course->moves);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        em_release(vectors[i]);
}
