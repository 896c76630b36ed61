/* Private to this folder: the state of the adaptation engine, and functions that its files share.
 */
#pragma once

#include "adaptation/adaptation.h"
#include "adaptation/mass_window/gradient_noise.h"
#include "adaptation/mass_window/window.h"
#include "adaptation/prior_proofs/scale_derivative.h"
#include "adaptation/schedule/outliers.h"
#include "adaptation/schedule/warmup_schedule.h"
#include "adaptation/step_size/step_size.h"
#include "adaptation/trajectory/trajectory_criterion.h"
#include "adaptation/trajectory/tree_depth.h"
#include "mass/estimator.h"
#include "posterior/noncentring.h"

/* Chains that share one mass and step size. */
typedef struct em_pool {
    em_mass *mass;
    em_dual_averaging averaging;
    double step_size;
    double *centre;         /* [dim] origin of positions in sums */
    em_m_step *m_step;      /* [n_m_step], room for most_m_steps */
    int64_t n_published;    /* estimates that were published as masses */
    double thermostat_mass; /* Q, for a sampler whose Q is learned */
} em_pool;

/* The later halves of windows overlap. So accumulators are kept for segments, each from the first
 * iteration of one half to that of the next. */
enum { EM_MOST_SEGMENTS = 4, EM_MOST_PHASES = 16, EM_MOST_LEARNERS = 3 };

/* The smallest step size of a chain that cannot move, relative to that of the others. */
#define EM_LEAST_STEP_FACTOR 1e-6

/* A phase of warmup: a row of the table em_phases (phases.c), which has those of both schedules.
 * adaptation.c is the loop that runs them. NULL: nothing to do. */
typedef struct em_phase {
    const char *name;     /* as files and checkpoints name it */
    em_phase_id follower; /* the phase that follows, unless `leave` chooses another */
    bool learns;          /* the mass and the learners observe, and are updated */
    void (*enter)(em_adapt *, int64_t done);                               /* Local. */
    em_status (*observe)(em_adapt *, const em_block *, int64_t iteration); /* Local. */
    /* *renews: momenta must be drawn again, and a step size searched for. Collective.
     */
    em_status (*update)(em_adapt *, em_posterior *, em_block *, int64_t done, bool *renews);
    em_status (*leave)(em_adapt *, int64_t done, em_phase_id *next); /* Collective. */
} em_phase;

extern const em_phase em_phases[];

/*
 * A learner of a quantity other than mass and step size that a sampler needs (learners.c).
 * `observe` is called after each iteration of a phase that learns, and `update` at the adaptation
 * updates of such a phase, after that of the mass. `visit` passes its state to a visitor; NULL:
 * other arrays hold it.
 */
typedef struct em_learner {
    /* Local, but may evaluate the posterior. */
    em_status (*observe)(em_adapt *, em_posterior *, const em_block *, int64_t iteration);
    em_status (*update)(em_adapt *, int64_t done, bool *renews); /* Collective. */
    em_status (*visit)(em_adapt *, const em_visitor *);          /* Collective. */
} em_learner;

extern const em_learner em_noise_learner, em_thermostat_learner, em_tree_depth_learner;

/* The state of the initial phase. */
typedef struct em_initial_phase {
    int64_t end;          /* iterations done when it ends; an upper bound until that is known */
    int64_t window;       /* iterations done when the current window ends */
    int64_t n_stationary; /* windows in a row with stationary log densities */
    bool reached;         /* the criterion of the phase, at the end of the last window */
    int64_t segment, segment_from[EM_MOST_SEGMENTS]; /* the current one; their first iterations */
    int64_t n_reinitialised, last_reinitialised;
    double *history;         /* [n_local_chain][plan->initial] log densities */
    double *since;           /* [n_local_chain] iterations done when it was last reinitialised, or
                                came to the log densities of the others */
    double *outlying_row;    /* [n_local_chain][em_outlying_row_size], outlying_mass.c */
    em_mass **outlying_mass; /* [n_local_chain] its own mass; NULL: that of all chains */
} em_initial_phase;

