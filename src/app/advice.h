/* What the numbers of a summary say about a run, and what to do about it. */
#ifndef EM_APP_ADVICE_H
#define EM_APP_ADVICE_H

#include "app/table.h"
#include "emass/status.h"
#include "io/reader.h"

/* Where the advice finds its numbers in the table. */
typedef struct em_advice_columns {
    int64_t ess_bulk, ess_tail, r_hat, n_nonfinite;
} em_advice_columns;

/*
 * Prints a sentence for each that is true: file incomplete, draws not finite, divergences,
 * saturated tree depth, E-BFMI < 0.3 (from the group of statistics `stats` of the file `path`;
 * NULL: none), R-hat > 1.01, ESS < 100 per chain (or the limits of the verdict in the file, where
 * there is one), diagnostics undefined. Local. Errors: EM_EDATA, EM_EIO, EM_EMEMORY.
 */
em_status em_advise(em_reader *reader, const char *path, const char *stats, const em_table *table,
                    const em_advice_columns *columns, FILE *out);

#endif
