#include "model/satellite.h"
#include "sampler/kernel/sampler.h"

#include <stddef.h>

extern const em_sampler_ops em_hmc, em_nuts, em_walnuts, em_rwm, em_slice;
extern const em_sampler_ops em_sgd, em_rmsprop, em_adam, em_sgld, em_psgld, em_sgrld,
    em_sghmc_naive, em_sghmc, em_sgrhmc, em_recipe_constant;
extern const em_sampler_ops em_sgnht, em_msgnht, em_rhmc, em_nphmc, em_sgnphmc, em_sgrnphmc,
    em_gibbs;

const em_sampler_ops *const em_samplers[] = {
    &em_hmc,      &em_nuts,        &em_walnuts, &em_rwm,    &em_slice,
    &em_sgd,      &em_rmsprop,     &em_adam,    &em_sgld,   &em_psgld,
    &em_sgrld,    &em_sghmc_naive, &em_sghmc,   &em_sgrhmc, &em_recipe_constant,
    &em_sgnht,    &em_msgnht,      &em_rhmc,    &em_nphmc,  &em_sgnphmc,
    &em_sgrnphmc, &em_gibbs,       NULL};

const em_sampler_ops *em_sampler_at(int i)
{
    const int own = (int)(sizeof em_samplers / sizeof *em_samplers) - 1;

    return i < own ? em_samplers[i] : em_satellite_sampler(i - own);
}

const char *const em_default_sampler = "hmc";

const char *const em_stat_name[EM_STAT_COUNT] = {
    [EM_STAT_LP] = "lp",
    [EM_STAT_ACCEPTANCE_RATE] = "acceptance_rate",
    [EM_STAT_STEP_SIZE] = "step_size",
    [EM_STAT_TREE_DEPTH] = "tree_depth",
    [EM_STAT_N_STEPS] = "n_steps",
    [EM_STAT_DIVERGING] = "diverging",
    [EM_STAT_REACHED_MAX_TREEDEPTH] = "reached_max_treedepth",
    [EM_STAT_ENERGY] = "energy",
    [EM_STAT_ENERGY_ERROR] = "energy_error",
    [EM_STAT_MAX_ENERGY_ERROR] = "max_energy_error",
    [EM_STAT_INT_TIME] = "int_time",
    [EM_STAT_THERMOSTAT] = "thermostat",
    [EM_STAT_VISIT] = "visit",
};
