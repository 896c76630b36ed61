#include "app/command/check_plan.h"

#include "adaptation/adaptation.h"
#include "base/available_memory.h"
#include "base/memory.h"
#include "base/text.h"
#include "emass/model/latent.h"
#include "model/model.h"
#include "par/world.h"
#include "run/config/compatibility.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

em_status em_checked_model(const em_checked *check, int64_t n_chain, em_model **out)
{
    const em_config *config = check->config;
    em_model_context context = em_config_model_context(config, check->grid, &check->shards);

    context.n_chain = n_chain;
    context.exact = true;
    context.minibatches = em_config_takes_minibatches(config);
    return em_config_create_model(config, &context, out);
}

/* The bytes that the convergence monitor needs on a rank with `most` chains for its share of the
 * monitored numbers. */
static double watched_bytes(const em_checked *check, int64_t most, const em_plan *plan)
{
    const int64_t width =
        em_partition_first(plan->monitored.width, em_grid_n_shard(check->grid), 1);

    return (double)most * (double)plan->monitored.n_row * (double)width * sizeof(double);
}

/* The memory of adaptation on this rank, for all samplers. *has_initial_phase: one of them begins
 * with the initial phase. Collective. Errors: agreed. */
static em_status adaptation_bytes(const em_checked *check, double *bytes, bool *has_initial_phase)
{
    const em_config *config = check->config;
    em_status status = EM_OK;

    *bytes = 0;
    *has_initial_phase = false;
    for (int i = 0; !status && i < config->n_kernel; i++) {
        const em_kernel_options *kernel = &config->kernel[i];
        em_mass_options mass = *kernel->mass;
        const em_parameters *moved = em_sampler_parameters(config, check->model, i);
        em_adapt *adapt = NULL;
        double *own = NULL;
        status = em_agree(em_choose_blocks(config, check->model, &mass, &own));
        if (!status)
            status = em_adapt_create(&mass, kernel->ops, kernel->options, check->grid,
                                     moved ? moved->count : check->model->dim, config->run.warmup,
                                     0, &adapt);
        if (!status) {
            *bytes += em_adapt_bytes(adapt);
            *has_initial_phase |= em_adapt_learned(adapt).has_initial_phase;
        }
        em_adapt_destroy(&adapt);
        em_release(&own);
    }
    return status;
}

/* Adds the memory of a sampler of n chains, and of its block if it moves only a block of the
 * parameters. */
static em_status make_sampler(const em_checked *check, int i, int64_t n)
{
    const em_config *config = check->config;
    const em_kernel_options *kernel = &config->kernel[i];
    const em_parameters *moved = em_sampler_parameters(config, check->model, i);
    const int64_t dim = moved ? moved->count : check->model->dim;
    const int64_t n_extra = em_sampler_n_extra(kernel->ops, kernel->options, dim);
    em_posterior *part = NULL;
    em_block *block = NULL;
    em_sampler *sampler = NULL;
    EM_SCOPED double *extra = NULL;
    em_status status = EM_OK;

    if (moved) {
        status = em_posterior_create_part(check->posterior, moved, n, 0, NULL, &part);
        em_posterior_destroy(&part);
    }
    if (!status && moved)
        status = em_block_create(0, n, dim, n_extra, &block);
    else if (!status)
        status = em_allocate(n * n_extra, sizeof(double), &extra);
    em_block_destroy(&block);
    status = status ? status : em_sampler_create(kernel->ops, kernel->options, n, dim, &sampler);
    em_sampler_destroy(&sampler);
    return status;
}

static bool sums_all_rows(const em_checked *check)
{
    bool sums = em_grid_n_shard(check->grid) > 1;

    for (int i = 0; i < check->config->n_kernel; i++) {
        const em_kernel_options *kernel = &check->config->kernel[i];
        sums |= !em_takes_minibatches(kernel->ops, kernel->options);
    }
    return sums;
}

/* The memory of n chains on a rank: their states, and the data of samplers and of the posterior.
 * *rest: how much of it is the unused rest of memory pages. */
