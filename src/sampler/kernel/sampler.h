/*
 * The interface of a sampling kernel, which advances a block of chains by one iteration. A kernel
 * uses no data, MPI or files. Adaptation passes mass and step size to it; they are fixed during an
 * iteration. EQUATIONS n, here and in the kernels, is section n of src/sampler/EQUATIONS.md, or of
 * src/model/EQUATIONS.md from 18 to 25; LEARNING n is section n of src/mass/LEARNING.md.
 *
 * Each kernel repeats two things without logic on purpose, so that it can be read alone: its table
 * of operations and its rows of options.
 */
#pragma once

#include "base/memory.h"
#include "emass/field.h"
#include "emass/status.h"
#include "mass/mass.h"
#include "math/rng.h"
#include "posterior/posterior.h"
#include "sampler/kernel/steep_points.h"

#include <stdbool.h>
#include <stdint.h>

/* Per-iteration, per-chain statistics, under ArviZ's names (sampler/sampler_list.c holds the
 * table). */
typedef enum em_stat {
    EM_STAT_LP,
    EM_STAT_ACCEPTANCE_RATE,
    EM_STAT_STEP_SIZE,
    EM_STAT_TREE_DEPTH,
    EM_STAT_N_STEPS,
    EM_STAT_DIVERGING,
    EM_STAT_REACHED_MAX_TREEDEPTH,
    EM_STAT_ENERGY,
    EM_STAT_ENERGY_ERROR,
    EM_STAT_MAX_ENERGY_ERROR, /* the energy error of largest absolute value in the trajectory */
    EM_STAT_INT_TIME,
    EM_STAT_THERMOSTAT, /* the current friction of a thermostat, per unit of time */
    EM_STAT_VISIT,      /* number of the visit in a tempered run (diagnostics/visits.h) */
    EM_STAT_COUNT
} em_stat;

extern const char *const em_stat_name[EM_STAT_COUNT];

/* The chains of one rank. Matrices are row-major [n_chain][stride], with rows 64-byte aligned and
 * padding 0. */
typedef struct em_block {
    em_owner memory; /* of its arrays */
    int64_t n_chain;
    int64_t *chain; /* [n_chain] their numbers in the run, consecutive */
    int64_t dim, stride;
    int64_t first; /* 0; of a coordinate block (sampler/stochastic/coordinate_block.h): the column
                      at which it begins */
    double *theta; /* position, unconstrained */
    double *momentum;    /* at the end of the iteration; the E-step collects it */
    double *gradient;    /* of the log density at theta */
    double *log_density; /* [n_chain] at theta */
    int64_t n_extra;     /* number of further numbers of each chain, such as thermostats */
    double *extra;       /* [n_chain][n_extra] */
    /* Input of adaptation from the last iteration, [n_chain] each: the acceptance probability for
     * step-size adaptation (0 for kernels without one), and the number of steps. */
    double *acceptance, *n_step;
    bool *failed; /* [n_chain] an evaluation of the last iteration failed, so that its acceptance
                     does not tell whether the step size is too large; else false */
    double *stat[EM_STAT_COUNT]; /* [n_chain] each; of the last iteration */
} em_block;

em_status em_block_create(int64_t first_chain, int64_t n_chain, int64_t dim, int64_t n_extra,
                          em_block **out);
void em_block_destroy(em_block **block); /* NULL-safe */

/* A query for log density and gradient at the positions of the chains; the results go to the block.
 * Local. */
em_query em_block_query(const em_block *block);

/* A query at the position of chain c alone. Local. */
em_query em_block_query_of(const em_block *block, int64_t c);

/* Evaluates log density and gradient of the block. An evaluation that fails by chance is repeated:
 * a chain without a log density could not leave its position. Collectivity and errors: as
 * em_posterior_evaluate. */
em_status em_block_evaluate(em_posterior *posterior, em_block *block);

/* Covariance of the noise of a minibatch gradient, V in EQUATIONS. It is estimated in warmup and
 * pooled over chains. */
typedef struct em_noise {
    em_structure structure;
    int64_t dim;
    double *covariance; /* [dim], or [dim][dim] */
    uint64_t version;   /* em_version_of the covariance; changes with it */
} em_noise;

