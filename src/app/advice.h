/* What the numbers of a summary say about a run, and what to do about it. */
#ifndef EM_APP_ADVICE_H
#define EM_APP_ADVICE_H

#include "app/table.h"
#include "emass/status.h"
#include "io/reader.h"

/* Where the advice finds its numbers in the rows of the table; the last ones are not printed: how
 * many draws are not finite, how many chains are apart from the others, the farthest, how far. */
typedef struct em_advice_columns {
    int64_t ess_bulk, ess_tail, r_hat;
    int64_t n_nonfinite, n_apart, apart, distance;
} em_advice_columns;

/*
 * How many superchains the files say there are, one after the other, if their chains can be: of
 * several files, of as many chains in each. 0: none. Local.
 */
int64_t em_superchains_of(em_reader *reader);

/* Fails where the group has no draws, saying how a run that was stopped in warmup goes on. Local.
 * Errors: EM_EDATA. */
em_status em_expect_draws(em_reader *reader, const char *group);

/*
 * Prints a sentence for each that is true: file incomplete, chains rescued in warmup, or moved to
 * another mode, draws not finite, divergences, saturated tree depth, chains that stood still,
 * E-BFMI < 0.3 (from the group of statistics `stats` of its files; NULL: none), R-hat > 1.01,
 * chains apart from the others, ESS < 100 per chain (or the limits of the verdict in the file,
 * where there is one), diagnostics undefined. Local. Errors: EM_EDATA, EM_EIO, EM_EMEMORY.
 */
em_status em_advise(em_reader *reader, const char *stats, const em_table *table,
                    const em_advice_columns *columns, FILE *out);

#endif
