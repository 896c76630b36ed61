/* A Stan program as a model. The log density and its gradient come from the C interface of
 * BridgeStan (model/stan/stan_library.h). Parameters, transformed parameters and generated
 * quantities are reported. */
#include "base/memory.h"
#include "base/system/foreign_call_watchdog.h"
#include "base/text.h"
#include "emass/model/prior.h"
#include "math/rng.h"
#include "model/construct/construct.h"
#include "model/stan/stan_model.h"
#include "par/world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const em_field fields[] = {
    EM_PATH(em_stan_options, program, .fallback = "",
            .doc = "the Stan program, which libstanli.so interprets"),
    EM_PATH(em_stan_options, library, .fallback = "",
            .doc =
                "shared object of a Stan program that BridgeStan has compiled, instead of program"),
    EM_DATA(em_stan_options, data, .fallback = "",
            .doc = "its data: JSON as for CmdStan, or a mapping {N: rows, y: table.csv:age, X: "
                   "[...], ...}"),
    EM_DATA(em_stan_options, init, .fallback = "",
            .doc = "starts of the chains: JSON of all parameters, or a mapping"),
    EM_TEXTS(em_stan_options, observed_data, .fallback = "[y]",
             .doc = "data for the group observed_data; small data that are not listed go into the "
                    "group constant_data"),
    EM_TEXTS(em_stan_options, log_likelihood, .fallback = "[log_lik]",
             .doc = "variables for the group log_likelihood, * and ? as in file names"),
    EM_TEXTS(
        em_stan_options, posterior_predictive, .fallback = "[]",
        .doc =
            "variables for the group posterior_predictive: replicated observations, such as y_rep"),
    EM_TEXTS(em_stan_options, predictions, .fallback = "[]",
             .doc = "variables for the group predictions: unobserved quantities"),
    {0}};

static void destroy(em_model *model)
{
    em_stan *self = (em_stan *)model;

    if (self->rng)
        self->library.rng_destruct(self->rng);
    if (self->program)
        self->library.destruct(self->program);
    if (self->without_generated)
        self->library.destruct(self->without_generated);
    em_release(&self->simpler);
    em_stan_data_destroy(&self->data);
    em_stan_declared_destroy(&self->declared);
    em_release_owner(&self->variables);
    em_release_all(&self->init, &self->datum, &self->name_text, &self->unconstrained_name,
                   &self->block, &self->block_names, &self->gradient, &self->flat, &self);
}

static em_status set_up(em_model *model, const void *options, const em_model_context *context)
{
    em_stan *self = (em_stan *)model;
    const em_status status = em_stan_set_up(self, options, context);

    model->differentiated = true;
    model->may_solve = !self->declared || self->declared->may_solve;
    return status;
}

/* ---------------------------------------------------------------- density */

/* Keeps the message of the first rejection. */
static em_status reject(em_stan *self, em_status status)
{
    em_rejections *rejections = &self->model.rejections;

    if (rejections->count++ == 0)
        snprintf(rejections->first, sizeof rejections->first, "%s", em_error_text());
    return status;
}

/* Adds the density of one chain. reject() in the program, and arguments outside the bounds of a
 * distribution, make it NaN. */
static em_status add_chain(em_stan *self, const double *theta, double *log_density,
                           double *gradient)
{
    char *error = NULL;
    double value = NAN;

    em_foreign_call_begin();
    const int failed =
        self->library.gradient(self->program, true, true, theta, &value, self->gradient, &error);

    if (failed || !isfinite(value)) {
        *log_density = NAN;
        return failed ? reject(self, em_stan_library_fail(&self->library, EM_NONFINITE,
                                                          "the program", error))
                      : reject(self, em_fail(EM_NONFINITE, "the log density is %g", value));
    }
    *log_density += value;
    for (int64_t i = 0; i < self->model.dim; i++)
        gradient[i] += self->gradient[i];
    return EM_OK;
}

/* The constants that the log density omits. Statements with ~ drop terms that do not depend on
 * parameters. The whole density counts as the prior. stanli cannot tell which terms were dropped;
 * without such statements there are none. */
