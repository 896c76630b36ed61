/*
 * The meetings of a course, at which windows and stages end. Everything is decided from exact sums
 * over the chains, or from rows of all of them, so that it is the same on any number of ranks.
 */
#include "adaptation/adaptation_internal.h"

#include <string.h>

int64_t em_warmup_next_update(const em_warmup *course)
{
    switch (course->stage) {
    case EM_PHASE_INITIAL:
        return course->window;
    case EM_PHASE_STEP_SIZE:
    case EM_PHASE_TRAJECTORY_LENGTH:
        return course->begun + course->plan.tune;
    default:
        return course->plan.warmup;
    }
}

em_status em_limit_depth(em_adapt *adapt, double step_size)
{
    em_warmup *course = &adapt->course;
    double count[EM_DEPTHS];
    em_status status;

    if (!course->many || course->stage != EM_PHASE_INITIAL)
        return EM_OK;
    status = em_grid_sum_chains(adapt->grid, EM_DEPTHS, course->depths, count);
    memset(course->depths, 0, (size_t)(adapt->n_local_chain * EM_DEPTHS) * sizeof *count);
    if (!status)
        course->deepest = em_tree_depth_limit(count, step_size / adapt->pools->step_size);
    return status;
}

em_status em_warmup_update(em_adapt *adapt, em_block *block, int64_t done)
{
    const em_warmup *course = &adapt->course;
    em_status status = EM_OK;

    if (course->stage == EM_PHASE_INITIAL && done == course->window)
        status = em_end_window(adapt, block, done);
    /* A short warmup has no iterations to tune in. */
    if (!status && course->stage != EM_PHASE_INITIAL && course->stage != EM_PHASE_SAMPLING &&
        done == em_warmup_next_update(course))
        status = em_end_phase(adapt, done);
    return status;
}
