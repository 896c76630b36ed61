/* Dual averaging of the step size (Hoffman & Gelman 2014, section 3.2). All Local. */
#pragma once

typedef struct em_dual_averaging {
    double target;  /* acceptance rate aimed at */
    double first;   /* the step size it started from, and keeps until there is an update */
    double mu;      /* where log step sizes are drawn to: log(factor x the first) */
    double count;   /* updates so far */
    double h_bar;   /* average of (target - acceptance) */
    double log_bar; /* averaged log step size: the one to keep */
} em_dual_averaging;

/* Starts dual averaging again from a step size. The next step sizes are drawn towards `factor`
 * times that one. */
void em_dual_averaging_start(em_dual_averaging *state, double step_size, double factor);

/* One update at an acceptance rate, which may be a mean over many chains and iterations; returns
 * the step size to use next. */
double em_dual_averaging_update(em_dual_averaging *state, double acceptance);

/* The averaged step size, for use after adaptation; without an update the first one, to the bit. */
double em_dual_averaging_final(const em_dual_averaging *state);
