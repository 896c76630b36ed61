#include "base/memory.h"
#include "base/text.h"
#include "par/world.h"
#include "run/output_file.h"
#include "version.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

const char *const em_sampling_group[EM_N_KIND] = {[EM_POSTERIOR] = "posterior",
                                                  [EM_LOG_LIKELIHOOD] = "log_likelihood",
                                                  [EM_POSTERIOR_PREDICTIVE] =
                                                      "posterior_predictive",
                                                  [EM_PREDICTIONS] = "predictions",
                                                  [EM_STATS] = "sample_stats",
                                                  [EM_UNCONSTRAINED] = "unconstrained_posterior"};
const char *const em_warmup_group[EM_N_KIND] = {
    [EM_POSTERIOR] = "warmup_posterior",
    [EM_LOG_LIKELIHOOD] = "warmup_log_likelihood",
    [EM_POSTERIOR_PREDICTIVE] = "warmup_posterior_predictive",
    [EM_PREDICTIONS] = "warmup_predictions",
    [EM_STATS] = "warmup_sample_stats",
    [EM_UNCONSTRAINED] = "warmup_unconstrained_posterior"};

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
        if (fnmatch(config->output.variables.value[i], name, 0) == 0)
            return true;
    return config->output.variables.count == 0;
}

static em_status check_selection(const em_config *config, const em_model *model)
{
    for (int64_t i = 0; i < config->output.variables.count; i++) {
        bool found = false;
        for (int64_t k = 0; k < model->n_variable; k++)
            found |= fnmatch(config->output.variables.value[i], model->variable[k].name, 0) == 0;
        if (!found)
            return em_fail(EM_ECONFIG,
                           "%s: output.variables: found '%s', expected variables of model %s",
                           config->path, em_excerpt_of(config->output.variables.value[i]).text,
                           model->ops->name);
    }
    return EM_OK;
}

/* The coordinates of a group of draws have these names. */
static em_status check_name(const em_config *config, const char *name)
{
    if (strcmp(name, "chain") != 0 && strcmp(name, "draw") != 0)
        return EM_OK;
    return em_fail(EM_ECONFIG,
                   "%s: a variable of the model is called %s, as a coordinate of the file is: "
                   "rename it, or leave it out by output.variables",
                   config->path, name);
}

em_status em_output_width(const em_config *config, const em_model *model, em_width *width)
{
    em_status status = check_selection(config, model);

    *width = (em_width){0, 0};
    for (int64_t k = 0; !status && k < model->n_variable; k++)
        if (is_selected(config, model->variable[k].name)) {
            const int64_t size = variable_size(&model->variable[k]);
            width->all += size;
            width->posterior += model->variable[k].group == EM_POSTERIOR ? size : 0;
            status = check_name(config, model->variable[k].name);
        }
    if (!status && width->posterior == 0)
        return em_fail(
            EM_ECONFIG,
            "%s: output.variables selects nothing of the posterior of model %s, expected "
            "at least one number",
            config->path, model->ops->name);
    return status;
}

bool em_output_has(const em_config *config, const em_model *model, int kind)
{
    bool has = kind == EM_STATS || (kind == EM_UNCONSTRAINED && config->output.save_unconstrained);

    for (int64_t k = 0; k < model->n_variable; k++)
        has |=
            (int)model->variable[k].group == kind && is_selected(config, model->variable[k].name);
    return has;
}

static em_storage stat_storage(em_stat stat)
{
    switch (stat) {
    case EM_STAT_DIVERGING:
    case EM_STAT_REACHED_MAX_TREEDEPTH:
        return EM_STORE_BOOL;
    case EM_STAT_TREE_DEPTH:
    case EM_STAT_N_STEPS:
        return EM_STORE_INT;
    default:
        return EM_STORE_REAL;
    }
}

/* ---------------------------------------------------------------- set up */

/* The variables that are stored, and room for those of a draw. Local. */
static em_status select_variables(em_output *output)
{
    em_model *model = output->model;
    em_status status = em_allocate(model->n_variable, sizeof *output->stored, &output->stored);

    for (int64_t k = 0; !status && k < model->n_variable; k++) {
        const em_variable *variable = &model->variable[k];
        const int64_t size = variable_size(variable);
        if (is_selected(output->config, variable->name))
            output->stored[output->n_stored++] = (em_stored){variable, output->n_reported, size};
        output->n_reported += size;
    }
    return status ? status : em_allocate(output->n_reported, sizeof(double), &output->reported);
}

static int64_t report_series(const em_output *output, int kind, em_variable *series)
{
    int64_t n = 0;

    for (int64_t k = 0; k < output->n_stored; k++)
        if ((int)output->stored[k].variable->group == kind)
            series[n++] = *output->stored[k].variable;
    return n;
}

