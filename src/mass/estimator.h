/*
 * Criteria of the M-step: how an estimate of the inverse mass is made from what the E-step
 * collected. An estimator is a pair of pure functions over summable accumulators, so that pooling
 * over chains is one sum, done once for all of them by exchange/. Everything here is Local.
 */
#ifndef EM_MASS_ESTIMATOR_H
#define EM_MASS_ESTIMATOR_H

#include "emass/status.h"
#include "mass/mass.h"

#include <stdbool.h>
#include <stdint.h>

/* One E-step sample of one chain. */
typedef struct em_observation {
    const double *theta;    /* [dim] position minus the pooled centre, against cancellation */
    const double *gradient; /* [dim] of the log density */
    const double *momentum; /* [dim] as the iteration left it */
    const double *noise;    /* [dim] of covariance V: the difference of two independent minibatch
                               gradients over sqrt(2); NULL where the estimator has no `noise` */
} em_observation;

typedef struct em_estimator_ops {
    const char *name;
    const char *doc;
    const char *source;
    bool windowed; /* true: doubling windows, forgotten at each M-step; false: every S_count samples
                    */
    bool noise;    /* wants sample->noise, which takes two gradients */
    /* Number of accumulators of one chain; the first one counts the samples. */
    int64_t (*size)(em_structure structure, int64_t dim);
    /* Adds one sample. */
    void (*observe)(em_structure structure, int64_t dim, const em_observation *sample,
                    double *accumulator);
    /* OPTIONAL, where positions are among the accumulators: makes them those of positions minus
     * shift [dim]. */
    void (*recentre)(em_structure structure, int64_t dim, const double *shift, double *accumulator);
    /* Forms the estimate of W (em_mass_size elements) from pooled accumulators. EM_NONFINITE when
     * the samples do not allow one: the current mass is then kept. */
    em_status (*estimate)(const em_mass *current, const double *accumulator, double *inverse);
    /* OPTIONAL: how far the samples are from what the current mass predicts, in units of what
     * chance explains: |tr(WC)/D - 1| over 3 sqrt(2/(SD)), and max |(WC)_ii - 1| over 3 sqrt(2/S).
     */
    void (*deviation)(const em_mass *current, const double *accumulator, double *trace,
                      double *diagonal);
} em_estimator_ops;

/* All estimators, in the order of em_mass_options.estimator, "none" first; ends with NULL. */
extern const em_estimator_ops *const em_estimators[];

#endif
