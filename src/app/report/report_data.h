/* The contents of a report, read from a file of draws: the numbers of the summary, the statistics
 * of the sampler, leave-one-out cross-validation, and the elements that the figures show. */
#pragma once

#include "app/summary/draws_summary.h"
#include "app/summary/loo.h"

enum { EM_REPORT_SHOWN = 6, EM_REPORT_PAIRS = 4, EM_REPORT_LOO = 4 };

/* The columns of its summary that are percentiles; report_page.c asks for these five. */
enum { EM_AT_Q5 = EM_COLUMN_PERCENTILES, EM_AT_Q25, EM_AT_Q50, EM_AT_Q75, EM_AT_Q95 };

typedef struct em_report_data {
    const char *path;
    em_summary summary;        /* its rows are the elements, as they are stored */
    em_reader *stats, *warmup; /* statistics of sampling and of warmup; NULL: none */
    int64_t n_chain, n_draw;
    /* Elements to show, in ascending order of mixing. Of elements that are functions of one another
     * only one is shown. */
    int64_t n_shown, shown[EM_REPORT_SHOWN];
    /* Pairs of elements to show. The first n_gathering are those in which divergent draws cluster
     * most. */
    int64_t n_pair, n_gathering, pair[EM_REPORT_PAIRS];
    em_reader *log_likelihood;
    int64_t n_loo; /* entries of `loo`: the first variables of log_likelihood */
    em_loo loo[EM_REPORT_LOO];
} em_report_data;

/* Reads all members but the summary, which the caller has read. Rank 0 alone calls it. Local.
 * Errors: EM_EDATA, EM_EIO, EM_EMEMORY; call em_report_release even then. */
em_status em_report_read(em_report_data *data);
void em_report_release(em_report_data *data); /* The summary too. Local. */

/* The number of an element in a column. Local. */
static inline double em_report_value(const em_report_data *data, int64_t element, int64_t column)
{
    return data->summary.table.row[element].value[column];
}

/* All draws of an element, [n_chain][n_draw]; freed by em_release. Local. */
em_status em_report_draws(const em_report_data *data, int64_t element, double **out);

/* A statistic of all iterations, [n_chain][n_draw]. The file may store it as `name`, or as a
 * block's name, a dot and `name`. NULL: it has neither. Freed by em_release. Local. */
em_status em_report_statistic(em_reader *stats, const char *name, double **out);