/* The state of the step-size, trajectory-length and final phases. */
typedef struct em_length_search {
    int64_t from;                         /* iterations done when the initial phase ended */
    em_trajectory drawn, kept;            /* trajectories: tried now, best so far */
    em_dual_averaging kept_averaging;     /* of the trajectories `kept` */
    em_acceptance_statistics *statistics; /* [n_local_chain] */
    double *lag;                          /* [n_local_chain][em_lag_size] */
    double *kept_r, *tried_r;             /* [dim] */
    double kept_steps, tried_steps;
} em_length_search;

/* The state of the windows between two buffers. */
typedef struct em_windows {
    em_schedule schedule;
    int64_t e_step_from; /* iterations done when the current E-step began */
} em_windows;

/* The state of the learner of the tree-depth cap. */
typedef struct em_tree_depths {
    int64_t cap;      /* doublings of a tree in the initial phase; 0: as planned */
    double step_size; /* of the trees counted */
    double *count;    /* [n_local_chain][EM_DEPTHS] trees since the last update */
} em_tree_depths;

/* Non-centred coordinates, in which kernels move and the mass is learned. The block and the window
 * of draws always have the model's coordinates. */
typedef struct em_noncentred {
    em_noncentring map;
    em_noncentring_row *found; /* [dim] what the last search found, or the former map */
    em_normal_prior *prior;    /* [dim] that evaluations have proved */
    em_posterior *posterior;   /* in these coordinates; created by the first step that needs it */
    double is_first;           /* 1: the map is that of em_learn_first_map; else 0 */
    bool *stays;               /* [n_chain] chains that move in the model's coordinates */
    /* The start of a step: `theta` in these coordinates, `from` and `gradient` in the model's.
     * [n_local_chain][stride] */
    double *theta, *from, *gradient;
    double *log_density; /* [n_local_chain] likewise */
    double *row;         /* [2][dim] work space: a draw and its gradient */
} em_noncentred;

struct em_adapt {
    const em_mass_options *options;
    const em_sampler_options *sampler_options;
    const em_estimator_ops *estimator;
    em_grid *grid;
    em_mass_form form; /* of the masses */
    em_part *part;     /* [form.n_part] */
    uint64_t seed;
    int64_t dim, stride;
    int64_t n_chain, n_local_chain, first_chain; /* of the run, and of this rank */
    bool adapts_step, shares;
    /* the step size is that of an earlier run: it is not searched for at the start */
    bool has_step;

    /* The schedule: `plan` with the states `initial` and `search`, or `windows`. The others are
     * NULL. */
    int64_t warmup;             /* iterations, at most */
    int64_t ended;              /* iterations of warmup; -1 while that is not known */
    int64_t often, adapt_every; /* iterations that each have an update; interval of later updates */
    em_phase_id phase;
    int64_t begun; /* iterations done when the phase began */
    em_warmup_plan *plan;
    em_initial_phase *initial;
    em_length_search *search;
    em_windows *windows;
    int64_t n_phase;
    em_phase_record record[EM_MOST_PHASES];

    int64_t n_pool; /* on this rank: 1, or its number of chains */
    em_pool *pools;
    const em_mass **chain_mass; /* [n_local_chain] */
    double *chain_step;         /* [n_local_chain] */
    double *chain_thermostat;   /* [n_local_chain] Q */
    bool *outlying;             /* [n_chain] of the run, at the end of the last window */
    double *step_factor; /* [n_local_chain] of the step size in the initial phase; at most 1 */
    double restart;      /* see em_dual_averaging_start */

    const em_learner *learner[EM_MOST_LEARNERS];
    int n_learner;
    em_gradient_noise *noise;   /* NULL: neither estimator nor kernel uses it */
    em_noncentred *noncentred;  /* NULL: always the model's coordinates */
    em_tree_depths *tree_depth; /* NULL: fewer than EM_MANY_CHAINS, or no initial phase */
    double (*thermostat)(const em_step_context *, const em_block *, int64_t); /* NULL: Q is fixed */

