#include "run/output.h"

#include "base/memory.h"
#include "io/reader.h"
#include "io/writer.h"
#include "par/world.h"
#include "version.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

enum { MOST_VARIABLES = 256 };

/* A group of draws that is being filled: posterior or sample_stats, of warmup or of sampling. */
typedef struct em_draws {
    int group; /* of the writer; -1: not stored */
    int64_t width;
    double *buffer; /* [n_local_chain][flush_every][width] */
} em_draws;

enum { POSTERIOR, STATS, UNCONSTRAINED, N_KIND };

static const char *const group_names[N_KIND] = {"posterior", "sample_stats",
                                                "unconstrained_posterior"};
static const char *const warmup_names[N_KIND] = {"warmup_posterior", "warmup_sample_stats",
                                                 "warmup_unconstrained_posterior"};

struct em_output {
    const em_config *config;
    const em_grid *grid;
    const em_model *model;
    em_plan plan;
    em_writer *writer;
    int64_t n_local_chain;
    double *constrained; /* [n_chain of the block = 1][all variables] */
    int64_t n_selected;
    int64_t selected_first[MOST_VARIABLES], selected_size[MOST_VARIABLES]; /* in `constrained` */
    em_draws sampling[N_KIND], warmup[N_KIND];
    int64_t first, count; /* the buffer holds stored draws first .. first + count of its phase */
    bool in_warmup;       /* which phase that is */
};

/* ---------------------------------------------------------------- which numbers */

static int64_t variable_size(const em_variable *variable)
{
    int64_t size = 1;

    for (int i = 0; i < variable->n_axes; i++)
        size *= variable->shape[i];
    return size;
}

static bool is_selected(const em_config *config, const char *name)
{
    for (int64_t i = 0; i < config->output.variables.count; i++)
        if (strcmp(config->output.variables.value[i], name) == 0)
            return true;
    return config->output.variables.count == 0;
}

em_status em_output_width(const em_config *config, const em_model *model, int64_t *width)
{
    *width = 0;
    for (int64_t i = 0; i < config->output.variables.count; i++) {
        bool found = false;
        for (int64_t k = 0; k < model->n_variable; k++)
            found |= strcmp(config->output.variables.value[i], model->variable[k].name) == 0;
        if (!found)
            return em_fail(EM_ECONFIG,
                           "%s: output.variables: found '%s', expected variables of model %s",
                           config->path, config->output.variables.value[i], model->ops->name);
    }
    if (model->n_variable > MOST_VARIABLES)
        return em_fail(EM_EINTERNAL, "model %s has more than %d variables", model->ops->name,
                       MOST_VARIABLES);
    for (int64_t k = 0; k < model->n_variable; k++)
        if (is_selected(config, model->variable[k].name))
            *width += variable_size(&model->variable[k]);
    return EM_OK;
}

static em_storage stat_storage(em_stat stat)
{
    if (stat == EM_STAT_DIVERGING)
        return EM_STORE_BOOL;
    return stat == EM_STAT_N_STEPS ? EM_STORE_INT : EM_STORE_REAL;
}

/* ---------------------------------------------------------------- set up */

static int64_t posterior_series(em_output *output, em_series *series)
{
    int64_t first = 0;

    for (int64_t k = 0; k < output->model->n_variable; k++) {
        const em_variable *variable = &output->model->variable[k];
        if (is_selected(output->config, variable->name)) {
            output->selected_first[output->n_selected] = first;
            output->selected_size[output->n_selected] = variable_size(variable);
            series[output->n_selected++] = (em_series){*variable, EM_STORE_REAL};
        }
        first += variable_size(variable);
    }
    return output->n_selected;
}

static int64_t stat_series(const em_sampler_ops *sampler, em_series *series)
{
    int64_t n = 0;

    for (; sampler->stats[n] != EM_STAT_COUNT; n++)
        series[n] =
            (em_series){{.name = em_stat_name[sampler->stats[n]]}, stat_storage(sampler->stats[n])};
    return n;
}

