/* `emass loo`: leave-one-out cross-validation from the log likelihoods in a file
 * (diagnostics/psis.h), and the parts of it that a report shows. All Local but em_loo_command. */
#pragma once

#include "emass/status.h"
#include "io/draws/reader.h"

/* The numbers of an observation. */
enum { EM_LOO_ELPD, EM_LOO_P, EM_LOO_K, EM_N_LOO };

/* The result for one variable of the group log_likelihood. Its elements are the observations. */
typedef struct em_loo {
    const em_reader_variable *variable; /* borrowed from the reader */
    int64_t n_draw;                     /* of all chains */
    double elpd, se, p;                 /* NaN where they are not defined for an observation */
    double good_k;
    /* observations with k > good_k; with numbers that are not finite */
    int64_t n_high, n_undefined;
    double *value; /* [variable->size][EM_N_LOO] */
} em_loo;

/* Opens the group log_likelihood of the files of a reader. *out is NULL if they have none. Errors:
 * EM_EDATA, EM_EIO, EM_EMEMORY. */
em_status em_loo_open(em_reader *posterior, em_reader **out);

/* The relative efficiency of the draws, as ArviZ's loo defines it: the mean over all elements of
 * the ESS of the mean, divided by the number of draws; 1 for one chain. Errors: as em_loo_open. */
em_status em_loo_worth(em_reader *posterior, double *r_eff);

/* Computes the result for variable i. Errors: as em_loo_open; call em_loo_release even then. */
em_status em_loo_read(em_reader *log_likelihood, int64_t i, double r_eff, em_loo *out);
void em_loo_release(em_loo *loo);

/* Files whose chains are combined, and their result. */
typedef struct em_loo_files {
    em_reader *posterior, *log_likelihood;
    em_loo loo;
} em_loo_files;

/* Half a sentence that says how to make a run store the group log_likelihood; freed by em_release.
 * Errors: EM_EMEMORY. */
em_status em_loo_ask(em_reader *posterior, char **out);

/* argv[0] is the name of the command. Collective. */
em_status em_loo_command(int argc, const char **argv);

/* Fails if the observations of two files differ: their number, or the observed values (arrays of
 * the same name and size in the groups observed_data, else in constant_data). If neither file has
 * such an array, it compares the hash of the data. Errors: EM_EDATA, EM_EIO, EM_EMEMORY. */
em_status em_loo_check_data(const char *first_path, const em_loo *first, const char *other_path,
                            const em_loo *other);

/*
 * Prints a table of `n` files, the best first: elpd_loo, its standard error, p_loo, the difference
 * of elpd_loo from the best, and the standard error of that difference, computed from the
 * differences of the observations. This is ArviZ's compare with negative differences, as in R's
 * loo_compare. Errors: EM_EMEMORY.
 */
em_status em_loo_compare(int64_t n, const char *const *path, const em_loo_files *files, bool csv);
