/* Rows of numbers, as emass/data.h shows them to models outside the program, read with options. */
#pragma once

#include "data/table/table_options.h"
#include "emass/data.h"

/* em_data_read by these options, of which it needs the file and how it is read. Collective. Errors:
 * the same. */
em_status em_data_read_by(const em_table_options *options, const em_model_context *context,
                          em_data **out);
