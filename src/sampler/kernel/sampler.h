/*
 * EQUATIONS n, here and in the kernels, is section n of src/sampler/EQUATIONS.md; LEARNING n is
 * section n of src/mass/LEARNING.md.
 *
 * A sampling kernel: it advances a block of chains by one iteration. A kernel knows no data, no
 * MPI and no files; what adapts (mass, step size) is handed to it and fixed during the iteration.
 *
 * What is alike in kernels and is no logic stands in each of them on purpose, so that one can be
 * read alone: its table, the rows of options of its own notation, the room that it takes and gives
 * back.
 */
#pragma once

#include "emass/field.h"
#include "emass/status.h"
#include "mass/mass.h"
#include "posterior/posterior.h"

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
    EM_STAT_MAX_ENERGY_ERROR, /* of the trajectory, the one of largest absolute value */
    EM_STAT_INT_TIME,
    EM_STAT_THERMOSTAT, /* friction that a thermostat has found, per unit of time */
    EM_STAT_VISIT,      /* of a tempered run: which visit of which copy (diagnostics/visits.h) */
    EM_STAT_COUNT
} em_stat;

extern const char *const em_stat_name[EM_STAT_COUNT];

/* The chains of one rank. Matrices are row-major [n_chain][stride], rows 64-byte aligned, padding
 * 0. */
typedef struct em_block {
    int64_t n_chain;
    int64_t *chain; /* [n_chain] their numbers in the run, one after the other */
    int64_t dim, stride;
    int64_t first; /* 0; of a coordinate block (sampler/stochastic/coordinate_block.h): the column
                      at which it begins */
    double *theta; /* position, unconstrained */
    double *momentum;    /* as the iteration left it: what the E-step collects */
    double *gradient;    /* of the log density at theta */
    double *log_density; /* [n_chain] at theta */
    int64_t n_extra;     /* numbers of a chain beyond those: thermostats */
    double *extra;       /* [n_chain][n_extra] */
    /* What adaptation reads of the last iteration, [n_chain] each: the acceptance probability that
     * step sizes are adapted to (0 for kernels that have none), and how many steps it took. */
    double *acceptance, *n_step;
    double *stat[EM_STAT_COUNT]; /* [n_chain] each; of the last iteration */
} em_block;

em_status em_block_create(int64_t first_chain, int64_t n_chain, int64_t dim, int64_t n_extra,
                          em_block **out);
void em_block_destroy(em_block **block);

/* What is asked of the posterior where the chains stand, to be answered in the block. Local. */
em_query em_block_query(const em_block *block);

/* Asks it. Errors: those of the posterior. */
em_status em_block_evaluate(em_posterior *posterior, em_block *block);

/* Covariance of one minibatch gradient, V in EQUATIONS: estimated in warmup, pooled over chains. */
typedef struct em_noise {
    em_structure structure;
    int64_t dim;
    double *covariance; /* [dim], or [dim][dim] */
    uint64_t version;   /* em_version_of it: another one, another estimate */
} em_noise;

/* How far a kernel that follows a Hamiltonian goes in an iteration. */
typedef enum em_trajectory_kind {
    EM_TRAJECTORY_OPTIONS, /* as its options say */
    EM_TRAJECTORY_U_TURN,  /* until it turns back: NUTS */
    EM_TRAJECTORY_TIME     /* for a time in whitened units, near to that of all chains */
} em_trajectory_kind;

typedef struct em_trajectory {
    em_trajectory_kind kind;
    double time, jitter; /* the time is uniform in time [1 - jitter, 1 + jitter] */
    int64_t number;      /* of the Halton sequence of those times, from 1 */
    int64_t max_depth;   /* of trees; 0: as the options say */
    bool initial_phase;  /* of warmup: chains may be far from the typical set */
} em_trajectory;

/* How the gradient of one chain stands that is made in coordinate blocks, where they are moved. */
typedef struct em_gradient_ranges {
    bool due;          /* the last estimate left it to be made, in the next move, */
    bool kept;         /* where it is to stay in its panel: it is the iteration's last one */
    bool published;    /* the model has seen where the last move left all of the chain */
    bool moves_before; /* the kernel moves before each gradient, too */
} em_gradient_ranges;

