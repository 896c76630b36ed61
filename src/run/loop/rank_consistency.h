/* Checks that data and positions are equal on ranks that must have the same. */
#pragma once

#include "emass/model.h"

/* Checks that all ranks have read the same data; called after the model is created. Collective.
 * Errors, agreed: EM_EDATA, naming the ranks. */
em_status em_check_ranks_have_one_data(const em_model *model);

/* Checks that the position of every chain has the same bits on all ranks of its group; does nothing
 * with one shard. Collective. Errors, agreed: EM_ENUMERIC, naming the chain and the ranks. */
struct em_engine;
em_status em_check_ranks_agree(const struct em_engine *engine);
