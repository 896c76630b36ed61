#include "app/check.h"

#include "app/arguments.h"
#include "app/run.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/room.h"
#include "base/terminal.h"
#include "exchange/adapt.h"
#include "io/dataset.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "par/world.h"
#include "posterior/posterior.h"
#include "run/fits.h"
#include "run/prior.h"
#include "run/recorder.h"
#include "run/same.h"

#include <math.h>
#include <popt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_POINT = 5, MOST_TRIES = 100, MOST_DIRECTIONS = 200 };

/* Central differences over a span h err by O(h^2 f''') and O(ulp f / h); h = 1e-5 of the scale
 * keeps both near 1e-9 of the gradient. Where the slope jumps within the span (a ReLU at 0) they
 * err by O(h), and narrower ones are tried. */
static const double span = 1e-5, narrowest = 1e-8, tolerance = 1e-5;

/* Seconds that the comparison may take, where densities of many observations take long. */
static const double most_seconds = 10;

typedef struct checker {
    const em_config *config;
    em_grid *grid;
    em_shards shards;
    em_model *model;
    em_posterior *posterior;
    bool is_wrong;                              /* the gradient, somewhere */
    int64_t most;                               /* directions at a point */
    double *theta, *gradient, *moved, *scratch; /* [stride] each */
} checker;

/* ---------------------------------------------------------------- plan */

/* On a rank that has `most` chains, and its share of the numbers. */
static double watched_bytes(const checker *check, int64_t most, const em_plan *plan)
{
    const int64_t width = em_deal_first(plan->watch.width, em_grid_n_shard(check->grid), 1);

    return (double)most * (double)plan->watch.n_row * (double)width * sizeof(double);
}

/* What learning takes on this rank, of all samplers. Collective. Errors: agreed. */
static em_status adaptation_bytes(const checker *check, double *bytes)
{
    const em_config *config = check->config;
    em_status status = EM_OK;

    *bytes = 0;
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
        if (!status)
            *bytes += em_adapt_bytes(adapt);
        em_adapt_destroy(&adapt);
        em_release(&own);
    }
    return status;
}

/* What a sampler takes of n chains: its own, and, where it moves a block of the parameters, its
 * block. */
static em_status make_sampler(const checker *check, int i, int64_t n)
{
    const em_config *config = check->config;
    const em_kernel_options *kernel = &config->kernel[i];
    const em_parameters *moved = em_sampler_parameters(config, check->model, i);
    const int64_t dim = moved ? moved->count : check->model->dim;
    const int64_t n_extra = kernel->ops->n_extra ? kernel->ops->n_extra(kernel->options, dim) : 0;
    em_posterior *part = NULL;
    em_block *block = NULL;
    em_sampler *sampler = NULL;
    double *extra = NULL;
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
    em_release(&extra);
    if (!status)
        status = kernel->ops->create(kernel->options, n, dim, &sampler);
    if (sampler)
        kernel->ops->destroy(sampler);
    return status;
}

static bool sums_all_rows(const checker *check)
{
    bool sums = em_grid_n_shard(check->grid) > 1;

    for (int i = 0; i < check->config->n_kernel; i++) {
        const em_kernel_options *kernel = &check->config->kernel[i];
        sums |= !em_takes_minibatches(kernel->ops, kernel->options);
    }
    return sums;
}

/* What n chains take on a rank: where they stand, and what samplers and the posterior keep of them.
 */
static em_status bytes_of_chains(const checker *check, int64_t n, double *bytes)
{
    const double before = em_allocated_bytes();
    double untouched = 0;
    em_posterior *posterior = NULL;
    em_block *block = NULL;
    em_status status = em_posterior_create(check->model, check->grid, n, &posterior);

    if (!status && !sums_all_rows(check))
        untouched = em_posterior_bytes_of_bins(posterior);
    em_posterior_destroy(&posterior);
    if (!status)
        status = em_block_create(0, n, check->model->dim, 0, &block);
    em_block_destroy(&block);
    for (int i = 0; !status && i < check->config->n_kernel; i++)
        status = make_sampler(check, i, n);
    *bytes = em_allocated_bytes() - before - untouched;
    return status;
}

