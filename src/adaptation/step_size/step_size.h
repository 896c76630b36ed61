/* Dual averaging of the step size (Hoffman & Gelman 2014, section 3.2). All Local. */
#pragma once

typedef struct em_dual_averaging {
    double first;   /* the initial step size, which is used until the first update */
    double mu;      /* the value towards which log step sizes shrink: log(factor x first) */
    double count;   /* updates so far */
    double h_bar;   /* average of (target - acceptance) */
    double log_bar; /* averaged log step size, which is used after adaptation */
    double target;  /* acceptance rate aimed at */
} em_dual_averaging;

/* The numbers of its state, which come first; the target is set by options. */
enum { EM_DUAL_AVERAGING_NUMBERS = 5 };

/* Starts dual averaging again from a step size. The next step sizes shrink towards `factor`
 * times that one. */
void em_dual_averaging_start(em_dual_averaging *state, double step_size, double factor);

/* One update at an acceptance rate, which may be a mean over many chains and iterations; returns
 * the step size to use next. */
double em_dual_averaging_update(em_dual_averaging *state, double acceptance);

/* The averaged step size, for use after adaptation; without an update exactly the first one. */
double em_dual_averaging_final(const em_dual_averaging *state);
