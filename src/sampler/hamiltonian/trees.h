/*
 * Trajectories that double, forward or backward, until they turn back or fail (Hoffman & Gelman
 * 2014; Betancourt 2017), one for each chain of a block. The kernel defines what a step of them
 * is. Each doubling of a trajectory of total weight w by one of weight w' takes its
 * draw from the new half with probability min(1, w' / w) (biased progressive sampling); weights are
 * exp(H_0 - H).
 *
 * The chains go side by side. Those that still move are kept in the first rows of a panel, so that
 * the target is evaluated for them alone; what a chain draws is counted by its number and leaf,
 * never by its row. All Local.
 */
#pragma once

#include "math/rng.h"
#include "sampler/hamiltonian/hamiltonian.h"

enum { EM_TREES_MOST_DEPTH = 24 };

/* A sum of exp(x) as sum exp(scale), for x that may be beyond the range of exp. */
typedef struct em_tree_weight {
    double scale, sum;
} em_tree_weight;

/* The trajectory of one chain, as far as it has grown. */
typedef struct em_tree {
    em_stream stream;           /* its random numbers: see trees.c */
    double step_size;           /* of its leaves, positive */
    int most;                   /* doublings */
    int depth, front;           /* doublings done; 1: the current one goes forward, 0: backward */
    int64_t n_leaf;             /* leaves that were tried */
    int64_t n_gradient;         /* that they took */
    int64_t n_new;              /* leaves of the current doubling */
    em_tree_weight total, half; /* of the trajectory, of the current doubling */
    double energy;              /* H_0 */
    double acceptance;          /* sum of min(1, exp(H_0 - H)) */
    double worst;               /* the H - H_0 of largest absolute value */
    bool diverged, saturated;
    em_subtree whole, waiting[EM_TREES_MOST_DEPTH]; /* the trajectory; subtrees by level */
} em_tree;

typedef struct em_trees {
    em_points moving;               /* the chains that move, in the first rows */
    em_points end, draw, candidate; /* by chain: both ends; draws of trajectory and doubling */
    em_tree *tree;                  /* [n_chain] */
    int64_t n_moving;
    int64_t *chain;       /* [n_chain] of each row */
    const em_mass **mass; /* [n_chain] of each row */
    double *step;         /* [n_chain] of each row: its tree's step size, negative backward */
    double *rows;         /* of the subtrees */
} em_trees;

/* For trees of at most `depth` doublings. Errors: EM_EMEMORY; release it all the same. */
em_status em_trees_create(int64_t n_chain, int64_t dim, int64_t depth, em_trees *out);
void em_trees_release(em_trees *trees);

/* A tree for each chain of the block, where it stands, with fresh momenta: all of them move, and
 * each row is where its first step begins. */
void em_trees_init(em_trees *trees, const em_step_context *context, const em_block *block,
                   int64_t depth);

/* Makes the point at which a row stands, of energy `energy`, a leaf of its tree; its acceptance is
 * that of energy `judged`. True: the row then stands where the next step begins; false: the
 * trajectory has ended. */
bool em_trees_grow(em_trees *trees, int64_t row, double energy, double judged);

/* There is no such leaf: the trajectory ends without the current doubling. */
void em_trees_break(em_trees *trees, int64_t row, bool diverged, double judged);

/* Row `from` becomes row `to`. */
void em_trees_move_row(em_trees *trees, int64_t from, int64_t to);

/* The statistics of kernels that draw by trees, or that begin with them. */
#define EM_TREE_STATS                                                                              \
    EM_STAT_LP, EM_STAT_ACCEPTANCE_RATE, EM_STAT_STEP_SIZE, EM_STAT_TREE_DEPTH, EM_STAT_N_STEPS,   \
        EM_STAT_DIVERGING, EM_STAT_REACHED_MAX_TREEDEPTH, EM_STAT_ENERGY, EM_STAT_ENERGY_ERROR

/* What em_sampler_ops ask of a kernel that draws by them. */
em_trajectory em_trees_trajectory(const void *options);

/* The chains move to their draws, with the statistics of em_tree_stats. */
void em_trees_collect(const em_trees *trees, em_block *block);
extern const em_stat em_tree_stats[]; /* ends with EM_STAT_COUNT */
