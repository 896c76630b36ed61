#include "support/noisy_model.h"

em_status noisy_add_likelihood(em_model *base, const em_query *query)
{
    const noisy_model *model = (noisy_model *)base;
    for (int64_t c = 0; c < query->n_chain; c++)
        for (int64_t r = 0; r < query->rows.count; r++) {
            const double *b = model->b[em_row(&query->rows, r)];
            for (int64_t i = 0; i < base->dim; i++) {
                query->gradient[c * query->stride + i] += b[i];
                query->log_density[c] +=
                    b[i] * (query->theta[c * query->stride + i] - model->law.law->mean[i]);
            }
        }
    return EM_OK;
}

static const em_model_ops noisy_ops = {
    .name = "noisy", .add_prior = law_add_prior, .add_likelihood = noisy_add_likelihood};

noisy_model noisy_model_of(const gaussian_law *law, double size)
{
    noisy_model model = {.law = law_model_of(law)};

    model.law.base.ops = &noisy_ops;
    model.law.base.rows = (em_share){.total = N_ROW, .part = N_ROW, .count = N_ROW};
    for (int64_t r = 0; r < N_ROW; r += 2)
        for (int64_t i = 0; i < law->dim; i++) {
            const em_stream stream = {7, 0, (uint64_t)i, EM_RNG_TEST};
            const double common = em_uniform(&stream, (uint64_t)(1000 + r)) - 0.5;
            model.b[r][i] =
                size * (em_uniform(&stream, (uint64_t)r) - 0.5 + (i == 1 ? -common : common));
            model.b[r + 1][i] = -model.b[r][i];
        }
    return model;
}

matrix noisy_covariance(const noisy_model *model, bool replacement)
{
    const double n = N_ROW, m = ROWS_PER_BATCH;
    const double factor = replacement ? n / m : n / m * (n - m) / (n - 1);
    matrix V = {.n = model->law.base.dim};

    for (int64_t r = 0; r < N_ROW; r++)
        for (int64_t i = 0; i < V.n; i++)
            for (int64_t j = 0; j < V.n; j++)
                V.at[i][j] += factor * model->b[r][i] * model->b[r][j];
    return V;
}
