/*
 * The exact law of a sampler on a Gaussian: one step is x' = F x + G xi with xi ~ N(0, N), and the
 * stationary covariance solves S = F S F^T + G N G^T. The step is written down in plain form by the
 * test, the kernel runs, and both its linear part and its moments are compared.
 */
#ifndef TESTS_STAT_LINEAR_LAW_H
#define TESTS_STAT_LINEAR_LAW_H

#include "run/config/config.h"
#include "support/law.h"
#include "support/tap.h"

#include <stdio.h>

enum { LINEAR_MOST = 64 }; /* numbers in a state, or of noise in a step */

/* ---- small matrices ---- */

typedef struct matrix {
    int64_t n;
    double at[LAW_MOST_DIM][LAW_MOST_DIM];
} matrix;

/* out += scale A x */
static inline void add_product(double scale, const matrix *a, const double *x, double *out)
{
    for (int64_t i = 0; i < a->n; i++)
        for (int64_t j = 0; j < a->n; j++)
            out[i] += scale * a->at[i][j] * x[j];
}

static inline matrix product(const matrix *a, const matrix *b)
{
    matrix out = {.n = a->n};

    for (int64_t i = 0; i < a->n; i++)
        for (int64_t j = 0; j < a->n; j++)
            for (int64_t k = 0; k < a->n; k++)
                out.at[i][j] += a->at[i][k] * b->at[k][j];
    return out;
}

static inline matrix sum(double x, const matrix *a, double y, const matrix *b)
{
    matrix out = {.n = a->n};

    for (int64_t i = 0; i < a->n; i++)
        for (int64_t j = 0; j < a->n; j++)
            out.at[i][j] = x * a->at[i][j] + y * b->at[i][j];
    return out;
}

static inline matrix transposed(const matrix *a)
{
    matrix out = {.n = a->n};

    for (int64_t i = 0; i < a->n; i++)
        for (int64_t j = 0; j < a->n; j++)
            out.at[j][i] = a->at[i][j];
    return out;
}

static inline matrix identity(int64_t n)
{
    matrix out = {.n = n};

    for (int64_t i = 0; i < n; i++)
        out.at[i][i] = 1;
    return out;
}

static inline matrix inverse_of(const matrix *a)
{
    matrix out = *a;

    em_invert_spd(a->n, out.at[0], LAW_MOST_DIM);
    return out;
}

/* L of the mass, M = L L^T: its columns are where unit vectors go. */
static inline matrix factor_of(const em_mass *mass)
{
    matrix L = {.n = mass->dim};

    for (int64_t j = 0; j < mass->dim; j++) {
        _Alignas(64) double z[8] = {0}, p[8];
        z[j] = 1;
        em_mass_momentum(&mass, 1, z, p);
        for (int64_t i = 0; i < mass->dim; i++)
            L.at[i][j] = p[i];
    }
    return L;
}

/* exp(-A), by its series after halving: the arguments here are small. */
static inline matrix decay_of(const matrix *a)
{
    const matrix small = sum(-1.0 / 1024, a, 0, a);
    matrix out = identity(a->n), term = out;

    for (int k = 1; k < 12; k++) {
        const matrix next = product(&term, &small);
        term = sum(1.0 / k, &next, 0, &next);
        out = sum(1, &out, 1, &term);
    }
    for (int k = 0; k < 10; k++)
        out = product(&out, &out);
    return out;
}

/* Writes A as the block at (first, first) of a square array with `ld` columns. */
static inline void put_block(const matrix *a, int64_t first, int64_t ld, double *out)
{
    for (int64_t i = 0; i < a->n; i++)
        memcpy(out + (first + i) * ld + first, a->at[i], (size_t)a->n * sizeof *out);
}

/* A as one array without padding. */
static inline void pack(const matrix *a, double *out)
{
    put_block(a, 0, a->n, out);
}

/* ---- the exact law ---- */

/* One step, or one iteration: out = F x + G xi. */
typedef void linear_step(const void *self, const double *x, const double *xi, double *out);

