/*
 * The trees of NUTS by plain recursion, leaf by leaf, with Stan's further checks: an implementation
 * to compare kernels with. A kernel of such trees differs in how it goes from leaf to leaf.
 */
#ifndef TESTS_SUPPORT_PLAIN_TREES_H
#define TESTS_SUPPORT_PLAIN_TREES_H

#include "sampler/kernel/sampler.h"

#include <stdbool.h>

enum { PLAIN_MOST_DIM = 3, PLAIN_MOST_LEAVES = 1 << 8 };

typedef struct plain_point {
    double theta[PLAIN_MOST_DIM], p[PLAIN_MOST_DIM], g[PLAIN_MOST_DIM], log_density;
} plain_point;

typedef struct plain_trees plain_trees;
struct plain_trees {
    int dim, max_depth;
    const double *inverse; /* dense W */
    double step_size;
    uint64_t seed;
    int64_t chain;
    bool skips_checks; /* between subtrees: what a twin leaves out */
    void (*evaluate)(plain_point *z);
    /* From leaf to leaf in time h. Sets t->diverged; false: there is no such leaf. */
    bool (*step)(plain_trees *t, plain_point *z, double h);
    double initial_energy;
    bool diverged;
    int n_leaf; /* of the current doubling, in the order in which they were made */
    plain_point leaf[PLAIN_MOST_LEAVES];
};

typedef struct plain_result {
    plain_point draw;
    int depth, n_steps;
    bool diverging, saturated;
} plain_result;

double plain_energy(const plain_trees *t, const plain_point *z);

/* One leapfrog step. */
void plain_leap(const plain_trees *t, plain_point *z, double step);

/* One iteration from z, whose momentum is fresh. */
plain_result plain_iteration(plain_trees *t, plain_point z, int64_t iteration);

/* Whether chain 0 of a kernel is elsewhere than the plain trees, or says something else. */
bool plain_differs(const plain_trees *t, const plain_result *r, const em_block *block);

#endif
