/* The table of the phases of warmup, and what their rows have in common. */
#include "adaptation/adaptation_internal.h"

#include <math.h>

static int64_t initial_end(const em_adapt *adapt)
{
    return adapt->initial->end;
}

static int64_t initial_next_update(const em_adapt *adapt, int64_t done)
{
    (void)done;
    return adapt->initial->window;
}

static int64_t trial_end(const em_adapt *adapt)
{
    return adapt->begun + adapt->plan->trial;
}

static int64_t warmup_end(const em_adapt *adapt)
{
    return adapt->warmup;
}

static int64_t no_end(const em_adapt *adapt)
{
    (void)adapt;
    return INT64_MAX;
}

static void enter_sampling(em_adapt *adapt, int64_t done)
{
    adapt->ended = done;
}

static int64_t first_buffer_end(const em_adapt *adapt)
{
    return adapt->windows->schedule.first;
}

static int64_t windows_end(const em_adapt *adapt)
{
    return adapt->windows->schedule.last;
}

static em_status leave_last_buffer(em_adapt *adapt, int64_t done, em_phase_id *next)
{
    (void)done, (void)next;
    for (int64_t i = 0; i < adapt->n_pool; i++)
        adapt->pools[i].step_size = em_final_step_size(adapt, &adapt->pools[i]);
    return EM_OK;
}

/* Name, follower, learns; end, enter, observe, next update, update, leave. */
const em_phase em_phases[] = {
    /* hmc, nuts, walnuts */
    [EM_PHASE_INITIAL] = {"arrive", EM_PHASE_STEP_SIZE, true, initial_end, NULL, em_initial_observe,
                          initial_next_update, em_initial_update, em_initial_leave},
    [EM_PHASE_STEP_SIZE] = {"tune", EM_PHASE_FINAL, false, trial_end, em_trial_enter,
                            em_trial_observe, NULL, NULL, em_trial_leave},
    [EM_PHASE_TRAJECTORY_LENGTH] = {"climb", EM_PHASE_FINAL, false, trial_end, em_trial_enter,
                                    em_trial_observe, NULL, NULL, em_trial_leave},
    [EM_PHASE_FINAL] = {"rest", EM_PHASE_SAMPLING, false, warmup_end, NULL, NULL, NULL, NULL,
                        em_trial_leave},
    [EM_PHASE_SAMPLING] = {"draw", EM_PHASE_SAMPLING, false, no_end, enter_sampling, NULL, NULL,
                           NULL, NULL},
    /* other samplers */
    [EM_PHASE_FIRST_BUFFER] = {"first_buffer", EM_PHASE_WINDOWS, false, first_buffer_end, NULL,
                               NULL, em_windows_next_update, NULL, NULL},
    [EM_PHASE_WINDOWS] = {"windows", EM_PHASE_LAST_BUFFER, true, windows_end, NULL,
                          em_windows_observe, em_windows_next_update, em_windows_update, NULL},
    [EM_PHASE_LAST_BUFFER] = {"last_buffer", EM_PHASE_SAMPLING, false, warmup_end, NULL, NULL, NULL,
                              NULL, leave_last_buffer},
};

const char *em_phase_name(int phase)
{
    return em_phases[phase].name;
}

void em_enter_phase(em_adapt *adapt, em_phase_id phase, int64_t done)
{
    adapt->phase = phase;
    adapt->begun = done;
    if (em_phases[phase].enter)
        em_phases[phase].enter(adapt, done);
}

em_status em_record_phase(em_adapt *adapt, em_phase_end why, int64_t done)
{
    const em_trajectory *drawn = &adapt->search->drawn;
    const bool timed = adapt->phase != EM_PHASE_INITIAL && drawn->kind == EM_TRAJECTORY_TIME;
    em_phase_record *out = &adapt->record[adapt->n_phase++];

    *out = (em_phase_record){.phase = adapt->phase,
                             .iteration = (double)done,
                             .end = why,
                             .time = timed ? drawn->time : NAN,
                             .step_size = em_final_step_size(adapt, adapt->pools)};
    return em_grid_sum_chains(adapt->grid, 1, adapt->gradients, &out->gradients);
}