/* The rule for the trajectory length of a Hamiltonian kernel. */
typedef enum em_trajectory_kind {
    EM_TRAJECTORY_OPTIONS, /* its options */
    EM_TRAJECTORY_U_TURN,  /* a U-turn, as in NUTS */
    EM_TRAJECTORY_TIME /* a time in whitened units, common to all chains but for rounding to steps
                        */
} em_trajectory_kind;

/* The longest stage of a step of several stages, in standard deviations: two stages are stable up
 * to 1.3. */
#define EM_LONGEST_STAGE 1.25

/* The most steps, or stages, of a trajectory of a time: with a tiny step size it ends before its
 * time. */
enum { EM_MOST_STEPS_OF_TIME = 100 };

typedef struct em_trajectory {
    em_trajectory_kind kind;
    double time, jitter; /* the time is uniform in time [1 - jitter, 1 + jitter] */
    int64_t number;      /* index in the Halton sequence of those times, from 1 */
    int64_t max_depth;   /* of trees; 0: as the options say */
    bool multistage;     /* steps of two or three stages, not leapfrog, for a time */
    bool initial_phase;  /* the initial phase of warmup, in which chains may be far from the typical
                            set */
} em_trajectory;

/* State of a gradient that is computed by coordinate ranges, in the coordinate blocks that are
 * moved. It is the gradient of one chain. */
typedef struct em_gradient_ranges {
    bool due;          /* the next move must compute the gradient of the last estimate */
    bool kept;         /* it must store that gradient in its panel, because it is the last one of
                          the iteration */
    bool published;    /* all positions of the chain after the last move were passed to the model */
    bool moves_before; /* the kernel moves again before the next gradient */
} em_gradient_ranges;

/* Parts of panels that are fetched from memory while normals are drawn. */
typedef struct em_ahead {
    const double *part[4];
    int64_t size[4];
    int n_part;
    int64_t done;  /* numbers of each part that have been fetched */
    int64_t range; /* the first coordinate of part[1] */
} em_ahead;

/* Normals of the next move of a single chain, which a shard draws while it waits for others. */
typedef struct em_early_normals {
    em_span own;       /* the coordinates that this shard moves */
    int64_t next, end; /* own.first .. next - 1 have been drawn, and next .. end - 1 may be */
    em_stream stream;
    bool single; /* drawn in single precision */
    double *z;   /* [stride] */
} em_early_normals;

/* Arguments of an iteration. All but *ranges, *ahead and *early are constant during it. */
typedef struct em_step_context {
    em_posterior *posterior;
    const em_mass *const *mass; /* [n_chain] */
    const double *step_size;    /* [n_chain] in this iteration */
    uint64_t seed;
    int64_t iteration;             /* from 0, warmup included */
    const em_noise *const *noise;  /* [n_chain]; NULL until there is an estimate */
    const double *thermostat_mass; /* [n_chain] learned values; NULL: the options' */
    em_trajectory trajectory;
    bool warmup;
    em_steep_points *steep;     /* NULL: they are not noted */
    em_gradient_ranges *ranges; /* NULL: gradients are computed whole */
    em_ahead *ahead;            /* NULL: nothing is fetched */
    em_early_normals *early;    /* NULL: no normals are drawn early */
    double *home; /* not NULL: the shards divide the moves of the iteration. block->theta is then
                     the panel that they share, and `home` the block's own panel */
} em_step_context;

enum { EM_MOST_KERNELS = 16 }; /* in a list of samplers that alternate within an iteration */

/* Options of every sampler; the first member of its own options. */
typedef struct em_sampler_options {
    double step_size;     /* NaN: adapt */
    int64_t adapt_every;  /* iterations between adaptation updates */
    double target_accept; /* mean acceptance that dual averaging aims at */
    int64_t minibatch;    /* observations per gradient; INT64_MIN: all */
    bool replacement;     /* minibatches are drawn with replacement */
} em_sampler_options;

/* The rows of those options for the field table of a struct whose first member is
 * em_sampler_options. The arguments are defaults: `first_step` of step_size ("adapt", or a number
 * for kernels without a probe), `accept` of target_accept, `every` of adapt_every. */
