/*
 * Statistics of each chain in the sampling phase, and the findings from them at the end: whether a
 * chain stood still, its E-BFMI (how well momenta move the energy), trees that were cut short. Part
 * of the state of a run.
 */
#pragma once

#include "diagnostics/modes.h"
#include "emass/visitor.h"
#include "par/grid.h"
#include "sampler/kernel/sampler.h"

typedef struct em_chain_statistics em_chain_statistics;

/* Of all chains of the run; the same on all ranks. */
typedef struct em_findings {
    int64_t n_saturated;            /* trees of stored draws that were cut short */
    int64_t n_still, longest_still; /* chains that stood still; draws in a row */
    double e_bfmi;                  /* the smallest of a chain; NaN: the sampler has no energy */
    em_modes modes;                 /* that chains are in; count 0: one */
    int64_t n_growing;              /* numbers watched that grow without an end in sight */
} em_findings;

/* `sampler` NULL: several take turns, which have no energy or acceptance in common. Local. Errors:
 * EM_EMEMORY. */
em_status em_chain_statistics_create(const em_sampler_ops *sampler, int64_t n_local_chain,
                                     em_chain_statistics **out);
void em_chain_statistics_destroy(em_chain_statistics **statistics);

/* Counts what an iteration of sampling left in the block; `stored`: it is a draw. Local. */
void em_chain_statistics_take(em_chain_statistics *statistics, const em_block *block, bool stored);

/* Divergences so far, of all iterations and chains. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_chain_statistics_divergences(const em_chain_statistics *statistics, em_grid *grid,
                                          int64_t *out);

/* All of *out but modes and growth. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_chain_statistics_find(const em_chain_statistics *statistics, em_grid *grid,
                                   em_findings *out);

/* Collective. Errors: the visitor's. */
em_status em_chain_statistics_visit(em_chain_statistics *statistics, const em_visitor *visitor);
