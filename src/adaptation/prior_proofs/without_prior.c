#include "adaptation/prior_proofs/without_prior.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

double em_subtract_normal(const em_normal_prior *prior, int64_t i, const double *x,
                          double *gradient, double *slope)
{
    const double away = em_away_from_location(prior, i, x);
    const double first =
        em_degree_of_prior(prior) * em_log_scale(prior->form, x[(int64_t)prior->scale], slope);
    const double second =
        prior->second_degree == 0 ? 0 : prior->second_degree * x[(int64_t)prior->second_scale];
    const double force = prior->precision * exp(-2 * (first + second)) * away;
    gradient[i] += force;
    for (int j = 0; j < EM_MOST_LOCATIONS && prior->location[j] >= 0; j++)
        gradient[(int64_t)prior->location[j]] -= prior->coefficient[j] * force;
    return force * away - 1;
}

/* Subtracts from gradient [dim] at x [dim] that of the log of the prior. */
static void subtract(const em_without_prior *w, const double *x, double *gradient)
{
    const em_normal_prior *prior = w->prior;
    double slope;
    const double by_scale = em_subtract_normal(prior, w->i, x, gradient, &slope);

    gradient[(int64_t)prior->scale] -= em_degree_of_prior(prior) * slope * by_scale;
    if (prior->second_degree != 0)
        gradient[(int64_t)prior->second_scale] -= prior->second_degree * by_scale;
}

static em_status evaluate(void *context, int64_t n, const double *theta, double *gradient)
{
    const em_without_prior *w = context;
    const em_status status = w->whole->evaluate(w->whole->context, n, theta, gradient);

    for (int64_t r = 0; !status && r < n; r++)
        subtract(w, theta + r * w->dim, gradient + r * w->dim);
    return status;
}

em_status em_without_prior_create(em_owner *owner, int64_t dim, const em_samples *samples,
                                  const em_gradient_function *gradients, int64_t i,
                                  const em_normal_prior *prior, em_without_prior *out)
{
    const int64_t count = samples->n * 2 * dim;

    *out = (em_without_prior){.whole = gradients, .prior = prior, .dim = dim, .i = i};
    em_status status = em_own_all(owner, EM_ARRAY(out->row, count));
    if (status)
        return status;
    memcpy(out->row, samples->row, (size_t)count * sizeof *out->row);
    for (int64_t r = 0; r < samples->n; r++)
        subtract(out, out->row + r * 2 * dim, out->row + r * 2 * dim + dim);
    out->samples = (em_samples){.n = samples->n, .row = out->row};
    out->gradients = (em_gradient_function){evaluate, out};
    return EM_OK;
}