/* Parts of panels that are fetched from memory while normals are drawn. */
typedef struct em_ahead {
    const double *part[4];
    int64_t size[4];
    int n_part;
    int64_t done;  /* numbers of each part that have been fetched */
    int64_t range; /* the first coordinate of part[1] */
} em_ahead;

/* What is fixed during an iteration, but for how ranges stand and what is fetched. */
typedef struct em_step_context {
    em_posterior *posterior;
    const em_mass *const *mass; /* [n_chain] */
    const double *step_size;    /* [n_chain] in this iteration */
    uint64_t seed;
    int64_t iteration;             /* from 0, warmup included */
    const em_noise *const *noise;  /* [n_chain]; NULL until there is an estimate */
    const double *thermostat_mass; /* [n_chain] as it was learned; NULL: what the options say */
    em_trajectory trajectory;
    bool warmup;
    em_gradient_ranges *ranges; /* NULL: estimates write whole gradients */
    em_ahead *ahead;            /* NULL: nothing is fetched */
    double *home; /* NULL, or the moves of the iteration are dealt to shards: meanwhile block->theta
                     is what all of them see, and this is where it belongs */
} em_step_context;

enum { EM_MOST_KERNELS = 16 }; /* that take turns within an iteration */

/* The options every sampler has; first member of each sampler's own options. */
typedef struct em_sampler_options {
    double step_size;     /* NaN: adapt */
    int64_t adapt_every;  /* iterations between adaptation updates */
    double target_accept; /* mean acceptance that dual averaging aims at */
    int64_t minibatch;    /* observations per gradient; INT64_MIN: all */
    bool replacement;     /* minibatches are drawn with replacement */
} em_sampler_options;

/* The rows of those options for a table whose first member is em_sampler_options. `first_step` is
 * the default of step_size: "adapt", or a number for kernels without a probe; `accept` that of
 * target_accept, `every` of adapt_every. */
#define EM_SAMPLER_FIELDS                          EM_SAMPLER_FIELDS_FROM("adapt", "0.8")
#define EM_SAMPLER_FIELDS_FROM(first_step, accept) EM_SAMPLER_FIELDS_WITH(first_step, accept, "1")
#define EM_SAMPLER_FIELDS_WITH(first_step, accept, every)                                          \
    EM_REAL(em_sampler_options, step_size, .minimum = 1e-300, .maximum = 1e300,                    \
            .fallback = first_step, .word = "adapt",                                               \
            .doc = "step size of the integrator, or adapt (dual averaging in warmup)"),            \
        EM_INT(em_sampler_options, adapt_every, .minimum = 1, .maximum = 1e6, .fallback = every,   \
               .doc =                                                                              \
                   "iterations between adaptation updates in warmup; hmc and nuts begin with 1"),  \
        EM_REAL(em_sampler_options, target_accept, .minimum = 0.01, .maximum = 0.999,              \
                .fallback = accept,                                                                \
                .doc = "mean acceptance rate that an adapted step size aims at"),                  \
        EM_INT(em_sampler_options, minibatch, .minimum = 1, .maximum = 1e15, .fallback = "all",    \
               .word = "all",                                                                      \
               .doc = "observations per gradient evaluation (stochastic samplers), or all"),       \
        EM_BOOL(em_sampler_options, replacement, .fallback = "false",                              \
                .doc = "draw minibatches with replacement")

/* What kernels take for the mass. */
typedef enum em_metric_kind {
    EM_METRIC_MASS,          /* M: what is learned, and constant */
    EM_METRIC_EXPANDED_MEAN, /* G^-1 = diag(theta), for theta > 0, which stays there: the simplex */
    EM_METRIC_DENSITY,       /* G^-1 = scale sqrt(|U + shift|), U = -log p of all data */
    EM_METRIC_FISHER         /* G(theta), the model's */
} em_metric_kind;

typedef struct em_sampler em_sampler;

