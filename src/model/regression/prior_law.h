/*
 * The prior distributions of a regression: of coefficients, on the real line, and of positive
 * parameters such as a standard deviation, which are sampled as logarithms. All Local.
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

/* The form of a kind in a config: its name and its numbers, one letter each: d(f), l(ocation),
 * s(cale), r(ate). */
typedef struct em_prior_form {
    const char *name, *numbers;
    bool positive;
} em_prior_form;

extern const em_prior_form em_prior_forms[EM_N_PRIOR];

/* Changes the scale of a prior by `factor`: multiplies a scale, divides a rate, keeps a location.
 */
void em_prior_scale_by(em_prior *prior, double factor);

/* As a text: normal(0, 2.5). */
enum { EM_PRIOR_BYTES = 128 };
void em_prior_print(const em_prior *prior, char out[EM_PRIOR_BYTES]);

/* The log density of z = (x - location) / scale, up to a constant, and its derivative. */
double em_prior_of_z(const em_prior *prior, double z, double *slope);

/* The Fisher information about the location, in units of the scale, for metrics. */
double em_prior_information(const em_prior *prior);

double em_prior_draw_z(const em_prior *prior, em_variate *v);

/* The log density of a positive x, up to a constant; *slope is x times the derivative. */
double em_prior_of_positive(const em_prior *prior, double x, double *slope);

/* Minus the second derivative by log x of em_prior_of_positive, and its derivative. Not for an
 * inverse gamma distribution. */
void em_prior_curvature(const em_prior *prior, double x, double curvature[2]);

/* The constant that em_prior_of_z and em_prior_of_positive leave out of the normalised log density.
 */
double em_prior_constant_of_z(const em_prior *prior);
double em_prior_constant_of_positive(const em_prior *prior);

double em_prior_draw_positive(const em_prior *prior, em_variate *v);