static em_status bytes_of_chains(const em_checked *check, int64_t n, double *bytes, double *rest)
{
    const double before = em_allocated_bytes(), rest_before = em_allocated_rest();
    double untouched = 0;
    em_posterior *posterior = NULL;
    em_block *block = NULL;
    em_status status = em_posterior_create(check->model, check->grid, n, &posterior);

    if (!status && !sums_all_rows(check))
        untouched = em_posterior_bytes_of_bins(posterior);
    em_posterior_destroy(&posterior);
    status = status ? status : em_block_create(0, n, check->model->dim, 0, &block);
    em_block_destroy(&block);
    *bytes = -untouched;
    for (int i = 0; !status && i < check->config->n_kernel; i++) {
        const em_parameters *moved = em_sampler_parameters(check->config, check->model, i);
        const em_sampler_ops *ops = check->config->kernel[i].ops;
        status = make_sampler(check, i, n);
        if (ops->refresh_bytes)
            *bytes += ops->refresh_bytes(moved ? moved->count : check->model->dim);
    }
    *bytes += em_allocated_bytes() - before;
    *rest = em_allocated_rest() - rest_before;
    return status;
}

/* The memory of each further chain if the model keeps state for each chain. */
static em_status bytes_of_state(const em_checked *check, double *bytes)
{
    const double before = em_allocated_bytes();
    em_model *two = NULL;

    const em_model_latent *latent = check->model->ops->latent;
    *bytes = latent && latent->chain_bytes ? latent->chain_bytes(check->model) : 0;
    if (!latent || latent->chain_bytes)
        return EM_OK;
    const em_status status = em_checked_model(check, 2, &two);
    *bytes = fmax(em_allocated_bytes() - before - check->model_bytes, 0);
    em_model_destroy(&two);
    return status;
}

/* Bytes on the rank with most chains. They are the sum of: the present memory of the process with
 * program, data and model; its chains and samplers, extrapolated from FEW chains, as the last pages
 * of arrays matter where there are not more; the averages of a chain, or of all chains if they are
 * combined, while they are written; and the largest temporary array: the chains' best points, where
 * the start looks for modes, or a variable of averages in the layout of the file. */
typedef struct memory {
    double here, chains, averages, moment, draws, watched, learning;
} memory;

enum { FEW = 8 };

static em_status count_memory(const em_checked *check, const em_plan *plan, memory *out)
{
    const em_model *model = check->model;
    const int64_t most =
        em_partition_first(check->config->run.chains, em_grid_n_group(check->grid), 1);
    const int64_t few = em_least(most, FEW);
    double bytes[2] = {0}, rest[2] = {0}, state = 0, largest = 0;
    bool has_initial_phase = false;
    em_status status = most > 1 ? bytes_of_state(check, &state) : EM_OK;

    *out = (memory){.here = em_resident_bytes(),
                    .draws = (double)(most * plan->buffer * plan->width.all) * sizeof(double),
                    .watched = watched_bytes(check, most, plan)};
    for (int64_t i = 0; i < model->n_average; i++) {
        const double n = (double)em_variable_size(&model->average[i]);
        const bool is_single = model->average[i].storage == EM_STORE_SINGLE;
        out->averages += n * (model->n_pooled > 0 ? (double)most : 1) * sizeof(double);
        largest = fmax(largest, n * (is_single ? sizeof(float) : sizeof(double)));
    }
    status = status ? status : bytes_of_chains(check, few, &bytes[0], &rest[0]);
    if (!status && most > few)
        status = bytes_of_chains(check, few + 1, &bytes[1], &rest[1]);
    out->chains = bytes[0] + state * (double)(most - 1) +
                  (bytes[1] - rest[1] - (bytes[0] - rest[0])) * (double)(most - few);
    status = em_agree(status);
    status = status ? status : adaptation_bytes(check, &out->learning, &has_initial_phase);
    out->moment = largest;
    /* the run may search for modes at the start */
    if (check->config->temper.on || (has_initial_phase && sums_all_rows(check)))
        out->moment = fmax(largest, 3 * em_bytes_of_doubles(most * em_stride(model->dim)));
    return status;
}

static void print_memory(const memory *m, double peak)
{
    const double sum =
        m->here + m->chains + m->averages + m->moment + m->draws + m->watched + m->learning;

    printf("# memory     %s MB per rank: %s of program, data and model (%s while they are read), "
           "%s of chains and samplers, %s of averages, %s while they start or end, %s of draws in "
           "buffers, %s to monitor convergence, %s MB to learn the mass\n",
           em_megabytes(fmax(sum, peak)).text, em_megabytes(m->here).text, em_megabytes(peak).text,
           em_megabytes(m->chains).text, em_megabytes(m->averages).text,
           em_megabytes(m->moment).text, em_megabytes(m->draws).text, em_megabytes(m->watched).text,
           em_megabytes(m->learning).text);
}