#define EM_SAMPLER_FIELDS_FROM(first_step, accept) EM_SAMPLER_FIELDS_WITH(first_step, accept, "1")
#define EM_SAMPLER_FIELDS_WITH(first_step, accept, every)                                          \
    EM_REAL(em_sampler_options, step_size, .minimum = 1e-300, .maximum = 1e300,                    \
            .fallback = first_step, .word = "adapt",                                               \
            .doc = "step size of the integrator, or adapt (dual averaging in warmup)"),            \
        EM_INT(em_sampler_options, adapt_every, .minimum = 1, .maximum = 1e6, .fallback = every,   \
               .doc = "iterations between adaptation updates in warmup; hmc, nuts and walnuts "    \
                      "begin with 1"),                                                             \
        EM_REAL(em_sampler_options, target_accept, .minimum = 0.01, .maximum = 0.999,              \
                .fallback = accept,                                                                \
                .doc = "mean acceptance rate that an adapted step size aims at"),                  \
        EM_INT(em_sampler_options, minibatch, .minimum = 1, .maximum = 1e15, .fallback = "all",    \
               .word = "all",                                                                      \
               .doc = "observations per gradient evaluation (stochastic samplers), or all"),       \
        EM_BOOL(em_sampler_options, replacement, .fallback = "false",                              \
                .doc = "draw minibatches with replacement")

/* The metric by which a kernel moves. */
typedef enum em_metric_kind {
    EM_METRIC_MASS,          /* the mass M: learned in warmup, independent of theta */
    EM_METRIC_EXPANDED_MEAN, /* G^-1 = diag(theta), for theta > 0, as on the simplex */
    EM_METRIC_DENSITY,       /* G^-1 = scale sqrt(|U + shift|), U = -log p of all data */
    EM_METRIC_FISHER         /* G(theta), computed by the model */
} em_metric_kind;

typedef struct em_sampler em_sampler;

typedef struct em_sampler_ops {
    /* REQUIRED */
    const char *name;
    const char *doc;    /* one line */
    const char *source; /* paper, equation */
    size_t size;        /* of its struct, whose first member is an em_sampler */
    size_t options_size;
    const em_field *fields;
    const em_stat *stats; /* the statistics that it computes; ends with EM_STAT_COUNT */
    /* One iteration of every chain of the block. Local (the target may sum over shards). */
    em_status (*step)(em_sampler *sampler, const em_step_context *context, em_block *block);
    /* OPTIONAL */
    /* Allocates all the memory a step needs, which base.memory owns. The struct is zero but for
     * em_sampler. Local. */
    em_status (*set_up)(em_sampler *sampler, int64_t n_chain, int64_t dim);
    /* Releases what base.memory does not own, also after a failure of set_up. Local. */
    void (*release)(em_sampler *sampler);
    bool minibatches;      /* gradients use `minibatch` observations, and options begin with
                              em_stochastic_options; false: they use all */
    bool without_gradient; /* it evaluates only log densities: EM_WANT_LOG_DENSITY */
    bool optimises;        /* it is an optimiser: its draws are not from the posterior */
    bool by_model;   /* the model's own transition moves the chains, without density, mass or step
                        size */
    bool uses_noise; /* it needs context->noise */
    /* The metric that it uses; NULL: the mass. Local. */
    em_metric_kind (*metric)(const void *options);
    /* The number n_extra of numbers per chain in block->extra; NULL: none. Local. */
    int64_t (*n_extra)(const void *options, int64_t dim);
    /* Draws the auxiliary variables of each chain (momenta, thermostats) from their stationary law
     * under the current mass. It is called before the first iteration (context->iteration is 0),
     * and whenever the mass or the estimate of the noise has changed. It may keep variables whose
     * law depends on neither. NULL: the kernel draws fresh momenta in each iteration. Local. */
    em_status (*refresh)(em_sampler *sampler, const em_step_context *context, em_block *block);
    /* The bytes that the first `refresh` allocates for diagonal masses that chains share, those
     * that it releases included. NULL: none. Local. */
    double (*refresh_bytes)(int64_t dim);
    /* For a kernel whose thermostat q has a mass Q = Var q that the M-step may learn: the initial Q
     * (NaN if the options fix it), and the current q of chain c. A kernel has both functions or
     * none. Local. */
    double (*thermostat_mass)(const void *options, int64_t dim);
    double (*thermostat)(const em_step_context *context, const em_block *block, int64_t c);
    /* The variance of the gradient noise divided by the variance of all noise that the kernel may
     * inject: the largest ratio over directions and chains of the block. Above 1 the noise cannot
     * be corrected for, and draws are too wide. NULL: the kernel does not correct for it. Local. */
    double (*noise_share)(const em_sampler *sampler);
    const char *noise_remedy; /* the option that lowers this ratio when raised; NULL: none */
    /* The trajectories to sample with, for a kernel whose trajectories adaptation may set
     * (context->trajectory). The kind is EM_TRAJECTORY_OPTIONS if the options fix them; the time is
     * NaN if it is to be learned. Such a kernel also supports EM_TRAJECTORY_U_TURN. Local. */
    em_trajectory (*trajectory)(const void *options);
    /* The acceptance probability [n_chain] of one leapfrog step from the position of each chain,
     * with fresh momenta; the block is not changed. The search for an initial step size uses it.
     * NULL: `step_size: adapt` is an error. Local. */
    em_status (*probe)(em_sampler *sampler, const em_step_context *context, const em_block *block,
                       double *acceptance);
} em_sampler_ops;