/* S <- S + F S F^T, F <- F F; returns the largest element of the new F. */
static inline double double_law(int64_t n, double *F, double *S, double *scratch)
{
    double largest = 0;

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            scratch[i * n + j] = 0;
            for (int64_t k = 0; k < n; k++)
                scratch[i * n + j] += F[i * n + k] * S[k * n + j];
        }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t k = 0; k < n; k++)
                S[i * n + j] += scratch[i * n + k] * F[j * n + k];
    memcpy(scratch, F, (size_t)(n * n) * sizeof *F);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            F[i * n + j] = 0;
            for (int64_t k = 0; k < n; k++)
                F[i * n + j] += scratch[i * n + k] * scratch[k * n + j];
            largest = fmax(largest, fabs(F[i * n + j]));
        }
    return largest;
}

/* Column j of the linear part in x (or in the noise) is what the step makes of a unit vector. */
static inline void columns_of(linear_step *step, const void *self, int64_t n, int64_t n_column,
                              bool of_noise, double *out)
{
    double unit[LINEAR_MOST], zero[LINEAR_MOST] = {0}, column[LINEAR_MOST];

    for (int64_t j = 0; j < n_column; j++) {
        memset(unit, 0, sizeof unit);
        unit[j] = 1;
        step(self, of_noise ? zero : unit, of_noise ? unit : zero, column);
        for (int64_t i = 0; i < n; i++)
            out[i * n_column + j] = column[i];
    }
}

/*
 * The stationary covariance [n][n] of the step, for xi [n_noise] of covariance N; false where there
 * is none, because the spectral radius of F is not below 1.
 */
static inline bool linear_law(linear_step *step, const void *self, int64_t n, int64_t n_noise,
                              const double *N, double *S)
{
    double F[LINEAR_MOST * LINEAR_MOST], G[LINEAR_MOST * LINEAR_MOST],
        scratch[LINEAR_MOST * LINEAR_MOST], largest = 1;

    columns_of(step, self, n, n, false, F);
    columns_of(step, self, n, n_noise, true, G);
    memset(S, 0, (size_t)(n * n) * sizeof *S);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t k = 0; k < n_noise; k++)
                for (int64_t l = 0; l < n_noise; l++)
                    S[i * n + j] += G[i * n_noise + k] * N[k * n_noise + l] * G[j * n_noise + l];
    for (int round = 0; round < 40 && largest > 1e-20 && largest < 1e100; round++)
        largest = double_law(n, F, S, scratch);
    return largest <= 1e-20;
}

/* ---- a Gaussian whose minibatch gradients have a known covariance ---- */

enum { N_ROW = 24, ROWS_PER_BATCH = 6 };

/*
 * The likelihood is sum_i b_i . (theta - mean) with sum_i b_i = 0: nothing when all are summed, and
 * noise of covariance V = N^2/n Cov(b) in a minibatch, wherever theta is.
 */
typedef struct noisy_model {
    law_model law;
    double b[N_ROW][LAW_MOST_DIM];
} noisy_model;

static em_status noisy_add_likelihood(em_model *base, const em_query *query)
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

/* Pairs of opposite rows, so that they sum to zero; of the given size, and correlated. */
static inline noisy_model noisy_model_of(const gaussian_law *law, double size)
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

/* V of a gradient from ROWS_PER_BATCH rows. */
static inline matrix noisy_covariance(const noisy_model *model, bool replacement)
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

/* ---- running a kernel ---- */

enum { N_CHAIN = 8 };

/* A kernel at work: 8 chains with one mass, step size and estimate of V. */
typedef struct kernel_run {
    const em_sampler_ops *ops;
    const void *options;
    const em_mass *mass;
    const em_noise *noise; /* may be NULL */
    double step_size;
    uint64_t seed;
} kernel_run;

/* A kernel by the text of its `sampler:` section but for the minibatch. `config` is to be
 * destroyed.
 */
static inline kernel_run configured_with(int minibatch, const char *sampler, const em_mass *mass,
                                         const em_noise *noise, uint64_t seed, em_config **config)
{
    char text[512];

    snprintf(text, sizeof text, "model: {name: gaussian}\nsampler: {minibatch: %d, %s}\n",
             minibatch, sampler);
    ck_assert_msg(em_config_parse("test.yaml", text, 0, NULL, config) == EM_OK, "%s",
                  em_error_text());
    return (kernel_run){.ops = (*config)->sampler,
                        .options = (*config)->sampler_options,
                        .mass = mass,
                        .noise = noise,
                        .step_size = ((em_sampler_options *)(*config)->sampler_options)->step_size,
                        .seed = seed};
}

