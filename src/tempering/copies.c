/* The copies of all ladders: their assignment to ranks, their densities, and their masses. */
#include "base/memory.h"
#include "math/linalg.h"
#include "par/world.h"
#include "tempering/reference.h"
#include "tempering/tempering_internal.h"

#include <string.h>

void em_copies_destroy(em_tempering *t)
{
    if (t->of_parameters)
        t->evaluations += em_posterior_evaluations(t->of_parameters);
    em_copy_kernels_destroy(t);
    em_posterior_destroy(&t->tempered);
    if (t->posterior != t->of_parameters)
        em_posterior_destroy(&t->posterior);
    em_posterior_destroy(&t->of_parameters);
    t->posterior = NULL;
    em_block_destroy(&t->block);
    em_release_all(&t->copy, &t->temperature, &t->of_model, &t->of_reference, &t->count,
                   &t->acceptance, &t->bridges, &t->path);
    em_mailbox_destroy(&t->mailbox);
    em_grid_destroy(&t->copies);
}

/* The memory of this rank's copies. Local. */
static em_status allocate_copies(em_tempering *t)
{
    const int64_t n = t->n_copy, n_rung = t->ladder.n_rung;
    em_status status = em_allocate_all(
        EM_ARRAY(t->copy, n), EM_ARRAY(t->temperature, n), EM_ARRAY(t->of_model, n * t->stride),
        EM_ARRAY(t->of_reference, n * EM_MOST_LEGS * t->stride), EM_ARRAY(t->count, n * n_rung),
        EM_ARRAY(t->acceptance, n * n_rung * t->n_kernel),
        EM_ARRAY(t->bridges, n * t->n_unit * (n_rung - 1)), EM_ARRAY(t->path, n * EM_MOST_TIMES));

    status = status ? status : em_block_create(t->first_copy, n, t->dim, 0, &t->block);
    if (!status)
        status = em_posterior_create(t->task.model, t->task.grid, 1, &t->of_parameters);
    if (!status && t->learns_map)
        status = em_posterior_create_noncentred(t->of_parameters, 1, t->dim, &t->map, NULL,
                                                &t->posterior);
    else
        t->posterior = t->of_parameters;
    if (!status)
        status = em_posterior_create_tempered(t->posterior, 1, t->first_copy, t->temperature,
                                              &t->tempered);
    return status ? status : em_copy_kernels_create(t);
}

em_status em_copies_create(em_tempering *t)
{
    em_status status = em_grid_create_any(t->n_ladder * t->ladder.n_rung,
                                          em_grid_n_shard(t->task.grid), &t->copies);

    if (status)
        return status;
    t->n_copy = em_grid_n_local_chain(t->copies);
    t->first_copy = em_grid_first_chain(t->copies);
    status = em_agree(allocate_copies(t));
    status = status ? status : em_mailbox_create(t->copies, &t->mailbox);
    for (int64_t c = 0; !status && c < t->n_copy; c++)
        t->copy[c].rung = (t->first_copy + c) % t->ladder.n_rung;
    return status;
}

em_status em_copy_evaluate_model(em_tempering *t, int64_t c)
{
    em_query query = em_block_query_of(t->block, c);

    if (t->without_gradient)
        query.wanted = EM_WANT_LOG_DENSITY;
    query.gradient = t->of_model + c * t->stride;
    query.log_density = &t->copy[c].log_p;
    return em_posterior_evaluate(t->posterior, &query);
}

em_status em_copy_evaluate_reference(em_tempering *t, int64_t c, int leg)
{
    return t->reference[leg]->evaluate(t->reference[leg], t->block->chain[c],
                                       t->block->theta + c * t->stride, &t->copy[c].log_r[leg],
                                       em_copy_reference(t, c, leg));
}

void em_copy_compose(em_tempering *t, int64_t c)
{
    const em_copy *copy = &t->copy[c];
    em_block *block = t->block;
    const double beta = t->ladder.beta[copy->rung];
    const int leg = em_ladder_leg(&t->ladder, copy->rung);

    t->temperature[c] =
        (em_temperature){beta, t->reference[leg], t->reference_precision + leg * t->dim};
    block->log_density[c] = em_tempered_density(beta, copy->log_r[leg], copy->log_p);
    em_tempered_gradient(beta, t->stride, em_copy_reference(t, c, leg), t->of_model + c * t->stride,
                         block->gradient + c * t->stride);
}

em_status em_copy_evaluate_and_compose(em_tempering *t, int64_t c)
{
    const em_status status =
        em_copy_evaluate_reference(t, c, em_ladder_leg(&t->ladder, t->copy[c].rung));

    em_copy_compose(t, c);
    return status;
}

/* ---------------------------------------------------------------- masses */

em_mass_form em_tempering_form(const em_tempering *t)
{
    if (t->most_rank > 0)
        return (em_mass_form){.ops = &em_mass_low_rank, .dim = t->dim, .most_rank = t->most_rank};
    return em_mass_plain_form(t->structure, t->dim);
}

/* precision += weight W^-1, for an array of the structure. `scratch` is as large as the array. */
static em_status add_precision(const em_tempering *t, double weight, const double *w,
                               double *scratch, double *precision)
{
    const int64_t size = em_mass_size(t->structure, t->dim);
    em_status status = EM_OK;

    memcpy(scratch, w, (size_t)size * sizeof *w);
    if (t->structure == EM_MASS_DENSE)
        status = em_invert_spd(t->dim, scratch, t->dim);
    for (int64_t i = 0; !status && i < size; i++)
        precision[i] += weight * (t->structure == EM_MASS_DENSE ? scratch[i] : 1 / scratch[i]);
    return status;
}

