/* Computes the metric of the model. */
#include "base/memory.h"
#include "math/binned.h"
#include "math/linalg.h"
#include "posterior/inside.h"
#include "posterior/tempered.h"

#include <string.h>

/* Adds the metric of the observations of this shard, part by part. A model with a summary adds it
 * once, on the first shard. */
static em_status sum_metric(em_posterior *posterior, em_status status, const double *theta,
                            double *derivative, const em_sums *s)
{
    em_model *model = posterior->model;
    const bool is_whole = model->n_chunk > 0, is_first = em_grid_shard(posterior->grid) == 0;
    const int64_t count = is_whole ? is_first : model->rows.count;

    for (int64_t first = 0; status >= 0 && first < count; first += model->rows.part) {
        const em_rows rows = is_whole ? (em_rows){.all = true} : em_part_at(&model->rows, first);
        status = model->ops->metric->add(model, false, &rows, theta, s->part, derivative);
        em_binned_add(s->n, s->part, s->bins);
    }
    return em_sums_end(s, posterior->grid, status);
}

/* Allocates the sums of the rows at the first use. Collective over the ranks of a group. */
static em_status allocate_sums(em_posterior *posterior)
{
    const int64_t n = posterior->model->dim;

    return posterior->metric.part
               ? EM_OK
               : em_grid_share_failure(posterior->grid,
                                       em_sums_create(n * n + n * n * n, &posterior->metric));
}

/* Adds the metric of the observations to that of the prior. */
static em_status add_metric_of_rows(em_posterior *posterior, em_status status, const double *theta,
                                    double *metric, double *derivative)
{
    const int64_t n = posterior->model->dim, square = n * n, cube = derivative ? n * square : 0;

    const em_status room = allocate_sums(posterior);

    if (room)
        return room;
    const em_sums s = em_sums_begin(&posterior->metric, square + cube, false);
    status = sum_metric(posterior, status, theta, derivative ? s.part + square : NULL, &s);
    for (int64_t i = 0; i < square; i++)
        metric[i] += s.part[i];
    for (int64_t i = 0; i < cube; i++)
        derivative[i] += s.part[square + i];
    return status;
}

/* Copies rows and columns from .. from + count - 1 of a square matrix of n rows. */
static void cut(int64_t n, const double *square, int64_t from, int64_t count, double *out)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(out + i * count, square + (from + i) * n + from, (size_t)count * sizeof *out);
}

/* The metric of a block is the corresponding part of the whole metric, which is also positive
 * definite. Derivatives with respect to the other parameters are not needed. */
static em_status metric_of_block(em_posterior *part, int64_t chain, const double *theta,
                                 double *metric, double *derivative)
{
    const int64_t n = part->model->dim, first = part->block->first, count = part->block->count;
    em_status status = EM_OK;

    if (!part->all)
        status = em_grid_share_failure(
            part->grid, em_own_all(&part->memory, EM_ARRAY(part->all, n * n + n * n * n)));
    if (status)
        return status;
    double *slope = derivative ? part->all + n * n : NULL;
    em_part_widen(part, 1, 0, &chain, theta);
    status = em_posterior_metric(part->parent, chain, part->theta, part->all, slope);
    cut(n, part->all, first, count, metric);
    for (int64_t k = 0; derivative && k < count; k++)
        cut(n, slope + (first + k) * n * n, first, count, derivative + k * count * count);
    return status;
}

/* Computes the metric of a tempered posterior. */
static em_status tempered_metric(em_posterior *posterior, int64_t chain, const double *theta,
                                 double *metric, double *derivative)
{
    const int64_t n = posterior->model->dim, square = n * n;
    const em_temperature *at = em_temperature_of(posterior, chain);
    const em_status status =
        em_posterior_metric(posterior->parent, chain, theta, metric, derivative);

    for (int64_t i = 0; i < square; i++)
        metric[i] *= at->beta;
    for (int64_t i = 0; i < n; i++)
        metric[i * n + i] += (1 - at->beta) * at->precision[i];
    for (int64_t i = 0; derivative && i < n * square; i++)
        derivative[i] *= at->beta;
    return status;
}

em_status em_posterior_has_metric(const em_posterior *posterior)
{
    const em_model_ops *ops = posterior->model->ops;

    return ops->metric
               ? EM_OK
               : em_fail(EM_ECONFIG, "model %s has no metric, which Riemannian samplers need",
                         ops->name);
}

em_status em_posterior_metric(em_posterior *posterior, int64_t chain, const double *theta,
                              double *metric, double *derivative)
{
    em_model *model = posterior->model;
    const int64_t n = model->dim, square = n * n, cube = derivative ? n * square : 0;

    if (posterior->tempering)
        return tempered_metric(posterior, chain, theta, metric, derivative);
    if (posterior->parent)
        return metric_of_block(posterior, chain, theta, metric, derivative);
    em_status status = em_posterior_has_metric(posterior);
    if (status)
        return status;
    memset(metric, 0, (size_t)square * sizeof *metric);
    if (derivative)
        memset(derivative, 0, (size_t)cube * sizeof *derivative);
    status = model->ops->metric->add(model, true, NULL, theta, metric, derivative);
    if (em_model_has_likelihood(model))
        status = add_metric_of_rows(posterior, status, theta, metric, derivative);
    em_mirror_lower(n, metric, n);
    for (int64_t k = 0; k < cube; k += square)
        em_mirror_lower(n, derivative + k, n);
    return status < 0 ? status : EM_OK;
}

bool em_posterior_is_diagonal(const em_posterior *posterior)
{
    return posterior->model->ops->metric->diagonal != NULL;
}

static void tempered_diagonal(const em_posterior *posterior, int64_t chain, const em_diagonal *ask)
{
    const em_temperature *at = em_temperature_of(posterior, chain);
    const int64_t first = ask->block ? ask->block->first : 0;
    const int64_t n = ask->block ? ask->block->count : posterior->model->dim;

    em_posterior_diagonal(posterior->parent, chain, ask);
    for (int64_t i = 0; i < n; i++) {
        if (ask->metric)
            ask->metric[i] = at->beta * ask->metric[i] + (1 - at->beta) * at->precision[first + i];
        if (ask->own)
            ask->own[i] *= at->beta;
        if (ask->slope)
            ask->slope[i] *= at->beta;
    }
}

void em_posterior_diagonal(const em_posterior *posterior, int64_t chain, const em_diagonal *ask)
{
    em_model *model = posterior->model;
    em_diagonal own = *ask;

    if (posterior->tempering) {
        tempered_diagonal(posterior, chain, ask);
    } else if (posterior->block) {
        own.block = posterior->block;
        own.held = posterior->held + (chain - posterior->first_chain) * em_stride(model->dim);
        em_posterior_diagonal(posterior->parent, chain, &own);
    } else
        model->ops->metric->diagonal(model, ask);
}
