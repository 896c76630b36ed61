/*
 * Statistics of each chain in the sampling phase, and the findings from them at the end: chains
 * that stood still, E-BFMI (the variance of energy changes over that of the energy), saturated
 * trees. They are part of the state of a run.
 */
#pragma once

#include "diagnostics/modes.h"
#include "emass/visitor.h"
#include "par/grid.h"
#include "sampler/kernel/sampler.h"

typedef struct em_chain_statistics em_chain_statistics;

/* Findings on all chains of the run; equal on all ranks. */
typedef struct em_findings {
    int64_t n_saturated;            /* saturated trees of stored draws */
    int64_t n_still, longest_still; /* chains that stood still; the longest series of equal draws */
    double e_bfmi;                  /* the smallest of a chain; NaN: the sampler has no energy */
    em_modes modes;                 /* modes of the chains; count 0: one */
    int64_t n_growing;              /* monitored numbers that grow without bound */
} em_findings;

/* `sampler` NULL: several samplers alternate, which have no common energy or acceptance. Local.
 * Errors: EM_EMEMORY. */
em_status em_chain_statistics_create(const em_sampler_ops *sampler, int64_t n_local_chain,
                                     em_chain_statistics **out);

/* Adds the statistics of an iteration of sampling from the block; `stored`: the iteration is a
 * stored draw. Local. */
void em_chain_statistics_take(em_chain_statistics *statistics, const em_block *block, bool stored);

/* Divergences so far, of all iterations and chains. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_chain_statistics_divergences(const em_chain_statistics *statistics, em_grid *grid,
                                          int64_t *out);

/* All of *out but modes and growth. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_chain_statistics_find(const em_chain_statistics *statistics, em_grid *grid,
                                   em_findings *out);

/* Collective. Errors: the visitor's. */
em_status em_chain_statistics_visit(em_chain_statistics *statistics, const em_visitor *visitor);
