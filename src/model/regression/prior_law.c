#include "model/regression/prior_law.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- all real numbers */

static double normal_log_density(const em_prior *prior, double z, double *slope)
{
    (void)prior;
    *slope = -z;
    return -z * z / 2;
}

static double normal_constant(const em_prior *prior)
{
    (void)prior;
    return -log(2 * M_PI) / 2;
}

static double normal_draw(const em_prior *prior, em_variate *v)
{
    (void)prior;
    return em_variate_normal(v);
}

static double normal_information(const em_prior *prior)
{
    (void)prior;
    return 1;
}

static double student_t_log_density(const em_prior *prior, double z, double *slope)
{
    const double df = prior->df;

    *slope = -(df + 1) * z / (df + z * z);
    return -(df + 1) / 2 * log1p(z * z / df);
}

static double student_t_constant(const em_prior *prior)
{
    const double df = prior->df;

    return lgamma((df + 1) / 2) - lgamma(df / 2) - log(df * M_PI) / 2;
}

static double student_t_draw(const em_prior *prior, em_variate *v)
{
    const double z = em_variate_normal(v);

    return z / sqrt(2 * em_variate_gamma(v, prior->df / 2) / prior->df);
}

static double student_t_information(const em_prior *prior)
{
    return (prior->df + 1) / (prior->df + 3);
}

/* ---------------------------------------------------------------- positive numbers */

static double exponential_log_density(const em_prior *prior, double x, double *slope)
{
    *slope = -prior->scale * x;
    return -prior->scale * x;
}

static double exponential_constant(const em_prior *prior)
{
    return log(prior->scale);
}

static double exponential_draw(const em_prior *prior, em_variate *v)
{
    return em_variate_gamma(v, 1) / prior->scale;
}

static void rate_curvature(const em_prior *prior, double x, double curvature[2])
{
    curvature[0] = curvature[1] = prior->scale * x;
}

static double half_normal_log_density(const em_prior *prior, double x, double *slope)
{
    const double z = x / prior->scale;

    *slope = -z * z;
    return *slope / 2;
}

static double half_normal_constant(const em_prior *prior)
{
    return log(2 / M_PI) / 2 - log(prior->scale);
}

static double half_normal_draw(const em_prior *prior, em_variate *v)
{
    return prior->scale * fabs(em_variate_normal(v));
}

static void half_normal_curvature(const em_prior *prior, double x, double curvature[2])
{
    const double z = x / prior->scale;

    curvature[0] = 2 * z * z;
    curvature[1] = 4 * z * z;
}

static double half_student_t_log_density(const em_prior *prior, double x, double *slope)
{
    const double n = prior->df + 1, q = x / prior->scale * (x / prior->scale) / prior->df;

    *slope = -n / (1 + 1 / q); /* -n q / (1 + q), without inf / inf */
    return -n / 2 * log1p(q);
}

static double half_student_t_constant(const em_prior *prior)
{
    return log(2) + student_t_constant(prior) - log(prior->scale);
}

static double half_student_t_draw(const em_prior *prior, em_variate *v)
{
    const double z = em_variate_normal(v);

    return prior->scale * fabs(z) / sqrt(2 * em_variate_gamma(v, prior->df / 2) / prior->df);
}

static void half_student_t_curvature(const em_prior *prior, double x, double curvature[2])
{
    const double z = x / prior->scale, n = prior->df + 1;
    const double q = z * z / prior->df, part = q / (1 + q), rest = 1 / (1 + q);

    curvature[0] = 2 * n * part * rest;
    curvature[1] = 4 * n * part * rest * (rest - part);
}

static double gamma_log_density(const em_prior *prior, double x, double *slope)
{
    *slope = prior->df - 1 - prior->scale * x;
    return (prior->df - 1) * log(x) - prior->scale * x;
}

/* The constant of a gamma distribution, and of an inverse gamma distribution. */
static double gamma_constant(const em_prior *prior)
{
    return prior->df * log(prior->scale) - lgamma(prior->df);
}

static double gamma_draw(const em_prior *prior, em_variate *v)
{
    return em_variate_gamma(v, prior->df) / prior->scale;
}

