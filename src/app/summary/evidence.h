/*
 * Collects the evidence for a verdict (run/convergence/verdict.h) from the rows of a summary and
 * from the statistics of the sampler. All Local but em_judge_combine.
 */
#pragma once

#include "app/summary/summary_table.h"
#include "diagnostics/diag.h"
#include "emass/status.h"
#include "io/draws/reader.h"
#include "run/convergence/verdict.h"

/* What is found of each row, beside what is printed. */
enum {
    EM_JUDGED_NONFINITE,  /* draws that are no finite number */
    EM_JUDGED_CONSTANT,   /* 1: all draws are equal */
    EM_JUDGED_SEPARATION, /* of clusters of chains, in standard deviations; 0: there is one */
    EM_JUDGED_GROWS,      /* 1: enormous, or growing, and its chains do not agree */
    EM_JUDGED_CLUSTERING, /* how far divergent draws stand from the others
                             (diagnostics/divergence_clustering.h) */
    EM_JUDGED_BY_CHANCE,  /* and how far they would by chance */
    EM_JUDGED_LOW,        /* where they lie: from */
    EM_JUDGED_HIGH,       /* to */
    EM_JUDGED_SHARE,      /* and the share of all draws that lie there */
    EM_N_JUDGED
};

/* Where the numbers are in the rows of a table; what is judged is not printed. */
typedef struct em_judge_columns {
    int64_t ess_bulk, ess_tail, r_hat;
    int64_t judged; /* the first of EM_N_JUDGED */
} em_judge_columns;

typedef struct em_judge {
    em_reader *reader; /* borrowed */
    const char *group; /* of the draws; borrowed */
    em_reader *stats;  /* of the sampler, for these draws; NULL: none */
    int64_t n_chain, n_draw;
    bool is_posterior;   /* whether there can be a verdict */
    bool accepts;        /* moves are accepted or rejected */
    bool builds_trees;   /* the statistics have a tree depth */
    double *diverging;   /* [n_chain][n_draw]; NULL: none did, or it is not known */
    double *log_density; /* [n_chain][n_draw]; NULL: not known */
    em_visits *visits;   /* of tempered draws; else NULL */
    em_mode_finder *finder;
    em_evidence evidence;   /* by em_judge_conclude */
    int64_t n_low_energy;   /* chains whose E-BFMI is below its limit */
    int64_t redrawn_starts; /* of the files */
    int64_t reinitialised_chains;
} em_judge;

/*
 * How many superchains the files say there are, one after the other, if their chains can be: of
 * several files, of as many chains in each. 0: none.
 */
int64_t em_superchains_of(em_reader *reader);

/* The file that is not complete, or NULL. */
const em_reader *em_find_incomplete(em_reader *reader);

/* Fails where the group has no draws, saying how a run that was stopped in warmup goes on. Errors:
 * EM_EDATA. */
em_status em_expect_draws(em_reader *reader, const char *group);

/* For the draws of a group, which the reader was opened with. Errors: EM_EDATA, EM_EIO, EM_EMEMORY.
 */
em_status em_judge_create(em_reader *reader, const char *group, em_judge **out);
void em_judge_destroy(em_judge **judge); /* NULL-safe. */

/* Finds value[EM_N_JUDGED] of a row, whose draws are [n_chain][n_draw], of n_row rows in all;
 * `r_hat`: that by which it is judged. Errors: EM_EMEMORY. */
em_status em_judge_row(em_judge *judge, const double *draws, const em_diagnosis *diagnosis,
                       double r_hat, int64_t n_row, double *value);

/* Adds up what ranks have found that were given different rows. Collective. */
void em_judge_combine(em_judge *judge);

/* The evidence of all rows and statistics. Errors: EM_EDATA, EM_EIO, EM_EMEMORY. */
em_status em_judge_conclude(em_judge *judge, const em_summary_table *table,
                            const em_judge_columns *at);

/* The verdict: that which the file has, if it is one file of a run that ended; else by the
 * evidence. *text is freed by em_release. Errors: EM_EMEMORY. */
em_status em_judge_verdict(em_judge *judge, em_verdict *verdict, char **text);