static int64_t stat_series(const em_sampler_ops *sampler, em_variable *series)
{
    int64_t n = 0;

    for (; sampler->stats[n] != EM_STAT_COUNT; n++)
        series[n] = (em_variable){.name = em_stat_name[sampler->stats[n]],
                                  .storage = stat_storage(sampler->stats[n])};
    return n;
}

static int64_t unconstrained_series(const em_output *output, em_variable *series)
{
    series[0] = (em_variable){.name = "theta",
                              .n_axes = 1,
                              .shape = {output->model->dim},
                              .label = {output->model->unconstrained_name}};
    return 1;
}

static em_status add_group(em_output *output, const char *name, int64_t n_series,
                           const em_variable *series, int64_t n_draw, em_draw_group *out)
{
    em_status status;

    for (int64_t i = 0; i < n_series; i++) {
        out->width += variable_size(&series[i]);
        out->dealt |= series[i].dealt;
    }
    status = em_agree(em_allocate(output->n_local_chain * output->plan.flush_every * out->width,
                                  sizeof(double), &out->buffer));
    return status ? status
                  : em_writer_add_draws(output->writer, name, n_series, series, n_draw,
                                        output->plan.chunk, &out->group);
}

static em_status add_kind(em_output *output, int kind, em_variable *series)
{
    em_status status;
    int64_t n;

    output->sampling[kind].group = output->warmup[kind].group = -1;
    if (!em_output_has(output->config, output->model, kind))
        return EM_OK;
    n = kind == EM_STATS           ? stat_series(output->config->sampler, series)
        : kind == EM_UNCONSTRAINED ? unconstrained_series(output, series)
                                   : report_series(output, kind, series);
    status = add_group(output, em_sampling_group[kind], n, series, output->plan.n_draw,
                       &output->sampling[kind]);
    if (!status && output->plan.n_warmup_draw > 0)
        status = add_group(output, em_warmup_group[kind], n, series, output->plan.n_warmup_draw,
                           &output->warmup[kind]);
    return status;
}

static em_status add_draws(em_output *output)
{
    em_variable *series = NULL;
    em_status status =
        em_agree(em_allocate(output->n_stored + EM_STAT_COUNT + 1, sizeof *series, &series));

    for (int kind = 0; !status && kind < EM_N_KIND; kind++)
        status = add_kind(output, kind, series);
    em_release(&series);
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
    if (!status && !(output->created.reproducible && !em_config_shards_matter(config)))
        status = em_writer_put_int(writer, "shards", config->run.shards);
    if (!status)
        status = em_writer_put_int(writer, "tuning_steps", output->plan.warmup);
    if (!status)
        status = em_writer_put_int(writer, "planned_draws", config->run.draws);
    if (!status)
        status = put_hash(writer, "model_hash", model_hash(output->model));
    if (!status)
        status = put_hash(writer, "data_hash", output->model->data_hash);
    return status ? status : em_writer_put_text(writer, "created_at", output->created.text);
}

static em_status create_file(em_output *output, const char *path)
{
    em_status status = em_writer_create(output->grid, path, true, &output->writer);

    if (!status)
        status = put_attributes(output);
    if (!status)
        status = add_draws(output);
    for (int64_t i = 0; !status && i < output->model->n_datum; i++) {
        const em_datum *datum = &output->model->datum[i];
        status = em_writer_put_array(output->writer, datum->group, &datum->variable, datum->value);
    }
    return status ? status : em_writer_flush(output->writer);
}

