/*
 * A model in a process that emass starts, one on each rank, and that stays alive: it reads a line
 * of JSON with the parameters and writes a line with the log density, or with outputs that data are
 * compared with (analysis/guide/simulators.md has the protocol).
 */
#include "base/memory.h"
#include "base/text.h"
#include "model/construct/construct.h"
#include "model/external/answer.h"
#include "model/external/child.h"
#include "model/external/simulator.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

typedef struct process_options {
    em_simulator_options common;
    em_texts command;
    char *folder;
    bool gradient;
    double start_timeout; /* seconds */
} process_options;

static const em_field fields[] = {
    EM_TEXTS(process_options, command, .doc = "[./solve, --fast]: the program and its arguments"),
    EM_PATH(process_options, folder, .fallback = ".",
            .doc = "where it is started; .: the folder of the config"),
    EM_ROW_AS("parameters", em_simulator_options, parameters, EM_FIELD_JSON, char *,
              .doc = EM_SIMULATOR_PARAMETERS_DOC),
    EM_BOOL(process_options, gradient, .fallback = "false",
            .doc = "the program can give the gradient of the log density"),
    EM_DURATION(process_options, start_timeout, .minimum = 0, .maximum = 1e9, .fallback = "1m",
                .may_change = true,
                .doc = "additional time, besides evaluation_timeout, for the first evaluation "
                       "after a start of the program"),
    EM_SIMULATOR_FIELDS,
    {0}};

typedef struct process {
    em_simulator base;
    const process_options *options;
    em_child child;
    bool is_new;    /* the child has answered nothing yet */
    char **command; /* with the NULL at its end */
    int64_t n_asked;
} process;

/* ---------------------------------------------------------------- the answer */

/* Reads a list of n numbers, or one number if n is 1. */
static em_status read_list(const json_t *answer, const char *key, int64_t n, double *out)
{
    const json_t *list = json_object_get(answer, key);
    const bool alone = n == 1 && !json_is_array(list);

    if (alone ? list && em_answer_number(list, out) : em_answer_numbers(list, n, out))
        return EM_OK;
    return !list ? em_fail(EM_NONFINITE, "the answer has no %s", key)
                 : em_fail(EM_NONFINITE, "the answer's %s has %lld items, expected %lld numbers",
                           key, (long long)(alone ? 1 : json_array_size(list)), (long long)n);
}

static em_status read_members(process *self, const json_t *answer, double *output, double *gradient)
{
    const bool has_data = self->base.options->data.count > 0;
    const json_t *id = json_object_get(answer, "id"), *error = json_object_get(answer, "error");

    if (!json_is_object(answer))
        return em_fail(EM_NONFINITE, "the answer is not a JSON object");
    if (id && json_integer_value(id) != self->n_asked)
        return em_fail(EM_NONFINITE, "the answer is that of another evaluation");
    if (error)
        return em_fail(EM_NONFINITE, "the program says: %.200s",
                       json_is_string(error) ? json_string_value(error) : "error");
    em_status status =
        read_list(answer, has_data ? "output" : "log_density", self->base.n_output, output);
    if (!status && gradient && isfinite(output[0]))
        status = read_list(answer, "gradient", self->base.n, gradient);
    return status;
}

/* Reads an answer. A line that is not an answer ends the process, because its next line would be
 * taken for the answer to the next request. */
static em_status read_answer(process *self, char *line, double *output, double *gradient)
{
    json_auto_t *answer = em_answer_parse(line);
    em_status status;

    if (answer)
        status = read_members(self, answer, output, gradient);
    else {
        status = em_fail(EM_NONFINITE, "found '%s' from the process, expected a line of JSON",
                         em_excerpt_of(line).text);
        em_child_stop(&self->child, 0);
    }
    return status;
}

/* ---------------------------------------------------------------- the request */

static json_t *parameters_of(const process *self, const double *x)
{
    json_t *all = json_object();

    for (int64_t i = 0; i < self->base.n_input; i++) {
        const em_input *input = &self->base.input[i];
        json_t *value = input->scalar ? json_real(*x) : json_array();
        for (int64_t k = 0; !input->scalar && k < input->size; k++)
            json_array_append_new(value, json_real(x[k]));
        json_object_set_new(all, input->name, value);
        x += input->size;
    }
    return all;
}

