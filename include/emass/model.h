/*
 * What the author of a model writes: a const em_model_ops, in a shared object of its own
 * (emass/plugin.h), in a program (emass/emass.h), or in a file of src/model, with a line in
 * src/model/model_list.c. A model is pure: it knows its data and what it is asked (em_query), not
 * the rank, the sampler or a file being written.
 *
 * Sign convention: models ADD the log density and its gradient, +log p and +grad log p, on the
 * unconstrained scale, the Jacobian of the transform included in the prior.
 */
#ifndef EMASS_MODEL_H
#define EMASS_MODEL_H

#include "emass/field.h"
#include "emass/status.h"
#include "emass/visitor.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

EM_BEGIN_C

enum { EM_MAX_AXES = 6 };

/* How numbers are stored; they are handed over as doubles. */
typedef enum em_storage {
    EM_STORE_REAL,
    EM_STORE_INT,
    EM_STORE_BOOL,
    EM_STORE_SINGLE /* 32 bits: for large arrays */
} em_storage;

/* The group of the output file that a reported variable stands in. */
typedef enum em_report_group {
    EM_POSTERIOR,
    EM_LOG_LIKELIHOOD,       /* of each observation */
    EM_POSTERIOR_PREDICTIVE, /* observations drawn anew */
    EM_PREDICTIONS,          /* of what was not observed */
    EM_N_REPORT_GROUP
} em_report_group;

/* What a reported number is: tables show parameters first. */
typedef enum em_role { EM_PARAMETER, EM_TRANSFORMED_PARAMETER, EM_GENERATED_QUANTITY } em_role;

/* A named array of parameters or data, as it will stand in the output file. */
typedef struct em_variable {
    const char *name;
    em_storage storage;
    em_report_group group; /* of what a model reports; of no meaning for data */
    bool dealt; /* of such: a shard reports its own observations, and -0.0, which adds nothing, for
                   those of others; all of a group but the posterior, or none */
    int n_axes; /* 0: a scalar */
    int64_t shape[EM_MAX_AXES];
    const char *axis[EM_MAX_AXES];         /* name of each axis; NULL: <name>_dim_0, ... */
    const char *const *label[EM_MAX_AXES]; /* shape[i] UTF-8 labels of the axis; NULL: 0, 1, ... */
    bool unwatched; /* no convergence to be judged by; nor are those after it */
    bool from_one;  /* tables number the elements of axes without labels from 1, as Stan does */
    em_role role;
} em_variable;

/* A small data array to be stored beside the draws. */
typedef struct em_datum {
    const char *group; /* "observed_data", "constant_data" or, of what is predicted for,
                          "predictions_constant_data" */
    em_variable variable;
    const double *value; /* row-major; borrowed from the model */
} em_datum;

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

/* What is wanted of an evaluation; there is room for the rest too, which may be written. */
typedef enum em_wanted { EM_WANT_BOTH, EM_WANT_LOG_DENSITY, EM_WANT_GRADIENT } em_wanted;

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
    const struct em_parameters *block; /* whose gradient alone is wanted; NULL: all */
    bool without_prior;                /* of an estimate: another shard adds it */
    /* Of an estimate by a model that has `slopes`: the gradient is not written, but made by them
     * where it is used; and theta, all of it, is what `show` was given since the last estimate. */
    bool by_slopes, shown;
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

/* Parameters that belong together, which a config may give a sampler of their own: theta[first ..
 * first + count). */
typedef struct em_parameters {
    const char *name;
    int64_t first, count;
    bool positive; /* they live above zero, where only some samplers keep them */
} em_parameters;

/* Sums over the shards of the data, for what a model does on all of them at the same time. */
typedef struct em_shards {
    void *context;
    /*
     * x[n] become their sums over all shards. `own`: how this rank has fared since the last sum; an
     * error goes into the next one, as no rank may leave before the others do: when one has failed
     * all of them get its error, and x is of no meaning. Collective over the ranks of a group.
     */
    em_status (*sum)(void *context, em_status own, int64_t n, int64_t *x);
    /*
     * Puts together what each shard has made for all of them, its part of x, n items of `size`
     * bytes: the parts follow each other, and the first n % n_shard of them have one item more.
     * Collective over the ranks of a group.
     */
    void (*gather)(void *context, int64_t n, int64_t size, void *x);
    /*
     * As sum, of n items of `size` numbers each, but that a shard is given the sums of those alone
     * that gather takes from it; the others are then of no meaning.
     */
    em_status (*deal)(void *context, em_status own, int64_t n, int64_t size, int64_t *x);
} em_shards;

