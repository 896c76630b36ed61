/* Reads the data of a Stan program that the config takes from columns of tables. */
#pragma once

#include "emass/status.h"

/*
 * Replaces in JSON what names columns: "table.csv:age" by the list of its numbers, a list of such
 * by a matrix of as many columns, "rows" by the number of rows of the tables; other text stays.
 * Collective. Errors: EM_EDATA, naming file and line; EM_ECONFIG, "rows" of tables that differ in
 * it, or of none; EM_EMEMORY. Freed by em_release.
 */
em_status em_stan_columns_fill_in(const char *json, char **out);