    /* E-step. The accumulators of a chain are those of the estimator, the sum of positions relative
     * to the centre, those of the S_count rule, and the sums of q and q^2 of a thermostat. */
    int64_t s_count; /* of the current one */
    int64_t n_estimator, n_accumulator;
    int64_t n_segment;   /* EM_MOST_SEGMENTS in an initial phase, else 1; 0: see keeps_draws */
    double *accumulator; /* [n_local_chain][n_segment][n_accumulator] */
    double *pooled;      /* [n_accumulator] */
    em_window window;    /* draws and gradients, for masses of low rank and dense ones */
    bool keeps_draws;    /* dense masses: sums are computed from the draws at the end of a window */
    double *acceptance;  /* [n_local_chain] sum since the last update */
    int64_t n_since;     /* iterations since the last update */
    double *sample;      /* [2][stride]: a centred position, a velocity */
    double *estimate;    /* the numbers of a mass */
    double *probe;       /* [n_local_chain] */
    double *gradients;   /* [n_local_chain] gradients computed in warmup */

    int64_t n_m_step, most_m_steps;
    double exchange_seconds, m_step_seconds;
    em_owner memory; /* that is released with the engine */
};

/* ---------------------------------------------------------------- the mass */

/*
 * The M-step of all pools after `done` iterations. It estimates each mass from the accumulators,
 * averages the estimate in, clips its eigenvalues, publishes it, and records the step. A pool whose
 * samples do not allow an estimate keeps its mass. Collective. Errors: EM_EMEMORY, EM_ENUMERIC,
 * agreed.
 */
em_status em_take_m_step(em_adapt *adapt, int64_t done);

/* The M-step of the pool that all chains share, from adapt->pooled, including its record.
 * Collective. Errors: as above. */
em_status em_pooled_m_step(em_adapt *adapt, int64_t done);

/* em_took_m_step: whether there was an M-step after `done` iterations. em_was_refused: whether the
 * last M-step refused the estimate of a pool and kept its mass. Local. */
static inline bool em_took_m_step(const em_adapt *adapt, int64_t done)
{
    return adapt->n_m_step > 0 &&
           adapt->pools->m_step[adapt->n_m_step - 1].iteration == (double)done;
}

static inline bool em_was_refused(const em_adapt *adapt, const em_pool *pool)
{
    return pool->m_step[adapt->n_m_step - 1].kappa == 0;
}

/* Whether there are M-steps that learn a mass. Local. */
static inline bool em_learns(const em_adapt *adapt)
{
    return adapt->estimator->estimate != NULL;
}

static inline int64_t em_chains_per_pool(const em_adapt *adapt)
{
    return adapt->shares ? adapt->n_chain : 1;
}

/* Sets adapt->form: the structure that the config names, or (auto) the one that the planned samples
 * and the kernel allow. Local. Errors: EM_ECONFIG, EM_EMEMORY. */
em_status em_choose_form(em_adapt *adapt, const em_sampler_ops *sampler);

/* The pool of a chain of this rank. Local. */
static inline em_pool *em_pool_of(const em_adapt *adapt, int64_t chain)
{
    return &adapt->pools[adapt->shares ? 0 : chain];
}

/* The accumulators of a chain of this rank in a segment. Local. */
static inline double *em_accumulators(const em_adapt *adapt, int64_t chain, int64_t segment)
{
    return adapt->accumulator + (chain * adapt->n_segment + segment) * adapt->n_accumulator;
}

/* Sets the mass and step size of every chain to those of its pool. Local. */
void em_publish_to_chains(em_adapt *adapt);

/* Iterations until the chains of a pool have s_count samples together. Local. */
int64_t em_e_step_length(const em_adapt *adapt);

/* Whether the state of a chain of this rank is a sample: its gradients are finite. Local. */
bool em_is_sample(const em_adapt *adapt, const em_block *block, int64_t chain);

/* Adds the current sample of chain `chain` of this rank to `accumulator`; `subsample`: also to the
 * sums of the S_count rule. Local. */
void em_collect(em_adapt *adapt, const em_block *block, int64_t chain, bool subsample,
                double *accumulator);

/* ---------------------------------------------------------------- non-centred coordinates */

/* Creates adapt->noncentred if the mass is dense and is estimated from stored draws. Local. Errors:
 * EM_EMEMORY. */
em_status em_noncentred_create(em_adapt *adapt);

/* Whether the current coordinates differ from the model's. Local. */
static inline bool em_is_noncentred(const em_adapt *adapt)
{
    return adapt->noncentred && adapt->noncentred->map.n_child > 0;
}

/* Whether the scale of some parameter depends on another one in these coordinates. Local. */
static inline bool em_has_noncentred_groups(const em_adapt *adapt)
{
    return adapt->noncentred && em_noncentring_count(&adapt->noncentred->map).scaled > 0;
}

