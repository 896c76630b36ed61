/*
 * Private to the room: the struct of the posterior. posterior.c creates it. density.c computes the
 * density from all observations, minibatch.c from some, dealt.c where each shard moves a coordinate
 * range. block.c computes the density of a block of the parameters. metric.c and transition.c call
 * the capabilities of the model, and summary.c makes the sums that a model may need.
 */
#pragma once

#include "emass/model/counts.h"
#include "par/shard_reduction.h"
#include "posterior/posterior.h"
#include "posterior/sums.h"

typedef struct em_tempering_panel em_tempering_panel; /* tempered.c */

struct em_posterior {
    em_model *model;
    const em_grid *grid;
    int64_t evaluations;
    em_sums likelihood; /* room for [n_chain][stride] gradients, then [n_chain] values */
    em_shard_reduction
        *reduction;  /* what likelihood.part is of, since minibatches were asked for of shards */
    bool is_dealt;   /* positions are in the panel of a shard reduction, and gradients are of */
    em_span own;     /* this range alone */
    em_sums metric;  /* room for a metric and its derivative, since they were asked for */
    int64_t *chosen; /* [em_integers_room(rows.total)] a minibatch */
    uint64_t *taken; /* [rows.total / 64 + 1] bits: those already in it */
    /* Where minibatches are summed part by part: their rows in the order of the parts, and how many
     * rows are in the parts up to each. */
    int64_t *grouped, *end;
    em_posterior
        *parent; /* of a part of the parameters, a tempered or a non-centred one; else NULL */
    /* Of a tempered posterior, else NULL: it answers, and frees what it has, by itself. */
    em_tempering_panel *tempering;
    em_status (*answer)(em_posterior *posterior, const em_query *query);
    void (*release)(em_posterior *posterior);
    /* Of one in non-centred coordinates: the map, the chains that it is not for, and the log
     * Jacobians [n_chain] of a panel. */
    const struct em_noncentring *noncentring;
    const bool *centred;
    double *log_jacobian;
    /* Of a part of the parameters: */
    const em_parameters *block;
    const double *held; /* [n_chain][stride] where the chains stand, from first_chain on */
    int64_t first_chain;
    double *theta, *gradient; /* [n_chain][stride] what is asked of the whole, and its answer */
    double *all; /* [dim][dim] and [dim][dim][dim]: its metric, since it was asked for */
};

/* Whether the model's likelihood is made of counts, by a function of its own. */
static inline bool em_model_finishes_counts(const em_model *model)
{
    return model->ops->counts && model->ops->counts->finish;
}

/* The part of this shard that begins at `first`. */
static inline em_rows em_part_at(const em_share *share, int64_t first)
{
    const int64_t left = share->count - first;

    return (em_rows){.count = left < share->part ? left : share->part, .first = first};
}

/* The same query, with results that are added to gradients [n_chain][stride] and values [n_chain].
 */
static inline em_query em_query_into(const em_query *query, double *gradient, double *value)
{
    em_query other = *query;

    other.gradient = gradient;
    other.log_density = value;
    return other;
}

/* ---- density.c: of all parameters ---- */

/* Prior and likelihood of all rows. Collective over the ranks of a group. */
em_status em_posterior_sum_all(em_posterior *posterior, const em_query *query);

/* Counts the evaluations of an answer. Local. Errors: EM_EMODEL, injected. */
em_status em_posterior_begin(em_posterior *posterior, int64_t n_chain);

/* Begins an answer with the prior. Local. */
em_status em_posterior_add_prior(em_posterior *posterior, const em_query *query);

/* Adds the likelihood of the query's rows. Local, but for a model that asks other shards. */
em_status em_posterior_add_likelihood(em_model *model, const em_query *query);

/* To be called before the first minibatch of several shards: creates the shared memory in which
 * their sums are added. Collective over the ranks of a group, which fail together. Errors:
 * EM_EMEMORY. */
em_status em_posterior_share_sums(em_posterior *posterior);

/* The likelihood made of the counts of all shards, which failed together or not. Collective over
 * the ranks of a group. */
em_status em_posterior_end_counts(const em_posterior *posterior, em_status status,
                                  const em_query *of);

/* Adds `scale` times the sums of the likelihood to an answer. Local. */
void em_posterior_add_sums(const em_posterior *posterior, double scale, const em_query *query);

/* ---- tempered.c ---- */

/* Where a chain of a tempered posterior stands. Local. */
const struct em_temperature *em_temperature_of(const em_posterior *posterior, int64_t chain);

/* ---- dealt.c: where each shard moves a coordinate range ---- */

/* The answer of a model that makes estimates itself, of all shards, which failed together or not;
 * the gradient of this shard's range. Collective over the ranks of a group. */
em_status em_posterior_end_estimates(const em_posterior *posterior, em_status status,
                                     const em_query *query);

/* The estimate of one chain whose gradient is asked for by ranges; query->rows are this shard's.
 * Collective over the ranks of a group, which fail together. */
em_status em_posterior_estimate_part(em_posterior *posterior, em_status status,
                                     const em_query *query, double scale, bool published);

/* What the shards share of it. Local. */
em_range_parts em_posterior_parts(const em_posterior *posterior);

/* ---- block.c: between a block and all parameters ---- */

/* Writes all parameters into part->theta: the rows [n][stride] of the block, and the values that
 * the other parameters have in these chains. Local. */
void em_part_widen(const em_posterior *part, int64_t n, int64_t stride, const int64_t *chain,
                   const double *theta);

/* Copies the columns of the block from all parameters into rows [n][stride] with padding 0. Local.
 */
void em_part_narrow(const em_posterior *part, int64_t n, const double *wide, int64_t stride,
                    double *out);

/* What is asked of the whole for a question about the part. Local. */
em_query em_part_query(const em_posterior *part, const em_query *query);