/* {"id": 7, "chain": 0, "parameters": {"alpha": 0.5, "k": [1, 2, 3]}, "gradient": false} */
static char *request_of(process *self, int64_t chain, const double *x, bool gradient)
{
    json_auto_t *request = json_object();

    json_object_set_new(request, "id", json_integer(++self->n_asked));
    json_object_set_new(request, "chain", json_integer(chain));
    json_object_set_new(request, "parameters", parameters_of(self, x));
    json_object_set_new(request, "gradient", json_boolean(gradient));
    return json_dumps(request, JSON_REAL_PRECISION(17));
}

/* Sends a request, to a new process if there is none. */
static em_status ask(process *self, const char *line, char **answer)
{
    const double timeout = self->base.options->evaluation_timeout;

    if (!self->child.id) {
        self->is_new = true;
        if (em_child_start(&self->child)) /* a process that has answered before and has ended */
            return em_fail(EM_NONFINITE, "the process cannot be started again");
    }
    const em_status status = em_child_ask(
        &self->child, line, timeout + (self->is_new ? self->options->start_timeout : 0), answer);
    self->is_new &= status != EM_OK;
    return status;
}

/* A batch system sends the signals for a run also to the processes that the run has started. Such a
 * signal says nothing about the position, so the evaluation is repeated, once. */
static em_status evaluate(em_simulator *base, int64_t chain, const double *x, double *output,
                          double *gradient)
{
    process *self = (process *)base;
    EM_SCOPED char *request = request_of(self, chain, x, gradient != NULL), *line = NULL;
    char *answer = NULL;
    em_status status = request ? em_format_text(&line, "%s\n", request)
                               : em_fail(EM_EMEMORY, "out of memory for a request");

    status = status ? status : ask(self, line, &answer);
    if (status == EM_NONFINITE && self->child.asked_to_end)
        status = ask(self, line, &answer);
    return status ? status : read_answer(self, answer, output, gradient);
}

/* ---------------------------------------------------------------- life */

static void destroy(em_model *model)
{
    process *self = (process *)model;

    em_child_stop(&self->child, 2);
    em_child_release(&self->child);
    em_simulator_release(&self->base);
    em_release_all(&self->command, &self);
}

/* Starts the process on every rank that will use it, so that a wrong command is reported at once.
 */
static em_status set_up(em_model *model, const void *options, const em_model_context *context)
{
    process *self = (process *)model;
    em_status status = em_simulator_begin(&self->base, options, context);

    self->options = options;
    const em_texts *command = &self->options->command;
    if (!status && command->count == 0)
        status = em_fail(EM_ECONFIG, "model.command: found an empty list, expected a program");
    if (!status && self->options->gradient && self->options->common.data.count > 0)
        status = em_fail(EM_ECONFIG, "model.gradient: found true and model.data, expected one of "
                                     "the two: a program with data cannot return a gradient");
    if (!status)
        status = em_allocate(command->count + 1, sizeof *self->command, &self->command);
    if (status)
        return status;
    memcpy(self->command, command->value, (size_t)command->count * sizeof *self->command);
    self->child.command = self->command;
    self->child.folder = self->options->folder;
    self->is_new = true;
    self->base.evaluate = evaluate;
    self->base.model.gradient = self->options->gradient ? EM_GRADIENT_EXACT : EM_GRADIENT_NONE;
    const int64_t n_datum = self->options->common.data.count;
    status = em_simulator_end(&self->base, context, n_datum > 0 ? n_datum : 1);
    return status || self->base.model.rows.count == 0 || context->n_chain == 0
               ? status
               : em_child_start(&self->child);
}

const em_model_ops em_model_process = {
    .name = "process",
    .doc = "a program of your own that reads parameters and writes log densities, in lines of JSON",
    .source = "a protocol of emass: analysis/guide/simulators.md",
    .options_size = sizeof(process_options),
    .fields = fields,
    .create = em_model_build,
    .state = &(const em_construction){sizeof(process), set_up},
    .destroy = destroy,
    EM_SIMULATOR};
