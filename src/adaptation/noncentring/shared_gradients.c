#include "adaptation/noncentring/shared_gradients.h"

#include "adaptation/noncentring/noncentring_search.h"
#include "base/memory.h"
#include "math/finite.h"
#include "math/rng.h"
#include "model/vector_lengths.h"
#include "par/world.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

typedef struct shared_gradients {
    em_posterior *posterior;
    const em_grid *grid;
    int64_t dim;
    bool have_all_failed; /* all ranks know that an evaluation has failed */
    int64_t *n_evaluated; /* gradients of all ranks */
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

    *s->n_evaluated += n;
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

/* What rank 0 does with gradients. */
typedef em_status em_proof(shared_gradients *s, const em_gradient_function *gradient, void *of);

/* Runs a proof on rank 0, and then gives all ranks the `bytes` at `result`. Collective. */
static em_status prove(shared_gradients *s, em_proof *proof, void *of, size_t bytes, void *result)
{
    const em_gradient_function gradient = {evaluate, s};
    int64_t none = 0;
    em_status status;

    if (em_world_rank() == 0) {
        status = proof(s, &gradient, of);
        if (!s->have_all_failed)
            em_broadcast(&none, sizeof none);
    } else {
        status = serve(s);
    }
    status = em_agree(status);
    if (!status)
        em_broadcast(result, bytes);
    return status;
}

/* ---------------------------------------------------------------- at draws */

static bool is_any_proved(int64_t dim, const em_normal_prior *prior)
{
    for (int64_t i = 0; i < dim; i++)
        if (prior[i].precision > 0)
            return true;
    return false;
}

typedef struct draws {
    const em_samples *samples;
    bool with_factors;
    em_normal_prior *prior;
} draws;

static em_status prove_at_draws(shared_gradients *s, const em_gradient_function *gradient, void *of)
{
    const draws *d = of;
    const em_status status = em_prove_priors(s->dim, d->samples, gradient, NULL, d->prior);

    return status || !d->with_factors ? status
                                      : em_prove_factors(s->dim, d->samples, gradient, d->prior);
}

em_status em_prove_priors_together(em_posterior *posterior, const em_grid *grid, int64_t dim,
                                   const em_samples *samples, bool with_factors,
                                   em_normal_prior *prior, int64_t *n_evaluated)
{
    shared_gradients s = {
        .posterior = posterior, .grid = grid, .dim = dim, .n_evaluated = n_evaluated};
    draws of = {samples, with_factors, prior};

    return em_suffices_for_noncentring(dim, samples->n)
               ? prove(&s, prove_at_draws, &of, (size_t)dim * sizeof *prior, prior)
               : EM_OK;
}

typedef struct many {
    const em_samples *samples;
    em_normal_prior *prior;
    em_noncentring_row *row;
} many;

static em_status map_many(shared_gradients *s, const em_gradient_function *gradient, void *of)
{
    const many *m = of;
    int64_t n_child;
    EM_SCOPED int64_t *length = NULL;
    em_status status = em_allocate(s->dim, sizeof *length, &length);

    if (!status) {
        em_model_vector_lengths(em_posterior_model(s->posterior), s->dim, length);
        status = em_prove_priors(s->dim, m->samples, gradient, length, m->prior);
    }
    if (!status && is_any_proved(s->dim, m->prior)) /* a scale may have such a prior */
        status = em_prove_priors(s->dim, m->samples, gradient, length, m->prior);
    status = status ? status : em_prove_factors(s->dim, m->samples, gradient, m->prior);
    return status
               ? status
               : em_noncentring_of_many(s->dim, m->samples, gradient, m->prior, m->row, &n_child);
}

em_status em_map_many_together(em_posterior *posterior, const em_grid *grid, int64_t dim,
                               const em_samples *samples, em_normal_prior *prior,
                               em_noncentring_row *row, int64_t *n_evaluated)
{
    shared_gradients s = {
        .posterior = posterior, .grid = grid, .dim = dim, .n_evaluated = n_evaluated};
    many of = {samples, prior, row};

    memset(row, 0, (size_t)dim * sizeof *row);
    if (!em_suffices_for_proofs(dim, samples->n))
        return EM_OK;
    const em_status status = prove(&s, map_many, &of, (size_t)dim * sizeof *prior, prior);
    if (!status)
        em_broadcast(row, (size_t)dim * sizeof *row);
    return status;
}

/* ---------------------------------------------------------------- at random positions */

typedef struct at_positions {
    const em_random_positions *positions;
    int64_t n;                     /* of them */
    em_normal_prior *prior;        /* [dim] that is to be proved; NULL: nothing is */
    const em_normal_prior *proved; /* [dim] */
    em_noncentring_row *row;       /* [dim] of the map of what is proved */
} at_positions;

static void draw_positions(const em_random_positions *p, int64_t n, int64_t dim, double *theta)
{
    const double half = sqrt(3); /* of the width, for a standard deviation of 1 */

    for (int64_t r = 0; r < n; r++) {
        const em_stream stream = {p->seed, (uint64_t)r, (uint64_t)p->number, EM_RNG_PROOF};
        double *at = theta + r * dim;
        em_uniforms_within(&stream, dim, 1, at);
        for (int64_t i = 0; i < dim; i++)
            at[i] = p->mean[i] + half * p->sd[i] * at[i];
    }
}

/* Draws positions, and writes those that have a gradient, each with its gradient, to the rows of
 * `out`, which the owner holds. */
static em_status sample(const shared_gradients *s, const em_gradient_function *gradient,
                        const at_positions *at, em_owner *owner, em_samples *out)
{
    const int64_t dim = s->dim;
    double *theta, *g, *rows;
    em_status status = em_own_all(owner, EM_ARRAY(theta, at->n * dim), EM_ARRAY(g, at->n * dim),
                                  EM_ARRAY(rows, 2 * at->n * dim));

    if (status)
        return status;
    draw_positions(at->positions, at->n, dim, theta);
    status = gradient->evaluate(gradient->context, at->n, theta, g);
    *out = (em_samples){0, rows};
    for (int64_t r = 0; !status && r < at->n; r++) {
        double *row = rows + out->n * 2 * dim;
        memcpy(row, theta + r * dim, (size_t)dim * sizeof *row);
        memcpy(row + dim, g + r * dim, (size_t)dim * sizeof *row);
        out->n += em_all_finite(dim, row + dim);
    }
    return status;
}

static em_status map_at_positions(shared_gradients *s, const em_gradient_function *gradient,
                                  void *of)
{
    const at_positions *at = of;
    EM_SCOPED_BY(em_release_owned) em_owner memory = {NULL};
    em_samples samples;
    int64_t n_child;
    em_status status = sample(s, gradient, at, &memory, &samples);

    if (!status && at->prior)
        status = em_prove_priors(s->dim, &samples, gradient, NULL, at->prior);
    if (!status && at->prior &&
        is_any_proved(s->dim, at->prior)) /* a scale may have such a prior */
        status = em_prove_priors(s->dim, &samples, gradient, NULL, at->prior);
    return status ? status
                  : em_noncentring_of_priors(s->dim, &samples, at->proved, at->row, &n_child);
}

em_status em_prove_priors_at(em_posterior *posterior, const em_grid *grid, int64_t dim,
                             const em_random_positions *positions, em_normal_prior *prior,
                             em_noncentring_row *row, int64_t *n_evaluated)
{
    enum { LEAST = 120, SPARE = 10 };
    shared_gradients s = {
        .posterior = posterior, .grid = grid, .dim = dim, .n_evaluated = n_evaluated};
    at_positions at = {positions, em_most(LEAST, 2 * dim) + SPARE, prior, prior, row};

    memset(row, 0, (size_t)dim * sizeof *row);
    if (!em_suffices_for_noncentring(dim, at.n))
        return EM_OK;
    const em_status status = prove(&s, map_at_positions, &at, (size_t)dim * sizeof *prior, prior);
    if (!status)
        em_broadcast(row, (size_t)dim * sizeof *row);
    return status;
}

em_status em_map_priors_at(em_posterior *posterior, const em_grid *grid, int64_t dim,
                           const em_random_positions *positions, const em_normal_prior *prior,
                           em_noncentring_row *row, int64_t *n_evaluated)
{
    enum { SPARE = 20 };
    shared_gradients s = {
        .posterior = posterior, .grid = grid, .dim = dim, .n_evaluated = n_evaluated};
    at_positions at = {positions, 2 * dim + SPARE, NULL, prior, row};

    memset(row, 0, (size_t)dim * sizeof *row);
    return is_any_proved(dim, prior)
               ? prove(&s, map_at_positions, &at, (size_t)dim * sizeof *row, row)
               : EM_OK;
}
