/*
 * `emass loo`: leave-one-out cross-validation from the log likelihoods in a file
 * (diagnostics/psis.h), and what a report shows of it. All Local but em_loo_command.
 */
#pragma once

#include "emass/status.h"
#include "io/draws/reader.h"

/* The numbers of an observation. */
enum { EM_LOO_ELPD, EM_LOO_P, EM_LOO_K, EM_N_LOO };

/* Of one variable of the group log_likelihood, whose elements are the observations. */
typedef struct em_loo {
    const em_reader_variable *variable; /* borrowed from the reader */
    int64_t n_draw;                     /* of all chains */
    double elpd, se, p;                 /* NaN where they are not defined for an observation */
    double good_k;
    int64_t n_high, n_undefined; /* observations whose k is above that; with numbers not finite */
    double *value;               /* [variable->size][EM_N_LOO] */
} em_loo;

/* The group log_likelihood of the files of a reader; NULL: they have none. Errors: EM_EDATA,
 * EM_EIO, EM_EMEMORY. */
em_status em_loo_open(em_reader *posterior, em_reader **out);

/* How many independent draws a draw is worth, as ArviZ's loo takes it: by the ESS of the mean of
 * all elements of the posterior; 1 of one chain. Errors: as there. */
em_status em_loo_worth(em_reader *posterior, double *r_eff);

/* For variable i. Errors: as there; em_loo_release all the same. */
em_status em_loo_read(em_reader *log_likelihood, int64_t i, double r_eff, em_loo *out);
void em_loo_release(em_loo *loo);

/* Files whose chains are taken together, and what leaving out makes of them. */
typedef struct em_loo_files {
    em_reader *posterior, *log_likelihood;
    em_loo loo;
} em_loo_files;

/* How a file comes to have the group, in half a sentence; freed by em_release. Errors:
 * EM_EMEMORY. */
em_status em_loo_ask(em_reader *posterior, char **out);

/* argv[0] is the name of the command. Collective. */
em_status em_loo_command(int argc, const char **argv);

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
