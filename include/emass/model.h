/*
 * The interface of models. The author of a model writes a const em_model_ops, in a shared object of
 * its own (emass/plugin.h), in a program (emass/emass.h), or in a file of src/model. This header is
 * the core, which is enough for most models. Anything further that a model can do is a
 * *capability*: a small table with its own header in emass/model/, which has a complete example. A
 * model points to the tables of the capabilities that it has.
 *
 * A model depends only on its data and on the query, not on the rank, the sampler or a file. Models
 * ADD the log density and its gradient: +log p, +grad log p. The smallest model is one function of
 * one number:
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
 * Parameters have names, shapes, and bounds. emass samples on an unconstrained scale: it transforms
 * a bounded parameter and adds the log Jacobian of the transform. The model does not see the
 * transform. It gets sigma itself, and adds the derivative with respect to sigma:
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
 * A larger model has its own `create`, which reads data and allocates arrays. It computes prior and
 * likelihood in separate functions, so that emass can ask for the likelihood of some observations.
 */
#pragma once

#include "emass/field.h"
#include "emass/status.h"
#include "emass/variable.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

EM_BEGIN_C

/* Purposes of random numbers. Numbers of different purposes are independent. */
typedef enum em_draw_purpose {
    EM_DRAW_REPORT,
    EM_DRAW_EVALUATION,
    EM_DRAW_UPDATE,
    EM_DRAW_START,
    EM_DRAW_PREDICTION,
    EM_DRAW_PRIOR,       /* drawing a position from the prior */
    EM_DRAW_PRIOR_REPORT /* reporting such a position */
} em_draw_purpose;

/* The key of the random numbers of a model (emass/random.h). */
typedef struct em_draw {
    uint64_t seed;     /* of the run */
    int64_t chain;     /* from 0 */
    int64_t iteration; /* of a report: from 0, with warmup counted; else the number of the
                          evaluation, of the update, of the attempt to find a start, of the stored
                          draw used for a prediction, or of the draw from the prior */
    em_draw_purpose purpose;
} em_draw;

/*
 * The observations that a shard holds: first .. first + count - 1 of `total`. A shard holds whole
 * parts of `part` observations; the last part of the data may be shorter. emass asks for the
 * likelihood part by part and adds the results by a sum that does not depend on their order, so
 * densities do not depend on the number of shards.
 */
typedef struct em_share {
    int64_t total, part, first, count;
} em_share;

/* A set of observations to sum over. */
typedef struct em_rows {
    bool all;             /* the observations of all shards, only for a model with a summary */
    int64_t first, count; /* else observations first .. first + count - 1 of this shard (from 0), */
    const int64_t *index; /* or, if not NULL, those with the indices index[0 .. count) */
} em_rows;

/* The index, within this shard, of observation k of the set. */
static inline int64_t em_row(const em_rows *rows, int64_t k)
{
    return rows->index ? rows->index[k] : rows->first + k;
}

/* How a model computes the gradient of its log density. */
typedef enum em_gradient_kind {
    EM_GRADIENT_EXACT,
    EM_GRADIENT_DIFFERENCES, /* by central differences: two evaluations for each parameter */
    EM_GRADIENT_NONE         /* not at all: only for samplers without gradients (rwm, slice) */
} em_gradient_kind;

/* The results that the caller needs from an evaluation. The memory of the other results is valid
 * too, and may be written. */
typedef enum em_wanted { EM_WANT_BOTH, EM_WANT_LOG_DENSITY, EM_WANT_GRADIENT } em_wanted;

/* A block of parameters, theta[first .. first + count), to which a config may assign its own
 * sampler. */
typedef struct em_parameters {
    const char *name;
    int64_t first, count;
    bool positive; /* the parameters must stay above zero, which only some samplers ensure */
} em_parameters;

/*
 * A query for the log density and its gradient for a panel of chains. Panels are row-major
 * [n_chain][stride], stride >= dim, with rows 64-byte aligned. The results of a chain must depend
 * neither on n_chain nor on other chains: every loop over data must add in an order that depends on
 * this chain's row alone (BLAS does not guarantee that).
 */
typedef struct em_query {
    int64_t n_chain, stride;
    const int64_t *chain; /* [n_chain] their numbers in the run, in any order */
    const double *theta;
    double *log_density, *gradient; /* [n_chain], panel: added to */
    em_wanted wanted;
    em_rows rows; /* the observations of a likelihood */
    /* The key of the random numbers that a model may draw: see em_query_draw. Each evaluation from
     * a minibatch has its own number. An exact evaluation has none, and the model must not draw. */
    uint64_t seed;
    int64_t stream; /* added to the chain's number */
    int64_t evaluation;
    const em_parameters *block; /* the only parameters whose gradient is needed; NULL: all */
} em_query;

