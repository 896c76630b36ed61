/*
 * Trajectories of NUTS, one for each chain of a block (Hoffman & Gelman 2014; Betancourt 2017). A
 * trajectory doubles, forward or backward in time, until it makes a U-turn or diverges. The kernel
 * defines the step from one leaf to the next. A leaf has the weight exp(H_0 - H). If a trajectory
 * of total weight w is doubled by one of weight w', the draw is taken from the new half with
 * probability min(1, w' / w) (biased progressive sampling).
 *
 * All chains advance together. The chains whose trajectories have not ended are in the first rows
 * of a panel, so that the posterior is evaluated for them alone. Random numbers are counted by
 * chain and leaf, never by row. All Local.
 */
#pragma once

#include "math/rng.h"
#include "sampler/hamiltonian/hamiltonian.h"

enum { EM_TREES_MOST_DEPTH = 24 };

/* A sum of exp(x), stored as sum * exp(scale), for x beyond the range of exp. */
typedef struct em_tree_weight {
    double scale, sum;
} em_tree_weight;

/* The trajectory of one chain so far. */
typedef struct em_tree {
    em_stream stream;   /* its random numbers: see trees.c */
    double step_size;   /* of its leaves, positive */
    int most;           /* doublings */
    int depth, front;   /* doublings done; direction of the current one, 1: forward, 0: backward */
    int64_t n_leaf;     /* leaves evaluated, without one whose evaluation failed */
    int64_t n_gradient; /* gradients evaluated */
    int64_t n_new;      /* leaves of the current doubling */
    em_tree_weight total, half; /* weights of the trajectory and of the current doubling */
    double energy;              /* H_0 */
    double acceptance;          /* sum of min(1, exp(H_0 - H)) */
    double worst;               /* the H - H_0 of largest absolute value */
    bool diverged, saturated, failed;
    em_subtree whole, waiting[EM_TREES_MOST_DEPTH]; /* the trajectory; subtrees by level */
} em_tree;

typedef struct em_trees {
    em_points moving; /* the chains whose trajectories have not ended, in the first rows */
    em_points end, draw, candidate; /* by chain: both ends; the draw of the trajectory, and of the
                                       current doubling */
    em_tree *tree;                  /* [n_chain] */
    int64_t n_moving;
    int64_t *chain;       /* [n_chain] of each row */
    const em_mass **mass; /* [n_chain] of each row */
    double *step;         /* [n_chain] of each row: its tree's step size, negative backward */
    double *rows;         /* memory of the subtrees */
} em_trees;

/* Allocates trees of at most `depth` doublings. Errors: EM_EMEMORY. */
em_status em_trees_create(em_owner *owner, int64_t n_chain, int64_t dim, int64_t depth,
                          em_trees *out);

/* Starts a tree for each chain of the block at its position, with fresh momenta. Every chain then
 * has a row, from which its first step begins. */
void em_trees_init(em_trees *trees, const em_step_context *context, const em_block *block,
                   int64_t depth);

/* Adds the point of a row to its tree as a leaf. `energy` gives its weight; `judged` is the energy
 * that its acceptance probability is computed from. Returns true if the row now holds the point
 * from which the next step begins, false if the trajectory has ended. */
bool em_trees_grow(em_trees *trees, int64_t row, double energy, double judged);

/* Ends the trajectory because the next leaf cannot be computed or has diverged. The current
 * doubling is discarded. */
void em_trees_break(em_trees *trees, int64_t row, bool diverged, double judged);

/* Ends the trajectory because the evaluation of the next leaf failed. The current doubling is
 * discarded. */
static inline void em_trees_fail(em_trees *trees, int64_t row)
{
    trees->tree[trees->chain[row]].failed = true;
}

/* Processes the result of a leapfrog step of a row. Returns false if its trajectory has ended. */
typedef bool em_trees_advance(void *to, const em_posterior *posterior, int64_t row);

/* Makes leapfrog steps until all trajectories have ended. leap [n_chain] has the step of each row;
 * it may be trees->step. Then sets each chain of the block to the draw of its tree, and writes the
 * statistics em_tree_stats. Collective over the ranks of a group. Errors: those of the posterior.
 */
em_status em_trees_run(em_trees *trees, em_posterior *posterior, double *leap,
                       em_trees_advance *advance, void *to, em_block *block);

/* The statistics of kernels that use trees in sampling or in the initial phase. */
#define EM_TREE_STATS                                                                              \
    EM_STAT_LP, EM_STAT_ACCEPTANCE_RATE, EM_STAT_STEP_SIZE, EM_STAT_TREE_DEPTH, EM_STAT_N_STEPS,   \
        EM_STAT_DIVERGING, EM_STAT_REACHED_MAX_TREEDEPTH, EM_STAT_ENERGY, EM_STAT_ENERGY_ERROR

/* em_sampler_ops.trajectory of kernels that use trees. */
em_trajectory em_trees_trajectory(const void *options);

extern const em_stat em_tree_stats[]; /* ends with EM_STAT_COUNT */
