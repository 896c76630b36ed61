/*
 * What the author of a model writes: a const em_model_ops, in a shared object of its own
 * (emass/plugin.h), in a program (emass/emass.h), or in a file of src/model. This header is the
 * core, which is enough for most models. What some models can do besides is a *capability*: a
 * small table with a header of its own in emass/model/, each with a complete example. A model
 * points to the tables of those that it has.
 *
 * A model is pure: it knows its data and what it is asked, not the rank, the sampler or a file.
 * Models ADD the log density and its gradient: +log p, +grad log p. The smallest model is one
 * function of one number:
 *
 * Example scalar:
 *     static em_status density(const void *options, const double *theta, double *log_p,
 *                              double *gradient)
 *     {
 *         *log_p -= theta[0] * theta[0] / 2;
 *         gradient[0] -= theta[0];
 *         return EM_OK;
 *     }
 *     EMASS_PLUGIN({.name = "scalar", .dim = 1, .log_density_gradient = density});
 *
 * Parameters have names, shapes, and bounds. emass samples on the whole line: it transforms a
 * parameter that is bounded and adds the Jacobian of the transform. The model never sees the
 * transform. It is given sigma itself, and adds the derivative by sigma:
 *
 * Example bounded:
 *     // y ~ normal(beta[0] + beta[1] x, sigma), with x = 0, 1, 2, ...; flat priors
 *     static const double y[] = {1.1, 2.8, 5.2, 6.9, 9.4, 10.6, 13.3, 15.1};
 *     static const char *const term[] = {"intercept", "slope"};
 *     static const em_variable parameters[] = {
 *         {.name = "beta", .n_axes = 1, .shape = {2}, .axis = {"term"}, .label = {term}},
 *         {.name = "sigma", .bounds = EM_WITHIN(0.1, 10)}};
 *     static em_status density(const void *options, const double *theta, double *log_p,
 *                              double *gradient)
 *     {
 *         const double *beta = theta, sigma = theta[2];
 *         for (int x = 0; x < 8; x++) {
 *             const double z = (y[x] - beta[0] - beta[1] * x) / sigma;
 *             *log_p -= z * z / 2 + log(sigma);
 *             gradient[0] += z / sigma;
 *             gradient[1] += z / sigma * x;
 *             gradient[2] += (z * z - 1) / sigma;
 *         }
 *         return EM_OK;
 *     }
 *     EMASS_PLUGIN({.name = "bounded", .n_parameter = 2, .parameter = parameters,
 *                   .log_density_gradient = density});
 *
 * A larger model has a `create` of its own, which reads data and sizes its arrays. It keeps prior
 * and likelihood apart, so that emass can ask for the likelihood of some observations.
 */
#pragma once

#include "emass/field.h"
#include "emass/status.h"
#include "emass/variable.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

EM_BEGIN_C

/* What random numbers are for; two of them never share a number. */
typedef enum em_draw_purpose {
    EM_DRAW_REPORT,
    EM_DRAW_EVALUATION,
    EM_DRAW_UPDATE,
    EM_DRAW_START,
    EM_DRAW_PREDICTION,
    EM_DRAW_PRIOR,       /* a position from the prior */
    EM_DRAW_PRIOR_REPORT /* the report of one */
} em_draw_purpose;

/* What a model's random numbers are counted by (emass/random.h). */
typedef struct em_draw {
    uint64_t seed;     /* of the run */
    int64_t chain;     /* from 0 */
    int64_t iteration; /* of a report: from 0, those of warmup are counted too; else the number of
                          the evaluation, of the update, of the try where to start, of the stored
                          draw that is predicted from, or of the draw from the prior */
    em_draw_purpose purpose;
} em_draw;

/*
 * Which of the data's observations a shard holds: first .. first + count - 1 of `total`, whole
 * parts of `part` observations (the last of all may be shorter). Likelihoods are asked for part by
 * part and added by a sum that knows no order, so that densities do not depend on the number of
 * shards.
 */
typedef struct em_share {
    int64_t total, part, first, count;
} em_share;

/* Observations that something is to be summed over. */
typedef struct em_rows {
    bool all; /* those of all shards, which a model with a summary knows; else, counted */
    int64_t first, count; /* from this shard's first one, first .. first + count - 1, */
    const int64_t *index; /* or index[0 .. count) where that is not NULL */
} em_rows;

/* Number k of `count` observations of this shard. */
static inline int64_t em_row(const em_rows *rows, int64_t k)
{
    return rows->index ? rows->index[k] : rows->first + k;
}

/* What a model knows of the gradient of its log density. */
typedef enum em_gradient_kind {
    EM_GRADIENT_EXACT,
    EM_GRADIENT_DIFFERENCES, /* central differences, where it is asked for: two densities for each
                                parameter */
    EM_GRADIENT_NONE         /* it writes none: for samplers that need none (rwm, slice) */
} em_gradient_kind;

/* What is wanted of an evaluation; there is room for the rest too, which may be written. */
typedef enum em_wanted { EM_WANT_BOTH, EM_WANT_LOG_DENSITY, EM_WANT_GRADIENT } em_wanted;

