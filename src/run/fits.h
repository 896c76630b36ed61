/* Whether a sampler and a model go together, which neither can say alone. */
#ifndef EM_RUN_FITS_H
#define EM_RUN_FITS_H

#include "run/config.h"

/* Local. Errors: EM_ECONFIG, the same on all ranks: what the sampler needs and the model lacks. */
em_status em_sampler_fits(const em_config *config, const em_model *model);

/* The parameters of the model that sampler `i` of the config moves; NULL: all. Local. */
const em_parameters *em_sampler_parameters(const em_config *config, const em_model *model, int i);

#endif
