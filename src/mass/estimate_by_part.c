/* Applies an estimation criterion to each part of a mass, for the functions that take a form in
 * mass/estimator.h. Each criterion is in a file of its own, such as mass/fisher.c. */
#include "base/memory.h"
#include "mass/estimator.h"
#include "mass/moments.h"
#include "math/finite.h"

#include <math.h>

em_part em_form_part(const em_mass_form *form, int64_t i)
{
    return form->n_part > 0
               ? form->part[i]
               : (em_part){0, form->dim, form->most_rank > 0 ? EM_MASS_DIAG : form->ops->structure};
}

int64_t em_estimator_part_size(const em_estimator_ops *ops, const em_part *part)
{
    return 1 + ops->n_observed * em_moments_size(part->structure, part->count);
}

int64_t em_estimator_size(const em_estimator_ops *ops, const em_mass_form *form)
{
    int64_t size = 0;

    for (int64_t i = 0; i < em_form_n_part(form); i++) {
        const em_part part = em_form_part(form, i);
        size += em_estimator_part_size(ops, &part);
    }
    return size;
}

void em_estimator_observe_part(const em_estimator_ops *ops, const em_part *part,
                               const em_observation *sample, double *accumulator)
{
    double *moments = accumulator + 1;

    accumulator[0]++;
    for (int k = 0; k < ops->n_observed; k++) {
        const double *x = *(const double *const *)((const char *)sample + ops->observed[k]);
        em_moments_add(part->structure, part->count, x + part->first, moments);
        moments += em_moments_size(part->structure, part->count);
    }
}

void em_estimator_observe(const em_estimator_ops *ops, const em_mass_form *form,
                          const em_observation *sample, double *accumulator)
{
    for (int64_t i = 0; i < em_form_n_part(form); i++) {
        const em_part part = em_form_part(form, i);
        em_estimator_observe_part(ops, &part, sample, accumulator);
        accumulator += em_estimator_part_size(ops, &part);
    }
}

void em_estimator_recentre(const em_estimator_ops *ops, const em_mass_form *form,
                           const double *shift, double *accumulator)
{
    const bool has_positions =
        ops->n_observed > 0 && ops->observed[0] == offsetof(em_observation, theta);

    for (int64_t i = 0; has_positions && i < em_form_n_part(form); i++) {
        const em_part part = em_form_part(form, i);
        em_moments_shift(part.structure, part.count, accumulator[0], shift + part.first,
                         accumulator + 1);
        accumulator += em_estimator_part_size(ops, &part);
    }
}

/* Scales an estimate of W so that it has the determinant of the current W. */
static em_status keep_determinant(const em_mass_form *form, const em_mass *current, double *number)
{
    em_mass *unscaled = NULL;
    const em_status status = em_mass_of(form, number, &unscaled);

    if (status)
        return status;
    const double change = current->ops->log_det(current) - unscaled->ops->log_det(unscaled);
    em_mass_destroy(&unscaled);
    const double scale = exp(change / (double)form->dim);
    for (int64_t i = 0; i < form->ops->size(form); i++)
        number[i] *= scale;
    return em_all_finite(form->ops->size(form), number) ? EM_OK : EM_NONFINITE;
}

em_status em_estimate(const em_estimator_ops *ops, const em_mass_form *form, const em_mass *current,
                      const double *accumulator, em_samples *samples, double *number)
{
    EM_SCOPED double *was = NULL;
    int64_t at = 0;
    em_status status = em_allocate(form->ops->size(form), sizeof *was, &was);

    if (!status)
        current->ops->write(current, form, was);
    if (!status && form->most_rank > 0) {
        status = ops->estimate(EM_MASS_DIAG, form->dim, was, accumulator, number);
        return status ? status : ops->add_directions(form, was, samples, number);
    }
    for (int64_t i = 0; !status && i < em_form_n_part(form); i++) {
        const em_part part = em_form_part(form, i);
        status = ops->estimate(part.structure, part.count, was + at, accumulator, number + at);
        accumulator += em_estimator_part_size(ops, &part);
        at += em_mass_size(part.structure, part.count);
    }
    return status || !ops->keeps_determinant ? status : keep_determinant(form, current, number);
}

em_status em_deviation(const em_estimator_ops *ops, const em_mass_form *form,
                       const em_mass *current, const double *accumulator, double *trace,
                       double *diagonal)
{
    const double s = accumulator[0], d = (double)form->dim;
    double *was = NULL, sum = 0, largest = 0;
    int64_t at = 0;
    em_status status = em_allocate(form->ops->size(form), sizeof *was, &was);

    if (!status)
        current->ops->write(current, form, was);
    for (int64_t i = 0; !status && i < em_form_n_part(form); i++) {
        const em_part part = em_form_part(form, i);
        ops->deviation(part.structure, part.count, was + at, accumulator, &sum, &largest);
        accumulator += em_estimator_part_size(ops, &part);
        at += em_mass_size(part.structure, part.count);
    }
    em_release(&was);
    *trace = fabs(sum / d - 1) / (3 * sqrt(2 / (s * d)));
    *diagonal = largest / (3 * sqrt(2 / s));
    return status;
}

em_status em_unevenness(const em_estimator_ops *ops, const em_mass_form *form,
                        const em_mass *current, const double *accumulator, double *out)
{
    EM_SCOPED double *was = NULL;
    int64_t at = 0;
    em_status status = em_allocate(form->ops->size(form), sizeof *was, &was);

    *out = NAN;
    if (status)
        return status;
    current->ops->write(current, form, was);
    for (int64_t i = 0; ops->unevenness && i < em_form_n_part(form); i++) {
        const em_part part = em_form_part(form, i);
        double own = NAN;
        status = part.structure == EM_MASS_DENSE
                     ? ops->unevenness(part.count, was + at, accumulator, &own)
                     : EM_OK;
        if (status < 0)
            return status;
        *out = status ? *out : fmax(*out, own);
        accumulator += em_estimator_part_size(ops, &part);
        at += em_mass_size(part.structure, part.count);
    }
    return EM_OK;
}
