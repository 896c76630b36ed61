/* The references of the legs. The reference of leg A is broad: the prior, or a normal distribution
 * that may become wider but never narrower. The reference of leg B is a mixture. Its components are
 * a normal distribution fitted to the target's draws and, with most of the weight, the normal
 * approximations of the modes that a search has found. So draws from it reach each of these modes,
 * also one that is too narrow for a copy to find. A single mode has less weight, because it may be
 * a spike on a slab without a valley between them. */
#include "base/memory.h"
#include "math/linalg.h"
#include "tempering/reference.h"
#include "tempering/tempering_internal.h"

#include <math.h>

static const double automatic_scale = 10;
/* Constants of the normal distributions around modes. mode_inflation: the ratio of their standard
 * deviations to those of the Laplace approximation. of_modes: their total weight in reference B.
 * of_one: that weight if there is a single mode. least_share: the least share of one mode in it. */
static const double mode_inflation = 1.1, of_modes = 0.75, of_one = 0.25, least_share = 0.05;

static em_status replace(em_reference **old, em_status status, em_reference *with)
{
    if (!status) {
        em_reference_destroy(old);
        *old = with;
    }
    return status;
}

em_status em_references_create(em_tempering *t)
{
    const em_temper_options *options = t->task.options;
    const bool prior =
        options->reference == EM_REFERENCE_PRIOR ||
        (options->reference == EM_REFERENCE_AUTO && em_tempering_has_prior(t->task.model));
    em_reference *first = NULL;
    em_status status = em_own_all(&t->memory, EM_ARRAY(t->scale, t->dim));

    t->findings.is_prior = prior;
    for (int64_t i = 0; !status && i < t->dim; i++)
        t->scale[i] = isnan(options->scale) ? automatic_scale : options->scale;
    status = status ? status : em_reference_rescale(t);
    if (!status && t->n_leg > 1)
        status = em_reference_normal(t->dim, t->scale, &first);
    return !status && t->n_leg > 1 ? em_reference_compose(t, first) : status;
}

static void forget_modes(em_tempering *t)
{
    while (t->n_mode > 0)
        em_reference_destroy(&t->mode_law[--t->n_mode]);
}

void em_references_destroy(em_tempering *t)
{
    for (int leg = 0; leg < EM_MOST_LEGS; leg++)
        em_reference_destroy(&t->reference[leg]);
    em_reference_destroy(&t->learned_law);
    forget_modes(t);
}

em_status em_reference_rescale(em_tempering *t)
{
    em_reference *first = NULL;
    const em_status status = t->findings.is_prior
                                 ? em_reference_prior(t->task.model, t->task.seed, &t->map, &first)
                                 : em_reference_normal(t->dim, t->scale, &first);

    return replace(&t->reference[EM_LEG_A], status, first);
}

em_status em_reference_widen(em_tempering *t, const double *distance)
{
    if (t->findings.is_prior || !isnan(t->task.options->scale))
        return EM_OK;
    for (int64_t i = 0; i < t->dim; i++)
        if (isfinite(distance[i]))
            t->scale[i] = fmax(t->scale[i], distance[i]);
    return em_reference_rescale(t);
}

em_status em_reference_restart(em_tempering *t, const double *unit)
{
    const double given = t->task.options->scale, scale = isnan(given) ? automatic_scale : given;
    EM_SCOPED double *distance = NULL, *mean = NULL;
    em_status status = em_allocate_all(EM_ARRAY(distance, t->dim), EM_ARRAY(mean, t->dim));

    for (int64_t i = 0; i < t->dim; i++)
        t->scale[i] = scale * (unit ? unit[i] : 1);
    for (int64_t m = 0; !status && m < t->n_mode; m++) {
        em_reference_mean(t->mode_law[m], mean);
        for (int64_t i = 0; i < t->dim; i++)
            distance[i] = fmax(distance[i], fabs(mean[i]));
    }
    status = status ? status : em_reference_rescale(t);
    return status ? status : em_reference_widen(t, distance);
}