/* The same with the minibatches of noisy_covariance. */
static inline kernel_run configured(const char *sampler, const em_mass *mass, const em_noise *noise,
                                    uint64_t seed, em_config **config)
{
    return configured_with(ROWS_PER_BATCH, sampler, mass, noise, seed, config);
}

typedef struct kernel_bench {
    const kernel_run *run;
    em_posterior *posterior;
    em_block *block;
    em_sampler *sampler;
    const em_mass *mass[N_CHAIN];
    const em_noise *noise[N_CHAIN];
    double step_size[N_CHAIN];
} kernel_bench;

static inline em_step_context bench_context(const kernel_bench *b, int64_t iteration)
{
    return (em_step_context){.posterior = b->posterior,
                             .mass = b->mass,
                             .step_size = b->step_size,
                             .seed = b->run->seed,
                             .iteration = iteration,
                             .noise = b->run->noise ? b->noise : NULL};
}

static inline void bench_open(em_model *model, em_grid *grid, const kernel_run *run,
                              kernel_bench *b)
{
    const int64_t n_extra = run->ops->n_extra ? run->ops->n_extra(run->options, model->dim) : 0;

    memset(b, 0, sizeof *b);
    b->run = run;
    em_posterior_create(model, grid, N_CHAIN, &b->posterior);
    em_block_create(0, N_CHAIN, model->dim, n_extra, &b->block);
    run->ops->create(run->options, N_CHAIN, model->dim, &b->sampler);
    for (int64_t c = 0; c < N_CHAIN; c++) {
        b->mass[c] = run->mass;
        b->noise[c] = run->noise;
        b->step_size[c] = run->step_size;
    }
}

static inline void number_chains(em_block *block, int64_t first)
{
    for (int64_t c = 0; c < block->n_chain; c++)
        block->chain[c] = first + c;
}

/* To be called when theta is set. */
static inline void bench_start(kernel_bench *b)
{
    const em_step_context context = bench_context(b, 0);

    em_block_evaluate(b->posterior, b->block);
    if (b->run->ops->refresh)
        b->run->ops->refresh(b->sampler, &context, b->block);
}

static inline void bench_close(kernel_bench *b)
{
    b->run->ops->destroy(b->sampler);
    em_block_destroy(&b->block);
    em_posterior_destroy(&b->posterior);
}

/* What a run visited: (theta - mean) and, with n_state = 2 dim, p; [n_state][N_CHAIN][n_draw]. */
typedef struct visited {
    int64_t n_state, n_draw;
    double *x;
} visited;

static inline void record(const em_block *block, const double *mean, int64_t t, visited *v)
{
    for (int64_t i = 0; i < v->n_state; i++)
        for (int64_t c = 0; c < N_CHAIN; c++) {
            const int64_t at = c * block->stride + i % block->dim;
            v->x[(i * N_CHAIN + c) * v->n_draw + t] =
                i < block->dim ? block->theta[at] - mean[i] : block->momentum[at];
        }
}

/* Chains start in the target's law and forget it in n_draw / 20 iterations. */
static inline visited visit(noisy_model *model, em_grid *grid, const kernel_run *run,
                            int64_t n_state, int64_t n_draw)
{
    visited v = {n_state, n_draw, calloc((size_t)(n_state * N_CHAIN * n_draw), sizeof(double))};
    kernel_bench b;

    bench_open(&model->law.base, grid, run, &b);
    for (int64_t c = 0; c < N_CHAIN; c++)
        law_draw(model->law.law, run->seed, c, b.block->theta + c * b.block->stride);
    bench_start(&b);
    for (int64_t t = -n_draw / 20; t < n_draw; t++) {
        const em_step_context context = bench_context(&b, t + n_draw / 20);
        run->ops->step(b.sampler, &context, b.block);
        if (t >= 0)
            record(b.block, model->law.law->mean, t, &v);
    }
    bench_close(&b);
    return v;
}

