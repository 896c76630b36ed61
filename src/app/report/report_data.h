/* What a report shows, read from a file of draws: the numbers of a summary, and what the figures
 * need. All Local. */
#ifndef EM_APP_REPORT_REPORT_DATA_H
#define EM_APP_REPORT_REPORT_DATA_H

#include "app/summary/evidence.h"
#include "app/summary/loo.h"
#include "app/summary/summary_rows.h"
#include "app/summary/summary_table.h"
#include "emass/status.h"
#include "io/draws/reader.h"

/* The numbers of an element: those of the table, those that the advice reads, and the quartiles. */
enum {
    EM_AT_MEAN,
    EM_AT_MCSE,
    EM_AT_SD,
    EM_AT_Q5,
    EM_AT_Q50,
    EM_AT_Q95,
    EM_AT_ESS_BULK,
    EM_AT_ESS_TAIL,
    EM_AT_R_HAT,
    EM_AT_NESTED,              /* a column where there are superchains */
    EM_N_SHOWN,                /* so many are columns */
    EM_AT_JUDGED = EM_N_SHOWN, /* EM_N_JUDGED of them */
    EM_AT_Q25 = EM_AT_JUDGED + EM_N_JUDGED,
    EM_AT_Q75,
    EM_AT_GATHER, /* how far divergent draws stand from the others, 0: no farther than by chance */
    EM_N_NUMBER
};

enum { EM_REPORT_SHOWN = 6, EM_REPORT_PAIRS = 4, EM_REPORT_LOO = 4 };

typedef struct em_report_element {
    int64_t variable, index;
    const char *name;    /* borrowed */
    const double *value; /* [EM_N_NUMBER], borrowed */
} em_report_element;

typedef struct em_report_data {
    const char *path;
    em_reader *draws;
    em_reader *stats, *warmup; /* of sampling and of warmup; NULL: none */
    int64_t n_chain, n_draw;
    int64_t n_superchain; /* 0: there are none */
    int r_hat;            /* by which it is judged whether chains agree: R-hat, or nested R-hat */
    int64_t n_element;
    em_report_element *element; /* as they are stored */
    int64_t *worst;             /* [n_element] their numbers, those that mix worst first */
    /* The first of these, each once of those that are functions of another: what figures show. */
    int64_t n_shown, shown[EM_REPORT_SHOWN];
    /* Of pairs: the first n_gathering are where divergent draws gather, most first. */
    int64_t n_pair, n_gathering, pair[EM_REPORT_PAIRS];
    double *value;
    em_summary_table table; /* of all of them */
    em_judge *judge;
    const double *diverging; /* [n_chain][n_draw]; NULL: none did, or it is not known */
    int64_t n_diverging;
    em_reader *log_likelihood;
    int64_t n_loo; /* the first of the variables that observations have log likelihoods in */
    em_loo loo[EM_REPORT_LOO];
} em_report_data;

/* `pattern`: the elements wanted, to a NULL; NULL: all. Errors: EM_EDATA, EM_EIO, EM_EMEMORY;
 * EM_EUSAGE where a pattern matches nothing. */
em_status em_report_read(const char *path, const char *const *pattern, em_report_data *data);
void em_report_release(em_report_data *data);

/* All draws of an element, [n_chain][n_draw]; freed by em_release. */
em_status em_report_draws(const em_report_data *data, int64_t element, double **out);

/*
 * A statistic of all iterations, [n_chain][n_draw]; NULL where there is none of that name, alone or
 * after the name of a block and a dot. Freed by em_release.
 */
em_status em_report_statistic(em_reader *stats, const char *name, double **out);

/* The sentences of the summary, a line each; freed by em_release. */
em_status em_report_advice(const em_report_data *data, char **out);

/* The rows of the table that are shown, `most` at most; released by em_rows_release. */
em_status em_report_rows(const em_report_data *data, int64_t most, em_shown_rows *out);

#endif
