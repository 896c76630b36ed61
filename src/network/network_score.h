/* Scores of predicted probabilities of classes. All Local. */
#pragma once

#include <stdint.h>

enum { EM_SCORE_BINS = 15 };

typedef struct em_score {
    double accuracy; /* share of observations whose most probable class is the true one */
    double nll;      /* mean of -log p(true class) */
    double brier;    /* mean of sum_k (p_k - [k is the true class])^2 (Brier 1950) */
    double ece;      /* expected calibration error: mean distance between confidence and accuracy in
                        bins of the confidence, the largest p (Guo et al. 2017) */
} em_score;

/* Scores of probabilities p [n][n_class], given the true classes label [n]. */
em_score em_score_all(int64_t n, int64_t n_class, const double *p, const double *label);

/* Scores of the observations of class k. The calibration error is that of p_k over all observations
 * (Nixon et al. 2019). NaN if there are none. */
em_score em_score_class(int64_t n, int64_t n_class, const double *p, const double *label,
                        int64_t k);
