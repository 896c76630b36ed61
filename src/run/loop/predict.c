#include "run/loop/predict.h"

#include "base/memory.h"
#include "base/options/field.h"
#include "io/draws/reader.h"
#include "io/draws/writer.h"
#include "math/linalg.h"
#include "model/model.h"
#include "par/message.h"
#include "par/world.h"
#include "run/config/config_path.h"
#include "run/output/creation_record.h"
#include "run/output/stored_config.h"
#include "run/transaction/atomic_file.h"
#include "version.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* MOST_WAITING: the numbers of all chains that wait to be written. LONG_CHUNK: the draws that are
 * contiguous in the file. */
enum { MOST_WAITING = 1 << 22, LONG_CHUNK = 1 << 14 };

/* A variable of the posterior that the predictions need. */
typedef struct wanted {
    int64_t variable; /* of the reader */
    int64_t size;
    double *value; /* [n_local_chain][n_step][size] */
} wanted;

typedef struct predicting {
    em_prediction *request;
    em_config *config;
    em_stored *stored;
    em_grid *grid;
    em_model *model;
    em_reader *reader;
    em_writer *writer;
    em_created created;
    em_signature signature;
    em_atomic_file *file; /* the output */
    int group;
    em_owner memory; /* of its arrays */
    int64_t n_wanted, n_series;
    wanted *wanted;      /* [n_wanted] */
    em_variable *series; /* [n_series] what is written */
    bool sharded;
    int64_t width, posterior_width, n_step;
    double *posterior; /* [posterior_width] of one draw */
    double *value;     /* [n_local_chain][n_step][width] */
} predicting;

/* ---------------------------------------------------------------- the model */

/* Writes "model.data=..." for the new data. A relative path starts in the current folder. */
static em_status name_data(const char *data, char **out)
{
    EM_SCOPED char *path = NULL;
    char folder[PATH_MAX];

    if (*data != '/' && !getcwd(folder, sizeof folder))
        return em_fail(EM_EIO, "the current folder cannot be named: %s", strerror(errno));
    em_status status =
        em_format_text(&path, "%s%s%s", *data == '/' ? "" : folder, *data == '/' ? "" : "/", data);
    return status ? status : em_path_setting("model.data", path, out);
}

enum { N_READING = 3, MOST_SETTINGS = 1 + N_READING };

/* Adds options that say how to read the new data, where this differs from the run, such as
 * "model.header='yes'". They follow the *n options that are there. */
static em_status add_reading(const em_prediction *request, const em_model_ops *ops, int *n,
                             char *setting[MOST_SETTINGS])
{
    const char *const name[N_READING] = {"format", "header", "decimal"};
    const char *const value[N_READING] = {request->format, request->header, request->decimal};
    em_status status = EM_OK;

    for (int i = 0; !status && i < N_READING; i++) {
        if (!value[i])
            continue;
        if (!em_field_find(ops->fields, name[i]))
            return em_fail(
                EM_EUSAGE,
                "predict: found --%s, expected none: it is not an option of the data of model %s",
                name[i], ops->name);
        status = em_format_text(&setting[*n], "model.%s='%s'", name[i], value[i]);
        *n += status == EM_OK;
    }
    return status;
}

static em_status load_config(predicting *p)
{
    const em_prediction *request = p->request;
    char *setting[MOST_SETTINGS] = {NULL};
    int n = 0;
    em_status status = em_stored_config(request->path, request->folder, 0, NULL, &p->config);

    if (!status && !p->config->model->prediction)
        status = em_fail(EM_EUSAGE, "%s: model %s makes no predictions of new data", request->path,
                         p->config->model->name);
    status = status ? status : name_data(request->data, &setting[n++]);
    status = status ? status : add_reading(request, p->config->model, &n, setting);
    em_config_destroy(&p->config);
    if (!status)
        status = em_stored_config(request->path, request->folder, n, (const char *const *)setting,
                                  &p->config);
    for (int i = 0; i < MOST_SETTINGS; i++)
        em_release(&setting[i]);
    return status;
}

/* The number of shards. If there are more ranks than chains, the ranks share the rows of the new
 * data. */
static int64_t choose_shards(int64_t n_chain)
{
    const int64_t n_rank = em_world_size();
    int64_t shards = 1;

    while (n_rank % shards != 0 || n_rank / shards > n_chain)
        shards++;
    return shards;
}

