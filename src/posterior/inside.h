/*
 * Private to this folder: the struct of the posterior. posterior.c creates it, also for a block of
 * the parameters, and has the sums over shards. density.c computes the density from all
 * observations, and minibatch.c estimates it from some. partitioned.c does so when each shard moves
 * one coordinate range. metric.c and transition.c call the capabilities of the model, and
 * model_summary.c makes the sums that a model may need.
 */
#pragma once

#include "base/memory.h"
#include "emass/model/counts.h"
#include "par/shard_reduction.h"
#include "posterior/posterior.h"

/*
 * Sums over the parts of the data on all shards. They depend neither on the order of the parts nor
 * on their assignment to shards (math/binned.h). The last of the n numbers counts the shards that
 * failed, so that one message has both.
 */
typedef struct em_sums {
    int64_t n;    /* a multiple of 8 */
    double *part; /* [n] the terms of one part; at the end the sums */
    double *bins; /* [em_binned_size(n)] */
} em_sums;

typedef struct em_tempering_panel em_tempering_panel; /* tempered.c */

struct em_posterior {
    em_owner memory; /* of its arrays, but not of sums */
    em_model *model;
    const em_grid *grid;
    int64_t evaluations;
    em_sums likelihood;            /* of [n_chain][stride] gradients, then [n_chain] values */
    em_shard_reduction *reduction; /* if not NULL, it owns likelihood.part */
    bool is_partitioned; /* positions are in the panel of a shard reduction, and gradients have
                            the coordinates `own` alone */
    em_span own;         /* of a partitioned posterior */
    const em_meanwhile *meanwhile; /* of an iteration whose moves the shards divide; may be NULL */
    em_sums metric;  /* of a metric and its derivative; allocated at their first use */
    int64_t *chosen; /* [em_integers_capacity(rows.total)] a minibatch */
    uint64_t *taken; /* [rows.total / 64 + 1] bits: the rows already in it */
    /* If minibatches are summed part by part: their rows ordered by part, and the cumulative number
     * of rows by part. */
    int64_t *grouped, *end;
    em_posterior *parent; /* of the posterior of a block of the parameters, a tempered or a
                             non-centred one; else NULL */
    /* Of a tempered or non-centred posterior, else NULL: what it needs, and its queries. */
    em_tempering_panel *tempering;
    em_status (*answer)(em_posterior *posterior, const em_query *query);
    /* For a posterior in non-centred coordinates: the map, the chains that do not use it, and the
     * log Jacobians [n_chain] and conditionals [n_chain][dim] of a panel. */
    const struct em_noncentring *noncentring;
    const bool *centred;
    double *log_jacobian;
    struct em_conditional *conditional;
    /* For the posterior of a block of the parameters: */
    const em_parameters *block;
    const double *held; /* [n_chain][stride] values of all parameters, from chain first_chain on */
    int64_t first_chain;
    double *theta, *gradient; /* [n_chain][stride] query to the parent, and its result */
    double *all;              /* the parent's metric and derivative, once used */
};

/* Whether the model computes its likelihood from counts that are summed over the data. */
static inline bool em_model_finishes_counts(const em_model *model)
{
    return model->ops->counts && model->ops->counts->finish;
}

/* The rows of the part of this shard's data that begins at `first`. */
static inline em_rows em_part_at(const em_share *share, int64_t first)
{
    const int64_t left = share->count - first;

    return (em_rows){.count = left < share->part ? left : share->part, .first = first};
}

/* A copy of `query` whose results are added to gradient [n_chain][stride] and value [n_chain]. */
static inline em_query em_query_into(const em_query *query, double *gradient, double *value)
{
    em_query other = *query;

    other.gradient = gradient;
    other.log_density = value;
    return other;
}

/* ---- posterior.c ---- */

/* A posterior that sends its queries on to its parent, with panels for the query and its result.
 * Errors: EM_EMEMORY. */
em_status em_posterior_create_within(em_posterior *parent, int64_t n_chain, int64_t first_chain,
                                     em_posterior **out);

/* Allocates sums of n numbers. Local. Errors: EM_EMEMORY; em_sums_release must then be called, too.
 */
