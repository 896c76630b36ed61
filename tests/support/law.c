#include "support/law.h"

const gaussian_law law_of_three = {
    .dim = 3,
    .mean = {1, -2, 0.5},
    .precision = {{2.0, 0.6, -0.3}, {0.6, 1.0, 0.2}, {-0.3, 0.2, 4.0}},
};

em_status law_add_prior(em_model *base, const em_query *query)
{
    const gaussian_law *law = ((law_model *)base)->law;

    for (int64_t c = 0; c < query->n_chain; c++)
        for (int64_t i = 0; i < law->dim; i++) {
            double product = 0;
            for (int64_t j = 0; j < law->dim; j++)
                product +=
                    law->precision[i][j] * (query->theta[c * query->stride + j] - law->mean[j]);
            query->gradient[c * query->stride + i] -= product;
            query->log_density[c] -=
                0.5 * product * (query->theta[c * query->stride + i] - law->mean[i]);
        }
    return EM_OK;
}

static const em_model_ops law_ops = {.name = "law", .add_prior = law_add_prior};

law_model law_model_of(const gaussian_law *law)
{
    return (law_model){{.ops = &law_ops, .dim = law->dim}, law};
}

void law_draw(const gaussian_law *law, uint64_t seed, int64_t chain, double *theta)
{
    double lower[LAW_MOST_DIM * LAW_MOST_DIM];
    _Alignas(64) double z[LAW_MOST_DIM];
    const em_stream stream = {seed, (uint64_t)chain, 0, EM_RNG_TEST};

    for (int64_t i = 0; i < law->dim; i++)
        memcpy(lower + i * law->dim, law->precision[i], (size_t)law->dim * sizeof *lower);
    em_cholesky(law->dim, lower, law->dim);
    em_invert_lower(law->dim, lower, law->dim);
    em_normals(&stream, law->dim, z);
    for (int64_t i = 0; i < law->dim; i++) {
        theta[i] = law->mean[i];
        for (int64_t j = i; j < law->dim; j++)
            theta[i] += lower[j * law->dim + i] * z[j];
    }
}

void law_covariance(const gaussian_law *law, double *covariance)
{
    for (int64_t i = 0; i < law->dim; i++)
        memcpy(covariance + i * law->dim, law->precision[i], (size_t)law->dim * sizeof(double));
    em_invert_spd(law->dim, covariance, law->dim);
}

double law_z(em_diag *diag, int64_t n_chain, int64_t n_draw, const double *f, double expected)
{
    em_diagnosis diagnosis;

    em_diagnose(diag, n_chain, n_draw, f, &diagnosis);
    return fabs(diagnosis.mean - expected) / diagnosis.mcse_mean;
}

double law_worst_z(const gaussian_law *law, const double *covariance, em_grid *grid,
                   const em_sampler_ops *ops, const void *options, const em_mass *mass,
                   double step_size, uint64_t seed, int64_t n_draw)
{
    enum { N_CHAIN = 8 };
    const int64_t dim = law->dim;
    law_model model = law_model_of(law);
    const em_mass *masses[N_CHAIN];
    double steps[N_CHAIN], worst = 0;
    double *draws = calloc((size_t)(dim * N_CHAIN * n_draw), sizeof *draws);
    double *product = calloc((size_t)(N_CHAIN * n_draw), sizeof *product);
    em_posterior *posterior = NULL;
    em_block *block = NULL;
    em_sampler *sampler = NULL;
    em_diag *diag = NULL;

    em_posterior_create(&model.base, grid, N_CHAIN, &posterior);
    em_block_create(0, N_CHAIN, dim, ops->n_extra ? ops->n_extra(options, dim) : 0, &block);
    ops->create(options, N_CHAIN, dim, &sampler);
    em_diag_create(&diag);
    for (int64_t c = 0; c < N_CHAIN; c++) {
        masses[c] = mass;
        steps[c] = step_size;
        law_draw(law, seed, c, block->theta + c * block->stride);
    }
    em_block_evaluate(posterior, block);
    for (int64_t t = 0; t < n_draw; t++) {
        const em_step_context context = {.posterior = posterior,
                                         .mass = masses,
                                         .step_size = steps,
                                         .seed = seed,
                                         .iteration = t};
        ops->step(sampler, &context, block);
        for (int64_t i = 0; i < dim; i++)
            for (int64_t c = 0; c < N_CHAIN; c++)
                draws[(i * N_CHAIN + c) * n_draw + t] =
                    block->theta[c * block->stride + i] - law->mean[i];
    }
    for (int64_t i = 0; i < dim; i++) {
        worst = fmax(worst, law_z(diag, N_CHAIN, n_draw, draws + i * N_CHAIN * n_draw, 0));
        for (int64_t j = 0; j <= i; j++) {
            for (int64_t k = 0; k < N_CHAIN * n_draw; k++)
                product[k] = draws[i * N_CHAIN * n_draw + k] * draws[j * N_CHAIN * n_draw + k];
            worst = fmax(worst, law_z(diag, N_CHAIN, n_draw, product, covariance[i * dim + j]));
        }
    }
    em_diag_destroy(&diag);
    ops->destroy(sampler);
    em_block_destroy(&block);
    em_posterior_destroy(&posterior);
    free(draws);
    free(product);
    return worst;
}