/* Sets the map of the priors that are proved near the mean of the chains' starts. Their identities
 * hold everywhere, so all chains move in its coordinates, also outlying ones. The first search that
 * has enough draws replaces it. Collective. Errors: EM_EMEMORY, EM_EMODEL, agreed. */
em_status em_learn_first_map(em_adapt *adapt, em_posterior *posterior);

/* Turns variances [dim] in the model's coordinates into those in the first map's, at the mean of
 * the starts. Local. */
void em_map_first_variances(const em_adapt *adapt, double *variance);

/* Learns the map from the window's draws, before outlying chains are found and the mass is
 * estimated. *is_other: the set of non-centred parameters has changed. Collective. Errors:
 * EM_EMEMORY, agreed. */
em_status em_learn_noncentring(em_adapt *adapt, em_posterior *posterior, bool *is_other);

/* Whether log densities are known in these coordinates. Without a map, or if the window keeps only
 * some draws because there are many chains, those in the model's coordinates are used. Local. */
static inline bool em_has_mapped_densities(const em_adapt *adapt)
{
    return em_is_noncentred(adapt) && adapt->window.skip <= 1;
}

/* The log densities in these coordinates of chain c of this rank, from iteration `first` to the end
 * of the window, into history; NaN: the draw was not kept. Local. */
void em_noncentred_log_densities(const em_adapt *adapt, int64_t c, int64_t first, double *history);

/* Makes the map in noncentred->found the current one, and stores the former one there. A second
 * call restores the former map. Local. */
em_status em_exchange_noncentring(em_adapt *adapt);

/* A draw and its gradient [2][dim] in these coordinates; `row` itself if they are the model's.
 * Local. */
const double *em_noncentred_draw(const em_adapt *adapt, const double *row);

/* The position and the gradient [2][dim] of chain c of this rank in the coordinates in which it
 * moves. The next call overwrites them. NULL: they are the model's. Local. */
const double *em_noncentred_state(const em_adapt *adapt, const em_block *block, int64_t c);

/* The posterior in the coordinates in which chains move; `posterior` is that in the model's. Local.
 * Errors: EM_EMEMORY. */
em_status em_noncentred_posterior(em_adapt *adapt, em_posterior *posterior, em_posterior **out);

/* The acceptance of one leapfrog step of each chain, in the coordinates in which it moves, to
 * acceptance [n_local_chain]: `probe` of the sampler's operations. Local. */
em_status em_adapt_probe(em_adapt *adapt, em_sampler *sampler, const em_step_context *context,
                         em_block *block, double *acceptance);

em_status em_noncentred_visit(em_adapt *adapt, const em_visitor *visitor); /* Collective. */

/* Summaries [n_chain] of the log densities of all chains over the later half of the initial phase,
 * after `done` iterations; draws before a chain came to the log densities of the others are left
 * out of the window. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_gather_log_densities(em_adapt *adapt, int64_t done, em_log_density_window *all);

/* ---------------------------------------------------------------- the step size */

/* Searches for a step size of each pool, beginning with the current one, and starts dual averaging
 * from it. Collective. Errors: those of the sampler, agreed. */
em_status em_search_step_size(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                              em_block *block, int64_t done);

/* One dual-averaging update of each pool, with its mean acceptance since the last update. In the
 * initial phase a chain that accepts almost nothing while the others accept gets a smaller step
 * size, and is left out of that mean until it accepts. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_update_step_size(em_adapt *adapt);

/* Lets NUTS draw in place of trajectories of one length, because curvature varies too much for
 * these. Local. */
void em_switch_to_nuts(em_adapt *adapt);

/* Sets the target acceptance rate: sampler.target_accept, but at least 0.9 if there is a
 * non-centring map, and otherwise at least 0.95 if NUTS has replaced hmc. Each step-size phase with
 * too many lost trajectories (em_acceptance_statistics) halves the distance to 1, and each with
 * divergences halves it twice. A step size that is not adapted has no target. Local. */
void em_set_target_accept(em_adapt *adapt);

/* The largest share of lost trajectories with which a step-size phase keeps its target: 0.01, or
 * 0.02 after a phase that had more; 1 if steps may not become shorter. Local. */