/* The largest deviation of means from 0 and of second moments from S [n_state][n_state], in their
 * Monte Carlo standard errors; infinite where a number is not finite. */
static inline double visited_z(const visited *v, const double *S)
{
    const int64_t n = N_CHAIN * v->n_draw;
    double *f = calloc((size_t)n, sizeof *f), worst = 0;
    em_diag *diag = NULL;

    em_diag_create(&diag);
    for (int64_t i = 0; i < v->n_state; i++)
        for (int64_t j = -1; j <= i; j++) {
            for (int64_t k = 0; k < n; k++)
                f[k] = v->x[i * n + k] * (j < 0 ? 1 : v->x[j * n + k]);
            const double z = law_z(diag, N_CHAIN, v->n_draw, f, j < 0 ? 0 : S[i * v->n_state + j]);
            worst = z <= worst ? worst : isfinite(z) ? z : INFINITY;
        }
    em_diag_destroy(&diag);
    free(f);
    return worst;
}

/* One iteration of the kernel from the same state and random numbers. */
static inline void kernel_iterate(kernel_bench *b, const double *mean, const double *x, double *out)
{
    const em_step_context context = bench_context(b, 3);
    const int64_t dim = b->block->dim;

    memcpy(b->block->momentum, x + dim, (size_t)dim * sizeof *x);
    for (int64_t i = 0; i < dim; i++)
        b->block->theta[i] = mean[i] + x[i];
    em_block_evaluate(b->posterior, b->block);
    b->run->ops->step(b->sampler, &context, b->block);
    for (int64_t i = 0; i < dim; i++) {
        out[i] = b->block->theta[i] - mean[i];
        out[dim + i] = b->block->momentum[i];
    }
}

/* The largest difference between the linear part of an iteration of the kernel and F of the step
 * that the test wrote down, over the first n_state of (theta, p). */
static inline double linear_part_error(noisy_model *model, em_grid *grid, const kernel_run *run,
                                       int64_t n_state, linear_step *step, const void *self)
{
    const int64_t dim = model->law.base.dim;
    const double *mean = model->law.law->mean;
    double F[LINEAR_MOST * LINEAR_MOST], x[2 * LAW_MOST_DIM] = {0}, at_zero[2 * LAW_MOST_DIM],
                                               at_unit[2 * LAW_MOST_DIM], worst = 0;
    kernel_bench b;

    columns_of(step, self, n_state, n_state, false, F);
    bench_open(&model->law.base, grid, run, &b);
    bench_start(&b);
    kernel_iterate(&b, mean, x, at_zero);
    for (int64_t j = 0; j < (n_state < 2 * dim ? dim : 2 * dim); j++) {
        x[j] = 1;
        kernel_iterate(&b, mean, x, at_unit);
        x[j] = 0;
        for (int64_t i = 0; i < n_state; i++)
            worst = fmax(worst, fabs(at_unit[i] - at_zero[i] - F[i * n_state + j]));
    }
    bench_close(&b);
    return worst;
}

/* Allocations of 20 iterations after the first. */
static inline int64_t allocations_of_steps(noisy_model *model, em_grid *grid, const kernel_run *run)
{
    int64_t before = 0;
    kernel_bench b;

    bench_open(&model->law.base, grid, run, &b);
    bench_start(&b);
    for (int64_t t = 0; t <= 20; t++) {
        const em_step_context context = bench_context(&b, t);
        if (t == 1)
            before = em_allocation_count();
        run->ops->step(b.sampler, &context, b.block);
    }
    const int64_t after = em_allocation_count();
    bench_close(&b);
    return after - before;
}

/* log2 of how much a bias shrinks when the step is halved: its order. */
static inline double order_of(double bias, double bias_of_half)
{
    return log2(bias / bias_of_half);
}

/* Frobenius norm of the first n x n block of S minus T, relative to that of T. */
static inline double relative_error(int64_t n, const double *S, int64_t ld, const matrix *T)
{
    double difference = 0, norm = 0;

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            difference += pow(S[i * ld + j] - T->at[i][j], 2);
            norm += pow(T->at[i][j], 2);
        }
    return sqrt(difference / norm);
}

#endif
