/* Private to the room: the state of the adaptation engine, and what its files share. */
#ifndef EM_ADAPTATION_ADAPTATION_INTERNAL_H
#define EM_ADAPTATION_ADAPTATION_INTERNAL_H

#include "adaptation/adaptation.h"
#include "adaptation/mass_window/gradient_noise.h"
#include "adaptation/mass_window/window.h"
#include "adaptation/schedule/outliers.h"
#include "adaptation/schedule/schedule.h"
#include "adaptation/schedule/warmup_schedule.h"
#include "adaptation/step_size/step_size.h"
#include "adaptation/trajectory/acceptance_statistics.h"
#include "adaptation/trajectory/tree_depth.h"
#include "mass/estimator.h"

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
enum { EM_MOST_SEGMENTS = 4, EM_MOST_PHASES = 8 };

/* The smallest factor of a chain that cannot move, over the step size of the others. */
#define EM_LEAST_STEP_FACTOR 1e-6

/* The state of a warmup in phases (adaptation/schedule/warmup_schedule.h). */
typedef struct em_warmup {
    bool runs; /* false: warmup follows em_schedule, and only `gradients` is used of what follows */
    em_warmup_plan plan;
    em_phase_id phase;
    int64_t begun;        /* iterations done when the phase began */
    int64_t window;       /* iterations done when the current window ends */
    int64_t n_stationary; /* windows in a row that met the criterion of the initial phase */
    int64_t time_from;    /* iterations done when the initial phase ended */
    int64_t ended;        /* iterations of warmup; -1 while that is not known */
    int64_t n_reinitialised, last_reinitialised;
    bool *outlying;      /* [n_chain] of the run, at the end of the last window */
    double *history;     /* [n_local_chain][plan.initial] log densities */
    double *since;       /* [n_local_chain] iterations done when it was last reinitialised */
    double *gradients;   /* [n_local_chain] */
    double *step_factor; /* [n_local_chain] of the step size in the initial phase; at most 1 */

    bool many; /* chains: trees are capped, a few outlying chains do not prolong the phase */
    int64_t depth_cap;    /* doublings of a tree in the initial phase, where many; 0: as planned */
    double *depth_counts; /* [n_local_chain][EM_DEPTHS] trees since the last update, where many */

    int64_t segment, segment_from[EM_MOST_SEGMENTS]; /* the current one; their first iterations */

    em_trajectory drawn, kept; /* trajectories: tried now, best so far */
    em_dual_averaging kept_averaging;
    em_acceptance_statistics *statistics; /* [n_local_chain] */
    double *lag;                          /* [n_local_chain][em_lag_size] */
    double *kept_r, *tried_r;             /* [dim] */
    double kept_steps, tried_steps;

    int64_t n_phase;
    em_phase_record record[EM_MOST_PHASES];
} em_warmup;

struct em_adapt {
    const em_mass_options *options;
    const em_sampler_options *sampler_options;
    const em_estimator_ops *estimator;
    em_grid *grid;
    em_mass_form form; /* of the masses */
    em_part *part;     /* [form.n_part] */
    em_schedule schedule;
    uint64_t seed;
    int64_t dim, stride, n_local_chain;
    bool adapts_step, shares;
    bool has_step; /* an earlier run has found it: it is not searched for at the start */
    double (*thermostat)(const em_step_context *, const em_block *, int64_t); /* NULL: Q is given */

    int64_t n_pool; /* on this rank: 1, or its number of chains */
    em_pool *pools;
    const em_mass **chain_mass; /* [n_local_chain] */
    double *chain_step;         /* [n_local_chain] */
    double *chain_thermostat;   /* [n_local_chain] Q */
    em_gradient_noise *noise;   /* NULL: neither the estimator nor the kernel uses it */

    /* E-step: per chain the estimator's accumulators, the sum of positions from the centre, those
     * of the S_count rule, and the sums of q and q^2 of a thermostat. */
    int64_t n_estimator, n_accumulator;
    int64_t n_segment;   /* EM_MOST_SEGMENTS of a warmup in phases, else 1; 0: see keeps_draws */
    double *accumulator; /* [n_local_chain][n_segment][n_accumulator] */
    double *pooled;      /* [n_accumulator] */
    em_window window;    /* draws and gradients, where the mass is of low rank or dense */
    bool keeps_draws;    /* dense: sums are made from the draws when a window ends */
    double *acceptance;  /* [n_local_chain] sum since the last update */
    int64_t n_since;     /* iterations since the last update */
    double *sample;      /* [2][stride]: a centred position, a velocity */
    double *estimate;    /* the numbers of a mass */
    double *probe;       /* [n_local_chain] */
    em_warmup warmup;

    int64_t s_count;     /* of the current E-step */
    int64_t e_step_from; /* iterations done when the current E-step began */
    int64_t n_m_step, most_m_steps;
    double exchange_seconds, m_step_seconds;
};

/*
 * The M-step of all pools after `done` iterations. It estimates each mass from the accumulators,
 * averages the estimate in, clips its eigenvalues, publishes it, records the step, and begins the
 * next E-step. A pool whose samples do not allow an estimate keeps its mass. A window that ended
 * then also keeps its samples, and the next window continues it. *refused: this happened to the
 * pool that all chains share. Collective. Errors: EM_EMEMORY, EM_ENUMERIC, agreed.
 */
em_status em_take_m_step(em_adapt *adapt, int64_t done, bool *refused);

