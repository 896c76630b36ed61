/* Checks that a sampler and a model can be used together. */
#pragma once

#include "run/config/config.h"

/* Local. Errors: EM_ECONFIG, the same on all ranks: what the sampler needs and the model lacks. */
em_status em_check_samplers_suit_model(const em_config *config, const em_model *model);

/* The parameters of the model that sampler `i` of the config moves; NULL: all. Local. */
const em_parameters *em_sampler_parameters(const em_config *config, const em_model *model, int i);

/* The sizes of the blocks of a mass: those that the config lists or, where it lists none, those of
 * the model's own blocks. `own` is freed by em_release. Local. Errors: EM_EMEMORY. */
em_status em_choose_blocks(const em_config *config, const em_model *model, em_mass_options *mass,
                           double **own);
