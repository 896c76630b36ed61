#include "target/target.h"

#include "base/fault.h"
#include "base/memory.h"
#include "math/rng.h"

#include <string.h>

struct em_target {
    em_model *model;
    const em_grid *grid;
    int64_t evaluations;
    double *sums; /* [n_chain][stride + 1] likelihood gradient and value, to be summed over shards;
                     and one more, of the shards that failed */
    int64_t *chosen; /* [em_integers_room(rows.total)] a minibatch */
    uint64_t *taken; /* [rows.total / 64 + 1] bits: those already in it */
};

em_status em_target_create(em_model *model, const em_grid *grid, int64_t n_chain, em_target **out)
{
    em_target *target = NULL;
    em_status status = em_allocate(1, sizeof *target, &target);

    *out = NULL;
    if (!status)
        status =
            em_allocate(n_chain * (em_stride(model->dim) + 1) + 1, sizeof(double), &target->sums);
    if (!status)
        status = em_allocate(em_integers_room(model->rows.total), sizeof(int64_t), &target->chosen);
    if (!status)
        status = em_allocate(model->rows.total / 64 + 1, sizeof(uint64_t), &target->taken);
    if (status) {
        em_target_destroy(&target);
        return status;
    }
    target->model = model;
    target->grid = grid;
    *out = target;
    return EM_OK;
}

void em_target_destroy(em_target **target)
{
    if (*target) {
        em_release(&(*target)->sums);
        em_release(&(*target)->chosen);
        em_release(&(*target)->taken);
    }
    em_release(target);
}

static em_status add_prior(em_target *target, int64_t n_chain, const double *theta,
                           double *log_density, double *gradient)
{
    const int64_t stride = em_stride(target->model->dim);

    if (em_fault("model"))
        return em_fail(EM_EMODEL, "model %s failed", target->model->ops->name);
    target->evaluations += n_chain;
    memset(log_density, 0, (size_t)n_chain * sizeof *log_density);
    memset(gradient, 0, (size_t)(n_chain * stride) * sizeof *gradient);
    return target->model->ops->add_prior(target->model, n_chain, stride, theta, log_density,
                                         gradient);
}

/* sums: the gradients, the values, and whether a shard has failed: one message. */
static double *clear_sums(em_target *target, int64_t n_chain)
{
    const int64_t stride = em_stride(target->model->dim);

    memset(target->sums, 0, (size_t)(n_chain * (stride + 1)) * sizeof(double));
    return target->sums + n_chain * stride;
}

/* Adds `scale` times the sums over all shards, unless a shard has failed: then all fail. */
static em_status add_sums(em_target *target, em_status status, int64_t n_chain, double scale,
                          double *log_density, double *gradient)
{
    const int64_t stride = em_stride(target->model->dim);
    const double *value = target->sums + n_chain * stride;

    target->sums[n_chain * (stride + 1)] = status < 0;
    em_grid_sum_shards(target->grid, n_chain * (stride + 1) + 1, target->sums);
    if (target->sums[n_chain * (stride + 1)] != 0)
        return em_grid_share_failure(target->grid, status);
    for (int64_t c = 0; c < n_chain; c++)
        log_density[c] += scale * value[c];
    for (int64_t i = 0; i < n_chain * stride; i++)
        gradient[i] += scale * target->sums[i];
    return EM_OK;
}

em_status em_target_evaluate(em_target *target, int64_t n_chain, const double *theta,
                             double *log_density, double *gradient)
{
    const em_model_ops *ops = target->model->ops;
    const int64_t stride = em_stride(target->model->dim);
    const bool alone = em_grid_n_shard(target->grid) == 1;
    em_status status = add_prior(target, n_chain, theta, log_density, gradient);

    if (alone && status >= 0 && ops->add_likelihood)
        status =
            ops->add_likelihood(target->model, n_chain, stride, theta, NULL, log_density, gradient);
    if (alone)
        return status < 0 ? status : EM_OK;
    double *value = clear_sums(target, n_chain);
    if (status >= 0 && ops->add_likelihood)
        status =
            ops->add_likelihood(target->model, n_chain, stride, theta, NULL, value, target->sums);
    return add_sums(target, status, n_chain, 1, log_density, gradient);
}

/* A distinct one of 0 .. last for each of the `count` last numbers (Floyd's sampling): all subsets
 * of that size are equally likely. */
