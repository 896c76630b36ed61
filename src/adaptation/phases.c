/* The table of the phases of warmup, and what their rows have in common. */
#include "adaptation/adaptation_internal.h"

int64_t em_phase_ends_at(const em_adapt *adapt)
{
    switch (adapt->phase) {
    case EM_PHASE_INITIAL:
        return adapt->initial->end;
    case EM_PHASE_STEP_SIZE:
    case EM_PHASE_TRAJECTORY_LENGTH:
        return adapt->begun + adapt->plan->trial;
    case EM_PHASE_FIRST_BUFFER:
        return adapt->windows->schedule.first;
    case EM_PHASE_WINDOWS:
        return adapt->windows->schedule.last;
    case EM_PHASE_FINAL:
    case EM_PHASE_LAST_BUFFER:
        return adapt->warmup;
    default:
        return INT64_MAX;
    }
}

int64_t em_phase_next_update(const em_adapt *adapt, int64_t done)
{
    switch (adapt->phase) {
    case EM_PHASE_INITIAL:
        return adapt->initial->window;
    case EM_PHASE_FIRST_BUFFER:
    case EM_PHASE_WINDOWS:
        return em_windows_next_update(adapt, done);
    default:
        return em_phase_ends_at(adapt);
    }
}

static void enter_sampling(em_adapt *adapt, int64_t done)
{
    adapt->ended = done;
}

static em_status leave_last_buffer(em_adapt *adapt, int64_t done, em_phase_id *next)
{
    (void)done, (void)next;
    for (int64_t i = 0; i < adapt->n_pool; i++)
        adapt->pools[i].step_size = em_final_step_size(adapt, &adapt->pools[i]);
    return EM_OK;
}

/* Name, follower, learns; enter, observe, update, leave. */
const em_phase em_phases[] = {
    /* hmc, nuts, walnuts */
    [EM_PHASE_INITIAL] = {"initial", EM_PHASE_STEP_SIZE, true, NULL, em_initial_observe,
                          em_initial_update, em_initial_leave},
    [EM_PHASE_STEP_SIZE] = {"step_size", EM_PHASE_FINAL, false, em_trial_enter, em_trial_observe,
                            NULL, em_trial_leave},
    [EM_PHASE_TRAJECTORY_LENGTH] = {"trajectory_length", EM_PHASE_FINAL, false, em_trial_enter,
                                    em_trial_observe, NULL, em_trial_leave},
    [EM_PHASE_FINAL] = {"final", EM_PHASE_SAMPLING, false, NULL, NULL, NULL, em_trial_leave},
    [EM_PHASE_SAMPLING] = {"sampling", EM_PHASE_SAMPLING, false, enter_sampling, NULL, NULL, NULL},
    /* other samplers */
    [EM_PHASE_FIRST_BUFFER] = {"first_buffer", EM_PHASE_WINDOWS, false, NULL, NULL, NULL, NULL},
    [EM_PHASE_WINDOWS] = {"windows", EM_PHASE_LAST_BUFFER, true, NULL, em_windows_observe,
                          em_windows_update, NULL},
    [EM_PHASE_LAST_BUFFER] = {"last_buffer", EM_PHASE_SAMPLING, false, NULL, NULL, NULL,
                              leave_last_buffer},
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
