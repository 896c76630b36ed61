/* Private to the room: takes columns that are no features out of a table. */
#ifndef EM_DATA_DESIGN_BESIDE_H
#define EM_DATA_DESIGN_BESIDE_H

#include "data/table/table.h"

/* Takes out the response and the columns beside the features, as the options say. Collective.
 * Errors, agreed: EM_EDATA, naming the first line with a negative weight; EM_EMEMORY. */
em_status em_table_set_aside(em_table *table, const em_table_options *options);

#endif
