#include "model/examples/artificial_noise.h"

#include "base/memory.h"
#include "data/shard/shard_assignment.h"
#include "math/rng.h"
#include "math/simd/panel.h"

#include <math.h>

enum { N_OBSERVATION = 10000 };

/* Draws column j of b from normals, and shifts and scales it so that sum b = 0 and N sum b^2 =
 * variance. */
static void standardise(int64_t dim, int64_t j, double variance, double *b)
{
    const double n = N_OBSERVATION;
    double mean = 0, squares = 0;

    for (int64_t i = j; i < N_OBSERVATION * dim; i += dim)
        mean += b[i] / n;
    for (int64_t i = j; i < N_OBSERVATION * dim; i += dim) {
        b[i] -= mean;
        squares += b[i] * b[i];
    }
    for (int64_t i = j; i < N_OBSERVATION * dim; i += dim)
        b[i] *= sqrt(variance / (n * squares));
}

em_status em_artificial_noise_create(double variance, const em_model_context *context,
                                     em_model *model, em_artificial_noise *out)
{
    const em_stream stream = {context->seed, EM_ALL_CHAINS, 0, EM_RNG_DATA};
    const int64_t dim = model->dim;

    *out = (em_artificial_noise){NULL, NULL};
    if (!(variance > 0))
        return EM_OK;
    em_status status = em_allocate_doubles(em_stride(N_OBSERVATION * dim), &out->b);
    if (status)
        return status;
    em_normals(&stream, N_OBSERVATION * dim, out->b);
    for (int64_t j = 0; j < dim; j++)
        standardise(dim, j, variance, out->b);
    model->rows = em_shard_rows(N_OBSERVATION, EM_TILE_ROWS, context->shard, context->n_shard);
    out->own = out->b + model->rows.first * dim;
    return EM_OK;
}

void em_artificial_noise_destroy(em_artificial_noise *noise)
{
    em_release(&noise->b);
}

void em_artificial_noise_add(const em_artificial_noise *noise, int64_t dim, const em_query *query)
{
    const em_rows *rows = &query->rows;

    for (int64_t c = 0; noise->b && rows->index && c < query->n_chain; c++)
        for (int64_t k = 0; k < rows->count; k++)
            for (int64_t i = 0; i < dim; i++) {
                const double b = noise->own[rows->index[k] * dim + i];
                query->log_density[c] += b * query->theta[c * query->stride + i];
                query->gradient[c * query->stride + i] += b;
            }
}
