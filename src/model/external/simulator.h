/*
 * Private to this folder: common parts of the models `process` and `umbridge`. The log density of a
 * simulator comes from an external program; its parameters, their priors and the data are in the
 * config. A failed evaluation is a rejection, which is counted and listed
 * (model/external/failures.h), and never ends the run.
 */
#pragma once

#include "emass/capabilities.h"
#include "emass/model.h"
#include "model/external/evaluation_log.h"
#include "model/external/parameters.h"

/* The options that both models have; first member of the options of each. */
typedef struct em_simulator_options {
    char *parameters; /* JSON; NULL: the program declares them */
    em_reals data, sd;
    double evaluation_timeout; /* seconds; NaN: none */
    char *evaluation_log;      /* path; NULL: none */
} em_simulator_options;

#define EM_SIMULATOR_FIELDS                                                                        \
    EM_REALS(em_simulator_options, data, .fallback = "",                                           \
             .doc = "what was observed: the program gives one output for each number, the mean "   \
                    "of its normal distribution; none: its one output is the log density"),        \
        EM_REALS(                                                                                  \
            em_simulator_options, sd, .minimum = 1e-300, .maximum = 1e300, .fallback = "",         \
            .doc =                                                                                 \
                "with data: standard deviations of these normal distributions, or one for all"),   \
        EM_DURATION(em_simulator_options, evaluation_timeout, .minimum = 1e-3, .maximum = 1e9,     \
                    .fallback = "none", .word = "none",                                            \
                    .doc = "an evaluation that takes longer has failed", .may_change = true),      \
        EM_PATH(em_simulator_options, evaluation_log, .fallback = "",                              \
                .doc = "file for a line of JSON for each evaluation; those that it has already "   \
                       "are not repeated",                                                         \
                .may_change = true)
#define EM_SIMULATOR_PARAMETERS_DOC                                                                \
    "{alpha: {normal: [0, 10]}, k: {gamma: [2, 1], size: 3}, p: {uniform: [0, 1]}, x: {}}"

typedef struct em_simulator em_simulator;

/* Evaluates at x, the parameters on their own scale: writes output [n_output] and, if not NULL,
 * gradient [n], the gradient of the log density. em_simulator_likelihood gives the derivatives by
 * the outputs that this needs. Local. Errors: EM_NONFINITE, with a message, if the evaluation
 * failed. */
typedef em_status (*em_simulator_evaluate)(em_simulator *self, int64_t chain, const double *x,
                                           double *output, double *gradient);

struct em_simulator {
    em_model model;
    em_model_ops ops; /* table of the model; no prior draws if a parameter has no prior */
    const em_simulator_options *options;
    em_simulator_evaluate evaluate;
    em_input *input; /* [n_input] */
    int64_t n_input, n, n_output;
    em_variable *variable; /* [n_input] */
    em_datum datum;
    em_evaluation_log *log;            /* NULL: none */
    double *output, *gradient, *slope; /* [n_output], [n], [n_output] */
};

/* Reads the parameters, if the config has them. `self` is zeroed. Local. Errors: EM_ECONFIG,
 * EM_EMEMORY; must be destroyed even then. */
em_status em_simulator_begin(em_simulator *self, const void *options,
                             const em_model_context *context);

/* Completes the creation once the number of outputs is known. Local. Errors as above. */
em_status em_simulator_end(em_simulator *self, const em_model_context *context, int64_t n_output);

/* Releases the members, but not `self`. */
void em_simulator_release(em_simulator *self);

/* The log likelihood by outputs; slope [n_output] (may be NULL): its derivatives. Local. */
double em_simulator_likelihood(const em_simulator *self, const double *output, double *slope);

/* Functions, and the rows with them for the tables of both models. Chains start at draws from the
 * priors; numbers without a prior keep their random start. */
em_status em_simulator_add_prior(em_model *model, const em_query *query);
em_status em_simulator_add_likelihood(em_model *model, const em_query *query);
em_status em_simulator_draw_prior(em_model *model, const em_draw *draw, double *x);
void em_simulator_describe(const em_model *model, FILE *out);
extern const em_model_prior em_simulator_prior;
#define EM_SIMULATOR                                                                               \
    .add_prior = em_simulator_add_prior, .add_likelihood = em_simulator_add_likelihood,            \
    .sampler = "slice", .start = em_simulator_draw_prior, .describe = em_simulator_describe,       \
    .prior = &em_simulator_prior
