/* `emass summary`: the table of posterior means, quantiles and diagnostics of files of draws. */
#ifndef EM_APP_SUMMARY_SUMMARY_H
#define EM_APP_SUMMARY_SUMMARY_H

#include "emass/field.h"
#include "emass/status.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct em_summary_options {
    int64_t n_path;
    const char *const *path; /* [n_path] files of one model, whose chains are numbered through */
    const char *group;
    const char *const *pattern; /* globs for names of variables or elements, ends with NULL; NULL:
                                   all */
    em_reals percentile;        /* in [0, 100] */
    const char *sort;           /* a column, worst first; NULL: as in the file */
    bool common;                /* of files of unequal numbers of draws those that all have */
    bool squares;               /* with the ESS of squares about the mean */
    bool csv;
    bool all;     /* all rows on a terminal too; elsewhere they are shown anyway */
    int64_t rows; /* at most so many, wherever it is printed; 0: EM_ROWS_ON_TERMINAL on one */
} em_summary_options;

/* The options of `emass summary path...`. Local. */
em_summary_options em_summary_defaults(int64_t n_path, const char *const *path);

/*
 * Reads the files on all ranks, each a share of the elements, and prints on rank 0: the table, and
 * under it the verdict and a sentence for each problem found; with `csv` these go to standard
 * error, and all rows are printed.
 * Columns as the R package posterior and ArviZ define them (diagnostics/diag.h). Options are the
 * same on all ranks. Collective. Errors, agreed: EM_EUSAGE, EM_EDATA, EM_EIO, EM_EMEMORY.
 */
em_status em_summary_print(const em_summary_options *options, FILE *out);

/* The command, argv[0] being "summary"; prints to standard output. Collective. Errors, agreed:
 * those of em_summary_print. */
em_status em_summary_command(int argc, const char **argv);

#endif
