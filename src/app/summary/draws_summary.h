/* `emass summary`: the table of posterior means, quantiles and diagnostics of files of draws. */
#pragma once

#include "app/summary/evidence.h"
#include "app/summary/summary_table.h"
#include "emass/field.h"
#include "emass/status.h"
#include "io/draws/reader.h"

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
    bool common;  /* if files have unequal numbers of draws: only the draws that all have */
    bool squares; /* with the ESS of squares about the mean */
    bool csv;
    bool all;     /* all rows, also on a terminal; other outputs always get all */
    bool log;     /* where the output is no terminal: EM_ROWS_IN_LOG rows at most, and not all */
    int64_t rows; /* the most rows on any output; 0: EM_ROWS_ON_TERMINAL on a terminal */
    em_diagnoses *known; /* of the run that made the file; NULL: none. Borrowed */
} em_summary_options;

/* The numbers of a summary. Rank 0 has the table and the conclusion of the judge. The rows are the
 * elements, in the order of the file unless `sort` is given. */
typedef struct em_summary {
    const em_summary_options *options; /* borrowed */
    em_reader *reader;
    int64_t n_element;
    em_element *element;
    int64_t n_watched;    /* of the variables, the first that convergence checks watch */
    int64_t first, end;   /* the elements that this rank computes */
    double *value;        /* [end - first][n_value]; on rank 0 [n_element][n_value] */
    int64_t n_value;      /* the columns of the table, then EM_N_JUDGED numbers for the advice */
    int64_t n_superchain; /* 0: there are none */
    double *square;       /* [n_chain][n_draw] */
    em_summary_table table;
    int64_t
        place[EM_N_SUMMARY_COLUMN]; /* the place of each column in a row; -1: not in the table */
    em_judge *judge;
    int64_t sort; /* the column to sort by; -1: none */
} em_summary;

/* Reads files on all ranks, a part of the elements on each. Collective. Errors, agreed: EM_EUSAGE,
 * EM_EDATA, EM_EIO, EM_EMEMORY; call em_summary_release even then. */
em_status em_summary_read(const em_summary_options *options, em_summary *out);
void em_summary_release(em_summary *summary);

/* The options of `emass summary path...`. Local. */
em_summary_options em_summary_defaults(int64_t n_path, const char *const *path);

/*
 * Reads the files and prints on rank 0: the table, then the verdict and a sentence for each problem
 * found. With `csv` it prints all rows, and the verdict and the sentences go to standard error.
 * Columns are defined as in the R package posterior and in ArviZ (diagnostics/diag.h). Options are
 * the same on all ranks. Collective. Errors, agreed: EM_EUSAGE, EM_EDATA, EM_EIO, EM_EMEMORY.
 */
em_status em_summary_print(const em_summary_options *options, FILE *out);