/* What a model with a transition of its own is asked for a panel of chains: to move them. */
typedef struct em_update {
    int64_t n_chain, stride;
    const int64_t *chain; /* [n_chain] their numbers in the run, in any order */
    double *theta;        /* [n_chain][stride] replaced */
    double *log_density;  /* [n_chain] what is to be reported as lp; left alone: as it was */
    uint64_t seed;
    int64_t number; /* of the update, from 0: it counts the random numbers (em_update_draw) */
    bool warmup;    /* what is learned may change */
    const em_shards *shards;
    const em_parameters *block; /* what alone is to be moved; NULL: all */
} em_update;

/* The random numbers of chain c of the panel. */
static inline em_draw em_update_draw(const em_update *update, int64_t c)
{
    const em_draw draw = {update->seed, update->chain[c], update->number, EM_DRAW_UPDATE};

    return draw;
}

/* What a finished run has left in its file. Both lend what they find until the model is destroyed;
 * where there is none of that name, *count is 0 and the array NULL. Local. Errors: EM_EDATA. */
typedef struct em_fitted {
    void *context;
    /* An array of constant_data, which the model of the run stored (em_model.datum). */
    em_status (*numbers)(void *context, const char *name, int64_t *count, const double **value);
    /* The labels of an axis of the posterior, or of an array of constant_data, as they may be
     * printed and cut to 255 bytes. */
    em_status (*labels)(void *context, const char *axis, int64_t *count, const char *const **label);
} em_fitted;

/* What a model is created from, besides its options. Rows of the data are dealt to shards. */
typedef struct em_model_context {
    uint64_t seed;                  /* of the run; for models that generate their data */
    int64_t shard, n_shard;         /* this rank holds shard `shard` of `n_shard` */
    bool minibatches;               /* likelihoods of listed observations will be asked for */
    const struct em_model_ops *ops; /* the table that the model is made from */
    int64_t first_chain, n_chain;   /* numbers of the chains of this rank */
    const em_fitted *fitted;        /* NULL, unless the model is to predict: see em_model_ops */
    bool exact; /* gradients are going to be compared with differences (emass check): a model that
                   may be imprecise on request is not */
    const em_shards *shards; /* outlives the model, whose reports may sum over them; NULL: it has
                                all of the data */
} em_model_context;

/* Evaluations that a model could not do, for a position where the density is not defined: how many,
 * and what the first one said. */
typedef struct em_rejections {
    int64_t count;
    char first[256];
} em_rejections;

/* What is asked of a diagonal metric G(theta). All arrays but `held` are of the parameters of
 * `block`; NULL: of all of them. Those that are NULL are not wanted, the others replaced. */
typedef struct em_diagonal {
    const em_parameters *block;
    const double *theta;
    const double *held;   /* [dim] where the others stand, with a block */
    double *metric;       /* G_i */
    double *own;          /* dG_i / dtheta_i */
    const double *weight; /* of elements, for */
    double *slope;        /* sum_i weight_i dG_i / dtheta_k */
} em_diagonal;

/* A created model. The implementation derives its own struct with this as the first member. */
typedef struct em_model {
    const struct em_model_ops *ops;
    int64_t dim;    /* number of unconstrained parameters */
    bool estimates; /* its density is an estimate, from random numbers (em_query_draw): not for
                       kernels that need an exact one */
    bool single;    /* its gradients are of 32 bits: nor need the noise of stochastic kernels have
                       more */
    bool differentiated; /* automatically: where its gradient is not that of central differences,
                            it is the density that is not exact (a solver within it, rounding) */
    const char *const *unconstrained_name; /* [dim], owned by the model; NULL: 0, 1, ... */
    int64_t n_block;                       /* 0: no names for parts of the parameters */
    const em_parameters *block;  /* [n_block] owned by the model: all parameters, in their order */
    em_share rows;               /* the observations; total 0: there are none, nor a likelihood */
    int64_t n_piece, piece_size; /* of the summary; 0: none */
    int64_t n_variable;          /* what is reported of a draw */
    const em_variable *variable; /* [n_variable], owned by the model */
    int64_t n_datum;
    const em_datum *datum;      /* [n_datum], owned by the model */
    int64_t n_average;          /* what is averaged over the draws of a chain, if anything */
    const em_variable *average; /* [n_average], owned by the model */
    int64_t n_pooled;           /* what is said of those averages over all chains, if anything */
    const em_variable *pooled;  /* [n_pooled], owned by the model */
    const char *update_of;      /* the one block that the model's update is of; NULL: all */
    uint64_t data_hash;         /* of the data read or generated; 0: none */
    uint64_t program_hash;      /* of a program that is part of the model's data; 0: none */
    em_rejections rejections;   /* kept by models that reject with a reason; said at the end */
} em_model;