static em_status create_model(predicting *p)
{
    const em_model_ops *ops = p->config->model;
    em_status status = em_grid_create(em_reader_n_chain(p->reader),
                                      choose_shards(em_reader_n_chain(p->reader)), &p->grid);

    if (status)
        return status;
    const em_model_context context = {.seed = (uint64_t)p->config->run.seed,
                                      .shard = em_grid_shard(p->grid),
                                      .n_shard = em_grid_n_shard(p->grid),
                                      .ops = ops,
                                      .first_chain = em_grid_first_chain(p->grid),
                                      .n_chain = em_grid_n_local_chain(p->grid),
                                      .fitted = em_stored_fitted(p->stored)};
    return em_agree(em_config_create_model(p->config, &context, &p->model));
}

/* ---------------------------------------------------------------- inputs and outputs */

/* Finds the variable of the file that the predictions need. */
static em_status find_wanted(const predicting *p, const em_variable *variable, wanted *out)
{
    out->size = em_variable_size(variable);
    out->variable = em_reader_find(p->reader, variable->name);
    if (out->variable < 0)
        return em_fail(EM_EDATA,
                       "%s: found no %s in the posterior, which predictions need: was it "
                       "excluded by output.variables, or not stored (model.store_weights of a "
                       "network)?",
                       p->request->path, variable->name);
    const int64_t there = em_reader_variable_at(p->reader, out->variable)->size;
    if (there != out->size)
        return em_fail(EM_EDATA, "%s: found %lld numbers of %s, expected %lld as the model has now",
                       p->request->path, (long long)there, variable->name, (long long)out->size);
    return EM_OK;
}

static em_status sort_variables(predicting *p)
{
    const em_model *model = p->model;
    em_status status = em_own_all(&p->memory, EM_ARRAY(p->wanted, model->n_variable),
                                  EM_ARRAY(p->series, model->n_variable));

    for (int64_t k = 0; !status && k < model->n_variable; k++) {
        const em_variable *variable = &model->variable[k];
        if (variable->group == EM_POSTERIOR) {
            wanted *one = &p->wanted[p->n_wanted++];
            status = find_wanted(p, variable, one);
            p->posterior_width += one->size;
        } else if (variable->group == EM_PREDICTIONS) {
            p->series[p->n_series++] = *variable;
            p->width += em_variable_size(variable);
            p->sharded |= variable->sharded;
        }
    }
    return status;
}

/* Allocates memory for as many draws as fit, and at least for one. The number is the same on all
 * ranks. */
static em_status allocate_batch(predicting *p)
{
    const int64_t n_chain = em_grid_n_chain(p->grid), n_local = em_grid_n_local_chain(p->grid);
    const int64_t numbers = n_chain * (p->width + p->posterior_width);

    p->n_step = em_least(em_most(MOST_WAITING / numbers, 1), em_reader_n_draw(p->reader));
    const int64_t n_row = n_local * p->n_step;
    em_status status = em_own_all(&p->memory, EM_ARRAY(p->posterior, p->posterior_width),
                                  EM_ARRAY(p->value, n_row * p->width));
    for (int64_t k = 0; !status && k < p->n_wanted; k++)
        status = em_own_all(&p->memory, EM_ARRAY(p->wanted[k].value, n_row * p->wanted[k].size));
    return status;
}

/* ---------------------------------------------------------------- the file */

/* Copies attributes that the file of the run also has, and records where they are from. */
static em_status copy_texts(predicting *p)
{
    static const char *const name[] = {"config", "model_hash"};
    em_status status = EM_OK;

    for (size_t i = 0; !status && i < sizeof name / sizeof *name; i++) {
        EM_SCOPED char *text = NULL;
        if (em_reader_text(p->reader, name[i], &text))
            status = em_writer_put_text(p->writer, name[i], text);
    }
    return status;
}

static em_status put_attributes(predicting *p)
{
    const struct {
        const char *name, *text;
    } texts[] = {{"git_commit", EM_COMMIT}, {"model", p->config->model->name}};
    em_status status = em_created_read(&p->created);

    p->signature = em_created_signature(&p->created);
    status = status ? status : em_writer_sign(p->writer, 6, p->signature.text);
    for (size_t i = 0; !status && i < sizeof texts / sizeof *texts; i++)
        status = em_writer_put_text(p->writer, texts[i].name, texts[i].text);
    status = status ? status : copy_texts(p);
    return status ? status : em_writer_put_int(p->writer, "seed", p->config->run.seed);
}

/* Stores data of the predictions, such as the lines of the new data. */
static em_status put_data(predicting *p)
{
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < p->model->n_datum; i++) {
        const em_datum *datum = &p->model->datum[i];
        if (strcmp(datum->group, "predictions_constant_data") == 0)
            status = em_writer_put_array(p->writer, datum->group, &datum->variable, datum->value);
    }
    return status;
}

