#include "model/satellite.h"
#include "sampler/kernel/sampler.h"

#include <stddef.h>

/* The kernels, in the order of `emass list`. The table of a kernel is em_NAME. */
#define SAMPLERS(each)                                                                             \
    each(hmc) each(nuts) each(walnuts) each(rwm) each(slice) each(sgd) each(rmsprop) each(adam)    \
        each(sgld) each(psgld) each(sgrld) each(sghmc_naive) each(sghmc) each(sgrhmc)              \
            each(recipe_constant) each(sgnht) each(msgnht) each(rhmc) each(nphmc) each(sgnphmc)    \
                each(sgrnphmc) each(gibbs)

#define DECLARED(name) extern const em_sampler_ops em_##name;
#define SAMPLER(name)  &em_##name,

SAMPLERS(DECLARED)

const em_sampler_ops *const em_samplers[] = {SAMPLERS(SAMPLER) NULL};

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
