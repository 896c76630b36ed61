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