static void choose_distinct(em_target *target, const em_stream *stream, int64_t count, int64_t n)
{
    em_uniforms_below(stream, count, (uint64_t)(n - count) + 1, 1, target->chosen);
    for (int64_t k = 0; k < count; k++) {
        int64_t row = target->chosen[k];
        if (target->taken[row / 64] >> (row % 64) & 1)
            row = n - count + k;
        target->taken[row / 64] |= UINT64_C(1) << (row % 64);
        target->chosen[k] = row;
    }
    for (int64_t k = 0; k < count; k++)
        target->taken[target->chosen[k] / 64] = 0;
}

/* Of the chosen rows those that this shard holds, by its own numbers; how many there are. */
static int64_t keep_own(em_target *target, int64_t count)
{
    const em_share *own = &target->model->rows;
    int64_t kept = 0;

    for (int64_t k = 0; k < count; k++) {
        target->chosen[kept] = target->chosen[k] - own->first;
        kept += target->chosen[kept] >= 0 && target->chosen[kept] < own->count;
    }
    return kept;
}

/*
 * The minibatch of a chain: rows of all data, chosen by the chain's own numbers, so that every
 * shard knows the whole set, and it is the same however rows are dealt. Returns the number of its
 * rows that are here.
 */
static int64_t choose(em_target *target, const em_minibatch *minibatch, int64_t chain)
{
    const int64_t n = target->model->rows.total, count = minibatch->size;
    const em_stream stream = {minibatch->seed, (uint64_t)(minibatch->first_chain + chain),
                              minibatch->evaluation, EM_RNG_MINIBATCH};

    if (minibatch->replacement)
        em_uniforms_below(&stream, count, (uint64_t)n, 0, target->chosen);
    else
        choose_distinct(target, &stream, count, n);
    return em_grid_n_shard(target->grid) == 1 ? count : keep_own(target, count);
}

em_status em_target_estimate(em_target *target, const em_minibatch *minibatch, int64_t n_chain,
                             const double *theta, double *log_density, double *gradient)
{
    const em_model_ops *ops = target->model->ops;
    const int64_t stride = em_stride(target->model->dim), n = target->model->rows.total;
    em_status status;

    if (!ops->add_likelihood || minibatch->size >= n)
        return em_target_evaluate(target, n_chain, theta, log_density, gradient);
    status = add_prior(target, n_chain, theta, log_density, gradient);
    double *value = clear_sums(target, n_chain);
    for (int64_t c = 0; status >= 0 && c < n_chain; c++) {
        const em_rows rows = {choose(target, minibatch, c), target->chosen};
        if (rows.count > 0)
            status = ops->add_likelihood(target->model, 1, stride, theta + c * stride, &rows,
                                         value + c, target->sums + c * stride);
    }
    return add_sums(target, status, n_chain, (double)n / (double)minibatch->size, log_density,
                    gradient);
}

static void mirror(int64_t n, double *matrix)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            matrix[j * n + i] = matrix[i * n + j];
}

em_status em_target_metric(em_target *target, const double *theta, double *metric,
                           double *derivative)
{
    em_model *model = target->model;
    const int64_t n = model->dim, n_derivative = derivative ? n * n * n : 0;
    em_status status;

    if (!model->ops->add_metric)
        return em_fail(EM_ECONFIG, "model %s has no metric, which Riemannian samplers need",
                       model->ops->name);
    memset(metric, 0, (size_t)(n * n) * sizeof *metric);
    if (derivative)
        memset(derivative, 0, (size_t)n_derivative * sizeof *derivative);
    status =
        model->ops->add_metric(model, em_grid_shard(target->grid) == 0, theta, metric, derivative);
    double failed = status < 0;
    em_grid_sum_shards(target->grid, 1, &failed);
    if (failed != 0)
        return em_grid_share_failure(target->grid, status);
    em_grid_sum_shards(target->grid, n * n, metric);
    em_grid_sum_shards(target->grid, n_derivative, derivative);
    mirror(n, metric);
    for (int64_t k = 0; k < n_derivative; k += n * n)
        mirror(n, derivative + k);
    return EM_OK;
}

const em_model *em_target_model(const em_target *target)
{
    return target->model;
}

int64_t em_target_evaluations(const em_target *target)
{
    return target->evaluations;
}
