/*
 * The adaptation engine: it learns mass matrix and step size in warmup, by one Monte Carlo EM loop
 * for every sampler and every estimation criterion. Warmup is a sequence of phases (README.md).
 *
 *     E-step      the kernel runs with the mass fixed; every chain adds to its accumulators
 *     all-reduce  the accumulators are summed over the chains that share, exactly
 *     M-step      the criterion makes an estimate, which replaces the mass or is averaged in
 *     step size   dual averaging starts again
 *
 * This repeats until the end of warmup, when mass and step size are frozen. An adaptation update is
 * the point between two iterations at which chains communicate. Chains that share form a pool: all
 * chains of the run, or (share: none) each chain alone.
 */
#pragma once

#include "adaptation/mass_window/mass_options.h"
#include "emass/visitor.h"
#include "par/grid.h"
#include "posterior/noncentring.h"
#include "sampler/kernel/sampler.h"

typedef struct em_adapt em_adapt;

/* A phase of warmup that has ended (adaptation/schedule/warmup_schedule.h). All members are double,
 * so that rows of them can be stored. */
typedef struct em_phase_record {
    double phase;     /* em_phase_id */
    double iteration; /* iterations done when it ended */
    double end;       /* em_phase_end: why */
    double time;      /* of its trajectories, in whitened units; NaN: by U-turn */
    double step_size; /* at the end of the phase */
    double gradients; /* of all chains, from the start of the run */
} em_phase_record;

/* One M-step, as recorded in the output file. */
typedef struct em_m_step {
    double iteration; /* iterations done at that time */
    double kappa;     /* weight of the estimate; 0: the estimate was refused and the mass kept */
    double s_count;   /* samples asked for */
    double n_sample;  /* samples in the accumulators */
    double smallest, largest; /* eigenvalues of the new inverse mass */
    /* momentum only, else NaN: |tr(WC)/D - 1| and max |(WC)_ii - 1|, divided by their bounds; below
     * 1 the momenta carry no information about the mass */
    double trace_deviation, diagonal_deviation;
    double unevenness; /* em_unevenness of mass/estimator.h; NaN: not defined for this estimator or
                          mass */
    double thermostat_mass; /* Q from then on; NaN: not learned */
} em_m_step;

/*
 * `options`, `sampler_options` and `grid` must outlive it. warmup INT64_MIN: warmup ends by its own
 * criteria. A structure for which the planned samples do not suffice is an error, and so is the
 * estimator `noise` without minibatches. Collective. Errors: EM_ECONFIG, EM_EMEMORY, agreed.
 */
em_status em_adapt_create(const em_mass_options *options, const em_sampler_ops *sampler,
                          const em_sampler_options *sampler_options, em_grid *grid, int64_t dim,
                          int64_t warmup, uint64_t seed, em_adapt **out);
void em_adapt_destroy(em_adapt **adapt);

/* The iterations of warmup, at most. `warmup` is the number in the config; INT64_MIN: auto. Pure,
 * local. */
int64_t em_adapt_most_warmup(const em_mass_options *options, const em_sampler_ops *sampler,
                             const em_sampler_options *sampler_options, int64_t warmup);

/* What was learned so far, and how. The arrays are the engine's own. */
typedef struct em_learned {
    const em_mass *const *mass; /* [n_local_chain] */
    const em_mass_form *form;   /* of the masses */
    const double *step_size;    /* [n_local_chain] */
    int64_t n_pool;             /* of the run: 1, or its number of chains */
    int64_t n_m_step;
    int64_t warmup; /* iterations, known from the adaptation update at which it ended; -1 before */
    bool has_initial_phase;       /* in which chains move from their starts to the typical set */
    int64_t n_phase;              /* phases that have ended; 0 where warmup has no phases */
    const em_phase_record *phase; /* [n_phase] */
    const double *gradients;      /* [n_local_chain] in warmup */
    int64_t n_reinitialised;      /* how often an outlying chain was reinitialised */
    double exchange_seconds, m_step_seconds; /* of updates: communication with waiting; M-steps */
} em_learned;

em_learned em_adapt_learned(const em_adapt *adapt); /* Local. */