static em_status add_group(em_output *output, const char *name, int64_t n_series,
                           const em_series *series, int64_t n_draw, em_draws *out)
{
    em_status status;

    for (int64_t i = 0; i < n_series; i++)
        out->width += variable_size(&series[i].variable);
    status = em_agree(em_allocate(output->n_local_chain * output->plan.flush_every * out->width,
                                  sizeof(double), &out->buffer));
    return status ? status
                  : em_writer_add_draws(output->writer, name, n_series, series, n_draw,
                                        output->plan.flush_every, &out->group);
}

static em_status add_draws(em_output *output)
{
    em_series series[MOST_VARIABLES];
    em_status status = EM_OK;

    for (int kind = 0; !status && kind < N_KIND; kind++) {
        int64_t n = 1;
        output->sampling[kind].group = output->warmup[kind].group = -1;
        if (kind == POSTERIOR)
            n = posterior_series(output, series);
        else if (kind == STATS)
            n = stat_series(output->config->sampler, series);
        else if (output->config->output.save_unconstrained)
            series[0] = (em_series){{.name = "theta", .n_axes = 1, .shape = {output->model->dim}},
                                    EM_STORE_REAL};
        else
            continue;
        status = add_group(output, group_names[kind], n, series, output->plan.n_draw,
                           &output->sampling[kind]);
        if (!status && output->plan.n_warmup_draw > 0)
            status = add_group(output, warmup_names[kind], n, series, output->plan.n_warmup_draw,
                               &output->warmup[kind]);
    }
    return status;
}

static uint64_t model_hash(const em_model *model)
{
    uint64_t hash = XXH64(model->ops->name, strlen(model->ops->name), (uint64_t)model->dim);

    for (int64_t k = 0; k < model->n_variable; k++) {
        const em_variable *variable = &model->variable[k];
        hash = XXH64(variable->name, strlen(variable->name), hash);
        hash = XXH64(variable->shape, (size_t)variable->n_axes * sizeof *variable->shape, hash);
    }
    return hash;
}

static em_status put_hash(em_writer *writer, const char *name, uint64_t hash)
{
    char text[32];

    snprintf(text, sizeof text, "xxh64:%016llx", (unsigned long long)hash);
    return em_writer_put_text(writer, name, text);
}

/* SOURCE_DATE_EPOCH stands for the time, and leaves out what changes from run to run. */
static bool is_reproducible(void)
{
    return getenv("SOURCE_DATE_EPOCH") != NULL;
}

static em_status put_created_at(em_writer *writer)
{
    const char *epoch = getenv("SOURCE_DATE_EPOCH");
    int64_t seconds = epoch ? strtoll(epoch, NULL, 10) : (int64_t)time(NULL);
    const time_t now = (em_broadcast(&seconds, sizeof seconds), (time_t)seconds);
    char text[32];

    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    return em_writer_put_text(writer, "created_at", text);
}

static em_status put_attributes(em_output *output)
{
    em_writer *writer = output->writer;
    const em_config *config = output->config;
    const struct {
        const char *name, *text;
    } texts[] = {{"inference_library", "emass"},     {"inference_library_version", EM_VERSION},
                 {"creation_library", "emass"},      {"creation_library_version", EM_VERSION},
                 {"creation_library_language", "C"}, {"git_commit", EM_COMMIT},
                 {"model", config->model->name},     {"sampler", config->sampler->name},
                 {"config", config->stored}};
    em_status status = EM_OK;

    for (size_t i = 0; !status && i < sizeof texts / sizeof *texts; i++)
        status = em_writer_put_text(writer, texts[i].name, texts[i].text);
    if (!status)
        status = em_writer_put_int(writer, "seed", config->run.seed);
    if (!status)
        status = em_writer_put_int(writer, "shards", config->run.shards);
    if (!status)
        status = em_writer_put_int(writer, "tuning_steps", config->run.warmup);
    if (!status)
        status = em_writer_put_int(writer, "planned_draws", config->run.draws);
    if (!status)
        status = put_hash(writer, "model_hash", model_hash(output->model));
    if (!status)
        status = put_hash(writer, "data_hash", output->model->data_hash);
    return status ? status : put_created_at(writer);
}

