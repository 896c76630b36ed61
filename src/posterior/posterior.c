#include "base/memory.h"
#include "math/binned.h"
#include "math/rng.h"
#include "posterior/inside.h"

em_status em_posterior_create(em_model *model, const em_grid *grid, int64_t n_chain,
                              em_posterior **out)
{
    const int64_t n = model->rows.total;
    em_posterior *posterior = NULL;
    em_status status = em_allocate(1, sizeof *posterior, &posterior);

    *out = NULL;
    if (!status)
        status = em_sums_create(n_chain * (em_stride(model->dim) + 1), &posterior->likelihood);
    if (!status)
        status = em_allocate_all(EM_ARRAY(posterior->chosen, em_integers_capacity(n)),
                                 EM_ARRAY(posterior->taken, n / 64 + 1));
    if (status) {
        em_posterior_destroy(&posterior);
        return status;
    }
    posterior->model = model;
    posterior->grid = grid;
    *out = posterior;
    return EM_OK;
}

em_status em_posterior_create_within(em_posterior *parent, int64_t n_chain, int64_t first_chain,
                                     em_posterior **out)
{
    const int64_t panel = n_chain * em_stride(parent->model->dim);
    em_status status = em_allocate(1, sizeof **out, out);

    if (!status)
        status = em_allocate_all(EM_ARRAY((*out)->theta, panel), EM_ARRAY((*out)->gradient, panel));
    if (status) {
        em_posterior_destroy(out);
        return status;
    }
    (*out)->model = parent->model;
    (*out)->grid = parent->grid;
    (*out)->parent = parent;
    (*out)->first_chain = first_chain;
    return EM_OK;
}

void em_posterior_destroy(em_posterior **posterior)
{
    if (*posterior) {
        if ((*posterior)->reduction)
            (*posterior)->likelihood.part = NULL;
        em_shard_reduction_destroy(&(*posterior)->reduction);
        em_sums_release(&(*posterior)->likelihood);
        em_sums_release(&(*posterior)->metric);
        em_release_all(&(*posterior)->chosen, &(*posterior)->taken, &(*posterior)->grouped,
                       &(*posterior)->end, &(*posterior)->theta, &(*posterior)->gradient,
                       &(*posterior)->all);
        if ((*posterior)->release)
            (*posterior)->release(*posterior);
    }
    em_release(posterior);
}

double em_posterior_bytes_of_bins(const em_posterior *posterior)
{
    return (double)em_binned_size(posterior->likelihood.n) * sizeof(double);
}

const em_model *em_posterior_model(const em_posterior *posterior)
{
    return posterior->model;
}

bool em_posterior_may_fail(const em_posterior *posterior)
{
    return posterior->model->failures != NULL;
}

em_status em_posterior_share_failure(const em_posterior *posterior, em_status status)
{
    return em_grid_share_failure(posterior->grid, status);
}

int64_t em_posterior_evaluations(const em_posterior *posterior)
{
    return posterior->evaluations;
}