/* Computes the log weights of the components of reference B. The learned component comes first. */
static void weigh(const em_tempering *t, double *log_weight)
{
    const double share = t->n_mode > 1 ? of_modes : t->n_mode > 0 ? of_one : 0;
    double largest = -INFINITY, sum = 0, all = 0;

    for (int64_t m = 0; m < t->n_mode; m++)
        largest = fmax(largest, t->mode_mass[m]);
    for (int64_t m = 0; m < t->n_mode; m++)
        sum += exp(t->mode_mass[m] - largest);
    for (int64_t m = 0; m < t->n_mode; m++) {
        log_weight[1 + m] = fmax(exp(t->mode_mass[m] - largest) / sum, least_share);
        all += log_weight[1 + m];
    }
    log_weight[0] = log(1 - share);
    for (int64_t m = 0; m < t->n_mode; m++)
        log_weight[1 + m] = log(share * log_weight[1 + m] / all);
}

em_status em_reference_compose(em_tempering *t, em_reference *learned)
{
    em_reference *part[1 + EM_MOST_MODES] = {learned}, *mixture = NULL;
    double log_weight[1 + EM_MOST_MODES];

    for (int64_t m = 0; m < t->n_mode; m++)
        part[1 + m] = t->mode_law[m];
    weigh(t, log_weight);
    const em_status status =
        em_reference_mixture(t->dim, 1 + t->n_mode, part, log_weight, &mixture);
    if (learned != t->learned_law)
        replace(&t->learned_law, EM_OK, learned);
    return replace(&t->reference[EM_LEG_B], status, mixture);
}

em_status em_reference_learn(em_tempering *t, const em_mass_form *form, const double *mean,
                             const double *covariance)
{
    em_reference *learned = NULL;
    em_status status =
        form->most_rank > 0
            ? em_reference_of_low_rank(form, mean, covariance, EM_INFLATION, &learned)
            : em_reference_of_covariance(form->ops->structure, t->dim, mean, covariance,
                                         EM_INFLATION, &learned);

    status = status ? status : em_reference_compose(t, learned);
    return status < 0 ? status : EM_OK;
}

/* Creates the normal distribution of a mode, unless its precision is not positive definite. */
static em_status add_mode(em_tempering *t, const em_mode_law *mode)
{
    const int64_t n = t->dim;
    EM_SCOPED double *covariance = NULL;
    em_status status = em_allocate(n * n, sizeof *covariance, &covariance);

    for (int64_t i = 0; !status && i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            covariance[i * n + j] = covariance[j * n + i] = mode->precision[i * n + j];
    status = status ? status : em_invert_spd(n, covariance, n);
    if (!status)
        status = em_reference_of_covariance(EM_MASS_DENSE, n, mode->centre, covariance,
                                            mode_inflation, &t->mode_law[t->n_mode]);
    if (!status) {
        em_reference_transform(t->mode_law[t->n_mode], &t->map);
        t->mode_mass[t->n_mode++] = mode->log_mass;
    }
    return status < 0 ? status : EM_OK;
}

em_status em_tempering_use_modes(em_tempering *t, const em_mode_search *modes)
{
    EM_SCOPED double *distance = NULL;
    em_status status = em_allocate(t->dim, sizeof *distance, &distance);

    forget_modes(t); /* of a checkpoint that could not be read to its end */
    for (int64_t m = 0; !status && m < em_mode_search_n_mode(modes); m++) {
        const em_mode_law mode = em_mode_search_mode(modes, m);
        for (int64_t i = 0; i < t->dim; i++)
            distance[i] = fmax(distance[i], fabs(mode.centre[i]));
        if (t->n_leg > 1)
            status = add_mode(t, &mode);
    }
    status = status ? status : em_reference_widen(t, distance);
    return !status && t->n_leg > 1 ? em_reference_compose(t, t->learned_law) : status;
}
