/*
 * Private to the folder: the search for a non-centring map in draws, and the fit of the parameters
 * whose scale depends on the same log scale. All Local.
 */
#pragma once

#include "adaptation/noncentring/term_selection.h"
#include "adaptation/prior_proofs/draw_columns.h"
#include "adaptation/prior_proofs/scale_derivative.h"
#include "adaptation/prior_proofs/weighted_regression.h"
#include "mass/estimator.h"
#include "posterior/noncentring.h"

#include <stdbool.h>

enum {
    EM_MOST_GROUPS = 16,
    EM_DEGREES = 25, /* tried on each side of 0, in steps of a tenth of a standard deviation of the
                        log scale */
    EM_N_DEGREE = 2 * EM_DEGREES + 1,
    EM_FIT_REGRESSORS = 2 + EM_MOST_LOCATIONS /* the log scale, the constant and the locations */
};

/* Rows that are multiplied by all columns at once: of all children and one fit, or of all degrees.
 */
#define EM_FIT_STACK(dim) ((dim) + EM_FIT_REGRESSORS + 1 + EM_N_DEGREE * EM_FIT_REGRESSORS)

/* A log derivative is evidence for a log scale if its correlation with it is at least this. */
#define EM_EVIDENT_CORRELATION 0.25

/* The step between degrees, in units of 1 / (standard deviation of the log scale). */
#define EM_DEGREE_STEP 0.1

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
} em_child_group;

