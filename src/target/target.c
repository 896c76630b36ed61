#include "target/target.h"

#include "base/fault.h"
#include "base/memory.h"

#include <string.h>

struct em_target {
    em_model *model;
    const em_grid *grid;
    int64_t evaluations;
    double
        *sums; /* [n_chain][stride + 1]: likelihood gradient and value, to be summed over shards */
};

em_status em_target_create(em_model *model, const em_grid *grid, int64_t n_chain, em_target **out)
{
    em_target *target = NULL;
    em_status status = em_allocate(1, sizeof *target, &target);

    *out = NULL;
    if (!status)
        status = em_allocate(n_chain * (em_stride(model->dim) + 1), sizeof(double), &target->sums);
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
    if (*target)
        em_release(&(*target)->sums);
    em_release(target);
}

/* The gradient and the density share one buffer, so that shards need one sum. */
static em_status add_likelihood(em_target *target, int64_t n_chain, const double *theta,
                                double *log_density, double *gradient)
{
    const int64_t stride = em_stride(target->model->dim);
    double *value = target->sums + n_chain * stride;
    em_status status;

    memset(target->sums, 0, (size_t)(n_chain * (stride + 1)) * sizeof(double));
    status = target->model->ops->add_likelihood(target->model, n_chain, stride, theta, NULL, value,
                                                target->sums);
    if (status < 0)
        return status;
    em_grid_sum_shards(target->grid, n_chain * (stride + 1), target->sums);
    for (int64_t c = 0; c < n_chain; c++) {
        log_density[c] += value[c];
        for (int64_t i = 0; i < target->model->dim; i++)
            gradient[c * stride + i] += target->sums[c * stride + i];
    }
    return EM_OK;
}

em_status em_target_evaluate(em_target *target, int64_t n_chain, const double *theta,
                             double *log_density, double *gradient)
{
    const em_model_ops *ops = target->model->ops;
    const int64_t stride = em_stride(target->model->dim);
    em_status status;

    if (em_fault("model"))
        return em_fail(EM_EMODEL, "model %s failed", ops->name);
    target->evaluations += n_chain;
    memset(log_density, 0, (size_t)n_chain * sizeof *log_density);
    memset(gradient, 0, (size_t)(n_chain * stride) * sizeof *gradient);
    status = ops->add_prior(target->model, n_chain, stride, theta, log_density, gradient);
    if (status < 0 || !ops->add_likelihood)
        return status < 0 ? status : EM_OK;
    if (em_grid_n_shard(target->grid) > 1)
        return add_likelihood(target, n_chain, theta, log_density, gradient);
    status =
        ops->add_likelihood(target->model, n_chain, stride, theta, NULL, log_density, gradient);
    return status < 0 ? status : EM_OK;
}

const em_model *em_target_model(const em_target *target)
{
    return target->model;
}

int64_t em_target_evaluations(const em_target *target)
{
    return target->evaluations;
}