static em_status create_file(predicting *p)
{
    const int64_t n_draw = em_reader_n_draw(p->reader);
    em_status status = em_writer_create(p->grid, em_atomic_file_part(p->file), false, &p->writer);

    status = status ? status : put_attributes(p);
    if (!status)
        status = em_writer_add_draws(p->writer, "predictions", p->n_series, p->series,
                                     (em_draw_space){n_draw, LONG_CHUNK, n_draw}, &p->group);
    return status ? status : put_data(p);
}

/* ---------------------------------------------------------------- draws */

static em_status predict_draw(predicting *p, int64_t c, int64_t i, int64_t iteration, double *out)
{
    const em_draw draw = {(uint64_t)p->config->run.seed, em_grid_first_chain(p->grid) + c,
                          iteration, EM_DRAW_PREDICTION};
    double *to = p->posterior;

    for (int64_t k = 0; k < p->n_wanted; k++) {
        const wanted *one = &p->wanted[k];
        memcpy(to, one->value + (c * p->n_step + i) * one->size, (size_t)one->size * sizeof *to);
        to += one->size;
    }
    const em_status status = p->model->ops->prediction->predict(p->model, &draw, p->posterior, out);
    if (status > 0 && p->request->n_failed++ == 0)
        snprintf(p->request->failure, sizeof p->request->failure, "%s", em_error_text());
    return status < 0 ? status : EM_OK;
}

/* Predicts from draws first .. first + n - 1 of this rank's chains. Local. */
static em_status predict_step(predicting *p, int64_t first, int64_t n)
{
    const int64_t n_local = em_grid_n_local_chain(p->grid);
    em_status status = EM_OK;

    for (int64_t k = 0; !status && k < p->n_wanted; k++)
        for (int64_t c = 0; !status && c < n_local; c++)
            status = em_reader_draws(p->reader, p->wanted[k].variable,
                                     em_grid_first_chain(p->grid) + c, 1, first, n,
                                     p->wanted[k].value + c * p->n_step * p->wanted[k].size);
    for (int64_t c = 0; !status && c < n_local; c++)
        for (int64_t i = 0; !status && i < n; i++)
            status = predict_draw(p, c, i, first + i, p->value + (c * n + i) * p->width);
    return status;
}

static em_status predict_all(predicting *p)
{
    const int64_t n_draw = em_reader_n_draw(p->reader), n_local = em_grid_n_local_chain(p->grid);
    em_status status = EM_OK;

    for (int64_t first = 0; !status && first < n_draw; first += p->n_step) {
        const int64_t n = n_draw - first < p->n_step ? n_draw - first : p->n_step;
        status = em_agree_first(predict_step(p, first, n), 0);
        if (!status && p->sharded)
            em_grid_sum_shards(p->grid, n_local * n * p->width, p->value);
        status = status ? status : em_writer_put_draws(p->writer, p->group, first, n, p->value);
    }
    return status;
}

/* ---------------------------------------------------------------- the whole prediction */

static em_status open_run(predicting *p)
{
    const em_prediction *request = p->request;
    em_status status = em_reader_open(request->path, "posterior", &p->reader);

    if (!status && em_reader_n_draw(p->reader) < 1)
        status = em_fail(EM_EDATA, "%s: found no draws, expected those of a run", request->path);
    status = status ? status : load_config(p);
    return status ? status : em_stored_create(request->path, &p->stored);
}

static em_status predict(predicting *p)
{
    const char *const input[] = {p->request->path, p->request->data};
    em_status status =
        em_atomic_file_take(p->request->output, p->request->overwrite, 2, input, &p->file);

    status = status ? status : em_agree(em_linalg_reserve());
    status = status ? status : em_agree(open_run(p));
    status = status ? status : create_model(p);
    status = status ? status : sort_variables(p);
    status = status ? status : allocate_batch(p);
    status = em_agree(status);
    status = status ? status : create_file(p);
    status = status ? status : predict_all(p);
    return em_atomic_file_finish(&p->file, &p->writer, status);
}

em_status em_predict(em_prediction *request)
{
    predicting p = {.request = request};

    request->n_failed = 0;
    request->failure[0] = '\0';
    const em_status status = predict(&p);
    if (!status) {
        request->n_chain = em_reader_n_chain(p.reader);
        request->n_draw = em_reader_n_draw(p.reader);
        em_world_sum(1, &request->n_failed);
    }
    em_model_destroy(&p.model);
    em_release_owner(&p.stored);
    em_config_destroy(&p.config);
    em_grid_destroy(&p.grid);
    em_reader_close(&p.reader);
    em_release_owned(&p.memory);
    return status;
}
