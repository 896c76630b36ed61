/*
 * Criteria of the M-step, which estimate the inverse mass from the samples of the E-step. A config
 * names one by mass.estimator, and the code calls it an estimator. An estimator is a set of pure
 * functions of accumulators, which adaptation/ sums over the chains of a pool. It estimates a
 * diagonal or a dense matrix; a mass of several parts (mass/mass.h) is estimated part by part.
 * Each criterion has a file of its own, such as momentum.c; README.md has the steps to add one.
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
    const double *momentum; /* [dim] at the end of the iteration; NULL in an initial phase with a
                               dense mass, which only `windowed` estimators have */
    const double *noise;    /* [dim] with covariance V: the difference of two independent minibatch
                               gradients over sqrt(2); NULL if the estimator has no `noise` */
} em_observation;

/* Draws and their gradients of all chains of a pool: row [n][2][dim]. */
typedef struct em_samples {
    int64_t n;
    double *row;
} em_samples;

typedef struct em_estimator_ops {
    const char *name;
    const char *doc;
    const char *source;
    /* true: samples are collected in windows, which an M-step clears; warmup has an initial phase
     * if the sampler has one. false: an M-step follows every S_count samples, and the estimates are
     * averaged. An estimator that uses momenta must have false. */
    bool windowed;
    bool noise; /* needs sample->noise, which costs two gradients */
    /* The estimate is scaled to the determinant of the current mass, which keeps the unit of time.
     */
    bool keeps_determinant;
    /* The vectors of a sample that it uses, as offsets in em_observation; positions come first.
     * The accumulators of one chain are the number of samples and the moments of each vector. */
    int n_observed;
    size_t observed[2];
    /* Forms the estimate of W from pooled accumulators; it and the current W are arrays of the
     * structure. Errors: EM_NONFINITE if the samples do not determine one; the current mass is then
     * kept. */
    em_status (*estimate)(em_structure structure, int64_t dim, const double *current,
                          const double *accumulator, double *inverse);
    /* OPTIONAL, for masses of low rank. On entry the first dim elements of `number` are the
     * diagonal estimate; on return `number` holds a mass with directions, computed from the current
     * mass and the samples, which are overwritten. Errors: EM_NONFINITE, EM_EMEMORY, EM_ENUMERIC.
     */
    em_status (*add_directions)(const em_mass_form *form, const double *current,
                                em_samples *samples, double *number);
    /* OPTIONAL: the deviation of the second moments C of the samples from those that the current
     * mass predicts. Adds tr(WC) to *trace, and sets *largest to max |(WC)_ii - 1| if that is
     * larger. */
    void (*deviation)(em_structure structure, int64_t dim, const double *current,
                      const double *accumulator, double *trace, double *largest);
    /* OPTIONAL: the size of the component of the gradients that is not linear in the draws, for a
     * dense part; see em_unevenness. Errors: EM_NONFINITE, EM_EMEMORY, EM_ENUMERIC. */
    em_status (*unevenness)(int64_t dim, const double *current, const double *accumulator,
                            double *out);
} em_estimator_ops;

/* All estimators and their names, "none" first; both end with NULL. */
extern const em_estimator_ops *const em_estimators[];
extern const char *const em_estimator_names[];
extern const em_estimator_ops em_estimator_fisher, em_estimator_variance;

/* The number of accumulators of one chain for a part, or for all parts of a mass, which follow each
 * other. */
int64_t em_estimator_part_size(const em_estimator_ops *ops, const em_part *part);
int64_t em_estimator_size(const em_estimator_ops *ops, const em_mass_form *form);

/* Adds one sample to the accumulators. */
void em_estimator_observe_part(const em_estimator_ops *ops, const em_part *part,
                               const em_observation *sample, double *accumulator);
void em_estimator_observe(const em_estimator_ops *ops, const em_mass_form *form,
                          const em_observation *sample, double *accumulator);

/* Replaces the positions among the accumulators, if there are any, by positions minus shift [dim].
 */
void em_estimator_recentre(const em_estimator_ops *ops, const em_mass_form *form,
                           const double *shift, double *accumulator);

/* Computes the numbers of a new W. `samples` are used only by forms of low rank, and are
 * overwritten. Errors: EM_NONFINITE as above; EM_EMEMORY, EM_ENUMERIC. */
em_status em_estimate(const em_estimator_ops *ops, const em_mass_form *form, const em_mass *current,
                      const double *accumulator, em_samples *samples, double *number);

/* The deviations relative to three standard errors: |tr(WC)/D - 1| over 3 sqrt(2/(SD)), and max
 * |(WC)_ii - 1| over 3 sqrt(2/S), for S samples of dimension D. Errors: EM_EMEMORY. */
em_status em_deviation(const em_estimator_ops *ops, const em_mass_form *form,
                       const em_mass *current, const double *accumulator, double *trace,
                       double *diagonal);

/*
 * A measure of the variation of curvature: the largest eigenvalue of C_x C_g, divided by its
 * largest value by chance. For every density E (x - E x) g^T = -I, so C_x^-1 is the covariance of
 * the component of g that is linear in x. The eigenvalues are therefore 1 for a Gaussian. For other
 * densities they are larger, in each direction by the variance of the component that is not linear.
 * From n draws of a Gaussian they are at most (1 + sqrt(D / n))^4. *out is the maximum over the
 * dense parts of a form; NaN if there is none, or too few samples. Errors: EM_EMEMORY, EM_ENUMERIC.
 */
em_status em_unevenness(const em_estimator_ops *ops, const em_mass_form *form,
                        const em_mass *current, const double *accumulator, double *out);