em_status em_sums_create(int64_t n, em_sums *out);

static inline void em_sums_release(em_sums *s)
{
    em_release_all(&s->part, &s->bins);
}

/* Sums of n numbers, set to zero, which use the memory of `whole`. `is_one`: the sums have one part
 * and need no bins. Local. */
em_sums em_sums_begin(const em_sums *whole, int64_t n, bool is_one);

/* Writes the sums over all shards (grid NULL: over this one) to s->part. If one shard has failed,
 * all of them fail. Collective over the ranks of a group. */
em_status em_sums_end(const em_sums *s, const em_grid *grid, em_status status);

/* Writes the sums to s->part, as em_sums_end, if all data are one part on one rank. Local. */
em_status em_sums_of_one(const em_sums *s, em_status status);

/* Writes all parameters into part->theta: those of the block from theta [n][stride], and the
 * current values of the others in chains chain [n]. Local. */
void em_part_widen(const em_posterior *part, int64_t n, int64_t stride, const int64_t *chain,
                   const double *theta);

/* Copies the columns of the block from all parameters into rows [n][stride] with padding 0. Local.
 */
void em_part_narrow(const em_posterior *part, int64_t n, const double *wide, int64_t stride,
                    double *out);

/* The query to the parent that answers a query about the block. Local. */
em_query em_part_query(const em_posterior *part, const em_query *query);

/* ---- density.c: of all parameters ---- */

/* Prior and likelihood of all rows. Collective over the ranks of a group. */
em_status em_posterior_sum_all(em_posterior *posterior, const em_query *query);

/* Counts the evaluations of a query. Local. Errors: EM_EMODEL, if the tests inject one. */
em_status em_posterior_begin(em_posterior *posterior, int64_t n_chain);

/* Sets the results of a query to the prior. Local; with run.ranks_per_chain Collective over the
 * ranks of a group. */
em_status em_posterior_add_prior(em_posterior *posterior, const em_query *query);

/* Adds the likelihood of the query's rows. Local, unless the model communicates with other shards.
 */
em_status em_posterior_add_likelihood(em_model *model, const em_query *query);

/* To be called before the first minibatch of several shards: creates the shared memory in which
 * their sums are added. Collective over the ranks of a group, which fail together. Errors:
 * EM_EMEMORY. */
em_status em_posterior_share_sums(em_posterior *posterior);

/* Computes the likelihood from the counts of all shards. `status`: whether this shard failed; if
 * one has, all do. Collective over the ranks of a group. */
em_status em_posterior_end_counts(const em_posterior *posterior, em_status status,
                                  const em_query *of);

/* Adds `scale` times the sums of the likelihood to the results of a query. Local. */
void em_posterior_add_sums(const em_posterior *posterior, double scale, const em_query *query);

/* ---- tempered.c ---- */

/* The temperature of a chain of a tempered posterior. Local. */
const struct em_temperature *em_temperature_of(const em_posterior *posterior, int64_t chain);

/* ---- partitioned.c: each shard moves one coordinate range ---- */

/* Completes a query to a model that computes estimates itself: sums over all shards, and computes
 * the gradient of this shard's range. `status`: whether this shard failed; if one has, all do.
 * Collective over the ranks of a group. */
em_status em_posterior_end_estimates(const em_posterior *posterior, em_status status,
                                     const em_query *query);

/* The estimate for one chain whose gradient is then computed by ranges; query->rows are this
 * shard's. Collective over the ranks of a group, which fail together. */
em_status em_posterior_estimate_part(em_posterior *posterior, em_status status,
                                     const em_query *query, double scale, bool published);

/* A barrier of the shards of a group. While a shard waits, it does the work that the iteration has
 * given it (`meanwhile`). Collective over the ranks of a group. */
static inline void em_posterior_wait(const em_posterior *posterior)
{
    em_shard_reduction_wait(posterior->reduction, posterior->meanwhile);
}

/* The memory in which shards share the parts of a range computation. Local. */
em_range_parts em_posterior_parts(const em_posterior *posterior);
