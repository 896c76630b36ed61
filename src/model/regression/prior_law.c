#include "model/regression/prior_law.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const em_prior_form em_prior_forms[EM_N_PRIOR] = {
    [EM_PRIOR_DEFAULT] = {"default", "", false},
    [EM_PRIOR_NORMAL] = {"normal", "ls", false},
    [EM_PRIOR_STUDENT_T] = {"student_t", "dls", false},
    [EM_PRIOR_CAUCHY] = {"cauchy", "ls", false},
    [EM_PRIOR_EXPONENTIAL] = {"exponential", "r", true},
    [EM_PRIOR_HALF_NORMAL] = {"half_normal", "s", true},
    [EM_PRIOR_HALF_STUDENT_T] = {"half_student_t", "ds", true},
    [EM_PRIOR_HALF_CAUCHY] = {"half_cauchy", "s", true},
    [EM_PRIOR_GAMMA] = {"gamma", "dr", true},
    [EM_PRIOR_INVERSE_GAMMA] = {"inverse_gamma", "ds", true}};

static bool has_rate(const em_prior *prior)
{
    return strchr(em_prior_forms[prior->kind].numbers, 'r') != NULL;
}

void em_prior_scale_by(em_prior *prior, double factor)
{
    prior->scale = has_rate(prior) ? prior->scale / factor : prior->scale * factor;
}

void em_prior_print(const em_prior *prior, char out[EM_PRIOR_BYTES])
{
    const em_prior_form *form = &em_prior_forms[prior->kind];
    int at = snprintf(out, EM_PRIOR_BYTES, "%s(", form->name);

    for (const char *c = form->numbers; *c; c++)
        at += snprintf(out + at, (size_t)(EM_PRIOR_BYTES - at), "%s%.4g",
                       c > form->numbers ? ", " : "",
                       *c == 'd'   ? prior->df
                       : *c == 'l' ? prior->location
                                   : prior->scale);
    snprintf(out + at, (size_t)(EM_PRIOR_BYTES - at), ")");
}

/* ---------------------------------------------------------------- on the real line */

double em_prior_of_z(const em_prior *prior, double z, double *slope)
{
    const double df = prior->df;

    if (prior->kind == EM_PRIOR_NORMAL) {
        *slope = -z;
        return -z * z / 2;
    }
    *slope = -(df + 1) * z / (df + z * z);
    return -(df + 1) / 2 * log1p(z * z / df);
}

double em_prior_information(const em_prior *prior)
{
    return prior->kind == EM_PRIOR_NORMAL ? 1 : (prior->df + 1) / (prior->df + 3);
}

double em_prior_draw_z(const em_prior *prior, em_variate *v)
{
    const double z = em_variate_normal(v);

    return prior->kind == EM_PRIOR_NORMAL
               ? z
               : z / sqrt(2 * em_variate_gamma(v, prior->df / 2) / prior->df);
}

/* ---------------------------------------------------------------- above zero */

static double half_student_t(const em_prior *prior, double x, double *slope)
{
    const double n = prior->df + 1, q = x / prior->scale * (x / prior->scale) / prior->df;

    *slope = -n / (1 + 1 / q); /* -n q / (1 + q), without inf / inf */
    return -n / 2 * log1p(q);
}

double em_prior_of_positive(const em_prior *prior, double x, double *slope)
{
    const double a = prior->df, b = prior->scale;

    switch (prior->kind) {
    case EM_PRIOR_EXPONENTIAL:
        *slope = -b * x;
        return -b * x;
    case EM_PRIOR_HALF_NORMAL:
        *slope = -(x / b) * (x / b);
        return *slope / 2;
    case EM_PRIOR_GAMMA:
        *slope = a - 1 - b * x;
        return (a - 1) * log(x) - b * x;
    case EM_PRIOR_INVERSE_GAMMA:
        *slope = b / x - (a + 1);
        return -(a + 1) * log(x) - b / x;
    default:
        return half_student_t(prior, x, slope);
    }
}

void em_prior_curvature(const em_prior *prior, double x, double curvature[2])
{
    const double z = x / prior->scale, n = prior->df + 1;

    if (has_rate(prior)) {
        curvature[0] = curvature[1] = prior->scale * x;
    } else if (prior->kind == EM_PRIOR_HALF_NORMAL) {
        curvature[0] = 2 * z * z;
        curvature[1] = 4 * z * z;
    } else {
        const double q = z * z / prior->df, part = q / (1 + q), rest = 1 / (1 + q);
        curvature[0] = 2 * n * part * rest;
        curvature[1] = 4 * n * part * rest * (rest - part);
    }
}

/* log of the constant of Student's t law with scale 1. */
static double student_t_constant(double df)
{
    return lgamma((df + 1) / 2) - lgamma(df / 2) - log(df * M_PI) / 2;
}

double em_prior_constant_of_z(const em_prior *prior)
{
    return prior->kind == EM_PRIOR_NORMAL ? -log(2 * M_PI) / 2 : student_t_constant(prior->df);
}

double em_prior_constant_of_positive(const em_prior *prior)
{
    const double a = prior->df, b = prior->scale;

    switch (prior->kind) {
    case EM_PRIOR_EXPONENTIAL:
        return log(b);
    case EM_PRIOR_HALF_NORMAL:
        return log(2 / M_PI) / 2 - log(b);
    case EM_PRIOR_GAMMA:
    case EM_PRIOR_INVERSE_GAMMA:
        return a * log(b) - lgamma(a);
    default:
        return log(2) + student_t_constant(a) - log(b);
    }
}

double em_prior_draw_positive(const em_prior *prior, em_variate *v)
{
    const double a = prior->df, b = prior->scale;
    double z;

    switch (prior->kind) {
    case EM_PRIOR_EXPONENTIAL:
        return em_variate_gamma(v, 1) / b;
    case EM_PRIOR_HALF_NORMAL:
        return b * fabs(em_variate_normal(v));
    case EM_PRIOR_GAMMA:
        return em_variate_gamma(v, a) / b;
    case EM_PRIOR_INVERSE_GAMMA:
        return b / em_variate_gamma(v, a);
    default:
        z = em_variate_normal(v);
        return b * fabs(z) / sqrt(2 * em_variate_gamma(v, a / 2) / a);
    }
}
