#include "model/external/simulator.h"

#include "base/memory.h"
#include "base/text.h"
#include "data/shard/shard_assignment.h"
#include "math/finite.h"
#include "model/external/failures.h"
#include "model/external/unsaved_evaluations.h"
#include "par/grid.h"

#include <math.h>
#include <stdio.h>
#include <xxhash.h>

/* ---------------------------------------------------------------- set up */

em_status em_simulator_begin(em_simulator *self, const void *options,
                             const em_model_context *context)
{
    self->options = options;
    self->ops = *context->ops;
    self->model.ops = &self->ops;
    return self->options->parameters
               ? em_inputs_read(self->options->parameters, &self->n_input, &self->input)
               : EM_OK;
}

static em_status check_data(const em_simulator *self, int64_t n_output)
{
    const em_simulator_options *options = self->options;
    const int64_t n = options->data.count, n_sd = options->sd.count;

    if (n == 0 && n_sd > 0)
        return em_fail(EM_ECONFIG, "model.sd: found %lld numbers without model.data, expected none",
                       (long long)n_sd);
    if (n == 0 && n_output != 1)
        return em_fail(EM_ECONFIG,
                       "model.data: found none and %lld outputs of the program, expected one "
                       "output, which is the log density, or as many data as outputs",
                       (long long)n_output);
    if (n > 0 && n != n_output)
        return em_fail(EM_ECONFIG,
                       "model.data: found %lld numbers and %lld outputs of the program, expected "
                       "as many",
                       (long long)n, (long long)n_output);
    if (n > 0 && n_sd != 1 && n_sd != n)
        return em_fail(EM_ECONFIG, "model.sd: found %lld numbers, expected 1 or %lld",
                       (long long)n_sd, (long long)n);
    return EM_OK;
}

static bool is_proper(const em_simulator *self)
{
    for (int64_t i = 0; i < self->n_input; i++)
        if (!em_input_is_proper(&self->input[i]))
            return false;
    return true;
}

/* Declares the parameters of the config as those of the model. */
static void declare(em_simulator *self)
{
    static const em_model_prior none = {.none = "has parameters without a prior"};

    for (int64_t i = 0; i < self->n_input; i++) {
        const em_input *input = &self->input[i];
        self->variable[i] = (em_variable){.name = input->name,
                                          .n_axes = input->scalar ? 0 : 1,
                                          .shape = {input->scalar ? 0 : input->size},
                                          .bounds = input->bounds};
        self->n += input->size;
    }
    if (!is_proper(self))
        self->ops.prior = &none;
    self->model.n_parameter = self->n_input;
    self->model.parameter = self->variable;
}

em_status em_simulator_end(em_simulator *self, const em_model_context *context, int64_t n_output)
{
    const em_simulator_options *options = self->options;
    const int64_t n_datum = options->data.count;
    em_status status = check_data(self, n_output);

    self->n_output = n_output;
    status = status ? status : em_allocate(self->n_input, sizeof *self->variable, &self->variable);
    if (!status)
        declare(self);
    if (!status)
        status = em_allocate_all(EM_ARRAY(self->output, n_output), EM_ARRAY(self->slope, n_output),
                                 EM_ARRAY(self->gradient, self->n));
    status = status ? status : em_failures_create(context, &self->model.failures);
    status = status ? status : em_unsaved_create(self->n, n_output, &self->model.unsaved);
    if (status)
        return status;
    self->model.rows = em_shard_rows(1, 1, context->shard, context->n_shard);
    if (options->evaluation_log && self->model.rows.count > 0)
        status = em_evaluation_log_open(options->evaluation_log, self->n, n_output, &self->log);
    if (status)
        return status;
    if (n_datum == 0)
        return EM_OK;
    self->datum = (em_datum){
        "observed_data", {.name = "y", .n_axes = 1, .shape = {n_datum}}, options->data.value};
    self->model.n_datum = 1;
    self->model.datum = &self->datum;
    self->model.data_hash =
        XXH64(options->data.value, (size_t)n_datum * sizeof(double),
              XXH64(options->sd.value, (size_t)options->sd.count * sizeof(double), 0));
    return EM_OK;
}

void em_simulator_release(em_simulator *self)
{
    em_inputs_release(self->n_input, &self->input);
    em_release_owner(&self->model.failures);
    em_unsaved_destroy(&self->model.unsaved);
    em_evaluation_log_close(&self->log);
    em_release_all(&self->variable, &self->output, &self->slope, &self->gradient);
}

/* ---------------------------------------------------------------- the density */

em_status em_simulator_add_prior(em_model *model, const em_query *query)
{
    const em_simulator *self = (const em_simulator *)model;

    for (int64_t c = 0; c < query->n_chain; c++) {
        const double *x = query->theta + c * query->stride;
        double *gradient = query->gradient + c * query->stride;
        for (int64_t i = 0, at = 0; i < self->n_input; i++)
            for (int64_t k = 0; k < self->input[i].size; k++, at++) {
                double slope;
                query->log_density[c] += em_input_log_prior(&self->input[i], x[at], &slope);
                gradient[at] += slope;
            }
    }
    return EM_OK;
}

/* The log likelihood of the output. With data it is normal; without data the output itself is the
 * log density. */
