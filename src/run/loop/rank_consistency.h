/* Compares what must be the same on several ranks. */
#pragma once

#include "emass/model.h"

/* That all ranks have read the same data, once the model is made. Collective. Errors, agreed:
 * EM_EDATA, naming the ranks. */
em_status em_check_ranks_have_one_data(const em_model *model);

/* That every chain stands at the same position on all ranks of its group, bit for bit; nothing to
 * do for one shard. Collective. Errors, agreed: EM_ENUMERIC, naming the chain and the ranks. */
struct em_engine;
em_status em_check_ranks_agree(const struct em_engine *engine);
