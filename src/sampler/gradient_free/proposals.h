/*
 * Private to the kernels without gradients: positions that are proposed, and their log densities.
 * Directions come from the mass: its inverse W is the covariance pooled over the chains in warmup,
 * and direction = L^-T z has covariance W for z ~ N(0, I). Nothing of it depends on where a chain
 * stands, so that a proposal there is as likely as the one back.
 */
#pragma once

#include "sampler/kernel/sampler.h"

/* Panels are [n][stride], stride = em_stride(dim), with zero padding. */
typedef struct em_proposals {
    int64_t n, dim, stride;
    double *z, *direction; /* whitened, and on the scale of positions */
    double *theta;
    double *gradient;    /* what an evaluation may write; not used */
    double *log_density; /* [n] */
} em_proposals;

/* Room for n chains. Local. Errors: EM_EMEMORY. */
em_status em_proposals_create(int64_t n, int64_t dim, em_proposals *out);
void em_proposals_release(em_proposals *proposals);

/* z of row r = standard normals, those of number `number` of the chain in this iteration. Local. */
void em_proposals_draw(em_proposals *proposals, const em_step_context *context, int64_t chain,
                       int64_t number, int64_t r);

/* theta of row r = from + step direction. Local. */
void em_proposals_move(em_proposals *proposals, const double *from, double step, int64_t r);

/* The log densities of the first n rows, of chains chain[0 .. n). Local, or Collective over the
 * ranks of a group, as em_posterior_evaluate. Errors: those of the posterior. */
em_status em_proposals_evaluate(em_proposals *proposals, em_posterior *posterior, int64_t n,
                                const int64_t *chain);

/* Chain c of the block moves to row r. Local. */
void em_proposals_accept(const em_proposals *proposals, int64_t r, em_block *block, int64_t c);

/* Fills in the statistics of an iteration of chain c, and leaves no gradient. Local. */
void em_proposals_record(const em_step_context *context, em_block *block, int64_t c,
                         double acceptance, double evaluations);

extern const em_stat em_proposals_stats[];
