/* Private to the room: the state of the adaptation engine, and what its files share. */
#pragma once

#include "adaptation/adaptation.h"
#include "adaptation/mass_window/gradient_noise.h"
#include "adaptation/mass_window/window.h"
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
    double *centre;         /* [dim] what positions are measured from */
    em_m_step *m_step;      /* [n_m_step], room for most_m_steps */
    int64_t n_published;    /* estimates that went into the mass */
    double thermostat_mass; /* Q of a sampler that has it learned */
} em_pool;

/* Later halves of windows overlap: accumulators are kept by segments between their beginnings. */
enum { EM_MOST_SEGMENTS = 4, EM_MOST_PHASES = 8, EM_MOST_LEARNERS = 3, EM_MOST_OWNED = 32 };

/* The smallest factor of a chain that cannot move, over the step size of the others. */
#define EM_LEAST_STEP_FACTOR 1e-6

/* A phase of warmup: a row of the table em_phases (phases.c), which has those of both schedules.
 * adaptation.c is the loop that runs them. NULL: nothing to do. */
typedef struct em_phase {
    const char *name;     /* as files and checkpoints name it */
    em_phase_id follower; /* the phase that follows, unless `leave` chooses another */
    bool learns;          /* the mass and the learners observe, and are updated */
    void (*enter)(em_adapt *, int64_t done);                               /* Local. */
    em_status (*observe)(em_adapt *, const em_block *, int64_t iteration); /* Local. */
    /* *renews: momenta are to be drawn anew, and the step size is to be searched for. Collective.
     */
    em_status (*update)(em_adapt *, em_block *, int64_t done, bool *renews);
    em_status (*leave)(em_adapt *, int64_t done, em_phase_id *next); /* Collective. */
} em_phase;

extern const em_phase em_phases[];

/*
 * What a sampler needs learned besides mass and step size (learners.c). `observe` is called after
 * each iteration of a phase that learns, `update` at the adaptation updates there, when the mass
 * has been updated. `visit` passes state to a visitor; NULL: other arrays hold it.
 */
typedef struct em_learner {
    /* Local, but may evaluate the target. */
    em_status (*observe)(em_adapt *, em_posterior *, const em_block *, int64_t iteration);
    em_status (*update)(em_adapt *, int64_t done, bool *renews); /* Collective. */
    em_status (*visit)(em_adapt *, const em_visitor *);          /* Collective. */
} em_learner;

extern const em_learner em_noise_learner, em_thermostat_learner, em_tree_depth_learner;

/* The state of the initial phase. */
typedef struct em_initial_phase {
    int64_t end;          /* iterations done when it ends, at most; exactly, once that is known */
    int64_t window;       /* iterations done when the current window ends */
    int64_t n_stationary; /* windows in a row with stationary log densities */
    bool reached;         /* the criterion of the phase, at the end of the last window */
    int64_t segment, segment_from[EM_MOST_SEGMENTS]; /* the current one; their first iterations */
    int64_t n_reinitialised, last_reinitialised;
    double *history;         /* [n_local_chain][plan->initial] log densities */
    double *since;           /* [n_local_chain] iterations done when it was last reinitialised */
    double *outlying_row;    /* [n_local_chain][em_outlying_row_size], outlying_mass.c */
    em_mass **outlying_mass; /* [n_local_chain] of its own; NULL: it has that of all */
} em_initial_phase;

