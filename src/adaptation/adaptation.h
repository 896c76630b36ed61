/*
 * The adaptation engine: it learns mass matrix and step size in warmup, by one Monte Carlo EM loop
 * for every sampler and every estimation criterion. Warmup is a sequence of phases (README.md).
 *
 *     E-step      the kernel runs with the mass fixed; every chain adds to its accumulators
 *     all-reduce  the accumulators are summed over the chains that share, exactly
 *     M-step      the criterion makes an estimate, which replaces the mass or is averaged in
 *     step size   dual averaging starts anew
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
    double step_size; /* that it ended with */
    double gradients; /* of all chains, from the start of the run */
} em_phase_record;

/* One M-step, as it is recorded in the output. */
typedef struct em_m_step {
    double iteration; /* iterations done at that time */
    double kappa;     /* weight of the estimate; 0: the estimate was refused, the mass kept */
    double s_count;   /* samples asked for */
    double n_sample;  /* samples in the accumulators */
    double smallest, largest; /* eigenvalues of the new inverse mass */
    /* momentum only, else NaN: |tr(WC)/D - 1| and max |(WC)_ii - 1|, divided by their bounds; below
     * 1 the momenta carry no information about the mass */
    double trace_deviation, diagonal_deviation;
    double unevenness; /* em_unevenness of mass/estimator.h; NaN: not known of this estimator or
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

/* The iterations of warmup, known from the adaptation update at which it ended; -1 before. Local.
 */
int64_t em_adapt_warmup(const em_adapt *adapt);

/* Whether warmup has an initial phase, in which chains move from their starts to the typical set.
 * Local. */
bool em_adapt_has_initial_phase(const em_adapt *adapt);

/* Counts n gradients of local chain `chain` that are not those of its iterations. Local. */
void em_adapt_count_gradients(em_adapt *adapt, int64_t chain, int64_t n);

/* Those of each chain of this rank in warmup, [n_local_chain]. Local. */
const double *em_adapt_gradients(const em_adapt *adapt);

/* Counts n gradients, of all chains, that were taken when warmup had ended: in its last phase.
 * Local.
 */
void em_adapt_count_after_warmup(em_adapt *adapt, double n);

/*
 * Sets the first mass of every pool, of the engine's form and the same on all ranks, and the first
 * step size. A step size that is not adapted remains that of the config. `time` and `jitter` are
 * the first ones of trajectories whose length is learned. NaN: not known. An infinite time:
 * trajectories end at a U-turn. Local. Errors: EM_EMEMORY.
 */
em_status em_adapt_begin_with(em_adapt *adapt, const em_mass *mass, double step_size, double time,
                              double jitter);

/* What the chains of this rank use now, [n_local_chain] each. Local. */
const em_mass *const *em_adapt_mass(const em_adapt *adapt);
const double *em_adapt_step_size(const em_adapt *adapt);
em_trajectory em_adapt_trajectory(const em_adapt *adapt, int64_t iteration);
const double *em_adapt_thermostat_mass(const em_adapt *adapt); /* NULL: not learned */
const em_noise *const *em_adapt_noise(const em_adapt *adapt);  /* NULL until there is an estimate */

/* Begins adaptation at the chains' positions. Searches a first step size, unless there is one, sets
 * the centre of positions, and draws momenta and thermostats anew. The first mass is diagonal: from
 * inverse_curvature [n_local_chain][stride] or, where that is NULL, from the gradients. Collective.
 * Errors: those of the sampler, agreed. */
em_status em_adapt_start(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                         em_block *block, const double *inverse_curvature);

/* One iteration of the kernel, in the coordinates that were learned. `context` is of the model's.
 * Local, but the posterior may sum over shards. Errors: those of the kernel. */
em_status em_adapt_step(em_adapt *adapt, em_sampler *sampler, const em_step_context *context,
                        em_block *block);

/* The map of non-centred parameters that the chains of all ranks move by; NULL: they move in the
 * model's coordinates. Sets a first one, of an earlier run. Local. Errors: EM_EDATA, EM_ECONFIG. */
const em_noncentring *em_adapt_noncentring(const em_adapt *adapt);
em_status em_adapt_begin_noncentred(em_adapt *adapt, const em_noncentring_row *row);

/* Adds the draws and statistics of warmup iteration `iteration` (from 0), which are in the block.
 * Local, but the estimate of gradient noise evaluates gradients of the target. Errors: EM_EMODEL.
 */
em_status em_adapt_observe(em_adapt *adapt, em_posterior *posterior, const em_block *block,
                           int64_t iteration);

/* Iterations done at the next adaptation update after `done`; at most warmup. The same on all
 * ranks. Local. */
int64_t em_adapt_next_update(const em_adapt *adapt, int64_t done);

/* The adaptation update after `done` iterations: one update of the step size, and an M-step where
 * one is due. At the end of warmup mass and step size are frozen. Collective. Errors: agreed. */
em_status em_adapt_update(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                          em_block *block, int64_t done);

/* Passes the state after `done` iterations, masses included, to a visitor, which saves or restores
 * it. Accumulators are included only during adaptation. Collective. Errors: the visitor's;
 * EM_EDATA, EM_EMEMORY, agreed. */
em_status em_adapt_visit(em_adapt *adapt, int64_t done, const em_visitor *visitor);

/* The M-steps so far. Pools: 1, or the number of chains of the run. Rows are [n_m_step] of pool
 * `pool`, which must be one of this rank's (0 when all share). Local. */
int64_t em_adapt_n_m_step(const em_adapt *adapt);
int64_t em_adapt_n_pool(const em_adapt *adapt);
const em_m_step *em_adapt_m_steps(const em_adapt *adapt, int64_t local_pool);
const em_mass_form *em_adapt_form(const em_adapt *adapt); /* of the masses */

/* The phases that have ended; none where warmup has no phases. Local. */
int64_t em_adapt_n_phase(const em_adapt *adapt);
const em_phase_record *em_adapt_phases(const em_adapt *adapt);
const char *em_phase_name(int phase); /* of an em_phase_id, as files name it */

/* How often an outlying chain was reinitialised. Local. */
int64_t em_adapt_n_reinitialised(const em_adapt *adapt);

/* The warmup summary, one line: "warmup 140 iterations, 4310 gradients; initial phase ended at
 * iteration 90; T 2, 3 steps". T is the trajectory length in whitened units, in which the mass
 * makes every standard deviation of the posterior about 1. "" where warmup has no phases. Local. */
void em_adapt_summarise(const em_adapt *adapt, size_t bytes, char *out);

/* The memory that it uses on this rank, about, in bytes. Local. */
double em_adapt_bytes(const em_adapt *adapt);

/* Seconds spent in adaptation updates so far: waiting and summing, and M-steps. Local. */
void em_adapt_seconds(const em_adapt *adapt, double *exchange, double *m_step);
