/* Private to the files stan*.c: the struct of a Stan program as a model. */
#pragma once

#include "emass/model.h"
#include "model/stan/stan_data.h"
#include "model/stan/stan_declared.h"
#include "model/stan/stan_library.h"
#include "model/stan/stan_variables.h"

typedef struct em_stan_options {
    char *program, *library, *data, *init;
    em_texts observed_data, log_likelihood, posterior_predictive, predictions;
} em_stan_options;

typedef struct em_stan {
    em_model model;
    const char *name; /* name of the program or the library, for messages */
    em_stan_library library;
    unsigned seed; /* of random numbers in transformed data */
    em_stan_model *program;
    char *simpler; /* translated program without generated quantities, from which a second model is
                      constructed when needed; NULL: not needed, or constructed */
    em_stan_model *without_generated;
    em_stan_data *data;         /* the data; the text is freed after the model is constructed */
    em_datum *datum;            /* [model.n_datum] what of it is stored */
    em_stan_declared *declared; /* NULL: a library, whose program is not known */
    char *init;                 /* JSON; NULL: none given */
    const char *init_name;      /* for messages */
    em_stan_variables *variables;
    char *name_text; /* names of the unconstrained parameters, one after the other */
    const char **unconstrained_name;
    em_parameters *block; /* [model.n_block] one for each parameter of the program */
    char *block_names;
    int64_t n_parameter, n_transformed; /* numbers of a draw; the rest is generated */
    bool draws_random;                  /* a generated quantity may draw random numbers */
    em_stan_rng *rng; /* generator that the library requires even if no quantity is random; NULL:
                         not yet created */
    double *gradient; /* [dim] of one chain */
    double *flat;     /* [variables->n_element] a draw in the order of the library */
} em_stan;

/* Finds the library, reads program and data, and constructs the model. Collective. Errors, agreed:
 * EM_ECONFIG, EM_EDATA, EM_EUSAGE, EM_EMEMORY; the model is then destroyed by its caller. */
em_status em_stan_set_up(em_stan *self, const em_stan_options *options,
                         const em_model_context *context);
