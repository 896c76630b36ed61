#include "support/kernel_bench.h"

kernel_run configured_with(int minibatch, const char *sampler, const em_mass *mass,
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

kernel_run configured(const char *sampler, const em_mass *mass, const em_noise *noise,
                      uint64_t seed, em_config **config)
{
    return configured_with(ROWS_PER_BATCH, sampler, mass, noise, seed, config);
}

em_step_context bench_context(const kernel_bench *b, int64_t iteration)
{
    em_step_context context = {.posterior = b->posterior,
                               .mass = b->mass,
                               .step_size = b->step_size,
                               .seed = b->run->seed,
                               .iteration = iteration,
                               .noise = b->run->noise ? b->noise : NULL,
                               .trajectory = b->run->trajectory};

    context.trajectory.number = iteration + 1;
    return context;
}

void bench_open(em_model *model, em_grid *grid, const kernel_run *run, kernel_bench *b)
{
    const int64_t n_extra = em_sampler_n_extra(run->ops, run->options, model->dim);

    memset(b, 0, sizeof *b);
    b->run = run;
    em_posterior_create(model, grid, N_CHAIN, &b->posterior);
    em_block_create(0, N_CHAIN, model->dim, n_extra, &b->block);
    em_sampler_create(run->ops, run->options, N_CHAIN, model->dim, &b->sampler);
    for (int64_t c = 0; c < N_CHAIN; c++) {
        b->mass[c] = run->mass;
        b->noise[c] = run->noise;
        b->step_size[c] = run->step_size;
    }
}

void number_chains(em_block *block, int64_t first)
{
    for (int64_t c = 0; c < block->n_chain; c++)
        block->chain[c] = first + c;
}

void bench_start(kernel_bench *b)
{
    const em_step_context context = bench_context(b, 0);

    em_block_evaluate(b->posterior, b->block);
    if (b->run->ops->refresh)
        b->run->ops->refresh(b->sampler, &context, b->block);
}

void bench_close(kernel_bench *b)
{
    em_sampler_destroy(&b->sampler);
    em_block_destroy(&b->block);
    em_posterior_destroy(&b->posterior);
}

static void record(const em_block *block, const double *mean, int64_t t, visited *v)
{
    for (int64_t i = 0; i < v->n_state; i++)
        for (int64_t c = 0; c < N_CHAIN; c++) {
            const int64_t at = c * block->stride + i % block->dim;
            v->x[(i * N_CHAIN + c) * v->n_draw + t] =
                i < block->dim ? block->theta[at] - mean[i] : block->momentum[at];
        }
    for (int64_t c = 0; c < N_CHAIN; c++) {
        v->acceptance += block->acceptance[c] / (double)(N_CHAIN * v->n_draw);
        v->fewest = fmin(v->fewest, block->n_step[c]);
        v->most = fmax(v->most, block->n_step[c]);
    }
}

visited visit(law_model *model, em_grid *grid, const kernel_run *run, int64_t n_state,
              int64_t n_draw)
{
    visited v = {.n_state = n_state,
                 .n_draw = n_draw,
                 .x = calloc((size_t)(n_state * N_CHAIN * n_draw), sizeof(double)),
                 .fewest = INFINITY};
    kernel_bench b;

    bench_open(&model->base, grid, run, &b);
    for (int64_t c = 0; c < N_CHAIN; c++)
        law_draw(model->law, run->seed, c, b.block->theta + c * b.block->stride);
    bench_start(&b);
    for (int64_t t = -n_draw / 20; t < n_draw; t++) {
        const em_step_context context = bench_context(&b, t + n_draw / 20);
        run->ops->step(b.sampler, &context, b.block);
        if (t >= 0)
            record(b.block, model->law->mean, t, &v);
    }
    bench_close(&b);
    return v;
}

double visited_z(const visited *v, const double *S)
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

double law_worst_z(const gaussian_law *law, em_grid *grid, const kernel_run *run, int64_t n_draw,
                   visited *moves)
{
    law_model model = law_model_of(law);
    visited v = visit(&model, grid, run, law->dim, n_draw);
    double covariance[LAW_MOST_DIM * LAW_MOST_DIM];

    law_covariance(law, covariance);
    const double z = visited_z(&v, covariance);
    free(v.x);
    v.x = NULL;
    if (moves)
        *moves = v;
    return z;
}

/* One iteration of the kernel from the same state and random numbers. */
static void kernel_iterate(kernel_bench *b, const double *mean, const double *x, double *out)
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

double linear_part_error(noisy_model *model, em_grid *grid, const kernel_run *run, int64_t n_state,
                         linear_step *step, const void *self)
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

int64_t allocations_of_steps(noisy_model *model, em_grid *grid, const kernel_run *run)
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
