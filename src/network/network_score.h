/* Scores of predicted probabilities of classes. All Local. */
#pragma once

#include <stdint.h>

enum { EM_SCORE_BINS = 15, EM_ALL_CLASSES = -1 };

typedef struct em_score {
    double accuracy; /* share of observations whose most probable class is the true one */
    double nll;      /* mean of -log p(true class) */
    double brier;    /* mean of sum_k (p_k - [k is the true class])^2 (Brier 1950) */
    double ece;      /* expected calibration error: mean distance between confidence and accuracy in
                        bins of the confidence, the largest p (Guo et al. 2017) */
} em_score;

/* Scores of probabilities p [n][n_class], given the true classes label [n]: of all observations, or
 * of those of class k, NaN if there are none. The calibration error of a class is that of p_k over
 * all observations (Nixon et al. 2019). */
em_score em_score_of(int64_t n, int64_t n_class, const double *p, const double *label, int64_t k);