double em_simulator_likelihood(const em_simulator *self, const double *output, double *slope)
{
    const em_reals *data = &self->options->data, *sd = &self->options->sd;
    double sum = data->count > 0 ? 0 : output[0];

    if (slope && data->count == 0)
        slope[0] = 1;
    for (int64_t i = 0; i < data->count; i++) {
        const double scale = sd->value[sd->count > 1 ? i : 0];
        const double z = (data->value[i] - output[i]) / scale;
        sum -= z * z / 2 + log(scale) + log(2 * M_PI) / 2;
        if (slope)
            slope[i] = z / scale;
    }
    return sum;
}

/* Whether the result is known from an earlier start of the run. */
static bool is_known(const em_simulator *self, em_evaluation *e)
{
    return (self->log && em_evaluation_log_find(self->log, e)) ||
           em_unsaved_find(self->model.unsaved, e);
}

/* Evaluates the model, unless the result is known. Errors: EM_NONFINITE: the evaluation failed. */
static em_status evaluate(em_simulator *self, em_evaluation *e)
{
    if (is_known(self, e))
        return e->why[0] ? em_fail(EM_NONFINITE, "%s", e->why) : EM_OK;
    const double start = em_clock();
    em_status status = self->evaluate(self, e->chain, e->x, e->output, e->gradient);
    if (!status && (isnan(em_simulator_likelihood(self, e->output, NULL)) ||
                    (e->gradient && !em_all_finite(self->n, e->gradient))))
        status = em_fail(EM_NONFINITE, "the answer is not a number");
    e->seconds = em_clock() - start;
    if (status < 0)
        return status;
    snprintf(e->why, sizeof e->why, "%s", status ? em_error_text() : "");
    const em_status logged =
        self->log ? em_evaluation_log_add(self->log, e) : em_unsaved_add(self->model.unsaved, e);
    return logged ? logged : status ? em_fail(EM_NONFINITE, "%s", e->why) : EM_OK;
}

/* The log density of one chain; NaN after a failure. A position that is not finite, after an
 * overflow of a transform, is not evaluated and does not count as a failure. */
static em_status add_chain(em_simulator *self, int64_t chain, const double *x, bool wants_gradient,
                           double *log_density, double *gradient)
{
    if (!em_all_finite(self->n, x)) {
        *log_density = NAN;
        return EM_OK;
    }
    em_evaluation evaluation = {.chain = chain,
                                .x = x,
                                .output = self->output,
                                .gradient = wants_gradient ? self->gradient : NULL};
    em_failures_count_evaluation(self->model.failures, chain);
    em_status status = evaluate(self, &evaluation);
    const double value = status ? NAN : em_simulator_likelihood(self, self->output, NULL);
    if (status > 0)
        em_failures_add(self->model.failures, chain, self->n, x, em_error_text());
    *log_density += status ? NAN : value;
    for (int64_t i = 0; wants_gradient && i < self->n; i++)
        gradient[i] += status ? NAN : self->gradient[i];
    return status < 0 ? status : EM_OK;
}

em_status em_simulator_add_likelihood(em_model *model, const em_query *query)
{
    em_simulator *self = (em_simulator *)model;
    const bool wants_gradient =
        model->gradient == EM_GRADIENT_EXACT && query->wanted != EM_WANT_LOG_DENSITY;
    em_status status = EM_OK;

    for (int64_t c = 0; !status && query->rows.count > 0 && c < query->n_chain; c++)
        status = add_chain(self, query->chain[c], query->theta + c * query->stride, wants_gradient,
                           &query->log_density[c], query->gradient + c * query->stride);
    return status;
}

/* ---------------------------------------------------------------- draws from the prior */

em_status em_simulator_draw_prior(em_model *model, const em_draw *draw, double *x)
{
    const em_simulator *self = (const em_simulator *)model;

    for (int64_t i = 0, at = 0; i < self->n_input; i++)
        for (int64_t k = 0; k < self->input[i].size; k++, at++) {
            em_variate v = {draw, (uint64_t)at * EM_VARIATES};
            if (em_input_is_proper(&self->input[i]))
                x[at] = em_input_draw(&self->input[i], &v);
        }
    return EM_OK;
}

static em_status log_constants(em_model *model, const double *theta, double *prior,
                               double *likelihood)
{
    const em_simulator *self = (const em_simulator *)model;

    (void)theta;
    *prior = *likelihood = 0;
    for (int64_t i = 0; i < self->n_input; i++)
        *prior += (double)self->input[i].size * em_input_log_constant(&self->input[i]);
    return EM_OK;
}

const em_model_prior em_simulator_prior = {.draw = em_simulator_draw_prior,
                                           .log_constants = log_constants};

/* ---------------------------------------------------------------- emass check */

void em_simulator_describe(const em_model *model, FILE *out)
{
    const em_simulator *self = (const em_simulator *)model;
    char prior[EM_PRIOR_BYTES];

    for (int64_t i = 0; i < self->n_input; i++) {
        em_input_print(&self->input[i], prior);
        fprintf(out, "# prior      %s", self->input[i].name);
        if (!self->input[i].scalar)
            fprintf(out, " (%lld numbers)", (long long)self->input[i].size);
        fprintf(out, " ~ %s\n", prior);
    }
    fprintf(out, "# density    %lld output%s: %s; the gradient is %s\n", (long long)self->n_output,
            em_plural(self->n_output),
            self->options->data.count > 0 ? "means of normal distributions of the data"
                                          : "log density",
            model->gradient == EM_GRADIENT_EXACT ? "the program's" : "not known");
}
