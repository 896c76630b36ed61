/* Sorted draws, and quantities that need no second sort: folded draws, quantiles, and normal scores
 * by rank (Blom 1958; Vehtari et al. 2021, eq. 14). All Local, nothing allocates. */
#pragma once

#include <stdint.h>

/* A draw and its index in the original array. */
typedef struct em_sorted {
    double value;
    int64_t index;
} em_sorted;

/* The position of this rank's sorted draws among all `total` draws: they follow `before` others. */
typedef struct em_among {
    int64_t before, total;
} em_among;

/* score[r] = the normal score of rank before + r + 1 among all, r < n: its quantile at
 * (rank - 3/8) / (total + 1/4). */
void em_normal_score_table(em_among among, int64_t n, double *score);

/* half[r] = the normal score of rank r + 3/2 among n, r < n - 1. */
void em_normal_score_halves(int64_t n, double *half);

/* The n draws x in ascending order, without NaN; `scratch` has room for n. */
void em_sort(int64_t n, const double *x, em_sorted *sorted, em_sorted *scratch);

/* The p-quantile of sorted draws, n > 0, by linear interpolation (type 7), rounded as in R. */
double em_sorted_quantile(int64_t n, const em_sorted *sorted, double p);

/* A quantile as an interpolation between two sorted draws, at indices from 0. */
typedef struct em_quantile_position {
    int64_t low, high;
    double weight; /* of the higher one */
} em_quantile_position;
em_quantile_position em_locate_quantile(int64_t n, double p);
double em_quantile_between(em_quantile_position place, double below, double above);

/* The distances |x - centre| of sorted draws in ascending order, by one merge; no aliasing. */
void em_fold(int64_t n, const em_sorted *sorted, double centre, em_sorted *folded);

/* Writes the normal score of sorted[i], i < n, to z[place[sorted[i].index]] (place NULL:
 * z[sorted[i].index]). Tied draws get the score of their mean rank. `score` [n] is from
 * em_normal_score_table for `among`. `half`, which may be NULL, is from em_normal_score_halves if
 * these n draws are all. */
void em_normal_scores(em_among among, int64_t n, const em_sorted *sorted, const double *score,
                      const double *half, const int64_t *place, double *z);
