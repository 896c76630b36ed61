/*
 * How warmup goes for kernels that follow a Hamiltonian and learn from pooled chains: a line of
 * stages, as data, and where on it a run is. Pure: nothing here communicates. All Local.
 *
 *     arrive   NUTS, until the chains have arrived; the mass is learned at the ends of windows
 *     tune     the kernel that draws: its step size
 *     climb    longer trajectories, for as long as they pay
 *              (either may show that curvature varies too much for trajectories of one length: NUTS
 *              is then tuned, and draws)
 *     rest     what is left of a warmup of given length: the step size, further
 *     draw     all is frozen
 */
#ifndef EM_ADAPTATION_SCHEDULE_WARMUP_SCHEDULE_H
#define EM_ADAPTATION_SCHEDULE_WARMUP_SCHEDULE_H

#include "sampler/kernel/sampler.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum em_phase_id {
    EM_PHASE_INITIAL,
    EM_PHASE_STEP_SIZE,
    EM_PHASE_TRAJECTORY_LENGTH,
    EM_PHASE_FINAL,
    EM_PHASE_SAMPLING
} em_phase_id;

/* Why a stage ended. */
typedef enum em_phase_end {
    EM_END_PLANNED, /* it has had its iterations */
    EM_END_REACHED, /* arrive: two windows in a row saw nothing against it */
    EM_END_REFUSED, /* climb: the longer trajectories did not pay */
    EM_END_UNEVEN   /* tune, climb: curvature varies, and trajectories end where they turn back */
} em_phase_end;

/* What is fixed of a course before the first step. */
typedef struct em_warmup_plan {
    int64_t arrive; /* iterations at most, or (given) exactly */
    int64_t tune;   /* iterations of tune, and of each climb */
    int64_t warmup; /* of all stages, at most or exactly */
    bool given;     /* exactly */
    double time;    /* of the first trajectories, in whitened units */
    bool learned;   /* that time is learned */
    bool climbs;    /* and there is room to try longer ones */
} em_warmup_plan;

/*
 * `warmup` is what the config says, INT64_MIN: as long as it takes. `drawn` is the trajectory that
 * draws are made with: by U-turn, or of a time, which is NaN when it is to be learned.
 */
em_warmup_plan em_warmup_plan_create(int64_t warmup, const em_trajectory *drawn);

/* The window that follows the one that ended after n iterations: 10, then 1.35 times as many, up to
 * the end of arrive. */
int64_t em_warmup_next_window(const em_warmup_plan *plan, int64_t n);

/* A window that ends after n iterations looks back on iterations em_warmup_window_begin(n) .. n
 * - 1.
 */
int64_t em_warmup_window_begin(int64_t n);

/* Whether a window that ends later than iteration n will look back on n .. and not on n - 1. */
bool em_warmup_splits_window(const em_warmup_plan *plan, int64_t n);

/* The greatest depth of trees in iteration n: a far start is cheaper with short ones; 0: what the
 * options say. */
int64_t em_warmup_tree_depth_cap(int64_t n);

/* Chains meet in each iteration before this one: far from the target a step size must follow fast,
 * or all of them may settle in a mode of low density. */
int64_t em_warmup_updates_often(const em_warmup_plan *plan);

/* Trajectories of a time that was learned; an infinite one: they end where they turn back. */
em_trajectory em_trajectory_of_time(double time, double jitter);

/* Longer trajectories than `drawn` after a stage; false: there are none, or no time for them. */
bool em_warmup_longer_trajectory(const em_warmup_plan *plan, const em_trajectory *drawn,
                                 int64_t done, em_trajectory *out);

#endif
