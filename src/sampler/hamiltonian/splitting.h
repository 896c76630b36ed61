/*
 * Palindromic splittings of a Hamiltonian step of size h into kicks of p and drifts of theta, with
 * one gradient a stage:
 *
 *     p <- p + b_0 h g,  then for each stage k: theta <- theta + a_k h W p,  p <- p + b_k+1 h g.
 *
 * One stage is leapfrog. With two or three stages the energy error for the same number of gradients
 * is much smaller, as long as a step is short beside the periods of the posterior (Blanes, Casas &
 * Sanz-Serna 2014, Numerical integrators for the Hybrid Monte Carlo method). All Local.
 */
#pragma once

enum { EM_MOST_STAGES = 3 };

typedef struct em_splitting {
    int n_stage;
    double kick[EM_MOST_STAGES + 1]; /* b: [n_stage + 1], sum 1 */
    double drift[EM_MOST_STAGES];    /* a: [n_stage], sum 1 */
} em_splitting;

extern const em_splitting em_leapfrog;

/*
 * The splitting into two or three stages for steps of size h, in units of the standard deviations
 * of the posterior. With two stages there is one free coefficient, b_0. With three stages there are
 * two, and a_0 is chosen as the function of b_0 that raises the order of the error by one. b_0 is
 * chosen so that the energy error vanishes for a normal distribution with standard deviations
 * 1 / 1.1. With the mass the standard deviations are near 1; the factor 1.1 is a margin for
 * curvature that the mass does not represent. A larger h than 2.5 (two stages) or 3.75 (three)
 * gives the splitting for that limit.
 */
em_splitting em_splitting_create(int n_stage, double h);