/*
 * The M-step of the pool that all chains share, from adapt->pooled, including its record. *refused:
 * the samples did not allow an estimate, and the mass is kept. Collective. Errors: as above.
 */
em_status em_pooled_m_step(em_adapt *adapt, int64_t done, bool *refused);

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

/* Where the sums of a thermostat are among the accumulators of a chain. Local. */
static inline int64_t em_thermostat_sums(const em_adapt *adapt)
{
    return adapt->n_accumulator - 2;
}

/* The factor between the step size that dual averaging starts with and the one that it is biased
 * to: 10 as in Hoffman & Gelman (2014), 2 in a warmup in phases, whose restarts are frequent. With
 * many chains it is 1: their mean acceptance is precise from the first update on. Local. */
static inline double em_restart_factor(const em_adapt *adapt)
{
    return adapt->warmup.many ? 1 : adapt->warmup.runs ? 2 : 10;
}

/* The tree-depth cap before a tree has been observed; 0: as planned. Local. */
static inline int64_t em_first_depth(const em_warmup *warmup)
{
    return warmup->many ? EM_FIRST_DEPTH : 0;
}

/* Gives every chain the mass and step size of its pool. Local. */
void em_publish_to_chains(em_adapt *adapt);

/* What the calls of a sampler other than its step receive, after `done` iterations. Local. */
em_step_context em_adapt_context(const em_adapt *adapt, em_posterior *posterior, int64_t done);

/* Iterations until the chains of a pool have s_count samples together. Local. */
int64_t em_e_step_length(const em_adapt *adapt);

/* Adds a sample of chain `chain` of this rank, a position as it is, to its accumulators. Local. */
void em_add_sample(const em_adapt *adapt, int64_t chain, const em_observation *sample,
                   double *accumulator);

/* Adds to chain `chain` of this rank what the E-step collects; `subsample`: for the S_count rule
 * too. Local. */
void em_collect(em_adapt *adapt, const em_block *block, int64_t chain, bool subsample);

/* Searches a step size for each pool from the present one on, and starts dual averaging there.
 * Collective. Errors: those of the sampler, agreed. */
em_status em_search_step_size(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                              const em_block *block, int64_t done);

/* One dual-averaging update of each pool, with its mean acceptance since the last update. In the
 * initial phase a chain that accepts almost nothing while the others accept gets a smaller step
 * size than they have, and is left out of that mean, until it accepts. Collective. Errors:
 * EM_EMEMORY, agreed. */
em_status em_update_step_size(em_adapt *adapt);

/* ---------------------------------------------------------------- warmup in phases */

/* Whether warmup has phases with these options, and which trajectories it ends with. */
bool em_warmup_has_phases(const em_mass_options *options, const em_sampler_ops *sampler,
                          const em_sampler_options *sampler_options, em_trajectory *drawn);

em_status em_warmup_create(em_adapt *adapt, const em_trajectory *drawn, int64_t config_warmup);
void em_warmup_destroy(em_warmup *warmup);

/* The first mass: see em_adapt_start. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_warmup_begin(em_adapt *adapt, const em_block *block, const double *inverse_curvature);

/* The first iteration of a phase whose draws enter the autocorrelation. Whether it is measured in
 * this phase. Whether this phase tests if curvature varies too much for one length. Local. */
int64_t em_first_lag(const em_warmup *warmup);
bool em_phase_is_measured(const em_warmup *warmup);
bool em_phase_is_tried(const em_warmup *warmup);

/* The step size that a phase ends with: the averaged one. Local. */
double em_final_step_size(const em_adapt *adapt);

void em_enter_phase(em_warmup *warmup, em_phase_id phase, int64_t done); /* Local. */

/* Records what was learned in the phase that ends. Collective. Errors: agreed. */
em_status em_record_phase(em_adapt *adapt, em_phase_end why, int64_t done);

/* Estimates the mass from the later half of the iterations done, and restarts dual averaging.
 * Collective. Errors: agreed. */
em_status em_learn_from_window(em_adapt *adapt, int64_t done);

/* Drops the segments that no later window uses. Local. */
void em_drop_segments(em_adapt *adapt);

/* With option mass.rescue: gives outlying chains that cannot move at any step size the position of
 * another chain. `window`: the log densities of all chains. Collective. Errors: EM_EMEMORY, agreed.
 */
em_status em_reinitialise_chains(em_adapt *adapt, em_block *block,
                                 const em_log_density_window *window, int64_t done);

/* Drops what local chain `c` has added so far: it is no sample of the target. Local. */
void em_forget_chain(em_adapt *adapt, int64_t c, int64_t done);

/* Sets the tree-depth cap until the next update, from the trees counted since the last one, which
 * had step size `step_size`. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_limit_depth(em_adapt *adapt, double step_size);

/* The end of a window of the initial phase, and the end of another phase. Collective. Errors:
 * agreed. */
em_status em_end_window(em_adapt *adapt, em_block *block, int64_t done);
em_status em_end_phase(em_adapt *adapt, int64_t done);

/* See em_adapt_observe, em_adapt_next_update, em_adapt_update, em_adapt_visit. */
void em_warmup_observe(em_adapt *adapt, const em_block *block, int64_t iteration);
int64_t em_warmup_next_update(const em_warmup *warmup);
em_status em_warmup_update(em_adapt *adapt, em_block *block, int64_t done);
em_status em_warmup_visit(em_adapt *adapt, const em_visitor *visitor);

#endif