/* The table of a model. A density that is not finite is reported by its value, not by the status.
 */
typedef struct em_model_ops {
    /* REQUIRED */
    const char *name;
    const char *doc;    /* one line */
    const char *source; /* paper, equation */
    size_t options_size;
    const em_field *fields; /* may be NULL: no options */
    /* Reads the data and sets up *out. `options` outlives the model. Called by all ranks at the
     * same time, so that it may be Collective; its status need not be agreed. Errors: EM_EDATA,
     * EM_ECONFIG, EM_EMEMORY, with a message naming file and line. */
    em_status (*create)(const void *options, const em_model_context *context, em_model **out);
    void (*destroy)(em_model *model);
    /* Adds the log prior (with Jacobian). A model with an update may do without a density. Local.
     */
    em_status (*add_prior)(em_model *model, const em_query *query);
    /*
     * Writes the variables of one draw, one after the other, each row-major. What a model draws
     * (predictions) it counts by `draw` alone (emass/random.h), so that it is the same on any
     * number of ranks and after a restart. A recoverable status, with a message: what was not
     * written is stored as NaN, and the run goes on and says so at its end. Local, or, by sums
     * over the shards of the context, Collective over the ranks of a group, which report the same
     * draws in the same order. Errors: of the model's own; a fatal one ends the run.
     */
    em_status (*report)(em_model *model, const em_draw *draw, const double *theta, double *out);
    /* OPTIONAL */
    const char *sampler; /* what samples it where the config names none; NULL: hmc */
    /* Where a chain begins, for models that are told, or have state of its own: replaces theta
     * [dim], a random position. Local. Errors: EM_EDATA. */
    em_status (*place)(em_model *model, const em_draw *draw, double *theta);
    /*
     * Shows the state that the model keeps for each chain of this rank beside theta (latent
     * variables, warm starts) to a visitor, which saves it in a checkpoint or replaces it. It is
     * that of the chains, not of their places: a panel says which they are. Collective.
     */
    em_status (*visit)(em_model *model, const em_visitor *visitor);
    /*
     * A transition of the model's own, which leaves its posterior invariant (a Gibbs update, of
     * theta and of what it keeps beside it); sampler gibbs makes it. All ranks of a group make it
     * at the same time and must agree on theta. Collective over them. Errors: EM_EMODEL.
     */
    em_status (*update)(em_model *model, const em_update *update);
    /* A stored draw of sampling, whose report has just been written, goes into the averages of its
     * chain. Local. */
    void (*average)(em_model *model, const em_draw *draw, const double *theta);
    /* Before averages are reported at the end of a run: what is of all chains together. Collective
     * over all ranks of the run. Errors, agreed: EM_EMEMORY. */
    em_status (*pool_averages)(em_model *model);
    /* Writes the averages of a chain over its draws of sampling so far, as report does variables:
     * Local, or Collective, as that. */
    void (*report_averages)(em_model *model, int64_t chain, double *out);
    /* Writes the pooled variables, given the mean over all chains of what report_averages wrote.
     * Local. */
    void (*report_pooled)(em_model *model, const double *mean, double *out);
    /*
     * Looks at where an iteration has left a panel of chains, for what the model keeps of it beside
     * them (averages, scores): theta and log_density are read alone, `number` is that of the
     * iteration. Collective over the ranks of a group. Errors: EM_EMODEL.
     */
    em_status (*watch)(em_model *model, const em_update *after);
    /* Says what a model found, for emass check: lines that begin with "# ". Local. */
    void (*describe)(const em_model *model, FILE *out);
    /* Adds the log likelihood of the rows asked for: of a model with a summary all, of others one
     * part; or those listed. Local. */
    em_status (*add_likelihood)(em_model *model, const em_query *query);
    /*
     * For a model of so many parameters that every pass over them counts: what a minibatch says of
     * one chain, the prior and `scale` times the likelihood of the listed rows. Log density and
     * gradient, padding too, are written, not added to, and are the numbers that add_prior and
     * add_likelihood lead to. Of several shards each is asked for the rows it has, which may be
     * none, and all but the first without the prior. Local.
     */
    em_status (*estimate)(em_model *model, const em_query *query, double scale);
    /*
     * Both or none, with `estimate`: passes over parameters that are far from each other in memory,
     * made where a kernel has a stretch of them at hand. slopes: the gradient of the last estimate
     * by parameters first .. first + n - 1, which are theta [n], as then. show: in the next
     * estimate they are theta [n]; the slopes of others may still be asked for. Local.
     */
    void (*slopes)(em_model *model, int64_t first, int64_t n, const double *theta,
                   double *gradient);
    void (*show)(em_model *model, int64_t first, int64_t n, const double *theta);
    /*
     * For a likelihood that depends on counts over the rows asked for: add_likelihood adds integers
     * alone to gradient and log_density (whose sums, below 2^53, have the same bits however rows
     * are dealt and added), and this makes the log likelihood and its gradient of their sums, which
     * stand in their places. Shards of such a model need not hold whole parts. Local.
     */
    void (*finish_likelihood)(em_model *model, const em_query *sums);
    bool counts; /* all its likelihoods are such: nothing depends on the number of shards */
    /*
     * For models whose likelihood of all observations depends on a few sums over them, the summary:
     * n_piece pieces of piece_size numbers, asked for once, one after the other. add_summary adds
     * those of a part; take_summary is given their sums over all parts of all shards. Local.
     */
    void (*add_summary)(em_model *model, int64_t piece, const em_rows *rows, double *sum);
    void (*take_summary)(em_model *model, int64_t piece, const double *sum);
    /*
     * For Riemannian samplers, a metric G(theta) of one chain, positive definite: adds the Fisher
     * information of observations (NULL: none; else as add_likelihood, never listed) and, with
     * `prior`, minus the Hessian of the log prior. Adds to the lower triangles of metric [dim][dim]
     * and, where it is not NULL, of derivative [dim][dim][dim], whose matrix k is dG / dtheta_k.
     * Local.
     */
    em_status (*add_metric)(em_model *model, bool prior, const em_rows *rows, const double *theta,
                            double *metric, double *derivative);
    /* INSTEAD, for many parameters: a metric that is diagonal, of what all ranks know alike. Where
     * there is none, an element is not above zero, or not finite. Local. */
    void (*diagonal)(em_model *model, const em_diagonal *ask);
    /*
     * For emass predict. The model is then created from the options of the run, `data` replaced by
     * the path of what is new, with context->fitted: what it learned of the data of the run (means,
     * levels) it takes from there, and of its variables those of EM_POSTERIOR are what it wants of
     * a draw, and those of EM_PREDICTIONS what it makes of it; no density is asked for. predict is
     * given the numbers of the first as the file has them, one variable after the other, and writes
     * those of the others, likewise. Counts random numbers by `draw`, and may fail, as report does.
     * Local.
     */
    em_status (*predict)(em_model *model, const em_draw *draw, const double *posterior,
                         double *out);
    /*
     * A position from the prior, theta [dim], for the groups prior and prior_predictive: the
     * model's report of it follows. Counts random numbers by `draw`, and may fail, as report does.
     * A model that has none may say why, in words that follow "model NAME". Local.
     */
    em_status (*draw_prior)(em_model *model, const em_draw *draw, double *theta);
    const char *no_prior;
    /*
     * For the evidence of a tempered run: the logarithms of the constants that the log prior and the
     * log likelihood of all data leave out. With them both are normalised. theta [dim] is a position
     * with a finite density. NULL: nothing is left out. Collective over the ranks of a group.
     */
    em_status (*log_constants)(em_model *model, const double *theta, double *prior,
                               double *likelihood);
    /*
     * INSTEAD, for a density that knows its options alone, on parameters without bounds: `dim` of
     * them, reported as they are as `variable` [n_variable] (NULL: one array `theta`), and one of
     * the two functions, for one position. They stand for create, destroy, add_prior and report.
     */
    int64_t dim, n_variable;
    const em_variable *variable;
    /* Adds the log density and its gradient. Recoverable where there is none. Local. */
    em_status (*log_density_gradient)(const void *options, const double *theta, double *log_density,
                                      double *gradient);
    /* The log density; not finite where there is none. Central differences of it, 2 dim of them
     * for a gradient, are good to about ten digits. Local. */
    double (*log_density)(const void *options, const double *theta);
    /* What a program gives that has the model within itself (emass/emass.h); where the model has no
     * fields, the two functions are given it instead of options. */
    const void *state;
} em_model_ops;

EM_END_C

#endif