static em_status create_file(em_output *output, bool overwrite)
{
    em_status status =
        em_writer_create(output->grid, output->config->output.file, overwrite, &output->writer);

    if (!status)
        status = put_attributes(output);
    if (!status)
        status = add_draws(output);
    for (int64_t i = 0; !status && i < output->model->n_datum; i++) {
        const em_datum *datum = &output->model->datum[i];
        status = em_writer_put_array(output->writer, datum->group, &datum->variable, EM_STORE_REAL,
                                     datum->value);
    }
    return status ? status : em_writer_flush(output->writer);
}

em_status em_output_create(const em_config *config, const em_grid *grid, const em_model *model,
                           const em_plan *plan, bool overwrite, em_output **out)
{
    em_output *output = NULL;
    int64_t all = 0;
    em_status status = em_allocate(1, sizeof *output, &output);

    for (int64_t k = 0; k < model->n_variable; k++)
        all += variable_size(&model->variable[k]);
    if (!status)
        status = em_allocate(all, sizeof(double), &output->constrained);
    status = em_agree(status);
    if (!status) {
        output->config = config;
        output->grid = grid;
        output->model = model;
        output->plan = *plan;
        output->n_local_chain = em_grid_n_local_chain(grid);
        status = create_file(output, overwrite);
    }
    if (status)
        em_output_destroy(&output);
    *out = output;
    return status;
}

void em_output_destroy(em_output **out)
{
    em_output *output = *out;

    if (!output)
        return;
    for (int kind = 0; kind < N_KIND; kind++) {
        em_release(&output->sampling[kind].buffer);
        em_release(&output->warmup[kind].buffer);
    }
    em_release(&output->constrained);
    em_writer_close(&output->writer, false);
    em_release(out);
}

/* ---------------------------------------------------------------- draws */

static double *row(const em_output *output, const em_draws *draws, int64_t chain)
{
    return draws->buffer + (chain * output->plan.flush_every + output->count) * draws->width;
}

static void take_posterior(em_output *output, const em_block *block, int64_t chain, double *to)
{
    output->model->ops->constrain(output->model, block->theta + chain * block->stride,
                                  output->constrained);
    for (int64_t k = 0; k < output->n_selected; k++) {
        memcpy(to, output->constrained + output->selected_first[k],
               (size_t)output->selected_size[k] * sizeof *to);
        to += output->selected_size[k];
    }
}

static void take_stats(const em_sampler_ops *sampler, const em_block *block, int64_t chain,
                       double *to)
{
    for (int64_t i = 0; sampler->stats[i] != EM_STAT_COUNT; i++)
        to[i] = block->stat[sampler->stats[i]][chain];
}

static const em_draws *phase(const em_output *output)
{
    return output->in_warmup ? output->warmup : output->sampling;
}

void em_output_take(em_output *output, const em_block *block, int64_t iteration,
                    em_monitor *monitor)
{
    const bool in_warmup = iteration < output->plan.warmup;
    const int64_t done = iteration + 1 - (in_warmup ? 0 : output->plan.warmup);

    if ((in_warmup && output->plan.n_warmup_draw == 0) || done % output->plan.thin != 0)
        return;
    if (output->count == 0) {
        output->in_warmup = in_warmup;
        output->first = done / output->plan.thin - 1;
    }
    for (int64_t c = 0; c < output->n_local_chain; c++) {
        const em_draws *to = phase(output);
        double *posterior = row(output, &to[POSTERIOR], c);
        take_posterior(output, block, c, posterior);
        take_stats(output->config->sampler, block, c, row(output, &to[STATS], c));
        if (to[UNCONSTRAINED].buffer)
            memcpy(row(output, &to[UNCONSTRAINED], c), block->theta + c * block->stride,
                   (size_t)block->dim * sizeof(double));
        if (!in_warmup)
            em_monitor_keep(monitor, c, output->first + output->count, posterior);
    }
    output->count++;
}

