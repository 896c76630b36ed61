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
    bool autoscale; /* scales that the user gives are multiplied by the same factors as default
                       scales */
    em_prior coefficient, intercept, shape[EM_GLM_SHAPES]; /* kind EM_PRIOR_DEFAULT: not given */
    int64_t n_named, capacity;
    em_named_prior *named; /* [n_named] */
} em_prior_options;

/* Reads the option as JSON; NULL: not given. `shape` [n_shape] are the names of the positive
 * parameters. Local. Errors: EM_ECONFIG, EM_EMEMORY; call em_prior_options_release even then. */
em_status em_prior_options_read(const char *json, int n_shape, const char *const *shape,
                                em_prior_options *out);
void em_prior_options_release(em_prior_options *options);
