#include "base/fault.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "emass/model/averages.h"
#include "model/bounds.h"
#include "par/world.h"
#include "run/config/compatibility.h"
#include "run/config/config_folder.h"
#include "run/output/output_file.h"
#include "run/output/processor_record.h"
#include "version.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* ---------------------------------------------------------------- set up */

em_group_name em_warmup_group(const char *name)
{
    em_group_name warmup;

    snprintf(warmup.text, sizeof warmup.text, "warmup_%s", name);
    return warmup;
}

static em_status add_phase(em_output *output, const char *name, const em_draw_group *group,
                           em_draw_space space, em_file_group *out)
{
    out->width = group->width;
    const int64_t n = output->n_local_chain * output->run.plan->buffer * out->width;
    const em_status status =
        em_agree(em_own(&output->memory, em_allocate_doubles(n, &out->buffer), &out->buffer));
    return status ? status
                  : em_writer_add_draws(output->writer, name, group->n_variable, group->variable,
                                        space, &out->group);
}

static em_status add_draws(em_output *output)
{
    const em_plan *plan = output->run.plan;
    const em_stored_draws stored = em_plan_stored_draws(plan, output->run.done);
    const em_draw_space sampling = {plan->n_draw, plan->chunk, stored.sampling};
    const em_draw_space warmup = {plan->n_warmup_draw, plan->chunk, stored.warmup};
    em_status status = EM_OK;

    if (plan->until_done)
        status = em_writer_put_int(output->writer, EM_OUTPUT_THINNING, plan->thin);

    for (int64_t i = 0; !status && i < output->layout->n_group; i++) {
        const em_draw_group *group = &output->layout->group[i];
        status = add_phase(output, group->name, group, sampling, &output->sampling[i]);
        if (!status && plan->n_warmup_draw > 0)
            status = add_phase(output, em_warmup_group(group->name).text, group, warmup,
                               &output->warmup[i]);
    }
    return status;
}

