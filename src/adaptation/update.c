/*
 * The meetings of a course, at which windows and stages end. Everything is decided from exact sums
 * over the chains, or from rows of all of them, so that it is the same on any number of ranks.
 */
#include "adaptation/adaptation_internal.h"

#include <string.h>

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

em_status em_limit_depth(em_adapt *adapt, double step_size)
{
    em_course *course = &adapt->course;
    double count[EM_DEPTHS];
    em_status status;

    if (!course->many || course->stage != EM_STAGE_ARRIVE)
        return EM_OK;
    status = em_grid_sum_chains(adapt->grid, EM_DEPTHS, course->depths, count);
    memset(course->depths, 0, (size_t)(adapt->n_local_chain * EM_DEPTHS) * sizeof *count);
    if (!status)
        course->deepest = em_depth_limit(count, step_size / adapt->pools->step_size);
    return status;
}

em_status em_course_meet(em_adapt *adapt, em_block *block, int64_t done)
{
    const em_course *course = &adapt->course;
    em_status status = EM_OK;

    if (course->stage == EM_STAGE_ARRIVE && done == course->window)
        status = em_end_window(adapt, block, done);
    /* A short warmup has no iterations to tune in. */
    if (!status && course->stage != EM_STAGE_ARRIVE && course->stage != EM_STAGE_DRAW &&
        done == em_course_next_meeting(course))
        status = em_end_stage(adapt, done);
    return status;
}