typedef struct em_group_search {
    const em_samples *samples;
    const em_gradient_function *gradient; /* tells what data do; NULL: the samples do */
    int64_t dim, n;                       /* draws that are used */
    double *x, *mean, *sd;                /* [dim][n] draws less their means */
    double *rho;                          /* [dim][dim] correlation of log |g_i| and x_k */
    double *slope;                        /* [dim][dim] of the former by the latter */
    int64_t *closest;  /* [dim] the log scale with which log |g_i| is most correlated, if that is so
                          for two parameters or more; else -1 */
    int *group_of;     /* [dim] -1: none */
    uint32_t *used_by; /* [dim] bits: groups whose scale or location it is */
    em_child_group group[EM_MOST_GROUPS];
    int n_group;
    em_noncentring map;  /* of the groups so far */
    double *transformed; /* [2 dim][n] draws and derivatives in its coordinates */
    bool is_transformed; /* false: the map has changed since */
    em_weighted_regression of;
    /* Work: [n] four times; [dim][n], [dim][dim] */
    double *residual, *column, *factor, *step_factor;
    double *panel, *moment;
    double *weights;         /* [EM_N_DEGREE][n] */
    double *stack, *product; /* [EM_FIT_STACK(dim)][n] and [dim + 1][EM_FIT_STACK(dim)] */
    em_selection selection;  /* of the terms of derivatives */
    int64_t *votes;          /* [dim] */
    bool *allowed, *candidate, *is_location; /* [dim] */
    bool *is_rejected; /* [dim] log scales whose group was rejected since one was added */
    em_noncentring_row *conditional; /* [dim] rows of a group that is tried */
    em_noncentring_row *row;         /* [dim] of the map so far */
    double nearest;                  /* the departure from normality with it */
    double *left;                    /* [dim][n] work */
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
 */
void em_fit_group(em_group_search *s, int64_t k, em_group_fit *f);

/* Finds the degree at the maximum of a profile y [EM_N_DEGREE], in steps from 0, and the index *at
 * of the value nearest to it. Returns false if the profile has no maximum inside. */
bool em_find_top(const double *y, double *degree, int *at);

/* Sets s->closest: the log scale of each parameter that is in no group. One that is that of a
 * single parameter, or of a group already, is none. */
void em_find_closest_scales(em_group_search *s);

/* Whether the derivatives by parameter i tell that its scale depends on another log scale than k.
 */
bool em_belongs_elsewhere(const em_group_search *s, int64_t i, int64_t k);

/* Whether a parameter that only the groups `users` use may depend on parameter p. */
bool em_may_use(const em_group_search *s, uint32_t users, int64_t p);

/* The index of parameter p among the children; -1: none. */
int64_t em_child_at(const em_group_fit *f, int64_t p);

/* Removes parameter p from the children, if it is one. */
void em_remove_child(em_group_fit *f, int64_t p);

/* The group of parameter p and those on which it depends, as bits; 0: p is in no group. */
uint32_t em_groups_under(const em_group_search *s, int64_t p);

/* The groups `users` and those that depend on one of them, as bits. */
uint32_t em_users(const em_group_search *s, uint32_t users);

/* The groups that depend on one of its children, directly or not, as bits. */
uint32_t em_group_users(const em_group_search *s, const em_group_fit *f);

/* s->factor = e^(-2 a x_k), x_k less its mean. */
void em_scale_precision(em_group_search *s, int64_t k, double a);

/* Whether parameter i, which is in no group, may join one that depends on the groups `used`. */
bool em_may_join(const em_group_search *s, const em_group_fit *group, uint32_t used, int64_t i);

/*
 * Fits to each child, and to other parameters that may join the group, the conditional law of a
 * normal parameter with normal data,
 *
 *     g_i = -A e^(-2 a x_k) (x_i - m - sum_j b_j x_j) - B x_i + C + sum_j d_j x_j.
 *
 * g are derivatives in s->panel [dim][n] of the density in the map's coordinates. For such a
 * parameter this is an identity, whatever the law of the draws is. So it also finds the members
 * whose data determine them better than their prior does at all draws, and it holds in the neck of
 * a funnel where no draw has been. Adds those members to the group. Children whose derivative the
 * prior's terms do not explain, and one about which most others are distributed, leave it. Writes a
 * row for each child to s->conditional, marks its locations in s->is_location, and returns the
 * degree. 0: most are not explained, a share of more than most_left of the first children is not,
 * or there is one child only.
 */
double em_fit_conditionals(em_group_search *s, em_group_fit *group, double most_left);

/*
 * Fits to the locations that are in no group and whose variance may depend on the log scale of
 * `group`, which has this degree, the opposite form,
 *
 *     x_i = (1 - w) m + w c - C (e^(2 a x_k) + q) g_i,    w = q / (e^(2 a x_k) + q),
 *
 * with the same derivatives. It holds for the mean of a hierarchy whose members are non-centred.
 * Sets `group` to those for which it is better than a constant variance, and writes their rows to
 * s->conditional.
 */
void em_fit_means(em_group_search *s, double degree, em_group_fit *group);

/* Writes the map of child c, at level 1. */
void em_write_child(em_group_search *s, const em_group_fit *f, int64_t c, em_noncentring_row *row);

/* ---- normality.c ---- */

/* Takes the draws of a search from its samples: s->x, s->mean, s->sd, and their derivatives to g
 * [dim][n]. */
void em_take_columns(em_group_search *s, double *g);

/* Transforms n samples, thinned evenly, to the coordinates of a map, and writes numbers first ..
 * first + count - 1 of each, of the draw [dim] and its derivatives [dim], to panel [count][n].
 * em_transform_draws: the draws of a search, or their derivatives, to s->panel. Errors:
 * EM_EMEMORY. */
em_status em_transform_samples(const em_noncentring *map, const em_samples *samples, int64_t n,
                               int64_t first, int64_t count, double *panel);
em_status em_transform_draws(em_group_search *s, bool derivatives);

/*
 * How far the draws in the map's coordinates are from normal: log det C_z + log det C_g. As
 * E (z - E z) g^T = -I whatever the law is, it is 0 for a normal one and larger for all others.
 * INFINITY if a covariance is not positive definite: for derivatives also where a scale varies by
 * 10^7, as in a funnel of which the map is not known. Errors: EM_EMEMORY.
 */
em_status em_find_departure(em_group_search *s, double *out);

/* ---- second_scale.c ---- */

/* Adds a second log scale to the rows of the children whose scale depends on one of a lower level.
 * s->panel has the draws z in the map's coordinates, g [dim][n] the derivatives there, and s->rho
 * the correlations of their logs with all parameters. `least`: the least gain in log likelihood of
 * a draw, where derivatives do not prove it. Returns whether there are any. */
bool em_add_second_scales(em_group_search *s, const double *g, double least,
                          em_noncentring_row *row);

/* ---- group_map.c ---- */

/* Adds a group. The row of a child is that of `conditional` if it has level 1 there, and otherwise
 * that of the fit. */
void em_add_group(em_group_search *s, const em_group_fit *f, const em_noncentring_row *conditional);

/* Sets the map to these rows. Errors: EM_EDATA if they are not a valid map. */
em_status em_set_map(em_group_search *s, const em_noncentring_row *row);

/* Adds the group to the map. Errors: EM_EDATA if the rows are not a valid map, for example because
 * a coefficient is not finite. */
em_status em_set_group(em_group_search *s, const em_group_fit *f,
                       const em_noncentring_row *conditional);

/* Adds the group, and computes the departure from normality with it. INFINITY also if the rows are
 * not a valid map. */
em_status em_measure_group(em_group_search *s, const em_group_fit *f,
                           const em_noncentring_row *conditional, double *now);

/* Removes the last group from the map. */
em_status em_drop_group(em_group_search *s);