double em_most_lost(const em_adapt *adapt);

/* The step size that a phase ends with: the averaged one. Local. */
double em_final_step_size(const em_adapt *adapt, const em_pool *pool);

/* ---------------------------------------------------------------- phases */

/* em_phase_ends_at: the number of iterations done when the current phase ends, as far as known.
 * em_phase_next_update: the next update after `done` that the phase needs besides those of the step
 * size. Local. */
int64_t em_phase_ends_at(const em_adapt *adapt);
int64_t em_phase_next_update(const em_adapt *adapt, int64_t done);

/* Local. */
void em_enter_phase(em_adapt *adapt, em_phase_id phase, int64_t done);

/* Records what was learned in the phase that ends. Collective. Errors: agreed. */
em_status em_record_phase(em_adapt *adapt, em_phase_end why, int64_t done);

/* The first mass (first_mass.c). em_learn_first_variances: a diagonal one, see em_adapt_start.
 * em_learn_first_curvature: a dense one from minus the Hessian at the starts, if there can be one;
 * *was is then the mass before, else NULL. em_restore_mass makes *was the mass again. The first two
 * are Collective, with errors EM_EMEMORY, EM_EMODEL, EM_ENUMERIC, agreed; the last is Local. */
em_status em_learn_first_variances(em_adapt *adapt, const em_block *block,
                                   const double *inverse_curvature);
em_status em_learn_first_curvature(em_adapt *adapt, em_posterior *posterior, const em_block *block,
                                   em_mass **was);
void em_restore_mass(em_adapt *adapt, em_mass **was);

/* Keeps the variances of a dense mass, and not its correlations: for a map that is not the one in
 * whose coordinates they were learned. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_keep_variances(em_adapt *adapt);

/* Estimates the mass from the later half of the iterations done, and restarts dual averaging.
 * Collective. Errors: agreed. */
em_status em_learn_from_window(em_adapt *adapt, int64_t done);

/* Clears the segments that no later window uses. Local. */
void em_drop_segments(em_adapt *adapt);

/* Masses of outlying chains (outlying_mass.c). em_outlying_row_size: numbers stored for a chain.
 * em_outlying_observe: adds the state of a chain of this rank, if it is outlying.
 * em_learn_outlying_masses: at the end of a window, sets the mass of each outlying chain;
 * Collective, errors: EM_EMEMORY, agreed. em_set_outlying_mass: sets that of one chain from its
 * row. em_drop_outlying_masses: removes them all. The others are Local. */
int64_t em_outlying_row_size(int64_t dim);
void em_outlying_observe(em_adapt *adapt, const em_block *block, int64_t chain);
em_status em_learn_outlying_masses(em_adapt *adapt);
em_status em_set_outlying_mass(em_adapt *adapt, int64_t chain);
void em_drop_outlying_masses(em_adapt *adapt);

/* With option mass.rescue: gives outlying chains that cannot move at any step size the position of
 * another chain. `window`: the log densities of all chains. Collective. Errors: EM_EMEMORY, agreed.
 */
em_status em_reinitialise_chains(em_adapt *adapt, em_block *block,
                                 const em_log_density_window *window, int64_t done);

/* Rows of the table: see em_phase. */
em_status em_initial_observe(em_adapt *adapt, const em_block *block, int64_t iteration);
em_status em_initial_update(em_adapt *adapt, em_posterior *posterior, em_block *block, int64_t done,
                            bool *renews);
em_status em_initial_leave(em_adapt *adapt, int64_t done, em_phase_id *next);
void em_trial_enter(em_adapt *adapt, int64_t done);
em_status em_trial_observe(em_adapt *adapt, const em_block *block, int64_t iteration);
em_status em_trial_leave(em_adapt *adapt, int64_t done, em_phase_id *next);
int64_t em_windows_next_update(const em_adapt *adapt, int64_t done);
em_status em_windows_observe(em_adapt *adapt, const em_block *block, int64_t iteration);
em_status em_windows_update(em_adapt *adapt, em_posterior *posterior, em_block *block, int64_t done,
                            bool *renews);

/* Begins the next E-step, if there was an M-step after `done` iterations. Local. */
void em_begin_e_step(em_adapt *adapt, int64_t done);