typedef struct em_sampler_ops {
    /* REQUIRED */
    const char *name;
    const char *doc;    /* one line */
    const char *source; /* paper, equation */
    size_t options_size;
    const em_field *fields;
    const em_stat *stats; /* which statistics it fills; ends with EM_STAT_COUNT */
    /* Allocates all the memory a step needs. `options` outlives the sampler. Local. */
    em_status (*create)(const void *options, int64_t n_chain, int64_t dim, em_sampler **out);
    void (*destroy)(em_sampler *sampler);
    /* One iteration of every chain of the block. Local (the target may sum over shards). */
    em_status (*step)(em_sampler *sampler, const em_step_context *context, em_block *block);
    /* OPTIONAL */
    bool minibatches;      /* gradients are of `minibatch` observations, and options begin with
                              em_stochastic_options; false: always of all */
    bool without_gradient; /* it evaluates log densities alone: EM_WANT_LOG_DENSITY */
    bool optimises;        /* it is no sampler: its draws are not of the posterior */
    bool by_model;         /* the model moves itself: no density, mass, or step size is used */
    bool uses_noise;       /* wants context->noise */
    /* The metric that it moves by; NULL: the mass. Local. */
    em_metric_kind (*metric)(const void *options);
    /* Numbers per chain in block->extra; NULL: none. Local. */
    int64_t (*n_extra)(const void *options, int64_t dim);
    /* Draws what a chain carries besides its position (momenta, thermostats) from its stationary
     * law under the current mass: before the first iteration (context->iteration is 0), and
     * whenever the mass or the estimate of the noise has changed, when it may keep what depends on
     * neither. Kernels that draw fresh momenta in each iteration need none. Local. */
    em_status (*refresh)(em_sampler *sampler, const em_step_context *context, em_block *block);
    /* For a kernel whose thermostat q has a mass Q = Var q that the M-step may learn: the first Q,
     * NaN where the options do not want it learned; and q of chain c. Both or none. Local. */
    double (*thermostat_mass)(const void *options, int64_t dim);
    double (*thermostat)(const em_step_context *context, const em_block *block, int64_t c);
    /* The noise that minibatches bring, over what the kernel may have in that direction: the
     * largest of the block. Above 1 it is too much to be corrected for, and draws are too wide.
     * NULL: the kernel does not correct. Local. */
    double (*noise_share)(const em_sampler *sampler);
    const char *noise_remedy; /* what else may be raised against it; NULL: nothing */
    /* For a kernel whose trajectories adaptation may set (context->trajectory): those that draws
     * are to be made with, of kind EM_TRAJECTORY_OPTIONS when it may not; their time is NaN when it
     * is to be learned. Such a kernel also makes trajectories of kind EM_TRAJECTORY_U_TURN. Local.
     */
    em_trajectory (*trajectory)(const void *options);
    /* Acceptance probability of one leapfrog step from where each chain stands, with fresh momenta;
     * the block is left as it was. For the search of a first step size; NULL: `step_size: adapt` is
     * an error. Local. */
    em_status (*probe)(em_sampler *sampler, const em_step_context *context, const em_block *block,
                       double *acceptance);
} em_sampler_ops;

/* A created sampler; the implementation derives its own struct with this as the first member. */
struct em_sampler {
    const em_sampler_ops *ops;
};

/* Whether the sampler fills in a statistic; NULL: no sampler. Local. */
static inline bool em_sampler_has_stat(const em_sampler_ops *sampler, em_stat wanted)
{
    for (const em_stat *stat = sampler ? sampler->stats : NULL; stat && *stat != EM_STAT_COUNT;
         stat++)
        if (*stat == wanted)
            return true;
    return false;
}

/* Whether gradients are of minibatches. Local. */
static inline bool em_takes_minibatches(const em_sampler_ops *ops,
                                        const em_sampler_options *options)
{
    return ops->minibatches && options->minibatch != INT64_MIN;
}

/* The samplers of this room, by name; a new one is one file and one line in sampler/sampler_list.c.
 * Samplers for one kind of model register themselves (model/satellite.h). */
extern const em_sampler_ops *const em_samplers[]; /* ends with NULL */

/* The i-th of these and of those of satellites; NULL: there are no more. Local. */
const em_sampler_ops *em_sampler_at(int i);

extern const char *const em_default_sampler; /* of a config that names none */
