/* Private to the room: what is no feature is taken out of the columns of a table. */
#ifndef EM_DATA_DESIGN_BESIDE_H
#define EM_DATA_DESIGN_BESIDE_H

#include "data/table/table.h"

/* The response and the columns beside the features, as the options say. Collective. Errors, agreed:
 * EM_EDATA, naming the first line whose weight is no number from 0; EM_EMEMORY. */
em_status em_table_take_apart(em_table *table, const em_table_options *options);

#endif