/* Parameters that belong together, which a config may give a sampler of their own: theta[first ..
 * first + count). */
typedef struct em_parameters {
    const char *name;
    int64_t first, count;
    bool positive; /* they live above zero, where only some samplers keep them */
} em_parameters;

/*
 * What a model is asked: the log density and its gradient for a panel of chains. Panels are
 * row-major [n_chain][stride], stride >= dim, rows 64-byte aligned. A chain's numbers must not
 * depend on n_chain nor on its companions: every loop over data adds in an order that the chain's
 * own row fixes (which a BLAS does not promise).
 */
typedef struct em_query {
    int64_t n_chain, stride;
    const int64_t *chain; /* [n_chain] their numbers in the run, in any order */
    const double *theta;
    double *log_density, *gradient; /* [n_chain], panel: added to */
    em_wanted wanted;
    em_rows rows; /* of a likelihood: which observations */
    /* What numbers a model draws are counted by: see em_query_draw. Each evaluation of a run from
     * minibatches has a number of its own; an exact one has none and may not draw. */
    uint64_t seed;
    int64_t stream; /* added to the chain's number */
    int64_t evaluation;
    const em_parameters *block; /* whose gradient alone is wanted; NULL: all */
} em_query;

/* The chains from `first` on, `most` of them at most. */
static inline em_query em_query_panel(const em_query *query, int64_t first, int64_t most)
{
    em_query panel = *query;

    panel.n_chain = query->n_chain - first < most ? query->n_chain - first : most;
    panel.chain = query->chain ? query->chain + first : NULL;
    panel.theta += first * query->stride;
    panel.log_density += first;
    panel.gradient += first * query->stride;
    return panel;
}

/* The random numbers of chain c of the panel. */
static inline em_draw em_query_draw(const em_query *query, int64_t c)
{
    const em_draw draw = {query->seed, query->stream + query->chain[c], query->evaluation,
                          EM_DRAW_EVALUATION};

    return draw;
}

/* What a model is created from, besides its options. Rows of the data are dealt to shards. */
typedef struct em_model_context {
    uint64_t seed;                  /* of the run; for models that generate their data */
    int64_t shard, n_shard;         /* this rank holds shard `shard` of `n_shard` */
    bool minibatches;               /* likelihoods of listed observations will be asked for */
    const struct em_model_ops *ops; /* the table that the model is made from */
    int64_t first_chain, n_chain;   /* numbers of the chains of this rank */
    const struct em_fitted *fitted; /* NULL, unless it is to predict (emass/model/prediction.h) */
    bool exact; /* gradients are going to be compared with differences (emass check): a model that
                   may be imprecise on request is not */
    int64_t n_rank;    /* ranks that evaluate each density together (run.ranks_per_chain) */
    const void *ranks; /* their communicator, an MPI_Comm, for the model alone; NULL: not known */
    const struct em_shards *shards; /* outlives the model, whose reports may sum over them
                                       (emass/shards.h); NULL: it has all of the data */
} em_model_context;

/* Evaluations that a model could not do, for a position where the density is not defined: how many,
 * and what the first one said. */
typedef struct em_rejections {
    int64_t count;
    char first[256];
} em_rejections;

/* A created model. The implementation derives its own struct with this as the first member. */
typedef struct em_model {
    const struct em_model_ops *ops;
    int64_t dim; /* number of unconstrained parameters; 0: that of `parameter` */
    const char *const *unconstrained_name; /* [dim], owned by the model; NULL: 0, 1, ... */
    int64_t n_block;                       /* 0: no names for parts of the parameters */
    const em_parameters *block;   /* [n_block] owned by the model: all parameters, in their order */
    int64_t n_parameter;          /* 0: without names, and unconstrained */
    const em_variable *parameter; /* [n_parameter], owned by the model */
    em_share rows;                /* the observations; total 0: there are none, nor a likelihood */
    int64_t n_variable;           /* what is reported of a draw; 0: the parameters */
    const em_variable *variable;  /* [n_variable], owned by the model */
    int64_t n_datum;
    const em_datum *datum; /* [n_datum], owned by the model */
    uint64_t data_hash;    /* of the data read or generated; 0: none */
    uint64_t program_hash; /* of a program that is part of the model's data; 0: none */
    int64_t n_rank;        /* of the context; set after `create` */
    em_gradient_kind gradient;
    bool estimates;      /* its density is an estimate, from random numbers (em_query_draw): not
                            for kernels that need an exact one */
    bool single;         /* its gradients are of 32 bits: nor need the noise of stochastic kernels
                            have more */
    bool differentiated; /* automatically: where its gradient is not that of central differences,
                            it is the density that is not exact (a solver within it, rounding) */
    em_rejections rejections;     /* kept by models that reject with a reason; said at the end */
    struct em_failures *failures; /* emass's own, of a model whose evaluations may fail */
    const void *options;          /* that it was created from; set after `create` */
    struct em_constrained *constrained; /* emass's own, of a model with bounds */
    /* Of capabilities, as their headers say. */
    int64_t n_piece, piece_size; /* of the summary; 0: none */
    int64_t n_average, n_pooled; /* what is averaged over the draws of a chain, and what is said of
                                    that over all chains */
    const em_variable *average, *pooled; /* [n_average], [n_pooled], owned by the model */
    const char *update_of; /* the one block that the model's update is of; NULL: all */
} em_model;

