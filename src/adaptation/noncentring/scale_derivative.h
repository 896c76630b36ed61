/*
 * Private to the folder: groups that the derivative of the log density by their log scale proves.
 * All Local.
 */
#pragma once

#include "adaptation/noncentring/noncentring_fit.h"

/* Members x_i with the prior N(x_parent, e^(2 u) / precision), u = degree x_scale less its mean.
 * parent -1: N(0, ..). If is_bounded, the scale is between 0 and an upper bound, and x_scale is its
 * logit: e^(2 u) is 1 / (1 + e^-x_scale)^2. */
typedef struct em_proved_group {
    int64_t scale, parent;
    double degree, precision;
    bool is_bounded;
} em_proved_group;

typedef struct em_proved_groups {
    int n;
    em_proved_group group[EM_MOST_GROUPS];
    int *of;         /* [dim] the group of a parameter; -1: none */
    double *inverse; /* [dim][dim] of the lower factor of the Gram matrix of all parameters; set if
                        there are groups */
} em_proved_groups;

/* Finds groups, and lists those that depend on members of others before these. The caller allocates
 * the arrays of `out`. Errors: EM_EMEMORY; EM_NONFINITE if the Gram matrix is singular. */
em_status em_prove_groups(em_group_search *s, em_proved_groups *out);

/* Sets the children to the members of group g that may join it. */
void em_list_proved(const em_group_search *s, const em_proved_groups *proved, int g,
                    em_group_fit *out);

/*
 * Writes the rows of the children of group g, and marks the location. The derivatives by the
 * children, in s->panel [dim][n], without those of their prior, are due to data. Their regression
 * on all parameters has the precision of the data as a coefficient.
 */
void em_fit_proved(em_group_search *s, const em_proved_groups *proved, int g,
                   const em_group_fit *group, bool *is_location, em_noncentring_row *row);
