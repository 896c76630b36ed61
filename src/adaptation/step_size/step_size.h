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

/* What a trajectory of given length counts in dual averaging: its acceptance rate, or -4 if that is
 * below 0.01. Where curvature varies, a mean acceptance rate hides trajectories that lose all of
 * their accuracy in a narrow region; this score shortens the steps until at most a few in 100 do.
 */
double em_acceptance_score(double acceptance);

/* Starts anew from a step size, drawn to `factor` times that. */
void em_dual_averaging_start(em_dual_averaging *state, double step_size, double factor);

/* One update at an acceptance rate or score, which may be a mean over many chains and iterations;
 * returns the step size to use next. */
double em_dual_averaging_update(em_dual_averaging *state, double acceptance);

/* The averaged step size, for use after adaptation; without an update the first one, to the bit. */
double em_dual_averaging_final(const em_dual_averaging *state);