/* The writer wants the draws of a chain right behind those of the one before. */
static void close_ranks(const em_output *output, const em_draws *draws)
{
    for (int64_t c = 1; c < output->n_local_chain && output->count < output->plan.flush_every; c++)
        memmove(draws->buffer + c * output->count * draws->width,
                draws->buffer + c * output->plan.flush_every * draws->width,
                (size_t)(output->count * draws->width) * sizeof(double));
}

em_status em_output_flush(em_output *output)
{
    em_status status = EM_OK;

    for (int kind = 0; !status && kind < N_KIND && output->count > 0; kind++) {
        const em_draws *from = &phase(output)[kind];
        if (from->group < 0)
            continue;
        close_ranks(output, from);
        status = em_writer_put_draws(output->writer, from->group, output->first, output->count,
                                     from->buffer);
    }
    output->count = 0;
    return status;
}

em_status em_output_sync(em_output *output)
{
    return em_writer_flush(output->writer);
}

/* ---------------------------------------------------------------- draws of an earlier file */

static em_status holds(const em_grid *grid, const char *path, const char *group, int64_t n_draw,
                       bool *can)
{
    em_reader *reader = NULL;
    const em_status status = n_draw > 0 ? em_reader_open(path, group, &reader) : EM_OK;

    if (n_draw > 0)
        *can &= status == EM_OK && em_reader_n_chain(reader) == em_grid_n_chain(grid) &&
                em_reader_n_draw(reader) >= n_draw;
    em_reader_close(&reader);
    return status == EM_EMEMORY ? status : EM_OK;
}

em_status em_output_can_restore(const em_config *config, const em_grid *grid, const em_plan *plan,
                                const char *path, int64_t done, bool *can)
{
    const int n_kind = config->output.save_unconstrained ? N_KIND : UNCONSTRAINED;
    const int64_t n_warmup = em_plan_stored(plan, done < plan->warmup ? done : plan->warmup);
    const int64_t n_draw = done > plan->warmup ? em_plan_stored(plan, done) : 0;
    double cannot;
    em_status status = EM_OK;

    *can = true;
    for (int kind = 0; !status && kind < n_kind; kind++) {
        status = holds(grid, path, group_names[kind], n_draw, can);
        if (!status)
            status = holds(grid, path, warmup_names[kind], n_warmup, can);
    }
    status = em_agree(status);
    cannot = !*can;
    em_grid_maximum(grid, 1, &cannot);
    *can = cannot == 0;
    return status;
}

/* Draws first .. first + n of all variables of a group, into the rows of a buffer. Local. */
static em_status read_rows(const em_output *output, em_reader *reader, int64_t first, int64_t n,
                           const em_draws *to)
{
    double *part = NULL;
    int64_t column = 0;
    em_status status = em_allocate(output->n_local_chain * n * to->width, sizeof *part, &part);

    for (int64_t i = 0; !status && i < em_reader_n_variable(reader); i++) {
        const int64_t size = em_reader_variable_at(reader, i)->size;
        if (column + size > to->width)
            return em_fail(EM_EDATA, "the draws set aside have other variables");
        status = em_reader_draws(reader, i, em_grid_first_chain(output->grid),
                                 output->n_local_chain, first, n, part);
        for (int64_t r = 0; !status && r < output->n_local_chain * n; r++)
            memcpy(to->buffer + r * to->width + column, part + r * size,
                   (size_t)size * sizeof *part);
        column += size;
    }
    em_release(&part);
    return status;
}

static em_status copy_group(em_output *output, const char *path, const char *name, int64_t n_draw,
                            const em_draws *to, em_monitor *monitor)
{
    const int64_t block = output->plan.flush_every;
    em_reader *reader = NULL;
    em_status status = em_agree(em_reader_open(path, name, &reader));

    for (int64_t first = 0; !status && first < n_draw; first += block) {
        const int64_t n = n_draw - first < block ? n_draw - first : block;
        status = em_agree(read_rows(output, reader, first, n, to));
        if (!status)
            status = em_writer_put_draws(output->writer, to->group, first, n, to->buffer);
        for (int64_t r = 0; !status && monitor && r < output->n_local_chain * n; r++)
            em_monitor_keep(monitor, r / n, first + r % n, to->buffer + r * to->width);
    }
    em_reader_close(&reader);
    return status;
}