static void print_shards(const em_checked *check)
{
    const em_share *rows = &check->model->rows;
    const int64_t n_shard = em_grid_n_shard(check->grid);
    const int64_t n_part = rows->total > 0 ? (rows->total + rows->part - 1) / rows->part : 0;
    const int64_t most = rows->part * em_partition_first(n_part, n_shard, 1);

    if (n_shard == 1)
        return;
    if (check->config->run.ranks_per_chain > 1) {
        printf("# ranks      %lld evaluate each density together\n", (long long)n_shard);
        return;
    }
    if (rows->total == 0) {
        printf("# shards     %lld, as the model distributes its data\n", (long long)n_shard);
        return;
    }
    printf("# shards     %lld, of at most %lld observations each, assigned in parts of %lld",
           (long long)n_shard, (long long)(most < rows->total ? most : rows->total),
           (long long)rows->part);
    if (n_part < n_shard)
        printf("; %lld hold none", (long long)(n_shard - n_part));
    printf("\n");
}

/* If a variable equals the parameters of a block, prints their labels: names of table columns. */
static void print_block(const em_model *model, const em_parameters *block)
{
    enum { MOST = 20 };

    printf("# block      %s: parameters %lld .. %lld", block->name, (long long)block->first,
           (long long)(block->first + block->count - 1));
    for (int64_t v = 0; v < model->n_variable; v++) {
        const em_variable *of = &model->variable[v];
        if (strcmp(of->name, block->name) != 0 || of->n_axes != 1 || !of->label[0] ||
            of->shape[0] != block->count)
            continue;
        for (int64_t i = 0; i < block->count && i < MOST; i++)
            printf("%s%s", i == 0 ? ": " : ", ", of->label[0][i]);
        printf("%s", block->count > MOST ? ", ..." : "");
    }
    printf("\n");
}

static void print_plan(const em_checked *check, const em_plan *plan, const memory *taken)
{
    const em_config *config = check->config;
    const int64_t n_group = em_grid_n_group(check->grid);
    const double draw = (double)plan->width.all * sizeof(double);

    if (!check->brief)
        printf("%s\n", config->full);
    printf("# plan\n");
    printf("# model      %s: %lld unconstrained parameters, ", config->model->name,
           (long long)check->model->dim);
    if (check->model->rows.total > 1) /* of other models it is not known */
        printf("%lld observations, ", (long long)check->model->rows.total);
    printf("%lld numbers per draw\n", (long long)plan->width.all);
    for (int64_t b = 0; b < check->model->n_block; b++)
        print_block(check->model, &check->model->block[b]);
    if (check->model->ops->describe)
        check->model->ops->describe(check->model, stdout);
    for (int64_t g = 0; g < n_group; g++)
        printf("# rank %-5lld chains %lld .. %lld\n", (long long)(g * em_grid_n_shard(check->grid)),
               (long long)em_partition_first(config->run.chains, n_group, g),
               (long long)em_partition_first(config->run.chains, n_group, g + 1) - 1);
    print_shards(check);
    printf("# iterations %s%lld of warmup, then %s%lld draws",
           config->run.warmup < 0 ? "at most " : "", (long long)plan->warmup,
           plan->until_done ? "until done, at most " : "", (long long)plan->most_draws);
    if (plan->most_capacity < plan->most_draws)
        printf(", of which at most %lld are kept", (long long)plan->most_capacity);
    if (plan->thin > 1)
        printf(" of %lld iterations each, %s in all", (long long)plan->thin,
               em_three_digits((double)plan->total).text);
    printf("\n");
    print_memory(taken, check->peak_bytes);
    if (plan->monitored.width < plan->width.posterior || plan->monitored.every > 1)
        printf("# monitored  the first %lld of %lld numbers, of 1 in %lld draws\n",
               (long long)plan->monitored.width, (long long)plan->width.posterior,
               (long long)plan->monitored.every);
    printf("# output     %s, %s%s MB of draws\n", config->output.file,
           plan->until_done ? "at most " : "",
           em_megabytes(draw * (double)(config->run.chains * plan->most_capacity)).text);
}

em_status em_check_plan(const em_checked *check, const em_plan *plan)
{
    memory taken;
    const em_status status = count_memory(check, plan, &taken);

    if (!status && em_world_rank() == 0)
        print_plan(check, plan, &taken);
    return status;
}