/* Adds the averages that the model keeps over its draws, as a group of one draw. */
static em_status add_averages(em_output *output)
{
    const em_model *model = output->run.model;

    output->averages.group = -1;
    output->averages.width = em_bounds_size(model->n_average, model->average);
    return model->n_average == 0
               ? EM_OK
               : em_writer_add_draws(output->writer, "averages", model->n_average, model->average,
                                     (em_draw_space){1, 1, 0}, &output->averages.group);
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

/* Writes the names of the samplers, such as "hmc" or "topics: sgrld, network: msgnht". */
static void name_samplers(const em_config *config, size_t bytes, char *out)
{
    out[0] = '\0';
    for (int i = 0; i < config->n_kernel; i++) {
        const em_kernel_options *kernel = &config->kernel[i];
        em_append(bytes, out, "%s%s%s%s", i > 0 ? ", " : "", kernel->block ? kernel->block : "",
                  kernel->block ? ": " : "", kernel->ops->name);
    }
}

/* Writes the config. The priors that a model has found from its data follow as comments. */
static em_status put_config(em_output *output)
{
    static const char prior[] = "# prior ";
    const em_model *model = output->run.model;
    EM_SCOPED char *description = NULL, *text = NULL;
    em_text_stream stream;
    em_status status = em_text_begin(&stream);

    if (!status && model->ops->describe)
        model->ops->describe(model, stream.out);
    status = em_text_end(&stream, status, &description);
    status = status ? status : em_copy_text(output->run.config->stored, &text);
    for (const char *line = description, *next; !status && line && *line; line = next) {
        const size_t all = strcspn(line, "\n");
        char *longer = NULL;
        next = line + all + (line[all] != '\0');
        if (strncmp(line, prior, strlen(prior)) != 0)
            continue;
        status = em_format_text(&longer, "%s%.*s\n", text, (int)all, line);
        if (!status) {
            em_release(&text);
            text = longer;
        }
    }
    return status ? status : em_writer_put_text(output->writer, "config", text);
}

static em_status put_attributes(em_output *output)
{
    em_writer *writer = output->writer;
    const em_config *config = output->run.config;
    char samplers[1024];

    name_samplers(config, sizeof samplers, samplers);
    output->signature = em_created_signature(&output->run.created);
    const struct {
        const char *name, *text;
    } texts[] = {{"git_commit", EM_COMMIT}, {"model", config->model->name}, {"sampler", samplers}};
    em_status status = em_writer_sign(writer, 6, output->signature.text);

    for (size_t i = 0; !status && i < sizeof texts / sizeof *texts; i++)
        status = em_writer_put_text(writer, texts[i].name, texts[i].text);
    if (!status)
        status = em_processor_record(writer, output->run.kernels, output->run.created.reproducible);
    status = status ? status : put_config(output);
    status = status ? status : em_writer_put_int(writer, "seed", config->run.seed);
    if (!status && !(output->run.created.reproducible && !em_config_shards_matter(config)))
        status = em_writer_put_int(writer, "shards", config->run.shards);
    if (!status && config->run.superchains > 0)
        status = em_writer_put_int(writer, "superchains", config->run.superchains);
    if (!status && !em_can_be_tempered(config, output->run.model))
        status = em_writer_put_int(writer, EM_OUTPUT_CAN_BE_TEMPERED, 0);
    status = status ? status : em_writer_put_int(writer, "tuning_steps", output->run.plan->warmup);
    status = status ? status : em_writer_put_int(writer, "planned_draws", config->run.draws);
    status = status ? status : put_hash(writer, "model_hash", model_hash(output->run.model));
    if (!status && output->run.model->program_hash)
        status = put_hash(writer, "program_hash", output->run.model->program_hash);
    return status ? status : put_hash(writer, "data_hash", output->run.model->data_hash);
}

/* Writes the folder from which relative paths of the config start. Collective. */
static em_status put_home(em_output *output)
{
    EM_SCOPED char *folder = NULL;
    em_status status = em_agree(em_file_folder(output->run.config->path, &folder));

    if (!status && em_home_matters(output->run.config))
        status =
            em_home_put(output->writer, folder, output->run.path, output->run.created.reproducible);
    return status;
}

static em_status create_file(em_output *output)
{
    em_status status = em_writer_create(output->run.grid, output->run.path, true, &output->writer);

    status = status ? status : put_attributes(output);
    status = status ? status : put_home(output);
    status = status ? status : add_draws(output);
    status = status ? status : add_averages(output);
    for (int64_t i = 0; !status && i < output->run.model->n_datum; i++) {
        const em_datum *datum = &output->run.model->datum[i];
        status = em_writer_put_array(output->writer, datum->group, &datum->variable, datum->value);
    }
    return status ? status : em_writer_flush(output->writer);
}

static em_status output_begin(void *state, const em_layout *layout)
{
    em_output *output = state;
    em_status status =
        em_agree(em_own_all(&output->memory, EM_ARRAY(output->sampling, layout->n_group),
                            EM_ARRAY(output->warmup, layout->n_group)));

    output->layout = layout;
    output->n_local_chain = layout->n_local_chain;
    if (!status) {
        status = create_file(output);
        if (status)
            em_writer_discard(&output->writer);
    }
    return status;
}

em_status em_output_create(const em_output_run *run, em_output **out)
{
    em_status status = em_agree(em_allocate(1, sizeof **out, out));

    if (!status)
        (*out)->run = *run;
    return status;
}

void em_output_destroy(em_output **out)
{
    if (*out)
        em_writer_close(&(*out)->writer, false);
    em_release_owner(out);
}

/* ---------------------------------------------------------------- draws */

static const em_file_group *phase(const em_output *output)
{
    return output->in_warmup ? output->warmup : output->sampling;
}

static em_status output_take(void *state, const em_stored_draw *draw)
{
    em_output *output = state;
    const int64_t chain = draw->chain - output->layout->first_chain;

    const int64_t thinned =
        draw->in_warmup ? 1 : output->run.plan->thin / output->run.plan->first_thin;
    const int64_t index = (draw->index + 1) / thinned - 1;

    if (output->n_taken == 0) {
        output->in_warmup = draw->in_warmup;
        output->first = index;
    }
    const int64_t row = chain * output->run.plan->buffer + index - output->first;
    for (int64_t i = 0; i < output->layout->n_group; i++) {
        const em_file_group *to = &phase(output)[i];
        memcpy(to->buffer + row * to->width, draw->group[i], (size_t)to->width * sizeof(double));
    }
    output->n_taken++;
    return EM_OK;
}

int64_t em_output_taken(const em_output *output)
{
    return output->n_taken;
}

void em_output_drop(em_output *output, int64_t n_taken)
{
    output->n_taken = n_taken;
}

/* Moves the draws of all chains together without gaps, as the writer expects them. */
static void close_ranks(const em_output *output, int64_t count, const em_file_group *draws)
{
    const int64_t every = output->run.plan->buffer;

    for (int64_t c = 1; c < output->n_local_chain && count < every; c++)
        memmove(draws->buffer + c * count * draws->width, draws->buffer + c * every * draws->width,
                (size_t)(count * draws->width) * sizeof(double));
}

/* The number of draws of a chain that wait to be written. Ranks without a chain learn it, and to
 * which group the draws belong, from the others. Collective if there are such ranks. */
static int64_t count_taken(em_output *output)
{
    double told[] = {0, (double)output->first, output->in_warmup};

    if (output->n_local_chain > 0)
        told[0] = (double)(output->n_taken / output->n_local_chain);
    if (em_grid_n_group(output->run.grid) <= em_grid_n_chain(output->run.grid))
        return (int64_t)told[0];
    if (output->n_local_chain == 0)
        told[1] = told[2] = 0;
    em_grid_maximum(output->run.grid, sizeof told / sizeof *told, told);
    output->first = (int64_t)told[1];
    output->in_warmup = told[2] != 0;
    return (int64_t)told[0];
}

static em_status output_flush(void *state)
{
    em_output *output = state;
    const int64_t count = count_taken(output);
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < output->layout->n_group && count > 0; i++) {
        const em_file_group *from = &phase(output)[i];
        close_ranks(output, count, from);
        if (output->layout->group[i].sharded)
            em_grid_sum_shards(output->run.grid, output->n_local_chain * count * from->width,
                               from->buffer);
        status =
            em_writer_put_draws(output->writer, from->group, output->first, count, from->buffer);
    }
    output->n_taken = 0;
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

    if (output->run.created.reproducible)
        return EM_OK;
    gethostname(host, sizeof host - 1);
    em_broadcast(host, sizeof host);
    em_broadcast(&seconds, sizeof seconds);
    em_status status = em_writer_put_real(writer, "sampling_time", seconds);
    status = status ? status : em_writer_put_int(writer, "ranks", em_world_size());
    status =
        status ? status : em_writer_put_int(writer, "groups", em_grid_n_group(output->run.grid));
    return status ? status : em_writer_put_text(writer, "host", host);
}

