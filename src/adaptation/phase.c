/* The stage that a course is in. */
#include "adaptation/adaptation_internal.h"

#include <math.h>

/* Iterations of tune and of each climb after which the autocorrelation is looked at. */
int64_t em_first_lag(const em_warmup *course)
{
    return course->begun + course->plan.tune / 5;
}

bool em_phase_is_measured(const em_warmup *course)
{
    return course->plan.climbs && course->drawn.kind == EM_TRAJECTORY_TIME &&
           (course->stage == EM_PHASE_STEP_SIZE || course->stage == EM_PHASE_TRAJECTORY_LENGTH);
}

/* Whether this is a stage in which trajectories of one length may turn out not to fit. */
bool em_phase_is_tried(const em_warmup *course)
{
    return course->plan.learned && course->drawn.kind == EM_TRAJECTORY_TIME &&
           (course->stage == EM_PHASE_STEP_SIZE || course->stage == EM_PHASE_TRAJECTORY_LENGTH);
}

/* The step size that a stage ends with: the averaged one. Local. */
double em_final_step_size(const em_adapt *adapt)
{
    const em_pool *pool = adapt->pools;

    return adapt->adapts_step ? em_dual_averaging_final(&pool->averaging) : pool->step_size;
}

void em_enter_phase(em_warmup *course, em_phase_id stage, int64_t done)
{
    course->stage = stage;
    course->begun = done;
}

/* What was learned in the stage that ends. Collective. */
em_status em_record_phase(em_adapt *adapt, em_phase_end why, int64_t done)
{
    em_warmup *course = &adapt->course;
    const bool timed =
        course->stage != EM_PHASE_INITIAL && course->drawn.kind == EM_TRAJECTORY_TIME;
    em_phase_record *out = &course->record[course->n_stage++];

    *out = (em_phase_record){.stage = course->stage,
                             .iteration = (double)done,
                             .end = why,
                             .time = timed ? course->drawn.time : NAN,
                             .step_size = em_final_step_size(adapt)};
    return em_grid_sum_chains(adapt->grid, 1, course->gradients, &out->gradients);
}