/* A query with the chains of `query` from index `first` on, at most `most` of them. */
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

/* The key of the random numbers of chain c of the panel. */
static inline em_draw em_query_draw(const em_query *query, int64_t c)
{
    const em_draw draw = {query->seed, query->stream + query->chain[c], query->evaluation,
                          EM_DRAW_EVALUATION};

    return draw;
}

/* Arguments of `create` besides the options. The rows of the data are distributed over shards. */
typedef struct em_model_context {
    uint64_t seed;                  /* of the run; for models that generate their data */
    int64_t shard, n_shard;         /* this rank holds shard `shard` of `n_shard` */
    bool minibatches;               /* queries will list observations (em_rows.index) */
    const struct em_model_ops *ops; /* the table of the model */
    int64_t first_chain, n_chain;   /* numbers of the chains of this rank */
    const struct em_fitted *fitted; /* not NULL: to predict (emass/model/prediction.h) */
    bool exact; /* gradients will be compared with differences (emass check); a model with an option
                   for lower precision must ignore that option */
    int64_t n_rank;    /* ranks that evaluate each density together (run.ranks_per_chain) */
    const void *ranks; /* a pointer to their MPI_Comm, which only the model uses; NULL: not known */
    const struct em_shards *shards; /* sums over the shards, which reports may use (emass/shards.h);
                                       outlives the model. NULL: this rank has all of the data */
} em_model_context;

/* Evaluations at positions where the density is not defined: their number, and the message of the
 * first one. */
typedef struct em_rejections {
    int64_t count;
    char first[256];
} em_rejections;

/* A created model. The struct of an implementation has this as its first member. */
typedef struct em_model {
    const struct em_model_ops *ops;
    int64_t dim; /* number of unconstrained parameters; 0: computed from `parameter` */
    const char *const *unconstrained_name; /* [dim], owned by the model; NULL: 0, 1, ... */
    int64_t n_block;                       /* 0: the parameters are not divided into blocks */
    const em_parameters *block;            /* [n_block], owned by the model, in order */
    int64_t n_parameter;                   /* 0: parameters have no names and are unconstrained */
    const em_variable *parameter;          /* [n_parameter], owned by the model */
    em_share rows;      /* the observations; total 0: there are none, and no likelihood */
    int64_t n_variable; /* number of variables that are reported of a draw; 0: the parameters */
    const em_variable *variable; /* [n_variable], owned by the model */
    int64_t n_datum;
    const em_datum *datum; /* [n_datum], owned by the model */
    uint64_t data_hash;    /* hash of the data read or generated; 0: no data */
    uint64_t program_hash; /* hash of a program that is part of the data (Stan); 0: no program */
    int64_t n_rank;        /* of the context; set after `create` */
    em_gradient_kind gradient;
    bool estimates; /* its density is a random estimate (em_query_draw), so kernels that need an
                       exact one are refused */
    bool single; /* its gradients have single precision; stochastic kernels then draw their noise in
                    single precision, too */
    bool differentiated; /* its gradient is computed by automatic differentiation: if it differs
                            from central differences, the density is not exact (a solver within it,
                            rounding) */
    bool may_solve;      /* its density may contain a solver, for example of differential equations,
                            whose time depends on the position: a run that is not tempered looks for
                            modes less far away */
    em_rejections rejections;     /* set by the model, printed at the end */
    struct em_failures *failures; /* used by emass, for a model whose evaluations may fail */
    struct em_unsaved_evaluations *unsaved; /* used by emass, for a simulator, which may be lost */
    const void *options;                    /* the options of the model; set after `create` */
    struct em_constrained *constrained;     /* used by emass, for a model with bounds */
    /* Members of capabilities; see their headers. */
    int64_t n_chunk, chunk_size; /* of capability summary; 0: none */
    int64_t n_average, n_pooled; /* of capability averages: variables averaged over the draws of a
                                    chain; variables of all chains */
    const em_variable *average, *pooled; /* [n_average], [n_pooled], owned by the model */
    const char *update_of; /* the only block that the update moves; NULL: it moves all */
    int64_t even_from;     /* iterations before this one take less time than later ones, so the time
                              left is not predicted from them; 0: all take about as long */
} em_model;

/*
 * The table of a model. For a model that declares parameters, `theta` is on the scale of the
 * parameters: bounded ones are within their bounds. Derivatives are with respect to them. A model
 * with bounds cannot have the capabilities minibatch, ranges, counts and metric, nor functions of
 * latent other than `visit`, because these use the unconstrained scale.
 */