static em_status log_constants(em_model *model, const double *theta, double *prior,
                               double *likelihood)
{
    em_stan *self = (em_stan *)model;
    double value[2] = {NAN, NAN};
    char *error = NULL;
    int failed = 0;

    *prior = *likelihood = 0;
    em_foreign_call_begin();
    for (int kept = 0; kept < 2 && !failed; kept++)
        failed = self->library.gradient(self->program, !kept, true, theta, &value[kept],
                                        self->gradient, &error);
    em_foreign_call_end();
    if (failed || !isfinite(value[1] - value[0])) {
        em_stan_library_fail(&self->library, EM_EMODEL, "the program", error);
        if (!self->declared || self->declared->may_drop_constants)
            em_say("the log evidence lacks the constants that statements with ~ drop, because "
                   "stanli cannot keep them; statements such as target += normal_lpdf(y | mu, "
                   "sigma) keep them");
        return EM_OK;
    }
    *prior = value[1] - value[0];
    return EM_OK;
}

static em_status add_prior(em_model *model, const em_query *query)
{
    em_status status = EM_OK;

    for (int64_t c = 0; c < query->n_chain; c++) {
        const int64_t row = c * query->stride;
        const em_status one = add_chain((em_stan *)model, query->theta + row,
                                        query->log_density + c, query->gradient + row);
        status = one ? one : status;
    }
    return status;
}

/* ---------------------------------------------------------------- report */

/* A random seed with SEED_BITS of its 32 bits set (Floyd's sampling, Bentley 1987): one of 10.5
 * million. The library takes 1 to 2 microseconds for each set bit of a seed. */
static unsigned draw_seed(const em_stream *stream)
{
    enum { SEED_BITS = 8, OF = 32 };
    unsigned seed = 0;

    for (unsigned j = OF - SEED_BITS; j < OF; j++) {
        const unsigned bit = 1u << em_uniform_below(stream, j, j + 1);
        seed |= seed & bit ? 1u << j : bit;
    }
    return seed;
}

/* Generated quantities use a random generator for each draw. If the program draws nothing, all
 * draws use one generator. */
static em_status start_random(const em_stan *self, const em_draw *draw, em_stan_rng **out)
{
    const em_stream stream = {draw->seed, (uint64_t)draw->chain, (uint64_t)draw->iteration,
                              EM_RNG_REPORT};
    char *error = NULL;

    *out = self->rng;
    if (*out)
        return EM_OK;
    *out = self->library.rng_construct(draw_seed(&stream), &error);
    return *out ? EM_OK
                : em_stan_library_fail(&self->library, EM_EMODEL, "the program's random numbers",
                                       error);
}

/* Computes a draw without generated quantities. The interpreter always computes them, so this uses
 * a program that has none. False: that fails, too. */
static bool constrain_less(em_stan *self, const double *theta, bool transformed)
{
    const em_stan_library *library = &self->library;
    char *error = NULL;

    if (self->simpler) {
        self->without_generated = library->construct(self->simpler, self->seed, &error);
        em_release(&self->simpler);
    }
    if (error)
        library->free_error(error);
    error = NULL;
    const em_stan_model *program =
        self->without_generated ? self->without_generated : self->program;
    bool good =
        library->constrain(program, transformed, false, theta, self->flat, NULL, &error) == 0;
    if (error)
        library->free_error(error);
    return good;
}

/* Computes the *n numbers of a draw. If generated quantities cannot be computed, it computes only
 * parameters and transformed parameters. If these cannot be computed either, it computes only
 * parameters. */
static em_status constrain(em_stan *self, const double *theta, em_stan_rng *rng, int64_t *n)
{
    const em_stan_library *library = &self->library;
    char *error = NULL;

    *n = self->variables->n_element;
    if (library->constrain(self->program, true, true, theta, self->flat, rng, &error) == 0)
        return EM_OK;
    em_status status = em_stan_library_fail(library, EM_NONFINITE, "the program", error);
    *n = 0;
    if (constrain_less(self, theta, true))
        *n = self->n_parameter + self->n_transformed;
    else if (constrain_less(self, theta, false))
        *n = self->n_parameter;
    return status;
}

