/* Draws from the prior, beside those of the posterior. */
#pragma once

#include "run/config/config.h"

/* Local. Errors: EM_ECONFIG, the same on all ranks, where the config asks for draws from the prior
 * and the model cannot make them. */
em_status em_check_prior_draws_suit_model(const em_config *config, const em_model *model);
