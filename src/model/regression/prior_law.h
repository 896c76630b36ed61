/*
 * The families of prior distributions: of coefficients, on the real line, and of positive
 * parameters such as a standard deviation, which are sampled as logarithms. Regressions, simulators
 * and networks use them. The README of src/model has the steps to add one. All Local.
 */
#pragma once

#include "model/regression/variate.h"

#include <stdbool.h>

typedef enum em_prior_kind {
    EM_PRIOR_DEFAULT, /* not given in the config */
    EM_PRIOR_NORMAL,
    EM_PRIOR_STUDENT_T,
    EM_PRIOR_CAUCHY,
    EM_PRIOR_EXPONENTIAL,
    EM_PRIOR_HALF_NORMAL,
    EM_PRIOR_HALF_STUDENT_T,
    EM_PRIOR_HALF_CAUCHY,
    EM_PRIOR_GAMMA,
    EM_PRIOR_INVERSE_GAMMA,
    EM_N_PRIOR
} em_prior_kind;

/* `df` is the shape of a gamma or inverse gamma distribution; for a Cauchy distribution it is 1. */
typedef struct em_prior {
    em_prior_kind kind;
    double df, location;
    double scale; /* or the rate of an exponential or gamma distribution */
} em_prior;

/*
 * A family of distributions. A family of all real numbers is that of z = (x - location) / scale;
 * one of positive numbers is that of x itself. `x` below is the one or the other.
 */
typedef struct em_prior_law {
    const char *name;    /* in a config */
    const char *numbers; /* its numbers there, one letter each: d(f), l(ocation), s(cale), r(ate) */
    bool positive;
    /* The log density up to a constant, and its derivative by x; by log x if x is positive. */
    double (*log_density)(const em_prior *prior, double x, double *slope);
    double (*constant)(const em_prior *prior); /* log_density omits it */
    double (*draw)(const em_prior *prior, em_variate *v);
    /* For metrics, if x is a real number: the Fisher information about z. */
    double (*information)(const em_prior *prior);
    /* For metrics, if x is positive: minus the second derivative of the log density by log x, and
     * the derivative of this by log x. */
    void (*curvature)(const em_prior *prior, double x, double curvature[2]);
} em_prior_law;

extern const em_prior_law em_prior_laws[EM_N_PRIOR];

static inline const em_prior_law *em_prior_law_of(const em_prior *prior)
{
    return &em_prior_laws[prior->kind];
}

/* The number of a prior that a letter stands for. */
static inline double *em_prior_number(em_prior *prior, char letter)
{
    return letter == 'd' ? &prior->df : letter == 'l' ? &prior->location : &prior->scale;
}

/* Changes the scale of a prior by `factor`: multiplies a scale, divides a rate, keeps a location.
 */
void em_prior_scale_by(em_prior *prior, double factor);

/* The degrees of freedom of a prior that is a Student's t: infinite for a normal one; NaN for
 * another family. */
double em_prior_degrees_of_freedom(const em_prior *prior);

/* Writes the prior as text: normal(0, 2.5). */
enum { EM_PRIOR_BYTES = 128 };
void em_prior_print(const em_prior *prior, char out[EM_PRIOR_BYTES]);