static em_status put_verdict(em_writer *writer, const em_report *report)
{
    const em_failed_evaluations *failed = &report->failed_evaluations;
    em_status status = em_writer_put_text(writer, "verdict", report->verdict);

    if (!status && report->ended_by)
        status = em_writer_put_text(writer, EM_OUTPUT_ENDED_BY, report->ended_by);
    if (!status && report->optimiser)
        status = em_writer_put_text(writer, "optimiser", report->optimiser);
    status = status ? status : em_writer_put_int(writer, "converged", report->converged);
    status = status ? status : em_writer_put_real(writer, "worst_r_hat", report->convergence.r_hat);
    status = status ? status : em_writer_put_real(writer, "smallest_ess", report->convergence.ess);
    status = status ? status : em_writer_put_real(writer, "r_hat_limit", report->r_hat_limit);
    status = status ? status : em_writer_put_real(writer, "ess_limit", report->ess_limit);
    status = status ? status : em_writer_put_real(writer, "smallest_e_bfmi", report->e_bfmi);
    status = status ? status
                    : em_writer_put_int(writer, "iterations",
                                        report->n_chain * (report->done - report->warmup));
    status = status ? status : em_writer_put_int(writer, "divergences", report->divergences);
    status = status ? status : em_writer_put_int(writer, "redrawn_starts", report->redrawn_starts);
    if (!status && !isnan(report->mode_search_log_mass))
        status = em_writer_put_real(writer, "mode_search_log_mass", report->mode_search_log_mass);
    if (!status && failed->list) {
        status = em_writer_put_int(writer, "n_evaluations", failed->total);
        status = status ? status : em_writer_put_int(writer, "n_failed_evaluations", failed->count);
        status = status ? status : em_writer_put_text(writer, "failed_evaluations", failed->list);
    }
    return status ? status : em_writer_put_int(writer, "failed_reports", report->unreported);
}

/* Truncates groups of draws to the draws that were made. */
static void truncate_draws(em_output *output, const em_file_group *groups, int64_t n_draw,
                           int64_t planned)
{
    for (int64_t i = 0; i < output->layout->n_group && n_draw < planned; i++)
        em_writer_truncate(output->writer, groups[i].group, n_draw);
}

/* Writes the averages of the model, and the variables that it derives from them over all chains, to
 * the group averages. Collective. */
static em_status put_pooled(em_output *output, const double *value)
{
    const em_model *model = output->run.model;
    const int64_t width = output->averages.width;
    EM_SCOPED double *mean = NULL, *out = NULL;
    em_status status = em_agree(em_allocate_all(
        EM_ARRAY(mean, width), EM_ARRAY(out, em_bounds_size(model->n_pooled, model->pooled))));

    status = status ? status : em_grid_sum_chains(output->run.grid, width, value, mean);
    for (int64_t i = 0; !status && i < width; i++)
        mean[i] /= (double)em_grid_n_chain(output->run.grid);
    if (!status)
        model->ops->averages->report_pooled(output->run.model, mean, out);
    for (int64_t i = 0, n = 0; !status && i < model->n_pooled; i++) {
        status = em_writer_put_array(output->writer, "predictions", &model->pooled[i], out + n);
        n += em_variable_size(&model->pooled[i]);
    }
    return status;
}

