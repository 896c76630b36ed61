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

/* The numbers that are computed for each row but not printed. */
enum {
    EM_JUDGED_NONFINITE,  /* number of draws that are not finite */
    EM_JUDGED_CONSTANT,   /* 1: all draws are equal */
    EM_JUDGED_SEPARATION, /* distance between clusters of chains, in standard deviations; 0: there
                             is one cluster */
    EM_JUDGED_GROWS,      /* 1: its draws are huge or growing, and its chains disagree */
    EM_JUDGED_CLUSTERING, /* distance of divergent draws from the others
                             (diagnostics/divergence_clustering.h) */
    EM_JUDGED_BY_CHANCE,  /* the distance expected by chance */
    EM_JUDGED_LOW,        /* lower end of the range of divergent draws */
    EM_JUDGED_HIGH,       /* upper end */
    EM_JUDGED_SHARE,      /* the share of all draws in that range */
    EM_JUDGED_TAIL,       /* shape of the heavier tail (diagnostics/tail_shape.h) */
    EM_JUDGED_UNWATCHED,  /* 1: no verdict and no advice depends on its R-hat and ESS */
    EM_N_JUDGED
};

typedef struct em_judge {
    em_reader *reader; /* borrowed */
    const char *group; /* the group of the draws; borrowed */
    em_reader *stats;  /* statistics of the sampler for these draws; NULL: none */
    int64_t n_chain, n_draw;
    int64_t n_row;        /* of the summary; set by the caller */
    bool is_posterior;    /* whether there can be a verdict */
    bool can_be_tempered; /* a section `temper` can be added to the config; true if not known */
    bool accepts;         /* the sampler accepts or rejects moves */
    bool builds_trees;    /* the statistics have a tree depth */
    double *diverging;    /* [n_chain][n_draw]; NULL: none diverged, or not known */
    double *log_density;  /* [n_chain][n_draw]; NULL: not known */
    em_visits *visits;    /* of tempered draws; else NULL */
    em_mode_finder *finder;
    em_evidence evidence;   /* set by em_judge_conclude */
    int64_t n_low_energy;   /* chains whose E-BFMI is below its limit */
    int64_t redrawn_starts; /* of the files */
    int64_t reinitialised_chains;
    int64_t evaluations, failed_evaluations; /* 0: none failed, or not known */
    int64_t n_marked;       /* divergences among the draws; evidence.divergences are those of all
                               iterations, also of those without a draw */
    int64_t n_left_support; /* divergences with an infinite energy error: the log density was not
                               finite there */
} em_judge;

/* The number of superchains in the files; superchains are contiguous. Several files must have equal
 * numbers of chains in each superchain. 0: none. */
int64_t em_superchains_of(em_reader *reader);

/* The first incomplete file, or NULL. */
const em_reader *em_find_incomplete(em_reader *reader);

/* Fails if the group has no draws; the message says how to resume a run that was stopped in warmup.
 * Errors: EM_EDATA. */
em_status em_expect_draws(em_reader *reader, const char *group);

/* Creates a judge of the draws of a group. The reader must have been opened with that group.
 * Errors: EM_EDATA, EM_EIO, EM_EMEMORY. */
em_status em_judge_create(em_reader *reader, const char *group, em_judge **out);
void em_judge_destroy(em_judge **judge); /* NULL-safe. */

/* Computes value[EM_N_JUDGED] of a row with draws [n_chain][n_draw]. `r_hat`:
 * the R-hat that the verdict uses. `watched`: the verdict depends on the row. Errors: EM_EMEMORY.
 */
em_status em_judge_row(em_judge *judge, const double *draws, const em_diagnosis *diagnosis,
                       double r_hat, bool watched, double *value);

/* Combines the results of ranks that judged different rows. Collective. */
void em_judge_combine(em_judge *judge);

/* Collects the evidence of all rows and statistics. Errors: EM_EDATA, EM_EIO, EM_EMEMORY. */
em_status em_judge_conclude(em_judge *judge, const em_summary_table *table);

/* The verdict. A single file of a run that has ended stores its verdict. For other files it is
 * computed from the evidence. *text is freed by em_release. Errors: EM_EMEMORY. */
em_status em_judge_verdict(em_judge *judge, em_verdict *verdict, char **text);
