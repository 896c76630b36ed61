/* Private to this folder: model.levels, the order of the levels of factors. */
#pragma once

#include "data/table/table.h"

#include <jansson.h>

/* The option, {column: [level, ...]}; NULL: it is absent. Local. Errors: EM_ECONFIG, EM_EMEMORY.
 * Freed by json_decref. */
em_status em_level_order_load(const em_table_options *options, json_t **out);

/* Puts the levels of factor j into their order, if the option, as em_level_order_load has it, has
 * one. A truth value stands for each way to write it. Collective. Errors, agreed: EM_ECONFIG for a
 * level that is named twice; EM_EDATA, naming the first line with a level that is not in the
 * option. */
em_status em_level_order_apply(const json_t *levels, const em_table *table, int64_t j, int64_t n,
                               double *level);
