#include "support/observe.h"

void observe(noisy_model *model, em_grid *grid, const kernel_run *run, int64_t n_draw,
             int64_t n_observable, observable *const *f, em_diagnosis *out)
{
    const gaussian_law *law = model->law.law;
    double *x = calloc((size_t)(n_observable * N_CHAIN * n_draw), sizeof *x);
    em_diag *diag = NULL;
    kernel_bench b;

    bench_open(&model->law.base, grid, run, &b);
    for (int64_t c = 0; c < N_CHAIN; c++)
        law_draw(law, run->seed, c, b.block->theta + c * b.block->stride);
    bench_start(&b);
    for (int64_t t = -n_draw / 20; t < n_draw; t++) {
        const em_step_context context = bench_context(&b, t + n_draw / 20);
        run->ops->step(b.sampler, &context, b.block);
        for (int64_t k = 0; t >= 0 && k < n_observable; k++)
            for (int64_t c = 0; c < N_CHAIN; c++)
                x[(k * N_CHAIN + c) * n_draw + t] = f[k](b.block, law, c);
    }
    bench_close(&b);
    em_diag_create(&diag);
    for (int64_t k = 0; k < n_observable; k++)
        em_diagnose(diag, N_CHAIN, n_draw, x + k * N_CHAIN * n_draw, &out[k]);
    em_diag_destroy(&diag);
    free(x);
}

/* (theta - mean)_i (theta - mean)_j, for i, j in 0, 1 */
static double second_moment(const em_block *block, const gaussian_law *law, int64_t c, int i, int j)
{
    const double *theta = block->theta + c * block->stride;
    return (theta[i] - law->mean[i]) * (theta[j] - law->mean[j]);
}

double moment_00(const em_block *block, const gaussian_law *law, int64_t c)
{
    return second_moment(block, law, c, 0, 0);
}

double moment_01(const em_block *block, const gaussian_law *law, int64_t c)
{
    return second_moment(block, law, c, 0, 1);
}

double moment_11(const em_block *block, const gaussian_law *law, int64_t c)
{
    return second_moment(block, law, c, 1, 1);
}

static double momentum_moment(const em_block *block, int64_t c, int i, int j)
{
    const double *p = block->momentum + c * block->stride;
    return p[i] * p[j];
}

double momentum_00(const em_block *block, const gaussian_law *unused, int64_t c)
{
    (void)unused;
    return momentum_moment(block, c, 0, 0);
}

double momentum_01(const em_block *block, const gaussian_law *unused, int64_t c)
{
    (void)unused;
    return momentum_moment(block, c, 0, 1);
}

double momentum_11(const em_block *block, const gaussian_law *unused, int64_t c)
{
    (void)unused;
    return momentum_moment(block, c, 1, 1);
}

double excess_energy(const em_block *block, const gaussian_law *law, int64_t c)
{
    const double *theta = block->theta + c * block->stride;
    double sum = 0;

    for (int64_t i = 0; i < law->dim; i++)
        for (int64_t j = 0; j < law->dim; j++)
            sum += law->precision[i][j] * (theta[i] - law->mean[i]) * (theta[j] - law->mean[j]);
    return sum / (double)law->dim - 1;
}

double worst_deviation(int64_t n, const em_diagnosis *found, const double *expected)
{
    double worst = 0;

    for (int64_t i = 0; i < n; i++) {
        const double z = fabs(found[i].mean - expected[i]) / found[i].mcse_mean;
        worst = z <= worst ? worst : isfinite(z) ? z : INFINITY;
    }
    return worst;
}

void set_noise(noisy_model *model, const matrix *R)
{
    const int64_t dim = model->law.base.dim;

    for (int64_t r = 0; r < N_ROW; r++) {
        const int64_t column = r / 2 % dim, n_pair = (N_ROW / 2 - column + dim - 1) / dim;
        const double factor = (double)N_ROW / ROWS_PER_BATCH * 2 * (double)n_pair;
        for (int64_t i = 0; i < dim; i++)
            model->b[r][i] = (r % 2 ? -1 : 1) * R->at[i][column] / sqrt(factor);
    }
}
