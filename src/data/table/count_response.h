/* Tables whose response is a count. */
#ifndef EM_DATA_TABLE_COUNT_RESPONSE_H
#define EM_DATA_TABLE_COUNT_RESPONSE_H

#include "data/table/table.h"

/* Counts from here on are no longer told apart by a double. */
#define EM_MOST_COUNT 0x1p53

/* Checks that the response is a count everywhere, and the exposure, where there is one, positive.
 * Collective. Errors, agreed: EM_EDATA, naming the first line where it is not. */
em_status em_table_check_counts(const em_table *table);

#endif
