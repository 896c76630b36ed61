/* Reads the data of a Stan program that the config takes from columns of tables. */
#pragma once

#include "emass/status.h"

/*
 * Replaces the names of columns in JSON: "table.csv:age" by the list of its numbers, a list of such
 * names by a matrix with these columns, and "rows" by the number of rows of the tables. Other
 * strings are not changed. Collective. Errors: EM_EDATA, naming file and line; EM_ECONFIG for
 * "rows" if tables differ in their number of rows or there are none; EM_EMEMORY. Freed by
 * em_release.
 */
em_status em_stan_columns_fill_in(const char *json, char **out);
