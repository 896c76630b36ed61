/*
 * Criteria of the M-step: how an estimate of the inverse mass is made from what the E-step
 * collected. An estimator is a few pure functions over summable accumulators, so that pooling over
 * chains is one sum, done once for all of them in adaptation/. An estimator makes a vector and a
 * matrix, diagonal or whole: a mass of several parts (mass/mass.h) is estimated part by part.
 * Everything here is Local.
 */
#pragma once

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

/* Draws and their gradients as they are, of all chains of a pool: [n][2][dim]. */
typedef struct em_samples {
    int64_t n;
    double *row;
} em_samples;

typedef struct em_estimator_ops {
    const char *name;
    const char *doc;
    const char *source;
    bool windowed; /* true: doubling windows, forgotten at each M-step; false: every S_count samples
                    */
    bool noise;    /* wants sample->noise, which takes two gradients */
    /* The estimate is scaled so that its determinant, and with it the unit of time, stays. */
    bool keeps_determinant;
    /* Number of accumulators of one chain; the first one counts the samples. */
    int64_t (*size)(em_structure structure, int64_t dim);
    /* Adds one sample. */
    void (*observe)(em_structure structure, int64_t dim, const em_observation *sample,
                    double *accumulator);
    /* OPTIONAL, where positions are among the accumulators: makes them those of positions minus
     * shift [dim]. */
    void (*recentre)(em_structure structure, int64_t dim, const double *shift, double *accumulator);
    /* Forms the estimate of W from pooled accumulators; it and the current W are arrays of the
     * structure. EM_NONFINITE when the samples do not allow one: the current mass is then kept. */
    em_status (*estimate)(em_structure structure, int64_t dim, const double *current,
                          const double *accumulator, double *inverse);
    /* OPTIONAL, for masses of low rank: `number` has the diagonal estimate in its first dim places,
     * and becomes the numbers of a mass with directions, from the numbers of the current one and
     * samples, which are overwritten. Errors: EM_NONFINITE, EM_EMEMORY, EM_ENUMERIC. */
    em_status (*add_directions)(const em_mass_form *form, const double *current,
                                em_samples *samples, double *number);
    /* OPTIONAL: how far the second moments C of the samples are from what the current mass
     * predicts: adds tr(WC) to *trace, and raises *largest to max |(WC)_ii - 1|. */
    void (*deviation)(em_structure structure, int64_t dim, const double *current,
                      const double *accumulator, double *trace, double *largest);
    /* OPTIONAL: what the gradients of a dense part have beyond what is linear in the draws, as
     * em_unevenness says. Errors: EM_NONFINITE, EM_EMEMORY, EM_ENUMERIC. */
    em_status (*unevenness)(int64_t dim, const double *accumulator, double *out);
} em_estimator_ops;

/* All estimators, in the order of em_mass_options.estimator, "none" first; ends with NULL. */
extern const em_estimator_ops *const em_estimators[];
extern const em_estimator_ops em_fisher, em_variance;

/* The functions above for masses of a form: accumulators of its parts one after the other. */
int64_t em_estimator_size(const em_estimator_ops *ops, const em_mass_form *form);
void em_estimator_observe(const em_estimator_ops *ops, const em_mass_form *form,
                          const em_observation *sample, double *accumulator);
void em_estimator_recentre(const em_estimator_ops *ops, const em_mass_form *form,
                           const double *shift, double *accumulator);

/* The numbers of a new W; `samples` are for forms of low rank alone, and are overwritten. Errors:
 * EM_NONFINITE as above; EM_EMEMORY, EM_ENUMERIC. */
em_status em_estimate(const em_estimator_ops *ops, const em_mass_form *form, const em_mass *current,
                      const double *accumulator, em_samples *samples, double *number);

/* The deviations in units of what chance explains: |tr(WC)/D - 1| over 3 sqrt(2/(SD)), and
 * max |(WC)_ii - 1| over 3 sqrt(2/S). Errors: EM_EMEMORY. */
em_status em_deviation(const em_estimator_ops *ops, const em_mass_form *form,
                       const em_mass *current, const double *accumulator, double *trace,
                       double *diagonal);

/*
 * By how much curvature varies: the largest eigenvalue of C_x C_g, over what it may be by chance.
 * As E (x - E x) g^T = -I whatever the target is, C_x^-1 is the part of C_g that is linear in x:
 * the eigenvalues are 1 for a Gaussian and larger for others, in each direction by the variance of
 * what is not linear. From n draws of a Gaussian they are (1 + sqrt(D / n))^4 at most. The largest
 * of the dense parts of a form; NaN where there is none, or the samples do not tell. Errors:
 * EM_EMEMORY, EM_ENUMERIC.
 */
em_status em_unevenness(const em_estimator_ops *ops, const em_mass_form *form,
                        const double *accumulator, double *out);
