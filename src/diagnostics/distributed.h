/*
 * Diagnostics of one number whose draws are spread over the ranks of a subcommunicator: each rank
 * has some chains, in their order. These are the steps that need all draws. They give the same bits
 * as one rank that has all draws. All Collective over its ranks. Errors: EM_EMEMORY, on all of its
 * ranks.
 */
#pragma once

#include "diagnostics/rank.h"
#include "par/subcommunicator.h"

/* Agrees on a status: if one rank fails, all do. */
em_status em_share_agree(const em_subcommunicator *comm, em_status status);

/* em_sorted_quantile of the draws of all ranks; `sorted` are the n > 0 draws of this rank. */
em_status em_share_quantiles(const em_subcommunicator *comm, int64_t n, const em_sorted *sorted,
                             int64_t n_probability, const double *probability, double *out);

/* em_normal_scores of the n > 0 draws of this rank among the draws of all ranks. */
em_status em_share_normal_scores(const em_subcommunicator *comm, int64_t n, const em_sorted *sorted,
                                 const int64_t *place, double *z);

/* sum[k] = x[0][k] + x[1][k] + ... over the rows of all ranks, in order. `x` is [n_row][n_column]
 * with n_row = count[member]. */
em_status em_share_sum(const em_subcommunicator *comm, const int64_t *count, int64_t n_column,
                       const double *x, double *sum);
