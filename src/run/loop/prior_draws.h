/* Draws from the prior, stored beside those of the posterior. */
#pragma once

#include "run/config/config.h"

/* Checks that the model can draw from its prior if the config asks for it. Local. Errors, the same
 * on all ranks: EM_ECONFIG if it cannot. */
em_status em_check_prior_draws_suit_model(const em_config *config, const em_model *model);
