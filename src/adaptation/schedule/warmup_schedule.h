/*
 * The two schedules of warmup: the ends of phases and windows, as far as they are known before the
 * first iteration. Pure functions, which do not communicate. All Local.
 *
 * Hamiltonian kernels whose chains share one mass:
 *
 *     initial            NUTS runs until the log densities of the chains are stationary; the mass
 *                        is estimated at the end of each window of iterations
 *     step_size          the kernel of sampling runs; its step size is adapted
 *     trajectory_length  longer trajectories are tried, for as long as they raise the efficiency
 *     final              the rest of a warmup of given length; the step size is adapted further
 *     sampling           nothing is adapted any more
 *
 * The step_size and trajectory_length phases may find that curvature varies too much for
 * trajectories of one length. NUTS then takes their place: its step size is adapted, and it
 * samples. (Earlier versions wrote other names of phases to files.)
 *
 * All other samplers:
 *
 *     first_buffer       the step size is adapted
 *     windows            and the E-step collects samples; each window is twice as long as the one
 *                        before and ends with a new mass
 *     last_buffer        the step size is adapted to the last mass
 *     sampling           nothing is adapted any more
 */
#pragma once

#include "sampler/kernel/sampler.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum em_phase_id {
    EM_PHASE_INITIAL,
    EM_PHASE_STEP_SIZE,
    EM_PHASE_TRAJECTORY_LENGTH,
    EM_PHASE_FINAL,
    EM_PHASE_SAMPLING,
    EM_PHASE_FIRST_BUFFER,
    EM_PHASE_WINDOWS,
    EM_PHASE_LAST_BUFFER
} em_phase_id;

/* How often steps may become shorter because trajectories are lost, that is, diverge or are nearly
 * always rejected. */
enum { EM_MOST_SHORTENINGS = 2 };

/* Why a phase ended. */
typedef enum em_phase_end {
    EM_END_PLANNED,   /* it has had its iterations */
    EM_END_REACHED,   /* initial: its criterion was met in two windows in a row */
    EM_END_REFUSED,   /* trajectory_length: the longer trajectories were less efficient */
    EM_END_UNEVEN,    /* step_size, trajectory_length: curvature varies, NUTS takes over */
    EM_END_LOST,      /* step_size: trajectories are lost, steps become shorter */
    EM_END_LEAPFROG,  /* step_size: steps of several stages do not pay, leapfrog takes over */
    EM_END_DIVERGING, /* step_size: trajectories diverge, steps become shorter */
    EM_END_LEAPFROG_DIVERGING /* steps of several stages diverge: leapfrog, with shorter steps */
} em_phase_end;

/* ---------------------------------------------------------------- with an initial phase */

/* The part of this schedule that is fixed before the first iteration. */
typedef struct em_warmup_plan {
    int64_t initial;      /* iterations of the initial phase: at most, or, if `given`, exactly */
    int64_t trial;        /* iterations of step_size, and of each trial of a trajectory length */
    int64_t warmup;       /* iterations of all phases, at most or exactly, likewise */
    bool given;           /* run.warmup is a number */
    double time;          /* of the first trajectories, in whitened units */
    bool learned;         /* the trajectory length will be learned */
    bool multistage;      /* steps of several stages may be used */
    bool searches_length; /* longer trajectories are tried: `learned`, and there are enough
                             iterations */
} em_warmup_plan;

/*
 * `warmup` is the number in the config; INT64_MIN: auto. `drawn` is the trajectory of sampling:
 * ended by a U-turn, or of a given length in time, which is NaN when it is to be learned.
 */
em_warmup_plan em_warmup_plan_create(int64_t warmup, const em_trajectory *drawn);

/* The end of the window that follows the one that ended after n iterations: 10 first, then 1.35 n,
 * up to the end of the initial phase. */
int64_t em_warmup_next_window(const em_warmup_plan *plan, int64_t n);

/* The estimate at the end of a window, after n iterations, uses iterations
 * em_warmup_window_begin(n) .. n - 1. */
static inline int64_t em_warmup_window_begin(int64_t n)
{
    return n < 4 ? 0 : n / 2;
}

/* Whether the estimate of some later window begins with iteration n. */
bool em_warmup_splits_window(const em_warmup_plan *plan, int64_t n);

/* The tree-depth cap of iteration n: from a far start short trajectories are cheaper. 0: that of
 * the options. */
int64_t em_warmup_tree_depth_cap(int64_t n);

/* Adaptation updates take place after each iteration before this one. Far from the typical set the
 * step size must adapt fast, or all chains may stay in a mode of low density. */
int64_t em_warmup_updates_often(const em_warmup_plan *plan);

/* Trajectories of a learned length in time; an infinite one: they end at a U-turn. */
em_trajectory em_trajectory_of_time(double time, double jitter);

/* Whether trajectories of this time need more steps of this size than they may have. A longer time
 * changes nothing then. */
bool em_trajectory_is_cut(const em_trajectory *drawn, double step_size);

/* The next longer trajectory to try, after a phase with `drawn`. False: it would exceed the longest
 * one, or the iterations do not suffice. */
bool em_warmup_longer_trajectory(const em_warmup_plan *plan, const em_trajectory *drawn,
                                 int64_t done, em_trajectory *out);

/* ---------------------------------------------------------------- of windows */

/*
 * Iterations are counted from 0. An adaptation update "after n" takes place when n iterations are
 * done. E-step samples are collected in iterations first .. last - 1. M-steps take place after
 * window_end[0] < window_end[1] < ... iterations (doubling windows).
 */
typedef struct em_schedule {
    int64_t warmup, first, last;
    int64_t n_window;
    int64_t *window_end;
} em_schedule;

/*
 * Windows of s_count pooled samples, then twice that, and so on, from init_buffer to warmup -
 * term_buffer. The last window takes the rest if no doubled one would fit. `n_chain` chains share
 * their samples. INT64_MIN stands for the default of a buffer: 15 % of warmup but at most 75, and
 * 10 % but at most 50. Errors: EM_EMEMORY.
 */
em_status em_schedule_create(em_owner *owner, int64_t warmup, int64_t init_buffer,
                             int64_t term_buffer, int64_t s_count, int64_t n_chain,
                             em_schedule *out);

/* True when a window ends after n iterations. */
bool em_schedule_window_ends(const em_schedule *schedule, int64_t n);

/* Pooled samples of the last window. */
int64_t em_schedule_last_window(const em_schedule *schedule, int64_t n_chain);
