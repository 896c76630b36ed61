/* Draws from the prior, beside those of the posterior. */
#ifndef EM_RUN_LOOP_PRIOR_DRAWS_H
#define EM_RUN_LOOP_PRIOR_DRAWS_H

#include "run/config/config.h"

/* Local. Errors: EM_ECONFIG, the same on all ranks: the config wants them, the model has none. */
em_status em_check_prior_draws_suit_model(const em_config *config, const em_model *model);

#endif