/* Bytes on the rank that has most: of what the process has already, program, data and model; of its
 * chains and samplers, which are carried on to from one and two; of the averages that the model
 * keeps of each chain; and of the largest of what is there for a moment: a chain's best point while
 * it starts, or averages as they are written. */
typedef struct memory {
    double here, chains, averages, moment, draws, watched, learning;
} memory;

static em_status count_memory(const checker *check, const em_plan *plan, memory *out)
{
    const em_model *model = check->model;
    const int64_t most = em_deal_first(check->config->run.chains, em_grid_n_group(check->grid), 1);
    const double start = 3 * (double)(most * em_stride(model->dim)) * sizeof(double);
    double one = 0, two = 0;
    em_status status;

    *out = (memory){.here = em_resident_bytes(),
                    .draws = (double)(most * plan->buffer * plan->width.all) * sizeof(double),
                    .watched = watched_bytes(check, most, plan)};
    for (int64_t i = 0; i < model->n_average; i++)
        out->averages += (double)(most * em_variable_size(&model->average[i])) * sizeof(double);
    out->moment = fmax(start, out->averages);
    status = bytes_of_chains(check, 1, &one);
    if (!status)
        status = bytes_of_chains(check, 2, &two);
    out->chains = one + (two - one) * (double)(most - 1);
    return status;
}

static void print_memory(const memory *m)
{
    printf("# memory     %.3g MB per rank: %.3g of program, data and model, %.3g of chains and "
           "samplers, %.3g of averages, %.3g while they start or end, %.3g of draws in buffers, "
           "%.3g watched for convergence, %.3g MB to learn the mass\n",
           (m->here + m->chains + m->averages + m->moment + m->draws + m->watched + m->learning) /
               1e6,
           m->here / 1e6, m->chains / 1e6, m->averages / 1e6, m->moment / 1e6, m->draws / 1e6,
           m->watched / 1e6, m->learning / 1e6);
}

static void print_shards(const checker *check)
{
    const em_share *rows = &check->model->rows;
    const int64_t n_shard = em_grid_n_shard(check->grid);
    const int64_t n_part = rows->total > 0 ? (rows->total + rows->part - 1) / rows->part : 0;
    const int64_t most = rows->part * em_deal_first(n_part, n_shard, 1);

    if (n_shard == 1)
        return;
    if (rows->total == 0) {
        printf("# shards     %lld, as the model deals its data to them\n", (long long)n_shard);
        return;
    }
    printf("# shards     %lld, of at most %lld observations each, dealt in parts of %lld",
           (long long)n_shard, (long long)(most < rows->total ? most : rows->total),
           (long long)rows->part);
    if (n_part < n_shard)
        printf("; %lld hold none", (long long)(n_shard - n_part));
    printf("\n");
}

/* Where a variable is just the parameters of a block, their labels: of a table's columns. */
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

static void print_plan(const checker *check, const em_plan *plan, const memory *taken)
{
    const em_config *config = check->config;
    const int64_t n_group = em_grid_n_group(check->grid);
    const double draw = (double)plan->width.all * sizeof(double);

    printf("%s\n", config->full);
    printf("# plan\n");
    printf("# model      %s: %lld unconstrained parameters, %lld observations, %lld numbers per "
           "draw\n",
           config->model->name, (long long)check->model->dim, (long long)check->model->rows.total,
           (long long)plan->width.all);
    for (int64_t b = 0; b < check->model->n_block; b++)
        print_block(check->model, &check->model->block[b]);
    if (check->model->ops->describe)
        check->model->ops->describe(check->model, stdout);
    for (int64_t g = 0; g < n_group; g++)
        printf("# rank %-5lld chains %lld .. %lld\n", (long long)(g * em_grid_n_shard(check->grid)),
               (long long)em_deal_first(config->run.chains, n_group, g),
               (long long)em_deal_first(config->run.chains, n_group, g + 1) - 1);
    print_shards(check);
    printf("# iterations %s%lld of warmup, then %lld draws",
           config->run.warmup < 0 ? "at most " : "", (long long)plan->warmup,
           (long long)plan->n_draw);
    if (plan->thin > 1)
        printf(" of %lld iterations", (long long)plan->thin);
    printf("\n");
    print_memory(taken);
    if (plan->watch.width < plan->width.posterior || plan->watch.every > 1)
        printf("# watched    the first %lld of %lld numbers, of 1 in %lld draws\n",
               (long long)plan->watch.width, (long long)plan->width.posterior,
               (long long)plan->watch.every);
    printf("# output     %s, %.3g MB of draws\n", config->output.file,
           draw * (double)(config->run.chains * plan->n_draw) / 1e6);
}