em_status em_output_restore(em_output *output, const char *path, int64_t done, em_monitor *monitor)
{
    const em_plan *plan = &output->plan;
    const int64_t n_warmup = em_plan_stored(plan, done < plan->warmup ? done : plan->warmup);
    const int64_t n_draw = done > plan->warmup ? em_plan_stored(plan, done) : 0;
    em_status status = EM_OK;

    for (int kind = 0; !status && kind < N_KIND; kind++) {
        if (output->sampling[kind].group >= 0 && n_draw > 0)
            status = copy_group(output, path, group_names[kind], n_draw, &output->sampling[kind],
                                kind == POSTERIOR ? monitor : NULL);
        if (!status && output->warmup[kind].group >= 0 && n_warmup > 0)
            status =
                copy_group(output, path, warmup_names[kind], n_warmup, &output->warmup[kind], NULL);
    }
    return status ? status : em_writer_flush(output->writer);
}

/* ---------------------------------------------------------------- the end */

/* Rows of numbers, one per M-step, of each pool of the run: [n_pool][n_m_step], on every rank. */
static em_status gather_m_steps(const em_output *output, const em_adapt *adapt, size_t member,
                                double *out)
{
    const int64_t n = em_adapt_n_m_step(adapt);
    const bool shared = em_adapt_n_pool(adapt) == 1;
    const int64_t n_local = shared ? 1 : output->n_local_chain;
    double *local = NULL;
    em_status status = em_agree(em_allocate(n_local * n, sizeof *local, &local));

    for (int64_t pool = 0; !status && pool < n_local; pool++)
        for (int64_t i = 0; i < n; i++)
            memcpy(&local[pool * n + i], (const char *)&em_adapt_m_steps(adapt, pool)[i] + member,
                   sizeof(double));
    if (!status && shared)
        memcpy(out, local, (size_t)n * sizeof *out);
    else if (!status)
        status = em_grid_gather_chains(output->grid, n, local, out);
    em_release(&local);
    return status;
}

static em_status put_m_steps(em_output *output, const em_adapt *adapt)
{
    static const struct {
        const char *name;
        size_t member;
        em_storage storage;
    } columns[] = {
        {"iteration", offsetof(em_m_step, iteration), EM_STORE_INT},
        {"kappa", offsetof(em_m_step, kappa), EM_STORE_REAL},
        {"S_count", offsetof(em_m_step, s_count), EM_STORE_INT},
        {"n_sample", offsetof(em_m_step, n_sample), EM_STORE_INT},
        {"smallest_eigenvalue", offsetof(em_m_step, smallest), EM_STORE_REAL},
        {"largest_eigenvalue", offsetof(em_m_step, largest), EM_STORE_REAL},
        {"trace_deviation", offsetof(em_m_step, trace_deviation), EM_STORE_REAL},
        {"diagonal_deviation", offsetof(em_m_step, diagonal_deviation), EM_STORE_REAL},
    };
    const int64_t n = em_adapt_n_m_step(adapt), n_pool = em_adapt_n_pool(adapt);
    em_variable variable = {.n_axes = 1, .shape = {n}, .axis = {"m_step"}};
    double *value = NULL;
    em_status status;

    if (n == 0)
        return EM_OK;
    if (n_pool > 1)
        variable = (em_variable){.n_axes = 2, .shape = {n_pool, n}, .axis = {"chain", "m_step"}};
    status = em_agree(em_allocate(n_pool * n, sizeof *value, &value));
    for (size_t i = 0; !status && i < sizeof columns / sizeof *columns; i++) {
        variable.name = columns[i].name;
        status = gather_m_steps(output, adapt, columns[i].member, value);
        if (!status)
            status = em_writer_put_array(output->writer, "mass_adaptation", &variable,
                                         columns[i].storage, value);
    }
    em_release(&value);
    return status;
}

