#include "adaptation/mass_window/gradient_noise.h"

#include "base/memory.h"
#include "mass/moments.h"
#include "math/finite.h"

#include <math.h>
#include <string.h>

struct em_gradient_noise {
    const em_sampler_options *options;
    em_grid *grid;
    bool shares;
    em_structure structure;
    int64_t dim, stride, n_chain, n_pool;
    double *sample, *other; /* [n_chain][stride] */
    double *log_density;    /* [n_chain] */
    int64_t n_accumulator;  /* a count and moments */
    double *accumulator;    /* [n_chain][n_accumulator] */
    double *pooled;         /* [n_accumulator] */

    double n_published;
    em_noise *noise;        /* [n_pool] */
    double *covariance;     /* [n_pool][em_mass_size] */
    const em_noise **chain; /* [n_chain] */
};

em_status em_gradient_noise_create(em_owner *owner, const em_sampler_options *options,
                                   em_grid *grid, bool shares, em_structure structure, int64_t dim,
                                   em_gradient_noise **out)
{
    const int64_t n = em_grid_n_local_chain(grid), n_pool = shares ? 1 : n;
    const int64_t panel = n * em_stride(dim), size = em_mass_size(structure, dim);
    const int64_t n_accumulator = 1 + em_moments_size(structure, dim);
    em_gradient_noise *self = NULL;
    const em_status status = em_own_all(owner, EM_ARRAY(self, 1));

    *out = self;
    if (status)
        return status;
    *self = (em_gradient_noise){.options = options,
                                .grid = grid,
                                .shares = shares,
                                .structure = structure,
                                .dim = dim,
                                .stride = em_stride(dim),
                                .n_chain = n,
                                .n_pool = n_pool,
                                .n_accumulator = n_accumulator};
    const em_status allocated =
        em_own_all(owner, EM_ARRAY(self->sample, panel), EM_ARRAY(self->other, panel),
                   EM_ARRAY(self->log_density, n), EM_ARRAY(self->accumulator, n * n_accumulator),
                   EM_ARRAY(self->pooled, n_accumulator), EM_ARRAY(self->covariance, n_pool * size),
                   EM_ARRAY(self->chain, n), EM_ARRAY(self->noise, n_pool));
    for (int64_t i = 0; !allocated && i < n_pool; i++)
        self->noise[i] = (em_noise){structure, dim, self->covariance + i * size, 0};
    return allocated;
}

double em_gradient_noise_bytes(const em_gradient_noise *self)
{
    return self ? (double)(self->n_chain * (2 * self->stride + self->n_accumulator) +
                           self->n_pool * em_mass_size(self->structure, self->dim)) *
                      sizeof(double)
                : 0;
}

/* Draws minibatches with the random numbers of chains beyond those of the run, so that no kernel
 * uses the same numbers. */
static em_status evaluate(em_gradient_noise *self, em_posterior *posterior, uint64_t seed,
                          int64_t evaluation, const em_block *block, double *gradient)
{
    const em_minibatch minibatch = {self->options->minibatch, self->options->replacement};
    em_query query = em_block_query(block);

    query.log_density = self->log_density;
    query.gradient = gradient;
    query.wanted = EM_WANT_GRADIENT;
    query.seed = seed;
    query.stream = em_grid_n_chain(self->grid);
    query.evaluation = evaluation;
    return em_posterior_estimate(posterior, &minibatch, &query);
}

em_status em_gradient_noise_sample(em_gradient_noise *self, em_posterior *posterior, uint64_t seed,
                                   int64_t iteration, const em_block *block)
{
    const int64_t first = 2 * iteration;
    em_status status = evaluate(self, posterior, seed, first, block, self->sample);

    status = status ? status : evaluate(self, posterior, seed, first + 1, block, self->other);
    for (int64_t c = 0; !status && c < self->n_chain; c++) {
        double *x = self->sample + c * self->stride;
        const double *y = self->other + c * self->stride;
        double *accumulator = self->accumulator + c * self->n_accumulator;
        for (int64_t i = 0; i < self->dim; i++)
            x[i] = (x[i] - y[i]) * M_SQRT1_2;
        if (!em_all_finite(self->dim, x))
            continue;
        accumulator[0]++;
        em_moments_add(self->structure, self->dim, x, accumulator + 1);
    }
    return status;
}

const double *em_gradient_noise_last(const em_gradient_noise *self, int64_t c)
{
    return self->sample + c * self->stride;
}

/* Gives the new covariance to all chains. Kernels recognise it by its version number. */
static void give_to_chains(em_gradient_noise *self)
{
    const int64_t size = em_mass_size(self->structure, self->dim);

    for (int64_t i = 0; i < self->n_pool; i++)
        self->noise[i].version = em_version_of(size, self->noise[i].covariance);
    for (int64_t c = 0; c < self->n_chain; c++)
        self->chain[c] = self->noise + (self->shares ? 0 : c);
}

static void estimate(const em_gradient_noise *self, const double *accumulator, double *covariance)
{
    const bool too_few = accumulator[0] < 10 * (double)self->dim;

    em_moments_about_zero(self->structure, self->dim, fmax(1, accumulator[0]), accumulator + 1,
                          covariance);
    for (int64_t i = 0; too_few && i < em_mass_size(self->structure, self->dim); i++)
        if (self->structure == EM_MASS_DENSE && i % (self->dim + 1) != 0)
            covariance[i] = 0;
}

em_status em_gradient_noise_publish(em_gradient_noise *self)
{
    const int64_t n = self->n_accumulator;
    em_status status = EM_OK;

    if (self->shares)
        status = em_grid_sum_chains(self->grid, n, self->accumulator, self->pooled);
    if (status)
        return status;
    self->n_published++;
    for (int64_t i = 0; i < self->n_pool; i++)
        estimate(self, self->shares ? self->pooled : self->accumulator + i * n,
                 self->noise[i].covariance);
    memset(self->accumulator, 0, (size_t)(self->n_chain * n) * sizeof(double));
    give_to_chains(self);
    return EM_OK;
}

const em_noise *const *em_gradient_noise_published(const em_gradient_noise *self)
{
    return self->n_published > 0 ? self->chain : NULL;
}

em_status em_gradient_noise_visit(em_gradient_noise *self, const em_visitor *visitor)
{
    const int64_t size = em_mass_size(self->structure, self->dim);
    em_status status = visitor->shared(visitor->context, "noise_count", 1, &self->n_published);

    if (!status)
        status = visitor->chains(visitor->context, "noise_accumulator", self->n_accumulator,
                                 self->accumulator);
    if (!status)
        status = (self->shares ? visitor->shared : visitor->chains)(
            visitor->context, "noise_covariance", size, self->covariance);
    give_to_chains(self);
    return status;
}
