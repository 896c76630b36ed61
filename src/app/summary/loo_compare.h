/* Models compared by what leave-one-out makes of the same observations. All Local. */
#ifndef EM_APP_SUMMARY_LOO_COMPARE_H
#define EM_APP_SUMMARY_LOO_COMPARE_H

#include "app/summary/loo.h"

/*
 * Fails where the observations of two files are not the same: their number, what is observed
 * (arrays of one name in the groups observed_data, else in constant_data, of as many values), and
 * where neither has such an array, the hash of their data. Errors: EM_EDATA, EM_EIO, EM_EMEMORY.
 */
em_status em_loo_check_data(const char *first_path, const em_loo *first, const char *other_path,
                            const em_loo *other);

/*
 * Prints a table of `n` files, the best first: elpd_loo, its standard error, p_loo, and by how much
 * elpd_loo is less than that of the best, with the standard error of the difference, which is of
 * the differences of the observations: as ArviZ's compare has them, but that differences are
 * negative, as those of R's loo_compare. Errors: EM_EMEMORY.
 */
em_status em_loo_compare(int64_t n, const char *const *path, const em_loo_files *files, bool csv);

#endif