static em_status report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    em_stan *self = (em_stan *)model;
    em_stan_rng *rng = NULL;
    int64_t n = 0;
    em_status status = start_random(self, draw, &rng);

    if (status)
        return status;
    status = constrain(self, theta, rng, &n);
    for (int64_t i = 0; i < n; i++)
        out[self->variables->place[i]] = self->flat[i];
    if (self->draws_random)
        self->library.rng_destruct(rng);
    else
        self->rng = rng;
    return status;
}

/* ---------------------------------------------------------------- where chains begin */

static em_status draw_start(em_model *model, const em_draw *draw, double *theta)
{
    em_stan *self = (em_stan *)model;
    char *error = NULL;

    (void)draw;
    if (!self->init ||
        self->library.unconstrain(self->program, self->init, self->gradient, &error) == 0) {
        if (self->init)
            memcpy(theta, self->gradient, (size_t)model->dim * sizeof *theta);
        return EM_OK;
    }
    return em_stan_library_fail(&self->library, EM_EDATA, self->init_name, error);
}

/* ---------------------------------------------------------------- emass check */

static void write_shape(const em_stan_datum *datum, FILE *out)
{
    fputs(datum->n_axes == 0 ? "one" : "", out);
    for (int i = 0; i < datum->n_axes; i++)
        fprintf(out, "%s%lld", i ? " x " : "", (long long)datum->shape[i]);
    fputs(datum->is_tuple     ? datum->n_axes ? " tuples" : " tuple"
          : datum->is_integer ? datum->n_axes ? " integers" : " integer"
          : datum->n_axes     ? " numbers"
                              : " number",
          out);
}

static void describe_data(const em_stan *self, FILE *out)
{
    for (int64_t i = 0; self->declared && i < self->declared->count; i++) {
        const em_stan_declaration *wanted = &self->declared->declaration[i];
        const em_stan_datum *datum = em_stan_data_find(self->data, wanted->name);
        if (wanted->block != EM_STAN_DATA)
            continue;
        fprintf(out, "# data       %s: ", em_excerpt_of(wanted->text).text);
        if (datum)
            write_shape(datum, out);
        fputs(datum ? "\n" : "not in the data\n", out);
    }
    for (int64_t i = 0; i < self->data->count; i++) {
        const em_stan_datum *datum = &self->data->datum[i];
        if (em_stan_declared_find(self->declared, EM_STAN_DATA, datum->name))
            continue;
        fprintf(out, "# data       %s: ", datum->name);
        write_shape(datum, out);
        fputs(self->declared ? ", which the program does not declare\n" : "\n", out);
    }
}

static void describe(const em_model *model, FILE *out)
{
    const em_stan *self = (const em_stan *)model;

    fprintf(out, "# program    %s: %lld numbers of parameters, %lld transformed, %lld generated\n",
            self->name, (long long)self->n_parameter, (long long)self->n_transformed,
            (long long)(self->variables->n_element - self->n_parameter - self->n_transformed));
    fprintf(out, "# library    BridgeStan 2.%d, build %s\n", self->library.minor,
            self->library.identity);
    describe_data(self, out);
}

const em_model_ops em_model_stan = {
    .name = "stan",
    .doc = "a program in the Stan language, interpreted by libstanli.so or compiled by BridgeStan",
    .source = "Carpenter et al. (2017); Roualdes et al. (2023), BridgeStan",
    .options_size = sizeof(em_stan_options),
    .fields = fields,
    .create = em_model_build,
    .state = &(const em_construction){sizeof(em_stan), set_up},
    .destroy = destroy,
    .add_prior = add_prior,
    .report = report,
    .start = draw_start,
    .describe = describe,
    .prior = &(const em_model_prior){
        .log_constants = log_constants,
        .none = "is a program, whose density is not divided into prior and likelihood"}};
