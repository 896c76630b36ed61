/*
 * A model on a server with the protocol UM-Bridge (Seelinger et al. 2023, version 1.0): JSON
 * over HTTP. The requests Info, InputSizes, OutputSizes and ModelInfo say at the start what there
 * is; Evaluate and, where the server has it, Gradient are the evaluations. Ranks are assigned to
 * servers in turn.
 */
#include "base/memory.h"
#include "base/text.h"
#include "model/construct/construct.h"
#include "model/external/answer.h"
#include "model/external/http.h"
#include "model/external/simulator.h"
#include "par/grid.h"
#include "par/world.h"

#include <math.h>
#include <string.h>
#include <time.h>

typedef struct umbridge_options {
    em_simulator_options common;
    em_texts url;
    double reconnect_timeout; /* seconds */
    char *server_model, *config;
} umbridge_options;

static const em_field fields[] = {
    EM_TEXTS(umbridge_options, url,
             .doc = "http://host:4242; a list: servers of one model, assigned to ranks in turn",
             .may_change = true),
    EM_DURATION(umbridge_options, reconnect_timeout, .minimum = 0, .maximum = 1e9, .fallback = "1m",
                .doc = "the run ends if the server has not answered for this time",
                .may_change = true),
    EM_TEXT(umbridge_options, server_model, .fallback = "",
            .doc = "name of the model on the server; none: the only model of the server"),
    EM_JSON(umbridge_options, config, .fallback = "",
            .doc = "{key: value}: handed to the server with each request"),
    EM_ROW_AS("parameters", em_simulator_options, parameters, EM_FIELD_JSON, char *, .fallback = "",
              .doc = EM_SIMULATOR_PARAMETERS_DOC
              "; none: theta with a flat prior, of the size that the server reports"),
    EM_SIMULATOR_FIELDS,
    {0}};

enum { MOST_VECTORS = 1024 };

typedef struct umbridge {
    em_simulator base;
    const umbridge_options *options;
    em_http *http;
    json_t *config;
    const char *url, *name; /* the server of this rank, and the model there */
    char *own_name;
    bool is_made;        /* the server has answered once; from now on the run waits if it is gone */
    int64_t n_in, n_out; /* input and output vectors */
    int64_t in_size[MOST_VECTORS], out_size[MOST_VECTORS];
} umbridge;

/* ---------------------------------------------------------------- requests */

static json_t *request_of(const umbridge *self)
{
    json_t *request = json_object();

    json_object_set_new(request, "name", json_string(self->name));
    json_object_set(request, "config", self->config);
    return request;
}

/* Writes numbers as JSON vectors of these sizes: [[1, 2], [3]]. */
static json_t *vectors_of(int64_t n, const int64_t *size, const double *x)
{
    json_t *all = json_array();

    for (int64_t i = 0; i < n; i++) {
        json_t *one = json_array();
        for (int64_t k = 0; k < size[i]; k++)
            json_array_append_new(one, json_real(*x++));
        json_array_append_new(all, one);
    }
    return all;
}

static em_status read_vector(const json_t *list, int64_t n, double *out)
{
    return em_answer_numbers(list, n, out)
               ? EM_OK
               : em_fail(EM_NONFINITE, "the server's output has %lld items, expected %lld numbers",
                         (long long)json_array_size(list), (long long)n);
}

/* Posts a request, and posts it again once if the connection broke before the answer. If it breaks
 * twice, the position may have ended the server, and the evaluation has failed. If the server does
 * not run, waits for it to be started again. EM_EMODEL: it was not started in time. */
static em_status post_patiently(umbridge *self, const char *path, const json_t *request,
                                json_t **answer)
{
    const double timeout = self->options->common.evaluation_timeout;
    const double end = em_clock() + self->options->reconnect_timeout;
    const struct timespec pause = {.tv_nsec = 100000000};
    bool is_again = false;

    for (;;) {
        const em_status status =
            em_http_post(self->http, self->url, path, request, timeout, answer);
        const em_http_failure failure = status ? em_http_last_failure(self->http) : EM_HTTP_OTHER;
        const bool is_gone = failure == EM_HTTP_UNREACHABLE, is_broken = failure == EM_HTTP_BROKEN;
        if (!is_gone && (is_again || !is_broken))
            return status;
        if (is_gone && em_clock() > end)
            return em_fail(EM_EMODEL, "%s: no server for %g s", self->url,
                           self->options->reconnect_timeout);
        is_again |= is_broken;
        if (is_gone)
            nanosleep(&pause, NULL);
    }
}

