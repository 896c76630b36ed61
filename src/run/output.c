#include "base/memory.h"
#include "par/world.h"
#include "run/output_file.h"
#include "version.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

const char *const em_sampling_group[EM_N_KIND] = {"posterior", "sample_stats",
                                                  "unconstrained_posterior"};
const char *const em_warmup_group[EM_N_KIND] = {"warmup_posterior", "warmup_sample_stats",
                                                "warmup_unconstrained_posterior"};

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
    if (model->n_variable > EM_MOST_VARIABLES)
        return em_fail(EM_EINTERNAL, "model %s has more than %d variables", model->ops->name,
                       EM_MOST_VARIABLES);
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
                           const em_series *series, int64_t n_draw, em_draw_group *out)
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
    em_series series[EM_MOST_VARIABLES];
    em_status status = EM_OK;

    for (int kind = 0; !status && kind < EM_N_KIND; kind++) {
        int64_t n = 1;
        output->sampling[kind].group = output->warmup[kind].group = -1;
        if (kind == EM_POSTERIOR)
            n = posterior_series(output, series);
        else if (kind == EM_STATS)
            n = stat_series(output->config->sampler, series);
        else if (output->config->output.save_unconstrained)
            series[0] = (em_series){{.name = "theta", .n_axes = 1, .shape = {output->model->dim}},
                                    EM_STORE_REAL};
        else
            continue;
        status = add_group(output, em_sampling_group[kind], n, series, output->plan.n_draw,
                           &output->sampling[kind]);
        if (!status && output->plan.n_warmup_draw > 0)
            status = add_group(output, em_warmup_group[kind], n, series, output->plan.n_warmup_draw,
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
        if (status)
            em_writer_discard(&output->writer);
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
    for (int kind = 0; kind < EM_N_KIND; kind++) {
        em_release(&output->sampling[kind].buffer);
        em_release(&output->warmup[kind].buffer);
    }
    em_release(&output->constrained);
    em_writer_close(&output->writer, false);
    em_release(out);
}

/* ---------------------------------------------------------------- draws */

static double *row(const em_output *output, const em_draw_group *draws, int64_t chain)
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

static const em_draw_group *phase(const em_output *output)
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
        const em_draw_group *to = phase(output);
        double *posterior = row(output, &to[EM_POSTERIOR], c);
        take_posterior(output, block, c, posterior);
        take_stats(output->config->sampler, block, c, row(output, &to[EM_STATS], c));
        if (to[EM_UNCONSTRAINED].buffer)
            memcpy(row(output, &to[EM_UNCONSTRAINED], c), block->theta + c * block->stride,
                   (size_t)block->dim * sizeof(double));
        if (!in_warmup)
            em_monitor_keep(monitor, c, output->first + output->count, posterior);
    }
    output->count++;
}

/* The writer wants the draws of a chain right behind those of the one before. */
static void close_ranks(const em_output *output, const em_draw_group *draws)
{
    for (int64_t c = 1; c < output->n_local_chain && output->count < output->plan.flush_every; c++)
        memmove(draws->buffer + c * output->count * draws->width,
                draws->buffer + c * output->plan.flush_every * draws->width,
                (size_t)(output->count * draws->width) * sizeof(double));
}

em_status em_output_flush(em_output *output)
{
    em_status status = EM_OK;

    for (int kind = 0; !status && kind < EM_N_KIND && output->count > 0; kind++) {
        const em_draw_group *from = &phase(output)[kind];
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

/* ---------------------------------------------------------------- the end */

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

    for (int kind = 0; !status && kind < EM_N_KIND && n_draw < output->plan.n_draw; kind++)
        if (output->sampling[kind].group >= 0)
            status = em_writer_truncate(output->writer, output->sampling[kind].group, n_draw);
    if (!status)
        status = em_output_put_learned(output, adapt);
    if (!status)
        status = put_verdict(output->writer, verdict);
    if (!status)
        status = put_volatile(output->writer, output->grid, verdict->seconds);
    return status ? status : em_writer_close(&output->writer, true);
}
