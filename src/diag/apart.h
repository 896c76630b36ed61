/* Chains that are not where the others are: in another mode, or never arrived. All Local. */
#ifndef EM_DIAG_APART_H
#define EM_DIAG_APART_H

#include <stdint.h>

/* What one parameter shows. */
typedef struct em_apart {
    int64_t count;   /* chains apart; 0: none, and the rest is undefined */
    int64_t chain;   /* the farthest of them */
    double distance; /* of its mean from the median of the chains' means, in standard deviations
                        within chains (their median) */
} em_apart;

/*
 * A chain is apart where that distance is more than 3, and fewer than half of the chains are:
 * otherwise nobody can say which are astray. `draws`: [n_chain][n_draw]; `scratch`: [3 n_chain].
 */
em_apart em_find_apart(int64_t n_chain, int64_t n_draw, const double *draws, double *scratch);

/* How much larger the mean of a chain is than the median of the others' means; NaN: there are none.
 * `mean`: [n_chain]; `scratch`: [n_chain]. */
double em_above_others(int64_t n_chain, const double *mean, int64_t chain, double *scratch);

#endif