static double inverse_gamma_log_density(const em_prior *prior, double x, double *slope)
{
    *slope = prior->scale / x - (prior->df + 1);
    return -(prior->df + 1) * log(x) - prior->scale / x;
}

static void inverse_gamma_curvature(const em_prior *prior, double x, double curvature[2])
{
    curvature[0] = prior->scale / x;
    curvature[1] = -curvature[0];
}

static double inverse_gamma_draw(const em_prior *prior, em_variate *v)
{
    return prior->scale / em_variate_gamma(v, prior->df);
}

/* ---------------------------------------------------------------- the table */

/* The functions of Student's t, which are also those of the Cauchy distribution. */
#define STUDENT_T                                                                                  \
    .log_density = student_t_log_density, .constant = student_t_constant, .draw = student_t_draw,  \
    .information = student_t_information
#define HALF_STUDENT_T                                                                             \
    .positive = true, .log_density = half_student_t_log_density,                                   \
    .constant = half_student_t_constant, .draw = half_student_t_draw,                              \
    .curvature = half_student_t_curvature

const em_prior_law em_prior_laws[EM_N_PRIOR] = {
    [EM_PRIOR_DEFAULT] = {.name = "default", .numbers = ""},
    [EM_PRIOR_NORMAL] = {.name = "normal",
                         .numbers = "ls",
                         .log_density = normal_log_density,
                         .constant = normal_constant,
                         .draw = normal_draw,
                         .information = normal_information},
    [EM_PRIOR_STUDENT_T] = {.name = "student_t", .numbers = "dls", STUDENT_T},
    [EM_PRIOR_CAUCHY] = {.name = "cauchy", .numbers = "ls", STUDENT_T},
    [EM_PRIOR_EXPONENTIAL] = {.name = "exponential",
                              .numbers = "r",
                              .positive = true,
                              .log_density = exponential_log_density,
                              .constant = exponential_constant,
                              .draw = exponential_draw,
                              .curvature = rate_curvature},
    [EM_PRIOR_HALF_NORMAL] = {.name = "half_normal",
                              .numbers = "s",
                              .positive = true,
                              .log_density = half_normal_log_density,
                              .constant = half_normal_constant,
                              .draw = half_normal_draw,
                              .curvature = half_normal_curvature},
    [EM_PRIOR_HALF_STUDENT_T] = {.name = "half_student_t", .numbers = "ds", HALF_STUDENT_T},
    [EM_PRIOR_HALF_CAUCHY] = {.name = "half_cauchy", .numbers = "s", HALF_STUDENT_T},
    [EM_PRIOR_GAMMA] = {.name = "gamma",
                        .numbers = "dr",
                        .positive = true,
                        .log_density = gamma_log_density,
                        .constant = gamma_constant,
                        .draw = gamma_draw,
                        .curvature = rate_curvature},
    [EM_PRIOR_INVERSE_GAMMA] = {.name = "inverse_gamma",
                                .numbers = "ds",
                                .positive = true,
                                .log_density = inverse_gamma_log_density,
                                .constant = gamma_constant,
                                .draw = inverse_gamma_draw,
                                .curvature = inverse_gamma_curvature}};

/* ---------------------------------------------------------------- numbers of a prior */

void em_prior_scale_by(em_prior *prior, double factor)
{
    const bool has_rate = strchr(em_prior_law_of(prior)->numbers, 'r') != NULL;

    prior->scale = has_rate ? prior->scale / factor : prior->scale * factor;
}

double em_prior_degrees_of_freedom(const em_prior *prior)
{
    return prior->kind == EM_PRIOR_NORMAL                                 ? INFINITY
           : em_prior_law_of(prior)->log_density == student_t_log_density ? prior->df
                                                                          : NAN;
}

void em_prior_print(const em_prior *prior, char out[EM_PRIOR_BYTES])
{
    const em_prior_law *law = em_prior_law_of(prior);
    em_prior copy = *prior;

    snprintf(out, EM_PRIOR_BYTES, "%s(", law->name);
    for (const char *c = law->numbers; *c; c++)
        em_append(EM_PRIOR_BYTES, out, "%s%.4g", c > law->numbers ? ", " : "",
                  *em_prior_number(&copy, *c));
    em_append(EM_PRIOR_BYTES, out, ")");
}
