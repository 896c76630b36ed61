/* Columns that are linear combinations of others, whose coefficients the data cannot tell apart. */
#pragma once

#include "data/table/table.h"

/* Warns of the columns of a dense table that are, to rounding, linear combinations of the columns
 * before them and, with `intercept`, a constant. mean and sd [n_column] are those of
 * em_design_scaling. Warns too of a response that is such a combination, unless response_sd is NaN.
 * Constant columns, more than 256 columns, as many columns as rows, and tables
 * for which it would take long are passed over. Collective. Errors, agreed: EM_EMEMORY. */
em_status em_collinear_say(const em_table *table, bool intercept, const double *mean,
                           const double *sd, double response_mean, double response_sd);
