/*
 * The adaptation engine: one Monte Carlo EM loop for every sampler and criterion.
 *
 *     E-step      the kernel runs with the mass fixed; every chain adds to its accumulators
 *     all-reduce  the accumulators are summed over the chains that share, exactly
 *     M-step      the criterion makes an estimate; it is averaged in with kappa_k, guarded,
 * published then        the step size is searched and dual averaging starts anew
 *
 * until the end of warmup, when mass and step size are frozen. Chains that share form a pool: all
 * chains of the run, or (share: none) each chain for itself.
 */
#ifndef EM_ADAPTATION_ADAPTATION_H
#define EM_ADAPTATION_ADAPTATION_H

#include "adaptation/mass_window/mass_options.h"
#include "emass/visitor.h"
#include "par/grid.h"
#include "sampler/kernel/sampler.h"

typedef struct em_adapt em_adapt;

/* A stage of warmup that has ended (adaptation/schedule/warmup_schedule.h); rows are kept as
 * doubles. */
typedef struct em_phase_record {
    double stage;     /* em_phase_id */
    double iteration; /* iterations done when it ended */
    double end;       /* em_phase_end: why */
    double time;      /* of its trajectories, in whitened units; NaN: by U-turn */
    double step_size; /* that it ended with */
    double gradients; /* of all chains, from the start of the run */
} em_phase_record;

/* One M-step, as it is recorded in the output. */
typedef struct em_m_step {
    double iteration; /* iterations done when it took place */
    double kappa;     /* weight of the estimate; 0: the estimate was refused, the mass kept */
    double s_count;   /* samples asked for */
    double n_sample;  /* samples in the accumulators */
    double smallest, largest; /* eigenvalues of the new inverse mass */
    /* momentum only, else NaN: |tr(WC)/D - 1| and max |(WC)_ii - 1| over their bounds; below 1 the
     * momenta carry no information about the mass */
    double trace_deviation, diagonal_deviation;
    double unevenness; /* em_unevenness of mass/estimator.h; NaN: not known of this estimator or
                          mass */
    double thermostat_mass; /* Q from then on; NaN: not learned */
} em_m_step;

/*
 * `options`, `sampler_options`, `grid` outlive it; warmup INT64_MIN: as long as it takes. A
 * structure that was asked for but that the planned samples do not allow is an error, as is the
 * estimator `noise` without minibatches. Collective. Errors: EM_ECONFIG, EM_EMEMORY, agreed.
 */
em_status em_adapt_create(const em_mass_options *options, const em_sampler_ops *sampler,
                          const em_sampler_options *sampler_options, em_grid *grid, int64_t dim,
                          int64_t warmup, uint64_t seed, em_adapt **out);
void em_adapt_destroy(em_adapt **adapt);

/* The iterations of warmup, at most: `warmup` is what the config says, INT64_MIN for as many as it
 * takes. Pure, local. */
int64_t em_adapt_most_warmup(const em_mass_options *options, const em_sampler_ops *sampler,
                             const em_sampler_options *sampler_options, int64_t warmup);

/* The iterations of warmup once they are known, from the meeting on at which it ended; -1 before.
 * Local. */
int64_t em_adapt_warmup(const em_adapt *adapt);

/* Whether there are iterations in which chains go from where they begin to where the target has
 * its mass. Local. */
bool em_adapt_has_initial_phase(const em_adapt *adapt);

/* Tells of gradients that local chain `chain` was given besides those of its iterations. Local. */
void em_adapt_count_gradients(em_adapt *adapt, int64_t chain, int64_t n);

/*
 * Replaces the identity by a mass of the engine's form, the same on all ranks, and the first step
 * size, for every pool; a step size that is not adapted stays what the config says. `time` and
 * `jitter` of trajectories, where they are learned, begin likewise (NaN: nothing is known of them;
 * an infinite time: they end where they turn back).
 * Local. Errors: EM_EMEMORY.
 */
em_status em_adapt_begin_with(em_adapt *adapt, const em_mass *mass, double step_size, double time,
                              double jitter);

/* What the chains of this rank use now, [n_local_chain] each. Local. */
const em_mass *const *em_adapt_mass(const em_adapt *adapt);
const double *em_adapt_step_size(const em_adapt *adapt);
em_trajectory em_adapt_trajectory(const em_adapt *adapt, int64_t iteration);
const double *em_adapt_thermostat_mass(const em_adapt *adapt); /* NULL: not learned */
const em_noise *const *em_adapt_noise(const em_adapt *adapt);  /* NULL until there is an estimate */

/* Finds a first step size, unless there is one, and a centre where the chains stand, and refreshes
 * what they carry. The first mass is diagonal, from inverse_curvature [n_local_chain][stride] or,
 * where that is NULL, from the gradients where the chains stand. Collective. Errors: those of the
 * sampler, agreed. */
em_status em_adapt_start(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                         em_block *block, const double *inverse_curvature);

/* Adds what warmup iteration `iteration` (from 0) left in the block. Local, but that gradient noise
 * takes gradients of the target. Errors: EM_EMODEL. */
em_status em_adapt_observe(em_adapt *adapt, em_posterior *posterior, const em_block *block,
                           int64_t iteration);

/* Iterations done at the next meeting after `done`; at most warmup. The same on all ranks. Local.
 */
int64_t em_adapt_next_update(const em_adapt *adapt, int64_t done);

/* The meeting after `done` iterations: one step-size update, and an M-step where one is due; at the
 * end of warmup everything is frozen. Collective. Errors: agreed. */
em_status em_adapt_update(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                          em_block *block, int64_t done);

/* Shows the whole state after `done` iterations, masses included, to a visitor, which saves or
 * replaces it; accumulators only while there is something to adapt. Collective. Errors: the
 * visitor's; EM_EDATA, EM_EMEMORY, agreed. */
em_status em_adapt_visit(em_adapt *adapt, int64_t done, const em_visitor *visitor);

/* The M-steps so far. Pools: 1, or the number of chains of the run. Rows are [n_m_step] of pool
 * `pool`, which must be one of this rank's (0 when all share). Local. */
int64_t em_adapt_n_m_step(const em_adapt *adapt);
int64_t em_adapt_n_pool(const em_adapt *adapt);
const em_m_step *em_adapt_m_steps(const em_adapt *adapt, int64_t local_pool);
const em_mass_form *em_adapt_form(const em_adapt *adapt); /* of the masses */

/* The stages that have ended; none where warmup has no stages. Local. */
int64_t em_adapt_n_phase(const em_adapt *adapt);
const em_phase_record *em_adapt_phases(const em_adapt *adapt);
const char *em_phase_name(int stage); /* of an em_phase_id */

/* How often a chain that others left behind took the state of one of them. Local. */
int64_t em_adapt_n_reinitialised(const em_adapt *adapt);

/* One line on what warmup took and found: "warmup 140 iterations, 4310 gradients; the chains had
 * arrived at 90; T 2, 3 steps"; "" where it has no stages. Local. */
void em_adapt_summarise(const em_adapt *adapt, size_t bytes, char *out);

/* About the memory that it takes on this rank. Local. */
double em_adapt_bytes(const em_adapt *adapt);

/* Seconds spent in meetings so far: waiting and sums, M-steps. Local. */
void em_adapt_seconds(const em_adapt *adapt, double *exchange, double *m_step);

#endif
