/* Checks that a sampler and a model can be used together. */
#pragma once

#include "run/config/config.h"

/* Checks that the model has all that the samplers of the config need. Local. Errors, the same on
 * all ranks: EM_ECONFIG, naming what is missing. */
em_status em_check_samplers_suit_model(const em_config *config, const em_model *model);

/* Checks that a run with a section `temper` can be tempered. Local. Errors, the same on all ranks:
 * EM_ECONFIG, naming what is in the way. */
em_status em_check_tempering_suits_model(const em_config *config, const em_model *model);

/* Whether a section `temper` could be added to the config: the model has an exact density, by which
 * all samplers move. Local. */
bool em_can_be_tempered(const em_config *config, const em_model *model);

/* The parameters of the model that sampler `i` of the config moves; NULL: all. Local. */
const em_parameters *em_sampler_parameters(const em_config *config, const em_model *model, int i);

/* The sizes of the blocks of a mass: those that the config lists or, if it lists none, those of the
 * model's blocks. `own` is freed by em_release. Local. Errors: EM_EMEMORY. */
em_status em_choose_blocks(const em_config *config, const em_model *model, em_mass_options *mass,
                           double **own);