/* Writes the averages of the chains one by one through the memory of one chain, unless derived
 * variables need all chains. */
static em_status put_averages(em_output *output)
{
    const em_model *model = output->run.model;
    const int64_t width = output->averages.width, n_local = output->n_local_chain;
    const int64_t kept = model->n_pooled > 0 ? n_local : 1;
    const int64_t most =
        em_partition_first(em_grid_n_chain(output->run.grid), em_grid_n_group(output->run.grid), 1);
    EM_SCOPED double *value = NULL;

    if (output->averages.group < 0)
        return EM_OK;
    em_status status = em_agree(em_allocate_doubles(kept * width, &value));
    if (!status && model->ops->averages->pool)
        status = model->ops->averages->pool(output->run.model);
    for (int64_t c = 0; !status && c < most; c++) {
        double *row = value + c % kept * width;
        if (c < n_local)
            model->ops->averages->report(output->run.model, output->layout->first_chain + c, row);
        status = em_writer_put_chain(output->writer, output->averages.group, c, 0, 1, row);
    }
    if (!status && model->n_pooled > 0)
        status = put_pooled(output, value);
    return status;
}

static em_status put_learned(em_output *output)
{
    em_status status = EM_OK;

    for (int i = 0; !status && i < output->run.config->n_kernel && output->run.adapts[i]; i++)
        status = em_output_put_learned(output, output->run.adapts[i],
                                       output->run.config->kernel[i].block);
    return status;
}

/* A checkpoint of at most this many bytes is kept in any output. A larger one is kept only if the
 * draws are larger. */
static const int64_t small_checkpoint = INT64_C(1) << 26;

static int64_t bytes_of_draws(const em_output *output, int64_t n_draw)
{
    int64_t width = 0;

    for (int64_t i = 0; i < output->layout->n_group; i++)
        width += output->layout->group[i].width;
    return width * n_draw * em_grid_n_chain(output->run.grid) * (int64_t)sizeof(double);
}

/* The size of the checkpoint. Rank 0 finds it for all ranks. */
static int64_t bytes_of_checkpoint(const em_output *output, int64_t most)
{
    struct stat file = {.st_size = 0};

    if (em_world_rank() == 0 && stat(output->run.checkpoint, &file) != 0)
        file.st_size = 0; /* em_writer_enclose reports the error */
    int64_t bytes = (int64_t)file.st_size;
    if (em_world_rank() == 0 && em_fault("checkpoint-large"))
        bytes = most + 1;
    em_broadcast(&bytes, sizeof bytes);
    return bytes;
}

/* Writes the state from which a longer run goes on, unless it is larger than the draws. Collective.
 */
static em_status put_checkpoint(em_output *output, int64_t n_draw)
{
    const int64_t draws = bytes_of_draws(output, n_draw);
    const int64_t most = em_most(draws, small_checkpoint);
    const int64_t bytes = bytes_of_checkpoint(output, most);
    char text[256];

    if (bytes <= most)
        return em_writer_enclose(output->writer, EM_OUTPUT_CHECKPOINT, output->run.checkpoint);
    snprintf(text, sizeof text, "the state of the run takes %lld MB, more than the draws",
             (long long)(bytes >> 20));
    return em_writer_put_text(output->writer, EM_OUTPUT_LEFT_OUT, text);
}

static em_status output_finish(void *state, const em_report *report)
{
    em_output *output = state;
    const em_plan *plan = output->run.plan;
    em_status status = output_flush(output);

    if (!status)
        truncate_draws(output, output->warmup, em_plan_stored(plan, plan->warmup),
                       plan->n_warmup_draw);
    status = status ? status : em_writer_put_int(output->writer, "tuning_steps", plan->warmup);
    if (!status)
        truncate_draws(output, output->sampling, report->n_draw, plan->n_draw);
    status = status ? status : put_averages(output);
    status = status ? status : put_learned(output);
    if (!status && report->tempering[0])
        status = em_output_put_tempering(output, report->tempering);
    status = status ? status : put_verdict(output->writer, report);
    status = status ? status : put_checkpoint(output, report->n_draw);
    if (!status)
        status = put_volatile(output, report->seconds.earlier + report->seconds.total);
    return status ? status : em_writer_close(&output->writer, true);
}

em_sink em_output_sink(em_output *output)
{
    return (em_sink){.state = output,
                     .begin = output_begin,
                     .take = output_take,
                     .flush = output_flush,
                     .finish = output_finish};
}
