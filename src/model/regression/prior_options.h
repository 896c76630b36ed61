/*
 * The option model.prior of a regression:
 *     prior: {coefficients: {normal: [0, 10]}, intercept: {student_t: [3, 0, 5]},
 *             sigma: {exponential: 1}, autoscale: true}
 * or, of the coefficients, {age: {normal: [0, 1]}, sex[male]: {cauchy: [0, 2]}, default: {...}}.
 */
#pragma once

#include "emass/status.h"
#include "model/regression/glm.h"
#include "model/regression/prior_law.h"

typedef struct em_named_prior {
    char *name; /* of a column */
    em_prior prior;
} em_named_prior;

typedef struct em_prior_options {
    bool autoscale; /* scales given are in units of the data's, as those of the defaults are */
    em_prior coefficient, intercept, shape[EM_GLM_SHAPES]; /* of those that are not given the kind
                                                              is EM_PRIOR_DEFAULT */
    int64_t n_named, capacity;
    em_named_prior *named; /* [n_named] */
} em_prior_options;

/* Reads the JSON that a config is made into; NULL: nothing is given. `shape` [n_shape] are the
 * names of the positive parameters. Local. Errors: EM_ECONFIG, EM_EMEMORY; em_prior_options_release
 * all the same. */
em_status em_prior_options_read(const char *json, int n_shape, const char *const *shape,
                                em_prior_options *out);
void em_prior_options_release(em_prior_options *options);