/* Counts n gradients of local chain `chain` that were computed outside its iterations. Local. */
void em_adapt_count_gradients(em_adapt *adapt, int64_t chain, int64_t n);

/* Counts n gradients of all chains that were computed after the last iteration of warmup; they
 * belong to its last phase. Local. */
void em_adapt_count_after_warmup(em_adapt *adapt, double n);

/*
 * Sets the initial mass of every pool and the initial step size. `mass` has the engine's form and
 * is equal on all ranks. A step size that is not adapted remains that of the config. Where the
 * length of trajectories is learned, it begins with the time, the jitter and the kind of steps of
 * `earlier`. A time of NaN is not known. With an infinite time, trajectories end at a U-turn.
 * Local. Errors: EM_EMEMORY.
 */
em_status em_adapt_begin_with(em_adapt *adapt, const em_mass *mass, double step_size,
                              const em_trajectory *earlier);

/* The context of iteration `iteration` (from 0), with all that was learned so far: the mass, step
 * size, thermostat mass and gradient noise of the chains of this rank, and the trajectory. Local.
 */
em_step_context em_adapt_context(const em_adapt *adapt, em_posterior *posterior, int64_t iteration);

/* Starts adaptation at the chains' positions. Searches for an initial step size, unless there is
 * one, sets the centre of positions, and draws momenta and thermostats. The initial mass is
 * diagonal: from inverse_curvature [n_local_chain][stride] or, if that is NULL, from the gradients.
 * Collective. Errors: those of the sampler, agreed. */
em_status em_adapt_start(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                         em_block *block, const double *inverse_curvature);

/* One iteration of the kernel, in the learned coordinates. `context` is that of the model's
 * coordinates. Local, but evaluations of the posterior are Collective over the ranks of a group of
 * shards. Errors: those of the kernel. */
em_status em_adapt_step(em_adapt *adapt, em_sampler *sampler, const em_step_context *context,
                        em_block *block);

/* em_adapt_noncentring: the map to the non-centred coordinates in which all chains move; NULL: the
 * model's coordinates. em_adapt_begin_noncentred: sets the initial map, from an earlier run. Local.
 * Errors: EM_EDATA, EM_ECONFIG. */
const em_noncentring *em_adapt_noncentring(const em_adapt *adapt);
em_status em_adapt_begin_noncentred(em_adapt *adapt, const em_noncentring_row *row);

/* Adds the draws and statistics of warmup iteration `iteration` (from 0), which are in the block.
 * Local, but the estimate of gradient noise evaluates gradients of the posterior. Errors:
 * EM_EMODEL. */
em_status em_adapt_observe(em_adapt *adapt, em_posterior *posterior, const em_block *block,
                           int64_t iteration);

/* The iteration of the next adaptation update: the number of iterations done at it, more than
 * `done` and at most that of warmup. The same on all ranks. Local. */
int64_t em_adapt_next_update(const em_adapt *adapt, int64_t done);

/* The adaptation update after `done` iterations: one update of the step size, and an M-step where
 * one is due. At the end of warmup mass and step size are frozen. Collective. Errors: agreed. */
em_status em_adapt_update(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                          em_block *block, int64_t done);

/* Passes the state after `done` iterations, masses included, to a visitor, which saves or restores
 * it. Accumulators are included only during adaptation. Collective. Errors: the visitor's;
 * EM_EDATA, EM_EMEMORY, agreed. */
em_status em_adapt_visit(em_adapt *adapt, int64_t done, const em_visitor *visitor);

/* The M-steps [n_m_step] of pool `local_pool` of this rank (0 if all chains share one). Local. */
const em_m_step *em_adapt_m_steps(const em_adapt *adapt, int64_t local_pool);

const char *em_phase_name(int phase); /* of an em_phase_id, as files name it */

/* The warmup summary, one line: "warmup 140 iterations, 4310 gradients; initial phase ended at
 * iteration 90; T 2, 3 steps". T is the trajectory length in whitened units, in which the mass
 * makes every standard deviation of the posterior about 1. "" where warmup has no phases. Local. */
void em_adapt_summarise(const em_adapt *adapt, size_t bytes, char *out);

/* The approximate memory of the engine on this rank, in bytes. Local. */
double em_adapt_bytes(const em_adapt *adapt);