/* Posts `request`, which is freed; NULL: sends GET instead. */
static em_status post(umbridge *self, const char *path, json_t *request, json_t **answer)
{
    const em_status status = self->is_made
                                 ? post_patiently(self, path, request, answer)
                                 : em_http_post(self->http, self->url, path, request,
                                                self->options->common.evaluation_timeout, answer);

    json_decref(request);
    return status;
}

static em_status ask_outputs(umbridge *self, const double *x, double *output)
{
    json_t *request = request_of(self);
    json_auto_t *answer = NULL;

    json_object_set_new(request, "input", vectors_of(self->n_in, self->in_size, x));
    em_status status = post(self, "Evaluate", request, &answer);
    const json_t *list = json_object_get(answer, "output");
    if (!status && (int64_t)json_array_size(list) != self->n_out)
        status = em_fail(EM_NONFINITE, "the server's output has %lld vectors, expected %lld",
                         (long long)json_array_size(list), (long long)self->n_out);
    for (int64_t i = 0, at = 0; !status && i < self->n_out; at += self->out_size[i++])
        status = read_vector(json_array_get(list, (size_t)i), self->out_size[i], output + at);
    return status;
}

/* Adds to gradient [in_size] the derivatives by input `in`, from the slopes by output `out`. */
static em_status ask_gradient(umbridge *self, const double *x, int64_t in, int64_t out,
                              const double *slope, double *gradient)
{
    json_t *request = request_of(self), *sens = json_array();
    json_auto_t *answer = NULL;
    EM_SCOPED double *part = NULL;

    for (int64_t k = 0; k < self->out_size[out]; k++)
        json_array_append_new(sens, json_real(slope[k]));
    json_object_set_new(request, "input", vectors_of(self->n_in, self->in_size, x));
    json_object_set_new(request, "outWrt", json_integer(out));
    json_object_set_new(request, "inWrt", json_integer(in));
    json_object_set_new(request, "sens", sens);
    em_status status = post(self, "Gradient", request, &answer);
    status = status ? status : em_allocate(self->in_size[in], sizeof *part, &part);
    if (!status)
        status = read_vector(json_object_get(answer, "output"), self->in_size[in], part);
    for (int64_t k = 0; !status && k < self->in_size[in]; k++)
        gradient[k] += part[k];
    return status;
}

static em_status evaluate(em_simulator *base, int64_t chain, const double *x, double *output,
                          double *gradient)
{
    umbridge *self = (umbridge *)base;
    em_status status = ask_outputs(self, x, output);

    (void)chain;
    if (status || !gradient)
        return status;
    memset(gradient, 0, (size_t)base->n * sizeof *gradient);
    if (!isfinite(em_simulator_likelihood(base, output, base->slope)))
        return EM_OK;
    for (int64_t out = 0, from = 0; out < self->n_out; from += self->out_size[out++])
        for (int64_t in = 0, at = 0; !status && in < self->n_in; at += self->in_size[in++])
            status = ask_gradient(self, x, in, out, base->slope + from, gradient + at);
    return status;
}

/* ---------------------------------------------------------------- what the server has */

/* Turns a failure before the run into an error of the config. */
static em_status at_start(const umbridge *self, em_status status)
{
    if (status <= 0)
        return status;
    const em_excerpt message = em_excerpt_of(em_error_text());
    return em_fail(EM_ECONFIG, "model.url: no answer of a UM-Bridge server at %s: %s", self->url,
                   message.text);
}

static em_status find_name(umbridge *self)
{
    json_auto_t *answer = NULL;
    const char *wanted = self->options->server_model;
    em_status status = at_start(self, post(self, "Info", NULL, &answer));
    const json_t *models = json_object_get(answer, "models");
    const size_t n = json_array_size(models);
    char names[256] = "";

    for (size_t i = 0; i < n && !self->own_name && !status; i++) {
        const char *name = json_string_value(json_array_get(models, i));
        em_append(sizeof names, names, "%s%s", i > 0 ? ", " : "", name ? name : "?");
        if (name && (wanted ? strcmp(name, wanted) == 0 : n == 1))
            status = em_copy_text(name, &self->own_name);
    }
    if (!status && !self->own_name)
        status = em_fail(EM_ECONFIG, "model.server_model: found %s, expected one of %s: %s",
                         wanted ? wanted : "none", self->url, *names ? names : "it has none");
    self->name = self->own_name;
    return status;
}

