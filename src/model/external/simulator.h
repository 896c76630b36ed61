/*
 * Private to the room: what the models `process` and `umbridge` have in common. The log density of
 * a simulator comes from a program outside of emass; its parameters, their priors and the data are
 * in the config. An evaluation may fail. It is then a rejection, which is counted and listed
 * (model/external/failures.h), and never the end of the run.
 */
#pragma once

#include "emass/capabilities.h"
#include "emass/model.h"
#include "model/external/evaluation_log.h"
#include "model/external/parameters.h"

/* The options that both models have; first member of the options of each. */
typedef struct em_simulator_options {
    char *parameters; /* JSON; NULL: by the program */
    em_reals data, sd;
    double evaluation_timeout; /* seconds; NaN: none */
    char *evaluation_log;      /* path; NULL: none */
} em_simulator_options;

#define EM_SIMULATOR_FIELDS                                                                        \
    EM_REALS(em_simulator_options, data, .fallback = "",                                           \
             .doc = "what was observed: the program gives as many outputs, which are the means of" \
                    " normal laws; none: its one output is the log density"),                      \
        EM_REALS(em_simulator_options, sd, .minimum = 1e-300, .maximum = 1e300, .fallback = "",    \
                 .doc = "with data: their standard deviations, or one of all"),                    \
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

/* An evaluation at x, the parameters on their own scale: outputs [n_output] and, where `gradient`
 * is wanted, the gradient of the log density [n], for which em_simulator_likelihood gives the
 * slopes by the outputs. Local. EM_NONFINITE, with a message: it failed. */
typedef em_status (*em_simulator_evaluate)(em_simulator *self, int64_t chain, const double *x,
                                           double *output, double *gradient);

struct em_simulator {
    em_model model;
    em_model_ops ops; /* of the model, without prior draws where a parameter has no prior */
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
 * EM_EMEMORY; to be destroyed all the same. */
em_status em_simulator_begin(em_simulator *self, const void *options,
                             const em_model_context *context);

/* Sets the rest up, when the number of outputs is known. Local. Errors as above. */
em_status em_simulator_end(em_simulator *self, const em_model_context *context, int64_t n_output);

/* Releases what is inside, not `self`. */
void em_simulator_release(em_simulator *self);

/* The log likelihood by outputs; slope [n_output] (may be NULL): its derivatives. Local. */
double em_simulator_likelihood(const em_simulator *self, const double *output, double *slope);

/* For the tables of both. */
em_status em_simulator_add_prior(em_model *model, const em_query *query);
em_status em_simulator_add_likelihood(em_model *model, const em_query *query);
em_status em_simulator_start(em_model *model, const em_draw *draw, double *x);
void em_simulator_describe(const em_model *model, FILE *out);
extern const em_model_prior em_simulator_prior;
