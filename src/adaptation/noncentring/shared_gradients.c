#include "adaptation/noncentring/shared_gradients.h"

#include "base/memory.h"
#include "par/world.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

typedef struct shared_gradients {
    em_posterior *posterior;
    const em_grid *grid;
    int64_t dim;
    bool have_all_failed; /* all ranks know that an evaluation has failed */
} shared_gradients;

/* Evaluates the positions that are assigned to this group of ranks, if it has chains; others become
 * 0. Collective over the ranks of a group. */
static em_status evaluate_own(const shared_gradients *s, int64_t n, const double *theta,
                              double *gradient)
{
    const int64_t dim = s->dim, stride = em_stride(dim), chain = em_grid_first_chain(s->grid);
    const int64_t n_group = em_least(em_grid_n_group(s->grid), em_grid_n_chain(s->grid));
    double *point = NULL, log_density = 0;
    em_status status =
        em_posterior_share_failure(s->posterior, em_allocate_doubles(2 * stride, &point));

    memset(gradient, 0, (size_t)(n * dim) * sizeof *gradient);
    for (int64_t i = em_grid_n_local_chain(s->grid) > 0 ? em_grid_group(s->grid) : n;
         !status && i < n; i += n_group) {
        const em_query query = {.n_chain = 1,
                                .stride = stride,
                                .chain = &chain,
                                .theta = point,
                                .log_density = &log_density,
                                .gradient = point + stride};
        memcpy(point, theta + i * dim, (size_t)dim * sizeof *point);
        status = em_posterior_evaluate(s->posterior, &query);
        for (int64_t j = 0; em_grid_shard(s->grid) == 0 && j < dim; j++)
            gradient[i * dim + j] = status == EM_OK ? query.gradient[j] : NAN;
        status = status > 0 ? EM_OK : status;
    }
    em_release(&point);
    return status;
}

/* Evaluates positions theta [n][dim] of rank 0, which gets the gradients; theta and gradient are
 * NULL on other ranks. Collective. */
static em_status evaluate_together(const shared_gradients *s, int64_t n, const double *theta,
                                   double *gradient)
{
    const size_t bytes = (size_t)(n * s->dim) * sizeof(double);
    EM_SCOPED double *at = NULL, *found = NULL;
    em_status status =
        em_agree(em_allocate_all(EM_ARRAY(at, n * s->dim), EM_ARRAY(found, n * s->dim)));

    if (!status && theta)
        memcpy(at, theta, bytes);
    if (!status)
        em_broadcast(at, bytes);
    status = status ? status : em_agree(evaluate_own(s, n, at, found));
    if (!status && em_grid_n_group(s->grid) > 1) /* all ranks but one have 0 */
        em_grid_sum_keys(s->grid, n * s->dim, (uint64_t *)(void *)found);
    if (!status && gradient)
        memcpy(gradient, found, bytes);
    return status;
}

/* The evaluation of one or more positions on rank 0. Other ranks wait for it in `serve`. */
static em_status evaluate(void *context, int64_t n, const double *theta, double *gradient)
{
    shared_gradients *s = context;

    em_broadcast(&n, sizeof n);
    const em_status status = evaluate_together(s, n, theta, gradient);
    s->have_all_failed = status != EM_OK;
    return status;
}

/* Takes part in the evaluations of rank 0 until it has no more, or one fails. */
static em_status serve(const shared_gradients *s)
{
    int64_t n = 1;
    em_status status = EM_OK;

    while (!status && n > 0) {
        em_broadcast(&n, sizeof n);
        if (n > 0)
            status = evaluate_together(s, n, NULL, NULL);
    }
    return status;
}

em_status em_prove_priors_together(em_posterior *posterior, const em_grid *grid, int64_t dim,
                                   const em_samples *samples, em_normal_prior *prior)
{
    shared_gradients s = {.posterior = posterior, .grid = grid, .dim = dim};
    const em_gradient_function gradient = {evaluate, &s};
    int64_t none = 0;
    em_status status;

    if (!em_suffices_for_noncentring(dim, samples->n))
        return EM_OK;
    if (em_world_rank() == 0) {
        status = em_prove_priors(dim, samples, &gradient, prior);
        if (!s.have_all_failed)
            em_broadcast(&none, sizeof none);
    } else {
        status = serve(&s);
    }
    status = em_agree(status);
    if (!status)
        em_broadcast(prior, (size_t)dim * sizeof *prior);
    return status;
}