/* The state of the step-size, trajectory-length and final phases. */
typedef struct em_length_search {
    int64_t from;                         /* iterations done when the initial phase ended */
    em_trajectory drawn, kept;            /* trajectories: tried now, best so far */
    em_dual_averaging kept_averaging;     /* of these */
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

/* Of the learner of the tree-depth cap. */
typedef struct em_tree_depths {
    int64_t cap;      /* doublings of a tree in the initial phase; 0: as planned */
    double step_size; /* of the trees counted */
    double *count;    /* [n_local_chain][EM_DEPTHS] trees since the last update */
} em_tree_depths;

/* Non-centred coordinates, in which kernels move and the mass is learned. The block and the window
 * of draws are always in the model's. */
typedef struct em_noncentred {
    em_noncentring map;
    em_noncentring_row *found; /* [dim] what the last search found, or the former map */
    em_posterior *posterior;   /* in these coordinates, from the first step that needs it */
    /* The start of a step: in these coordinates, and as the model has it. [n_local_chain][stride]
     */
    double *theta, *from, *gradient;
    double *log_density; /* [n_local_chain] likewise */
    double *row;         /* [2][dim] a draw and its gradient */
} em_noncentred;

struct em_adapt {
    const em_mass_options *options;
    const em_sampler_options *sampler_options;
    const em_estimator_ops *estimator;
    em_grid *grid;
    em_mass_form form; /* of the masses */
    em_part *part;     /* [form.n_part] */
    uint64_t seed;
    int64_t dim, stride, n_local_chain;
    bool adapts_step, shares;
    bool has_step; /* an earlier run has found it: it is not searched for at the start */

    /* The schedule: that of the plan and its two states, or `windows`. The others are NULL. */
    int64_t warmup;             /* iterations, at most */
    int64_t ended;              /* iterations of warmup; -1 while that is not known */
    int64_t often, adapt_every; /* iterations with an update each; between those after them */
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
    em_gradient_noise *noise;   /* NULL: neither the estimator nor the kernel uses it */
    em_noncentred *noncentred;  /* NULL: coordinates stay the model's */
    em_tree_depths *tree_depth; /* NULL: fewer than EM_MANY_CHAINS, or no initial phase */
    double (*thermostat)(const em_step_context *, const em_block *, int64_t); /* NULL: Q is given */

    /* E-step: per chain the estimator's accumulators, the sum of positions from the centre, those
     * of the S_count rule, and the sums of q and q^2 of a thermostat. */
    int64_t s_count; /* of the current one */
    int64_t n_estimator, n_accumulator;
    int64_t n_segment;   /* EM_MOST_SEGMENTS in an initial phase, else 1; 0: see keeps_draws */
    double *accumulator; /* [n_local_chain][n_segment][n_accumulator] */
    double *pooled;      /* [n_accumulator] */
    em_window window;    /* draws and gradients, where the mass is of low rank or dense */
    bool keeps_draws;    /* dense: sums are made from the draws when a window ends */
    double *acceptance;  /* [n_local_chain] sum since the last update */
    int64_t n_since;     /* iterations since the last update */
    double *sample;      /* [2][stride]: a centred position, a velocity */
    double *estimate;    /* the numbers of a mass */
    double *probe;       /* [n_local_chain] */
    double *gradients;   /* [n_local_chain] that they took */

    int64_t n_m_step, most_m_steps;
    double exchange_seconds, m_step_seconds;
    int n_owned;
    void *owned[EM_MOST_OWNED]; /* memory that is released with the engine */
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

/* Whether there was an M-step after `done` iterations. Whether the last one refused the estimate of
 * a pool and kept its mass. Local. */
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
    return adapt->shares ? em_grid_n_chain(adapt->grid) : 1;
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

/* Gives every chain the mass and step size of its pool. Local. */
void em_publish_to_chains(em_adapt *adapt);

/* What the calls of a sampler other than its step receive, after `done` iterations. Local. */
em_step_context em_adapt_context(const em_adapt *adapt, em_posterior *posterior, int64_t done);

/* Iterations until the chains of a pool have s_count samples together. Local. */
int64_t em_e_step_length(const em_adapt *adapt);

/* Whether the state of a chain of this rank is a sample: its gradients are finite. Local. */
bool em_is_sample(const em_adapt *adapt, const em_block *block, int64_t chain);

/* Adds to `accumulator` what the E-step collects from chain `chain` of this rank; `subsample`: for
 * the S_count rule too. Local. */
void em_collect(em_adapt *adapt, const em_block *block, int64_t chain, bool subsample,
                double *accumulator);

/* ---------------------------------------------------------------- non-centred coordinates */

/* Sets them up, where the mass is dense and made from draws that are kept. Local. Errors:
 * EM_EMEMORY. */
em_status em_noncentred_create(em_adapt *adapt);
void em_noncentred_destroy(em_adapt *adapt);

/* Whether coordinates are other than the model's now. Local. */
static inline bool em_is_noncentred(const em_adapt *adapt)
{
    return adapt->noncentred && adapt->noncentred->map.n_child > 0;
}

/* Learns them from the window's draws, before outlying chains and the mass are. *is_other: they are
 * of other parameters. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_learn_noncentring(em_adapt *adapt, bool *is_other);

/* The log densities in these coordinates of chain c of this rank, in the draws of the window that
 * ends, from iteration `first` on. history, work: [plan->initial]. Local. */
em_log_density_window em_noncentred_log_densities(const em_adapt *adapt, int64_t c, int64_t first,
                                                  const double *history, double *work);

/* Takes the former ones again: the mass that belongs to the new ones was refused. Local. */
em_status em_forget_noncentring(em_adapt *adapt);

/* A draw and its gradient [2][dim] in these coordinates; `row` itself where they are the model's.
 * Local. */
const double *em_noncentred_draw(const em_adapt *adapt, const double *row);

em_status em_noncentred_visit(em_adapt *adapt, const em_visitor *visitor); /* Collective. */

/* ---------------------------------------------------------------- the step size */

/* Searches a step size for each pool from the present one on, and starts dual averaging there.
 * Collective. Errors: those of the sampler, agreed. */
em_status em_search_step_size(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                              const em_block *block, int64_t done);

/* One dual-averaging update of each pool, with its mean acceptance since the last update. In the
 * initial phase a chain that accepts almost nothing while the others accept gets a smaller step
 * size than they have, and is left out of that mean, until it accepts. Collective. Errors:
 * EM_EMEMORY, agreed. */
em_status em_update_step_size(em_adapt *adapt);

/* The step size that a phase ends with: the averaged one. Local. */
double em_final_step_size(const em_adapt *adapt, const em_pool *pool);

/* ---------------------------------------------------------------- phases */

/* Iterations done when the current phase ends, as known now. The next update after `done` that it
 * needs besides those of the step size. Local. */
int64_t em_phase_ends_at(const em_adapt *adapt);
int64_t em_phase_next_update(const em_adapt *adapt, int64_t done);

/* Local. */
void em_enter_phase(em_adapt *adapt, em_phase_id phase, int64_t done);

/* Records what was learned in the phase that ends. Collective. Errors: agreed. */
em_status em_record_phase(em_adapt *adapt, em_phase_end why, int64_t done);

/* The first mass: see em_adapt_start. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_learn_first_mass(em_adapt *adapt, const em_block *block,
                              const double *inverse_curvature);

/* Estimates the mass from the later half of the iterations done, and restarts dual averaging.
 * Collective. Errors: agreed. */
em_status em_learn_from_window(em_adapt *adapt, int64_t done);

/* Drops the segments that no later window uses. Local. */
void em_drop_segments(em_adapt *adapt);

/* Masses of outlying chains (outlying_mass.c). Numbers that are kept of a chain of this rank; adds
 * its state, if it is outlying; at the end of a window gives each a mass, which may fail with
 * EM_EMEMORY, agreed; makes that of one chain from its row; takes them away. Local but the third.
 */
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
em_status em_initial_update(em_adapt *adapt, em_block *block, int64_t done, bool *renews);
em_status em_initial_leave(em_adapt *adapt, int64_t done, em_phase_id *next);
void em_trial_enter(em_adapt *adapt, int64_t done);
em_status em_trial_observe(em_adapt *adapt, const em_block *block, int64_t iteration);
em_status em_trial_leave(em_adapt *adapt, int64_t done, em_phase_id *next);
int64_t em_windows_next_update(const em_adapt *adapt, int64_t done);
em_status em_windows_observe(em_adapt *adapt, const em_block *block, int64_t iteration);
em_status em_windows_update(em_adapt *adapt, em_block *block, int64_t done, bool *renews);

/* Begins the next E-step, where there was an M-step after `done` iterations. Local. */
void em_begin_e_step(em_adapt *adapt, int64_t done);