/* The final inverse mass of each pool, and the step size of each chain. */
static em_status put_learned(em_output *output, const em_adapt *adapt)
{
    const em_structure structure = em_adapt_structure(adapt);
    const int64_t dim = output->model->dim, size = em_mass_size(structure, dim);
    const int64_t n_pool = em_adapt_n_pool(adapt), n_chain = em_grid_n_chain(output->grid);
    const int64_t n_local = n_pool == 1 ? 1 : output->n_local_chain;
    em_variable inverse = {.name = "inv_mass"};
    const em_variable step = {
        .name = "step_size", .n_axes = 1, .shape = {n_chain}, .axis = {"chain"}};
    double *local = NULL, *all = NULL;
    em_status status = em_allocate(n_local * size, sizeof *local, &local);

    if (n_pool > 1) {
        inverse.axis[inverse.n_axes] = "chain";
        inverse.shape[inverse.n_axes++] = n_pool;
    }
    for (int i = 0; i < (structure == EM_MASS_DENSE ? 2 : 1); i++)
        inverse.shape[inverse.n_axes++] = dim;
    if (!status)
        status = em_allocate(n_pool * size + n_chain, sizeof *all, &all);
    status = em_agree(status);
    for (int64_t i = 0; !status && i < n_local; i++)
        em_mass_inverse(em_adapt_mass(adapt)[i], local + i * size);
    if (!status && n_pool > 1)
        status = em_grid_gather_chains(output->grid, size, local, all);
    else if (!status)
        memcpy(all, local, (size_t)size * sizeof *all);
    if (!status)
        status =
            em_writer_put_array(output->writer, "mass_adaptation", &inverse, EM_STORE_REAL, all);
    if (!status)
        status =
            em_grid_gather_chains(output->grid, 1, em_adapt_step_size(adapt), all + n_pool * size);
    if (!status)
        status = em_writer_put_array(output->writer, "mass_adaptation", &step, EM_STORE_REAL,
                                     all + n_pool * size);
    em_release(&local);
    em_release(&all);
    return status;
}

static em_status put_volatile(em_writer *writer, const em_grid *grid, double seconds)
{
    char host[256] = "unknown";
    em_status status;

    if (is_reproducible())
        return EM_OK;
    gethostname(host, sizeof host - 1);
    em_broadcast(host, sizeof host);
    em_broadcast(&seconds, sizeof seconds);
    status = em_writer_put_real(writer, "sampling_time", seconds);
    if (!status)
        status = em_writer_put_int(writer, "ranks", em_world_size());
    if (!status)
        status = em_writer_put_int(writer, "groups", em_grid_n_group(grid));
    return status ? status : em_writer_put_text(writer, "host", host);
}

static em_status put_verdict(em_writer *writer, const em_verdict *verdict)
{
    em_status status = em_writer_put_text(writer, "verdict", verdict->text);

    if (!status)
        status = em_writer_put_int(writer, "converged", verdict->convergence.met);
    if (!status)
        status = em_writer_put_real(writer, "worst_r_hat", verdict->convergence.r_hat);
    if (!status)
        status = em_writer_put_real(writer, "smallest_ess", verdict->convergence.ess);
    return status ? status : em_writer_put_int(writer, "divergences", verdict->divergences);
}

em_status em_output_finish(em_output *output, const em_adapt *adapt, int64_t n_draw,
                           const em_verdict *verdict)
{
    em_status status = em_output_flush(output);

    for (int kind = 0; !status && kind < N_KIND && n_draw < output->plan.n_draw; kind++)
        if (output->sampling[kind].group >= 0)
            status = em_writer_truncate(output->writer, output->sampling[kind].group, n_draw);
    if (!status)
        status = put_m_steps(output, adapt);
    if (!status)
        status = put_learned(output, adapt);
    if (!status)
        status = put_verdict(output->writer, verdict);
    if (!status)
        status = put_volatile(output->writer, output->grid, verdict->seconds);
    return status ? status : em_writer_close(&output->writer, true);
}