/*
 * The table of a model. Where `theta` is a position of a model that declares parameters, it is on
 * their own scale: bounded ones are within their bounds. Derivatives are by these numbers. A model
 * with bounds cannot have the capabilities latent (but for visit), minibatch, ranges, counts and
 * metric, which work on the unconstrained scale.
 */
typedef struct em_model_ops {
    const char *name;
    const char *doc;    /* one line */
    const char *source; /* paper, equation */
    size_t options_size;
    const em_field *fields; /* may be NULL: no options */
    /* The parameters, if their number is fixed: names and bounds, or `dim` of them, unbounded and
     * without names. Such a model needs no `create`: its functions find em_model.options. */
    int64_t dim, n_parameter;
    const em_variable *parameter; /* [n_parameter] */
    /* Reads the data and sets up *out. `options` outlives the model. Called by all ranks at the
     * same time, so that it may be Collective; its status need not be agreed. Errors: EM_EDATA,
     * EM_ECONFIG, EM_EMEMORY, with a message naming file and line. */
    em_status (*create)(const void *options, const em_model_context *context, em_model **out);
    void (*destroy)(em_model *model); /* with `create` */
    /* THE DENSITY: one of three. A density that is not finite is reported by its value. Local. */
    /* Of one position: adds the log density and its gradient. For a model without `create`. A
     * recoverable status says that there is none. */
    em_status (*log_density_gradient)(const void *options, const double *theta, double *log_density,
                                      double *gradient);
    /* The same without gradient. Such a model is sampled by `slice` unless the config names another
     * sampler. One that needs gradients gets central differences: two densities for each parameter,
     * good to about ten digits. */
    double (*log_density)(const void *options, const double *theta);
    /* Of a panel of chains: adds the log prior; a model with an update may do without a density. */
    em_status (*add_prior)(em_model *model, const em_query *query);
    /* OPTIONAL: adds the log likelihood of the rows asked for: of a model with a summary all, of
     * others one part; or those listed. Local. */
    em_status (*add_likelihood)(em_model *model, const em_query *query);
    /*
     * OPTIONAL where only the parameters are reported. Writes the variables of one draw, one after
     * another, each row-major. Random numbers (of predictions) must depend on `draw` alone
     * (emass/random.h), so that they are the same on any number of ranks and after a restart. With
     * a recoverable status and a message, variables that were not written are stored as NaN; the
     * run goes on and prints the message at its end. Local; with sums over the shards of the
     * context Collective over the ranks of a group, which report the same draws in the same order.
     * Errors: the model's own; a fatal one ends the run.
     */
    em_status (*report)(em_model *model, const em_draw *draw, const double *theta, double *out);
    /* OPTIONAL */
    const char *sampler; /* what samples it where the config names none; NULL: hmc, or slice where
                            there is no gradient */
    /* For a model that divides the work of an evaluation among ranks by MPI (run.ranks_per_chain):
     * told before the first evaluation which ranks do so, by a pointer to their MPI_Comm, which
     * lives as long as the run. All of them then evaluate the same positions in the same order; the
     * numbers of the first rank count. Local. */
    void (*use_ranks)(const void *options, const void *communicator);
    /* Where a chain begins, for models that are told, or have state of its own: replaces theta, a
     * random position. Local. Errors: EM_EDATA. */
    em_status (*start)(em_model *model, const em_draw *draw, double *theta);
    /* Says what a model found, for emass check: lines that begin with "# ". Local. */
    void (*describe)(const em_model *model, FILE *out);
    /* What a program gives that has the model within itself (emass/emass.h); where the model has no
     * fields, it is the model's options. */
    const void *state;
    /* CAPABILITIES (emass/capabilities.h); NULL: it has none of these. */
    const struct em_model_rows *rows;             /* observations are the rows of a table */
    const struct em_model_latent *latent;         /* an update of its own, state beside theta */
    const struct em_model_minibatch *minibatch;   /* estimates from listed rows, all at once */
    const struct em_model_ranges *ranges;         /* gradients of one range of many parameters */
    const struct em_model_counts *counts;         /* a likelihood made of integer counts */
    const struct em_model_summary *summary;       /* a likelihood made of a few sums of the data */
    const struct em_model_averages *averages;     /* averages over the draws of a chain */
    const struct em_model_metric *metric;         /* for Riemannian samplers */
    const struct em_model_prediction *prediction; /* of new data, for emass predict */
    const struct em_model_prior *prior;           /* draws from the prior */
    const struct em_model_commands *commands;     /* of the program, as emass topics */
} em_model_ops;

EM_END_C