em_status em_output_create(const em_config *config, const char *path, const em_grid *grid,
                           em_model *model, const em_plan *plan, const em_created *created,
                           em_output **out)
{
    em_output *output = NULL;
    em_status status = em_allocate(1, sizeof *output, &output);

    if (!status) {
        output->config = config;
        output->grid = grid;
        output->model = model;
        output->plan = *plan;
        output->created = *created;
        output->n_local_chain = em_grid_n_local_chain(grid);
        status = select_variables(output);
    }
    status = em_agree(status);
    if (!status) {
        status = create_file(output, path);
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
    em_release(&output->reported);
    em_release(&output->stored);
    em_writer_close(&output->writer, false);
    em_release(out);
}

/* ---------------------------------------------------------------- draws */

static double *row(const em_output *output, const em_draw_group *draws, int64_t chain)
{
    return draws->buffer + (chain * output->plan.flush_every + output->count) * draws->width;
}

/* What the model reports of a draw, into row output->count of the groups. What a failed report did
 * not write is NaN. Local. */
static em_status take_report(em_output *output, const em_draw_group *groups, int64_t chain,
                             const em_draw *draw, const double *theta)
{
    double *next[EM_N_REPORT_GROUP];
    em_status status;

    for (int64_t i = 0; i < output->n_reported; i++)
        output->reported[i] = NAN;
    status = output->model->ops->report(output->model, draw, theta, output->reported);
    for (int kind = 0; kind < EM_N_REPORT_GROUP; kind++)
        next[kind] = groups[kind].buffer ? row(output, &groups[kind], chain) : NULL;
    for (int64_t k = 0; k < output->n_stored; k++) {
        const em_stored *stored = &output->stored[k];
        double **to = &next[stored->variable->group];
        memcpy(*to, output->reported + stored->first, (size_t)stored->size * sizeof **to);
        *to += stored->size;
    }
    if (status > 0 && !output->failure[0])
        snprintf(output->failure, sizeof output->failure, "%s", em_error_text());
    return status;
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

em_status em_output_take(em_output *output, const em_block *block, int64_t iteration,
                         em_monitor *monitor, double *unreported)
{
    const bool in_warmup = iteration < output->plan.warmup;
    const int64_t done = iteration + 1 - (in_warmup ? 0 : output->plan.warmup);
    em_status status = EM_OK;

    if ((in_warmup && output->plan.n_warmup_draw == 0) || done % output->plan.thin != 0)
        return EM_OK;
    if (output->count == 0) {
        output->in_warmup = in_warmup;
        output->first = done / output->plan.thin - 1;
    }
    for (int64_t c = 0; status >= 0 && c < output->n_local_chain; c++) {
        const em_draw_group *to = phase(output);
        const double *theta = block->theta + c * block->stride;
        const em_draw draw = {(uint64_t)output->config->run.seed, block->chain[c], iteration};
        status = take_report(output, to, c, &draw, theta);
        take_stats(output->config->sampler, block, c, row(output, &to[EM_STATS], c));
        if (to[EM_UNCONSTRAINED].buffer)
            memcpy(row(output, &to[EM_UNCONSTRAINED], c), theta,
                   (size_t)block->dim * sizeof(double));
        if (!in_warmup) {
            unreported[c] += status > 0;
            em_monitor_keep(monitor, c, output->first + output->count,
                            row(output, &to[EM_POSTERIOR], c));
        }
    }
    output->count++;
    return status < 0 ? status : EM_OK;
}

void em_output_end_warmup(em_output *output, const em_plan *plan)
{
    output->plan = *plan;
}

const char *em_output_failure(const em_output *output)
{
    return output->failure;
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
        if (from->dealt)
            em_grid_sum_shards(output->grid, output->n_local_chain * output->count * from->width,
                               from->buffer);
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

static em_status put_volatile(const em_output *output, double seconds)
{
    em_writer *writer = output->writer;
    char host[256] = "unknown";
    em_status status;

    if (output->created.reproducible)
        return EM_OK;
    gethostname(host, sizeof host - 1);
    em_broadcast(host, sizeof host);
    em_broadcast(&seconds, sizeof seconds);
    status = em_writer_put_real(writer, "sampling_time", seconds);
    if (!status)
        status = em_writer_put_int(writer, "ranks", em_world_size());
    if (!status)
        status = em_writer_put_int(writer, "groups", em_grid_n_group(output->grid));
    return status ? status : em_writer_put_text(writer, "host", host);
}

static em_status put_verdict(em_writer *writer, const em_verdict *verdict)
{
    em_status status = em_writer_put_text(writer, "verdict", verdict->text);

    if (!status)
        status = em_writer_put_int(writer, "converged", verdict->converged);
    if (!status)
        status = em_writer_put_real(writer, "worst_r_hat", verdict->convergence.r_hat);
    if (!status)
        status = em_writer_put_real(writer, "smallest_ess", verdict->convergence.ess);
    if (!status)
        status = em_writer_put_real(writer, "r_hat_limit", verdict->r_hat_limit);
    if (!status)
        status = em_writer_put_real(writer, "ess_limit", verdict->ess_limit);
    if (!status)
        status = em_writer_put_real(writer, "smallest_e_bfmi", verdict->e_bfmi);
    if (!status)
        status = em_writer_put_int(writer, "divergences", verdict->divergences);
    return status ? status : em_writer_put_int(writer, "failed_reports", verdict->unreported);
}

em_status em_output_finish(em_output *output, const em_adapt *adapt, int64_t n_draw,
                           const em_verdict *verdict)
{
    const int64_t n_warmup = em_plan_stored(&output->plan, output->plan.warmup);
    em_status status = em_output_flush(output);

    for (int kind = 0; !status && kind < EM_N_KIND && n_warmup < output->plan.n_warmup_draw; kind++)
        if (output->warmup[kind].group >= 0)
            status = em_writer_truncate(output->writer, output->warmup[kind].group, n_warmup);
    if (!status)
        status = em_writer_put_int(output->writer, "tuning_steps", output->plan.warmup);
    for (int kind = 0; !status && kind < EM_N_KIND && n_draw < output->plan.n_draw; kind++)
        if (output->sampling[kind].group >= 0)
            status = em_writer_truncate(output->writer, output->sampling[kind].group, n_draw);
    if (!status)
        status = em_output_put_learned(output, adapt);
    if (!status)
        status = put_verdict(output->writer, verdict);
    if (!status)
        status = put_volatile(output, verdict->seconds);
    return status ? status : em_writer_close(&output->writer, true);
}
