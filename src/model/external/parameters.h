/*
 * The parameters of a simulator, declared in a config with their priors:
 *     parameters: {alpha: {normal: [0, 10]}, k: {gamma: [2, 1], size: 3}, p: {uniform: [0, 1]},
 *                  x: {}, y: {lower: 0}}
 * The priors are those of regressions (model/regression/prior_law.h), and uniform. A parameter
 * without one has a flat prior, within its bounds.
 */
#pragma once

#include "model/regression/prior_law.h"

typedef struct em_input {
    char *name;
    int64_t size;   /* numbers of it */
    bool scalar;    /* one number, without an axis */
    bool uniform;   /* within its bounds */
    em_prior prior; /* EM_PRIOR_DEFAULT: none, or uniform */
    em_bounds bounds;
} em_input;

/* Reads the parameters from JSON. Local. Errors: EM_ECONFIG, EM_EMEMORY; em_inputs_release must
 * then be called, too. */
em_status em_inputs_read(const char *json, int64_t *n, em_input **out);

/* Makes n parameters of given sizes without priors, named theta, or theta_1, theta_2, ... Errors
 * likewise. */
em_status em_inputs_of_sizes(int64_t n, const int64_t *size, em_input **out);
void em_inputs_release(int64_t n, em_input **input);

/* Whether its prior is proper, so that it can be drawn from. Local. */
static inline bool em_input_is_proper(const em_input *input)
{
    return input->uniform || input->prior.kind != EM_PRIOR_DEFAULT;
}

/* The log prior of one number, up to a constant, and its derivative. Local. */
double em_input_log_prior(const em_input *input, double x, double *slope);
double em_input_log_constant(const em_input *input); /* that constant. Local. */

/* A draw of one number from a prior that is proper. Local. */
double em_input_draw(const em_input *input, em_variate *v);

/* Writes the prior as text: normal(0, 10). Local. */
void em_input_print(const em_input *input, char out[EM_PRIOR_BYTES]);