static em_status read_sizes(umbridge *self, const char *path, const char *key, int64_t *n,
                            int64_t *size)
{
    json_auto_t *answer = NULL;
    em_status status = at_start(self, post(self, path, request_of(self), &answer));
    const json_t *list = json_object_get(answer, key);

    *n = (int64_t)json_array_size(list);
    if (!status && (*n < 1 || *n > MOST_VECTORS))
        status = em_fail(EM_ECONFIG, "model.url: %s: %s: found %lld vectors, expected 1 to %d",
                         self->url, key, (long long)*n, MOST_VECTORS);
    for (int64_t i = 0; !status && i < *n; i++) {
        size[i] = json_integer_value(json_array_get(list, (size_t)i));
        if (size[i] < 1 || size[i] > 1000000)
            status = em_fail(EM_ECONFIG, "model.url: %s: %s: found %lld, expected 1 to 1000000",
                             self->url, key, (long long)size[i]);
    }
    return status;
}

static em_status read_support(umbridge *self)
{
    json_auto_t *answer = NULL;
    em_status status = at_start(self, post(self, "ModelInfo", request_of(self), &answer));
    const json_t *support = json_object_get(answer, "support");

    if (!status && !json_is_true(json_object_get(support, "Evaluate")))
        status = em_fail(EM_ECONFIG, "model.url: model %s of %s cannot be evaluated", self->name,
                         self->url);
    self->base.model.gradient =
        json_is_true(json_object_get(support, "Gradient")) ? EM_GRADIENT_EXACT : EM_GRADIENT_NONE;
    return status;
}

static int64_t sum_of(int64_t n, const int64_t *x)
{
    int64_t sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

/* Checks that the parameters of the config, or of the server, have as many numbers as the server
 * takes. */
static em_status fit_parameters(umbridge *self)
{
    const int64_t wanted = sum_of(self->n_in, self->in_size);
    int64_t found = 0;

    if (!self->base.options->parameters) {
        self->base.n_input = self->n_in;
        return em_inputs_of_sizes(self->n_in, self->in_size, &self->base.input);
    }
    for (int64_t i = 0; i < self->base.n_input; i++)
        found += self->base.input[i].size;
    return found == wanted
               ? EM_OK
               : em_fail(EM_ECONFIG,
                         "model.parameters: found %lld numbers, expected the %lld that model %s of "
                         "%s takes",
                         (long long)found, (long long)wanted, self->name, self->url);
}

/* ---------------------------------------------------------------- life */

static void destroy(em_model *model)
{
    umbridge *self = (umbridge *)model;

    em_http_destroy(&self->http);
    json_decref(self->config);
    em_release(&self->own_name);
    em_simulator_release(&self->base);
    em_release(&self);
}

static em_status read_config(umbridge *self)
{
    json_error_t error;
    const char *text = self->options->config;

    self->config = text ? json_loads(text, 0, &error) : json_object();
    return json_is_object(self->config)
               ? EM_OK
               : em_fail(EM_ECONFIG, "model.config: found %s, expected a mapping",
                         text ? em_excerpt_of(text).text : "none");
}

static em_status set_up(em_model *model, const void *options, const em_model_context *context)
{
    umbridge *self = (umbridge *)model;
    em_status status = em_simulator_begin(&self->base, options, context);

    self->options = options;
    const em_texts *url = &self->options->url;
    if (!status && url->count == 0)
        status = em_fail(EM_ECONFIG, "model.url: found an empty list, expected http://host:4242");
    status = status ? status : read_config(self);
    status = status ? status : em_http_create(&self->http);
    if (status)
        return status;
    self->url = url->value[em_world_rank() % url->count];
    self->base.evaluate = evaluate;
    status = find_name(self);
    if (!status)
        status = read_sizes(self, "InputSizes", "inputSizes", &self->n_in, self->in_size);
    if (!status)
        status = read_sizes(self, "OutputSizes", "outputSizes", &self->n_out, self->out_size);
    status = status ? status : read_support(self);
    status = status ? status : fit_parameters(self);
    self->is_made = true;
    return status ? status
                  : em_simulator_end(&self->base, context, sum_of(self->n_out, self->out_size));
}

const em_model_ops em_model_umbridge = {.name = "umbridge",
                                        .doc = "a model on a UM-Bridge server: a log density, or a "
                                               "forward model whose outputs are compared with data",
                                        .source = "Seelinger et al. (2023), JOSS 8(83), 4748",
                                        .options_size = sizeof(umbridge_options),
                                        .fields = fields,
                                        .create = em_model_build,
                                        .state = &(const em_construction){sizeof(umbridge), set_up},
                                        .destroy = destroy,
                                        EM_SIMULATOR};
