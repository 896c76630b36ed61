/* The config that `emass check` examines, and the functions that print its sections. */
#pragma once

#include "posterior/posterior.h"
#include "run/config/config.h"
#include "run/config/run_plan.h"

/* A config with its model and data, for one chain. */
typedef struct em_checked {
    const em_config *config;
    bool brief; /* the config is not printed */
    em_grid *grid;
    em_shards shards;
    em_model *model;
    double model_bytes; /* allocated while the model was created */
    double peak_bytes;  /* the largest resident memory during that time */
    em_posterior *posterior;
} em_checked;

/* Creates the model for n_chain chains. Collective. Errors: those of em_config_create_model. */
em_status em_checked_model(const em_checked *checked, int64_t n_chain, em_model **out);

/* Prints how the run would go: chains, shards, iterations, memory. Collective. Errors: agreed. */
em_status em_check_plan(const em_checked *checked, const em_plan *plan);

/* Compares the gradient with central differences at positions where chains may start, and times it:
 * of all observations or, if no sampler needs these, of a minibatch of the run's size. Collective.
 * Errors, agreed: EM_EMODEL if the gradient is wrong or the density is defined at none of the
 * positions; EM_EMEMORY. */
em_status em_check_gradient(const em_checked *checked);
