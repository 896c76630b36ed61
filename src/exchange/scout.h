/*
 * Whether there is a mode elsewhere with far more mass than where the chains have arrived. No chain
 * can tell of one in which none has ever been; but to climb to a peak takes tens of gradients where
 * to sample takes thousands.
 */
#ifndef EM_EXCHANGE_SCOUT_H
#define EM_EXCHANGE_SCOUT_H

#include "mass/mass.h"
#include "posterior/posterior.h"

/* Climbs of a run, at least, and the chains (the first ones) that climb. */
enum { EM_SCOUTS = 8, EM_SCOUTING_CHAINS = 8 };

/* A peak and what is around it; on one line of memory. */
typedef struct em_peak {
    double *theta;      /* [stride] */
    double *covariance; /* [dim][dim] the inverse of the curvature there */
    double log_density;
    double
        evidence; /* log of the mass around it by Laplace, less dim log(2 pi) / 2; -inf: no peak */
    int64_t gradients; /* that it took */
} em_peak;

/*
 * Climbs from `out->theta`, which it moves, for some tens of gradients, by BFGS of limited memory
 * in the units of `mass`; where it has arrived on a peak of at least `least`, from the differences
 * of gradients there, what mass is around it. The density of chain `chain` is asked for. Local, but
 * for the target. Errors: EM_EMEMORY, EM_EMODEL.
 */
em_status em_climb_to_peak(em_posterior *posterior, const em_mass *mass, int64_t chain,
                           double least, em_peak *out);

#endif