/* ---------------------------------------------------------------- gradient */

static em_status density(checker *check, em_wanted wanted, const double *theta, double *gradient,
                         double *value)
{
    static const int64_t first_chain = 0;
    const em_query query = {.n_chain = 1,
                            .stride = em_stride(check->model->dim),
                            .chain = &first_chain,
                            .theta = theta,
                            .log_density = value,
                            .gradient = gradient,
                            .wanted = wanted};

    return em_posterior_evaluate(check->posterior, &query);
}

/* |analytic - numeric| / (1 + |numeric|) of one component, over a span; *right: as near as it can
 * be.
 */
static em_status difference(checker *check, int64_t i, double width, double *error, bool *right)
{
    const double scale = width * fmax(1, fabs(check->theta[i]));
    double up = 0, down = 0;
    em_status status;

    *right = true;
    for (int64_t k = 0; k < check->model->dim; k++)
        check->moved[k] = check->theta[k];
    check->moved[i] = check->theta[i] + scale;
    const double above = check->moved[i];
    status = density(check, EM_WANT_LOG_DENSITY, check->moved, check->scratch, &up);
    check->moved[i] = check->theta[i] - scale;
    if (!status)
        status = density(check, EM_WANT_LOG_DENSITY, check->moved, check->scratch, &down);
    if (!isfinite(up) || !isfinite(down)) /* at the edge of where there is a density */
        return status;
    const double numeric = (up - down) / (above - check->moved[i]);
    /* The difference cannot be better than the rounding of the densities. */
    const double rounding = 1e-14 * (fabs(up) + fabs(down)) / scale / (1 + fabs(numeric));
    *error = fabs(check->gradient[i] - numeric) / (1 + fabs(numeric));
    *right = *error < tolerance + rounding;
    return status;
}

static em_status component_error(checker *check, int64_t i, double *error)
{
    bool right = false;
    em_status status = EM_OK;

    for (double width = span; !status && !right && width >= narrowest; width /= 10) {
        double narrower = 0;
        status = difference(check, i, width, &narrower, &right);
        *error = width == span || narrower < *error ? narrower : *error;
    }
    check->is_wrong |= !right;
    return status;
}

/* Where a chain may begin: where the model has it, or a random point. */
static em_status place(checker *check, uint64_t point)
{
    const em_stream stream = {(uint64_t)check->config->run.seed, point, 0, EM_RNG_INIT};
    const em_draw draw = {stream.seed, 0, (int64_t)point, EM_DRAW_START};
    const double radius = check->config->run.init_radius;

    em_uniforms(&stream, 0, check->model->dim, check->theta);
    for (int64_t i = 0; i < check->model->dim; i++)
        check->theta[i] = radius * (2 * check->theta[i] - 1);
    return check->model->ops->place ? check->model->ops->place(check->model, &draw, check->theta)
                                    : EM_OK;
}

/* How many directions there is time for, of a density that takes so long. Collective: shards
 * evaluate together. */
static void plan_directions(checker *check, double seconds)
{
    const double most = most_seconds / N_POINT / (2 * seconds);

    check->most = most > MOST_DIRECTIONS ? MOST_DIRECTIONS : most > 1 ? (int64_t)most : 1;
    em_broadcast(&check->most, sizeof check->most);
}

