/* Reads a table for a model outside the program (emass/data.h) with options of its format. */
#pragma once

#include "data/table/table_options.h"
#include "emass/data.h"

/* Does what em_data_read does, for options->data. Of the other options those of the format are
 * used. Collective. Errors: those of em_data_read. */
em_status em_data_read_by(const em_table_options *options, const em_model_context *context,
                          em_data **out);