typedef struct em_model_ops {
    const char *name;
    const char *doc;    /* one line */
    const char *source; /* paper, equation */
    size_t options_size;
    const em_field *fields; /* may be NULL: no options */
    /* The parameters, if their number does not depend on options or data: names and bounds, or
     * `dim` parameters without names and bounds. Such a model needs no `create`; its functions find
     * their options in em_model.options. */
    int64_t dim, n_parameter;
    const em_variable *parameter; /* [n_parameter] */
    /* Reads the data and creates *out. `options` outlives the model. All ranks call it at the same
     * time, so it may be Collective; the ranks may return different statuses. Errors: EM_EDATA,
     * EM_ECONFIG, EM_EMEMORY, with a message that names file and line. */
    em_status (*create)(const void *options, const em_model_context *context, em_model **out);
    void (*destroy)(em_model *model); /* with `create` */
    /* THE DENSITY: one of three functions. A log density that is not finite is not an error. Local.
     */
    /* Adds the log density and its gradient at one position. For a model without `create`. A
     * positive status means that the density is not defined there. */
    em_status (*log_density_gradient)(const void *options, const double *theta, double *log_density,
                                      double *gradient);
    /* Returns the log density at one position, for a model without gradient. NaN, with or without a
     * message by em_fail, means that the density is not defined there. The default sampler of such
     * a model is `slice`. A sampler that needs gradients gets central differences: two densities
     * for each parameter, accurate to about ten digits. */
    double (*log_density)(const void *options, const double *theta);
    /* Adds the log prior of a panel of chains. A model with its own update need not have a density.
     */
    em_status (*add_prior)(em_model *model, const em_query *query);
    /* OPTIONAL: adds the log likelihood of the rows of the query: all rows for a model with a
     * summary, one part for other models, or listed rows. Local. */
    em_status (*add_likelihood)(em_model *model, const em_query *query);
    /*
     * OPTIONAL if only the parameters are reported. Writes the variables of one draw in order, each
     * row-major. Random numbers (of predictions) must depend on `draw` alone (emass/random.h), so
     * that they are the same on any number of ranks and after a restart. After a positive status
     * with a message, variables that were not written are stored as NaN; the run continues, and
     * prints the message at its end. Local, or, if it sums over the shards of the context,
     * Collective over the ranks of a group, which report the same draws in the same order. Errors:
     * the model's own; a negative status ends the run.
     */
    em_status (*report)(em_model *model, const em_draw *draw, const double *theta, double *out);
    /* OPTIONAL */
    const char *sampler; /* its default sampler; NULL: hmc, or slice without a gradient */
    /* For a model that divides an evaluation among ranks by MPI (run.ranks_per_chain). It is called
     * before the first evaluation with a pointer to the MPI_Comm of these ranks, which is valid
     * until the end of the run. All of them then evaluate the same positions in the same order, and
     * emass uses the results of the first rank. Local. */
    void (*use_ranks)(const void *options, const void *communicator);
    /* Sets the start of a chain, for models whose options give starts or that keep state for each
     * chain. On entry theta is a random position. Local. Errors: EM_EDATA. */
    em_status (*start)(em_model *model, const em_draw *draw, double *theta);
    /* Writes lines that begin with "# " about the model and its data, for emass check. Local. */
    void (*describe)(const em_model *model, FILE *out);
    /* The argument `state` of em_context_add_model (emass/emass.h). If the model has no fields, it
     * is passed as the model's options. */
    const void *state;
    /* CAPABILITIES (emass/capabilities.h); NULL: the model does not have the capability. */
    const struct em_model_rows *rows;           /* observations are the rows of a table */
    const struct em_model_latent *latent;       /* its own update, state of chains besides theta */
    const struct em_model_minibatch *minibatch; /* estimates from listed rows, all at once */
    const struct em_model_ranges *ranges;       /* gradients of one range of many parameters */
    const struct em_model_counts *counts;       /* a likelihood from integer counts */
    const struct em_model_summary *summary;     /* a likelihood from a few sums of the data */
    const struct em_model_averages *averages;   /* averages over the draws of a chain */
    const struct em_model_metric *metric;       /* for Riemannian samplers */
    const struct em_model_prediction *prediction; /* predictions for new data, by emass predict */
    const struct em_model_prior *prior;           /* draws from the prior */
    const struct em_model_commands *commands; /* commands of the program, such as emass topics */
} em_model_ops;

EM_END_C