/* At a random point; not where the density is not finite, as chains do not start there. */
static em_status check_point(checker *check, uint64_t point, double *worst, int64_t *where,
                             int *n_point)
{
    const int64_t dim = check->model->dim;
    const double start = em_clock();
    double value = 0;
    em_status status = place(check, point);

    if (!status)
        status = density(check, EM_WANT_BOTH, check->theta, check->gradient, &value);
    if (status || !isfinite(value))
        return status;
    plan_directions(check, em_clock() - start);
    ++*n_point;
    const int64_t every = (dim + check->most - 1) / check->most;
    for (int64_t i = 0; !status && i < dim; i += every) {
        double error = 0;
        status = component_error(check, i, &error);
        if (!(error <= *worst)) {
            *worst = error;
            *where = i;
        }
    }
    return status;
}

static void say_agreement(const checker *check, int n_point, double worst, int64_t where)
{
    if (!check->is_wrong)
        printf("# gradient   agrees with central differences at %d points, to %.2g\n", n_point,
               worst);
    else
        printf("# gradient   differs from central differences by up to %.2g of its size (component "
               "%lld, of %d points): that far the density is not exact where chains may start, by "
               "rounding or a solver in it (ODE, root, integral)\n",
               worst, (long long)where, n_point);
}

static em_status check_gradient(checker *check)
{
    double worst = 0;
    int64_t where = 0;
    int n_point = 0;
    em_status status = EM_OK;

    for (uint64_t point = 0; !status && n_point < N_POINT && point < MOST_TRIES; point++)
        status = check_point(check, point, &worst, &where, &n_point);
    if (!status && n_point == 0)
        status =
            em_fail(EM_EMODEL,
                    "model %s: no finite log density at %d points within run.init_radius %g of "
                    "the origin%s%s",
                    check->config->model->name, MOST_TRIES, check->config->run.init_radius,
                    check->model->rejections.count > 0 ? ": " : "", check->model->rejections.first);
    if (!status && check->is_wrong && !check->model->differentiated)
        status = em_fail(EM_EMODEL,
                         "model %s: the gradient's component %lld differs from central differences "
                         "by %.3g of its size, expected less than %g",
                         check->config->model->name, (long long)where, worst, tolerance);
    status = em_agree(status);
    if (!status && em_world_rank() == 0)
        say_agreement(check, n_point, worst, where);
    return status;
}

/* How long a gradient takes where chains start: of one chain, for a fifth of a second. Collective.
 */
static em_status time_gradient(checker *check)
{
    const double start = em_clock(), enough = 0.2;
    double value = 0, seconds = 0;
    int64_t n = 0;
    em_status status = EM_OK;

    for (int64_t batch = 1; !status && seconds < enough; batch *= 2) {
        for (int64_t i = 0; !status && i < batch; i++)
            status = density(check, EM_WANT_BOTH, check->theta, check->gradient, &value);
        n += batch;
        seconds = em_clock() - start;
        em_broadcast(&seconds, sizeof seconds); /* shards evaluate together */
    }
    status = em_agree(status);
    if (!status && em_world_rank() == 0)
        printf("# speed      %.3g us a gradient of one chain\n", 1e6 * seconds / (double)n);
    return status;
}

/* ---------------------------------------------------------------- the command */

static em_status load(checker *check, em_plan *plan)
{
    const em_config *config = check->config;
    em_width width = {0, 0};
    em_status status = em_grid_create(config->run.chains, config->run.shards, &check->grid);

    if (status)
        return status;
    check->shards = em_shards_of(check->grid);
    const em_model_context context = {.seed = (uint64_t)config->run.seed,
                                      .shard = em_grid_shard(check->grid),
                                      .n_shard = em_grid_n_shard(check->grid),
                                      .ops = config->model,
                                      .n_chain = 1,
                                      .exact = true,
                                      .shards = &check->shards};
    status = em_config_create_model(config, &context, &check->model);
    if (!status)
        status = em_sampler_fits(config, check->model);
    if (!status)
        status = em_prior_fits(config, check->model);
    if (!status)
        status = em_recorder_width(config, check->model, &width);
    if (!status)
        status = em_posterior_create(check->model, check->grid, 1, &check->posterior);
    if (!status)
        status = em_allocate(4 * em_stride(check->model->dim), sizeof(double), &check->theta);
    if (!status) {
        const int64_t stride = em_stride(check->model->dim);
        check->gradient = check->theta + stride;
        check->moved = check->theta + 2 * stride;
        check->scratch = check->theta + 3 * stride;
        status = em_plan_create(config, width, plan);
    }
    status = em_agree(status);
    if (!status)
        status = em_same_data(check->model);
    if (!status)
        status = em_agree(em_model_summarise(check->model, check->grid));
    return status;
}

