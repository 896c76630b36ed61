/*
 * Private to the kernels without gradients: proposed positions and their log densities. The
 * directions of proposals come from the mass M = L L^T. Its inverse W is the covariance pooled over
 * the chains in warmup, and direction = L^-T z has covariance W for z ~ N(0, I). The distribution
 * of directions does not depend on the position of a chain, so proposals are symmetric.
 */
#pragma once

#include "sampler/kernel/sampler.h"

/* Panels are [n][stride], stride = em_stride(dim), with zero padding. */
typedef struct em_proposals {
    int64_t n, dim, stride;
    double *z, *direction; /* in whitened units, and in units of positions */
    double *theta;
    double *gradient;    /* output of evaluations, not used */
    double *log_density; /* [n] */
} em_proposals;

/* Allocates panels for n chains. Local. Errors: EM_EMEMORY. */
em_status em_proposals_create(em_owner *owner, int64_t n, int64_t dim, em_proposals *out);

/* Fills row r of z with standard normals. `number` tells apart the draws of one chain in one
 * iteration. Local. */
void em_proposals_draw(em_proposals *proposals, const em_step_context *context, int64_t chain,
                       int64_t number, int64_t r);

/* theta of row r = from + step * direction. Local. */
void em_proposals_move(em_proposals *proposals, const double *from, double step, int64_t r);

/* Evaluates the log density of the first n rows; row i belongs to chain chain[i]. Collective over
 * the ranks of a group (Local for one shard), as em_posterior_evaluate, which has its errors. */
em_status em_proposals_evaluate(em_proposals *proposals, em_posterior *posterior, int64_t n,
                                const int64_t *chain);

/* Sets position and log density of chain c of the block to those of row r. Local. */
void em_proposals_accept(const em_proposals *proposals, int64_t r, em_block *block, int64_t c);

/* Writes the statistics of chain c for this iteration, and sets its gradient to zero. Local. */
void em_proposals_record(const em_step_context *context, em_block *block, int64_t c,
                         double acceptance, double evaluations);

extern const em_stat em_proposals_stats[];