/* A created sampler. The struct of each implementation has this as its first member. */
struct em_sampler {
    const em_sampler_ops *ops;
    const void *options; /* outlive the sampler */
    em_owner memory;     /* of its arrays */
};

/* Creates a sampler of n_chain chains of `dim` parameters. Local. Errors: EM_EMEMORY; those of
 * set_up; *out is then NULL. */
em_status em_sampler_create(const em_sampler_ops *ops, const void *options, int64_t n_chain,
                            int64_t dim, em_sampler **out);
void em_sampler_destroy(em_sampler **sampler); /* NULL-safe */

/* The numbers n_extra of each chain. Local. */
static inline int64_t em_sampler_n_extra(const em_sampler_ops *ops, const void *options,
                                         int64_t dim)
{
    return ops->n_extra ? ops->n_extra(options, dim) : 0;
}

/* The random numbers of chain c of a block in an iteration. Local. */
static inline em_stream em_chain_stream(const em_step_context *context, const em_block *block,
                                        int64_t c, em_purpose purpose)
{
    return (em_stream){context->seed, (uint64_t)block->chain[c], (uint64_t)context->iteration,
                       purpose};
}

/* Records the statistics of chain c that most samplers have: those of steps of one size. Local. */
static inline void em_block_record_steps(em_block *block, int64_t c, double step_size,
                                         double n_step)
{
    block->stat[EM_STAT_LP][c] = block->log_density[c];
    block->stat[EM_STAT_STEP_SIZE][c] = step_size;
    block->n_step[c] = block->stat[EM_STAT_N_STEPS][c] = n_step;
    block->stat[EM_STAT_INT_TIME][c] = n_step * step_size;
}

/* Whether the sampler computes a statistic; false for sampler NULL. Local. */
static inline bool em_sampler_has_stat(const em_sampler_ops *sampler, em_stat wanted)
{
    for (const em_stat *stat = sampler ? sampler->stats : NULL; stat && *stat != EM_STAT_COUNT;
         stat++)
        if (*stat == wanted)
            return true;
    return false;
}

/* Whether gradients are estimated from minibatches. Local. */
static inline bool em_takes_minibatches(const em_sampler_ops *ops,
                                        const em_sampler_options *options)
{
    return ops->minibatches && options->minibatch != INT64_MIN;
}

/* The samplers of this folder. A new one is one file and one line in sampler/sampler_list.c.
 * Samplers for one kind of model are registered by the satellites (model/satellite.h). */
extern const em_sampler_ops *const em_samplers[]; /* ends with NULL */

/* The i-th sampler, from 0, of this folder and then of the satellites; NULL after the last. Local.
 */
const em_sampler_ops *em_sampler_at(int i);

extern const char *const em_default_sampler; /* used if a config names none */