/* Tables may be long, and Stan programs longer to translate: a person at a terminal sees that. */
static em_status load_before_eyes(checker *check, em_plan *plan)
{
    em_progress *progress = NULL;
    em_status status = EM_OK;

    if (em_world_rank() == 0 && em_terminal_columns(stderr) > 0)
        status = em_progress_create(EM_PROGRESS_BAR, stderr, "loading", &progress);
    status = em_agree(status);
    if (!status)
        status = load(check, plan);
    em_progress_give_way(progress);
    em_progress_destroy(&progress);
    return status;
}

static bool has_exact_density(const em_model *model)
{
    return model->ops->add_prior && !model->estimates;
}

static em_status check_config(const em_config *config)
{
    checker check = {.config = config};
    em_plan plan;
    memory taken;
    em_status status = load_before_eyes(&check, &plan);

    if (!status)
        status = em_agree(count_memory(&check, &plan, &taken));
    if (!status)
        status = adaptation_bytes(&check, &taken.learning);
    if (!status && em_world_rank() == 0)
        print_plan(&check, &plan, &taken);
    if (!status && has_exact_density(check.model))
        status = check_gradient(&check);
    else if (!status && em_world_rank() == 0)
        printf("# gradient   not compared: the model %s\n",
               check.model->estimates ? "estimates its density by random numbers"
                                      : "has no density, but an update of its own");
    if (!status && has_exact_density(check.model))
        status = time_gradient(&check);
    em_release(&check.theta);
    em_posterior_destroy(&check.posterior);
    if (check.model)
        check.model->ops->destroy(check.model);
    em_grid_destroy(&check.grid);
    return status;
}

static em_status parse_command(int argc, const char **argv, char **path, em_texts *overrides)
{
    const struct poptOption options[] = {
        {"set", 0, POPT_ARG_STRING, NULL, 's', "override one setting of the config", "KEY=VALUE"},
        POPT_TABLEEND};
    poptContext context = poptGetContext("emass check", argc, argv, options, 0);
    em_status status = em_allocate(argc, sizeof(char *), &overrides->value);
    int option = -1;

    while (!status && (option = poptGetNextOpt(context)) > 0) {
        char *value = poptGetOptArg(context);
        status = em_copy_text(value, &overrides->value[overrides->count++]);
        free(value);
    }
    if (!status)
        status = em_arguments_check(context, "check", option);
    if (!status)
        status = em_arguments_only(context, "check", "one config file", path);
    poptFreeContext(context);
    return status;
}

static em_status load_config(const char *path, const em_texts *overrides, em_config **out)
{
    char *text = NULL;
    em_status status = em_read_config(path, &text);

    if (!status)
        status = em_agree(em_config_parse(path, text, (int)overrides->count,
                                          (const char *const *)overrides->value, out));
    em_release(&text);
    return status;
}

em_status em_check_command(int argc, const char **argv)
{
    em_texts overrides = {0};
    char *path = NULL;
    em_config *config = NULL;
    em_status status = em_agree(parse_command(argc, argv, &path, &overrides));

    if (!status)
        status = em_agree(em_linalg_reserve());
    if (!status)
        status = load_config(path, &overrides, &config);
    if (!status)
        status = check_config(config);
    em_config_destroy(&config);
    for (int64_t i = 0; i < overrides.count; i++)
        em_release(&overrides.value[i]);
    em_release(&overrides.value);
    em_release(&path);
    return status;
}