/* The reference of a leg whose covariance masses use. */
static const em_reference *law_of(const em_tempering *t, int leg)
{
    return leg == EM_LEG_B ? t->learned_law : t->reference[leg];
}

/* The inverse mass of a rung. It is exact if reference and target are normal: then it is the
 * covariance of the rung's distribution. W^-1 = (1 - beta) R^-1 + beta F^-1, where R is the
 * covariance of the reference, and F is the inverse mass estimated from draws at the target. */
static em_status precision_of(const em_tempering *t, int64_t k, double *scratch, double *precision)
{
    const int64_t n = t->dim, size = em_mass_size(t->structure, n);
    const double beta = t->ladder.beta[k];
    double *w = scratch, *work = scratch + size;
    em_status status = EM_OK;

    memset(precision, 0, (size_t)size * sizeof *precision);
    if (beta < 1) {
        em_reference_covariance(law_of(t, em_ladder_leg(&t->ladder, k)), t->structure, w);
        status = add_precision(t, 1 - beta, w, work, precision);
    }
    if (!status && beta > 0 && t->learned)
        status = add_precision(t, beta, t->learned, work, precision);
    for (int64_t i = 0; !status && beta > 0 && !t->learned && i < n; i++)
        precision[t->structure == EM_MASS_DENSE ? i * n + i : i] += beta;
    return status;
}

/* The mass of low rank of a rung, for the parameters of the kernel. A target without an estimate
 * has the identity. */
static em_status low_rank_mass_of(const em_tempering *t, int64_t k, const em_parameters *part,
                                  em_mass **out)
{
    const double beta = t->ladder.beta[k];
    const em_mass_form whole = em_tempering_form(t);
    const int64_t n = part ? part->count : t->dim;
    const em_mass_form form = {
        .ops = whole.ops, .dim = n, .most_rank = n < whole.most_rank ? n : whole.most_rank};
    em_low_rank_term term[2];
    EM_SCOPED double *number = NULL, *ones = NULL;
    int n_term = 0;
    em_status status =
        em_allocate_all(EM_ARRAY(number, form.ops->size(&form)), EM_ARRAY(ones, t->dim));

    for (int64_t i = 0; !status && i < t->dim; i++)
        ones[i] = 1;
    if (beta < 1)
        term[n_term++] = em_reference_term(law_of(t, em_ladder_leg(&t->ladder, k)), 1 - beta);
    if (beta > 0 && t->learned)
        term[n_term++] = (em_low_rank_term){beta, t->dim, whole.most_rank, t->learned};
    else if (beta > 0)
        term[n_term++] = (em_low_rank_term){beta, t->dim, 0, ones};
    status = status ? status : em_low_rank_sum(part ? part->first : 0, &form, n_term, term, number);
    return status ? status : em_mass_of(&form, number, out);
}

/* The mass of a kernel: that of the conditional distribution of its parameters given the others. */
static em_status mass_of(const em_tempering *t, const em_parameters *part, const double *precision,
                         double *w, em_mass **out)
{
    const int64_t first = part ? part->first : 0, n = part ? part->count : t->dim;
    const em_mass_form form = em_mass_plain_form(t->structure, n);
    em_status status = EM_OK;

    for (int64_t i = 0; i < n; i++)
        if (t->structure == EM_MASS_DENSE)
            memcpy(w + i * n, precision + (first + i) * t->dim + first, (size_t)n * sizeof *w);
        else
            w[i] = 1 / precision[first + i];
    if (t->structure == EM_MASS_DENSE)
        status = em_invert_spd(n, w, n);
    return status ? status : em_mass_of(&form, w, out);
}

/* Sets the precisions that a metric uses for the references: 1 over their variances. */
static void set_reference_precisions(em_tempering *t, double *variance)
{
    for (int leg = 0; leg < t->n_leg; leg++) {
        em_reference_covariance(law_of(t, leg), EM_MASS_DIAG, variance);
        for (int64_t i = 0; i < t->dim; i++)
            t->reference_precision[leg * t->dim + i] = 1 / variance[i];
    }
}

em_status em_rungs_set_masses(em_tempering *t)
{
    const int64_t size = em_mass_size(t->structure, t->dim);
    EM_SCOPED double *scratch = NULL;
    em_status status = em_allocate(3 * size, sizeof *scratch, &scratch);

    if (!status)
        set_reference_precisions(t, scratch);
    for (int64_t k = 0; !status && k < t->ladder.n_rung; k++) {
        double *precision = scratch + 2 * size;
        if (t->most_rank == 0)
            status = precision_of(t, k, scratch, precision);
        for (int i = 0; !status && i < t->n_kernel; i++) {
            em_rung_kernel *of = em_rung_kernel_at(t, k, i);
            em_mass *mass = NULL;
            const em_parameters *part = t->task.kernel[i].parameters;
            status = t->most_rank > 0 ? low_rank_mass_of(t, k, part, &mass)
                                      : mass_of(t, part, precision, scratch, &mass);
            if (!status) {
                em_mass_destroy(&of->mass);
                of->mass = mass;
            }
        }
    }
    return status > 0 ? em_fail(EM_ENUMERIC, "a tempered mass is not positive definite") : status;
}
