/*
 * Private to the folder: the search for a non-centring map in draws, and the fit of the parameters
 * whose scale depends on the same log scale. All Local.
 */
#pragma once

#include "mass/estimator.h"
#include "posterior/noncentring.h"

#include <stdbool.h>

enum {
    EM_MOST_GROUPS = 16,
    EM_DEGREES = 25, /* tried on each side of 0, in steps of a tenth of a standard deviation of the
                        log scale */
    EM_N_DEGREE = 2 * EM_DEGREES + 1,
    EM_MOST_REGRESSORS = EM_MOST_LOCATIONS + 2 /* and those of the constant and of e^(a s) */
};

/* Regressors of a group's location. */
typedef struct em_locations {
    int n;
    int64_t of[EM_MOST_LOCATIONS];
    bool is_one[EM_MOST_LOCATIONS]; /* its coefficient is 1 */
    bool has_constant;
} em_locations;

/* Parameters whose scale depends on the same parameter. */
typedef struct em_child_group {
    int64_t scale;
    uint32_t depends; /* bits: groups whose parameters it uses, directly or not */
    int level;
} em_child_group;

typedef struct em_group_search {
    const em_samples *samples;
    int64_t dim, n;        /* draws that are used */
    double *x, *mean, *sd; /* [dim][n] draws less their means */
    double *rho;           /* [dim][dim] correlation of log |g_i| and x_k */
    double *slope;         /* [dim][dim] of the former by the latter */
    int *group_of;         /* [dim] -1: none */
    uint32_t *used_by;     /* [dim] bits: groups whose scale or location it is */
    em_child_group group[EM_MOST_GROUPS];
    int n_group;
    em_noncentring map; /* of the groups so far */
    /* Work: [n], [EM_MOST_REGRESSORS][n], [n] four times; [dim][n], [dim][dim] */
    double *weight, *basis, *residual, *column, *factor, *step_factor;
    double *panel, *moment;
} em_group_search;

/* The fit of a candidate group. */
typedef struct em_group_fit {
    int64_t scale, n;
    int64_t *child;        /* [n], room for dim */
    double *degree, *gain; /* [n]; gains in log likelihood of a draw, over degree 0 */
    double *profile;       /* [n][EM_N_DEGREE] log likelihoods of a draw */
    double *square;        /* [n] of residuals, while locations are chosen */
    em_locations where;
    double total; /* of the gains */
} em_group_fit;

/* Fits the group of log scale k to the parameters that are in no group; f->n is 0 if it has none.
 * left [dim][n] is work space. */
void em_fit_group(em_group_search *s, int64_t k, em_group_fit *f, double *left);

/* The groups that depend on one of its children, directly or not, as bits. */
uint32_t em_group_users(const em_group_search *s, const em_group_fit *f);

/* Writes the map of child c, at level 1. */
void em_write_child(em_group_search *s, const em_group_fit *f, int64_t c, em_noncentring_row *row);
