/*
 * A Stan program as a model: its log density and gradient through the C interface of BridgeStan
 * (model/stan_library.h), its parameters, transformed parameters and generated quantities as what
 * is reported.
 */
#include "base/memory.h"
#include "emass/model.h"
#include "math/rng.h"
#include "model/stan_data.h"
#include "model/stan_program.h"
#include "model/stan_variables.h"
#include "par/world.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

extern const em_model_ops em_model_stan; /* at the end */

typedef struct stan_options {
    char *program, *library, *data;
    em_texts log_likelihood, posterior_predictive, predictions;
} stan_options;

#define AT(member) offsetof(stan_options, member)
static const em_field fields[] = {
    {"program", EM_FIELD_PATH, AT(program), 0, 0, "", NULL, NULL,
     "the Stan program, which libstanli.so interprets"},
    {"library", EM_FIELD_PATH, AT(library), 0, 0, "", NULL, NULL,
     "or a Stan program that BridgeStan has compiled: its shared object"},
    {"data", EM_FIELD_PATH, AT(data), 0, 0, "", NULL, NULL, "its data, JSON as for CmdStan"},
    {"log_likelihood", EM_FIELD_TEXTS, AT(log_likelihood), 0, 0, "[log_lik]", NULL, NULL,
     "variables that go into the group log_likelihood, * and ? as in file names"},
    {"posterior_predictive", EM_FIELD_TEXTS, AT(posterior_predictive), 0, 0, "[]", NULL, NULL,
     "those that go into posterior_predictive: observations drawn anew, say y_rep"},
    {"predictions", EM_FIELD_TEXTS, AT(predictions), 0, 0, "[]", NULL, NULL,
     "those that go into predictions: of what was not observed"},
    {NULL, EM_FIELD_BOOL, 0, 0, 0, NULL, NULL, NULL, NULL}};
#undef AT

enum { MOST_PROGRAM_BYTES = 1 << 24, MOST_DATA_BYTES = 1 << 30 };

typedef struct stan {
    em_model model;
    em_stan_library library;
    em_stan_model *program;
    em_stan_variables *variables;
    int64_t n_parameter, n_transformed; /* numbers of a draw: the rest is generated */
    double *gradient;                   /* [dim] of one chain */
    double *flat;                       /* [variables->n_element] a draw as the library orders it */
} stan;

/* ---------------------------------------------------------------- what it prints */

/* A program may print at every evaluation: its first lines show what there is to see. */
enum { MOST_LINES = 20 };

static void print(const char *text, int length)
{
    static int n_line;

    for (int i = 0; i < length && n_line < MOST_LINES; i++) {
        if (i == 0 || text[i - 1] == '\n')
            fputs("emass: the program prints: ", stderr);
        fputc((unsigned char)text[i] < 0x20 && text[i] != '\n' ? ' ' : text[i], stderr);
        if (text[i] == '\n' && ++n_line == MOST_LINES)
            fputs("emass: the program prints more, which is left out\n", stderr);
    }
}

static void print_nothing(const char *text, int length)
{
    (void)text;
    (void)length;
}

/* ---------------------------------------------------------------- creation */

static em_status check_options(const stan_options *options, const em_model_context *context)
{
    if (!options->program == !options->library)
        return em_fail(EM_ECONFIG, "model: found %s, expected either a program or a library",
                       options->program ? "both a program and a library" : "neither");
    if (context->n_shard > 1)
        return em_fail(EM_ECONFIG,
                       "run.shards: found %lld, expected 1: a Stan program has no observations "
                       "that could be dealt to shards",
                       (long long)context->n_shard);
    return EM_OK;
}

/* The object that the library constructs the model from. */
static em_status join_data(const stan *self, const char *translated, const char *data, char **out)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    em_status status = EM_OK;

    if (!file)
        return em_fail(EM_EMEMORY, "out of memory for the data of the program");
    fputc('{', file);
    if (translated) {
        fputs("\"__stanli\": {\"build_id\": ", file);
        em_stan_write_string(self->library.identity, file);
        fputs(", \"mir\": ", file);
        em_stan_write_string(translated, file);
        fprintf(file, ", \"name\": \"program\"}%s", *data ? "," : "");
    }
    fprintf(file, "%s}", data);
    if (fclose(file) != 0)
        status = em_fail(EM_EMEMORY, "out of memory for the data of the program");
    if (!status)
        status = em_copy_text(text, out);
    free(text);
    return status;
}

/* Local: every rank has the same text. */
static em_status construct(stan *self, const stan_options *options, const char *translated,
                           const char *data, uint64_t seed)
{
    char *joined = NULL, *error = NULL;
    em_status status = join_data(self, translated, data, &joined);

    if (!status) {
        self->library.set_print(em_world_rank() == 0 ? print : print_nothing, NULL);
        self->program = self->library.construct(joined, (unsigned)seed, &error);
        if (!self->program)
            status = em_stan_library_fail(
                &self->library, EM_EDATA,
                options->data ? options->data
                              : (options->program ? options->program : options->library),
                error);
        self->model.data_hash = XXH64(joined, strlen(joined), 0);
    }
    em_release(&joined);
    return status;
}

static bool matches(const em_texts *patterns, const char *name)
{
    for (int64_t i = 0; i < patterns->count; i++)
        if (fnmatch(patterns->value[i], name, 0) == 0)
            return true;
    return false;
}

static em_report_group group_of(const stan_options *options, const char *name)
{
    if (matches(&options->posterior_predictive, name))
        return EM_POSTERIOR_PREDICTIVE;
    if (matches(&options->predictions, name))
        return EM_PREDICTIONS;
    return matches(&options->log_likelihood, name) ? EM_LOG_LIKELIHOOD : EM_POSTERIOR;
}

/* What the constructed program has. Local. */
static em_status describe(stan *self, const stan_options *options)
{
    const em_stan_library *library = &self->library;
    const char *name = options->program ? options->program : options->library;
    const int dim = library->count_unconstrained(self->program);
    const char *names = library->names(self->program, true, true);
    em_status status;

    if (dim < 1)
        return em_fail(EM_EDATA, "%s: found no parameters, expected at least one to sample", name);
    self->n_parameter = library->count(self->program, false, false);
    self->n_transformed = library->count(self->program, true, false) - self->n_parameter;
    status = em_stan_variables_create(names ? names : "", &self->variables);
    if (!status && self->variables->n_element != library->count(self->program, true, true))
        status = em_fail(EM_EDATA, "%s: found %lld names for %d numbers", name,
                         (long long)self->variables->n_element,
                         library->count(self->program, true, true));
    if (!status)
        status = em_allocate(dim, sizeof(double), &self->gradient);
    if (!status)
        status = em_allocate(self->variables->n_element, sizeof(double), &self->flat);
    for (int64_t v = 0; !status && v < self->variables->n_variable; v++)
        self->variables->variable[v].group = group_of(options, self->variables->variable[v].name);
    self->model.dim = dim;
    self->model.n_variable = self->variables ? self->variables->n_variable : 0;
    self->model.variable = self->variables ? self->variables->variable : NULL;
    return status;
}

/* Text, library and data of all ranks, then the model. Collective. */
static em_status set_up(stan *self, const stan_options *options, uint64_t seed)
{
    char *program = NULL, *translated = NULL, *text = NULL;
    em_stan_data *data = NULL;
    em_status status = em_stan_open(options->library, options->program != NULL, &self->library);

    if (!status && options->program)
        status = em_stan_read_text(options->program, MOST_PROGRAM_BYTES, &program);
    if (!status && options->program)
        status = em_stan_translate(&self->library, options->program, program, &translated);
    if (!status && options->data)
        status = em_stan_read_text(options->data, MOST_DATA_BYTES, &text);
    if (!status)
        status = em_agree(em_stan_data_read(options->data ? options->data : "no data",
                                            text ? text : "{}", &data));
    if (!status) {
        status = construct(self, options, translated, data->text, seed);
        if (!status)
            status = describe(self, options);
        status = em_agree(status);
    }
    em_stan_data_destroy(&data);
    em_release(&program);
    em_release(&translated);
    em_release(&text);
    return status;
}

static void destroy(em_model *model)
{
    stan *self = (stan *)model;

    if (self->program)
        self->library.destruct(self->program);
    em_stan_variables_destroy(&self->variables);
    em_release(&self->gradient);
    em_release(&self->flat);
    em_release(&self);
}

static em_status create(const void *untyped, const em_model_context *context, em_model **out)
{
    stan *self = NULL;
    em_status status = check_options(untyped, context);

    if (!status)
        status = em_allocate(1, sizeof *self, &self);
    status = em_agree(status);
    if (!status) {
        self->model.ops = &em_model_stan;
        status = set_up(self, untyped, context->seed);
    }
    if (status && self) {
        destroy(&self->model);
        self = NULL;
    }
    *out = (em_model *)self;
    return status;
}

/* ---------------------------------------------------------------- density */

/* reject() and arguments out of a distribution's bounds make the density of a chain NaN. */
static em_status add_chain(stan *self, const double *theta, double *log_density, double *gradient)
{
    char *error = NULL;
    double value = NAN;
    const int failed =
        self->library.gradient(self->program, true, true, theta, &value, self->gradient, &error);

    if (failed) {
        *log_density = NAN;
        return em_stan_library_fail(&self->library, EM_NONFINITE, "the program", error);
    }
    *log_density += value;
    for (int64_t i = 0; i < self->model.dim; i++)
        gradient[i] += self->gradient[i];
    return EM_OK;
}

static em_status add_prior(em_model *model, int64_t n_chain, int64_t stride, const double *theta,
                           double *log_density, double *gradient)
{
    em_status status = EM_OK;

    for (int64_t c = 0; c < n_chain; c++) {
        const em_status one =
            add_chain((stan *)model, theta + c * stride, log_density + c, gradient + c * stride);
        status = one ? one : status;
    }
    return status;
}

/* ---------------------------------------------------------------- report */

/* Generated quantities draw from a generator of this draw alone. */
static em_status start_random(const stan *self, const em_draw *draw, em_stan_rng **out)
{
    const em_stream stream = {draw->seed, (uint64_t)draw->chain, (uint64_t)draw->iteration,
                              EM_RNG_REPORT};
    char *error = NULL;

    *out = self->library.rng_construct((unsigned)em_uniform_below(&stream, 0, UINT64_C(1) << 32),
                                       &error);
    return *out ? EM_OK
                : em_stan_library_fail(&self->library, EM_EMODEL, "the program's random numbers",
                                       error);
}

/* Where generated quantities cannot be computed, parameters still can, and transformed ones. */
static em_status constrain(stan *self, const double *theta, em_stan_rng *rng, int64_t *n)
{
    const em_stan_library *library = &self->library;
    char *error = NULL;
    em_status status = EM_OK;

    *n = self->variables->n_element;
    if (library->constrain(self->program, true, true, theta, self->flat, rng, &error) == 0)
        return EM_OK;
    status = em_stan_library_fail(library, EM_NONFINITE, "the program", error);
    error = NULL;
    *n = self->n_parameter + self->n_transformed;
    if (library->constrain(self->program, true, false, theta, self->flat, NULL, &error) == 0)
        return status;
    if (error)
        library->free_error(error);
    error = NULL;
    *n = self->n_parameter;
    if (library->constrain(self->program, false, false, theta, self->flat, NULL, &error) == 0)
        return status;
    *n = 0;
    return em_stan_library_fail(library, EM_NONFINITE, "the program", error);
}

static em_status report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    stan *self = (stan *)model;
    em_stan_rng *rng = NULL;
    int64_t n = 0;
    em_status status = start_random(self, draw, &rng);

    if (status)
        return status;
    status = constrain(self, theta, rng, &n);
    for (int64_t i = 0; i < n; i++)
        out[self->variables->place[i]] = self->flat[i];
    self->library.rng_destruct(rng);
    return status;
}

const em_model_ops em_model_stan = {
    .name = "stan",
    .doc = "a program in the Stan language, interpreted by libstanli.so or compiled by BridgeStan",
    .source = "Carpenter et al. (2017); Roualdes et al. (2023), BridgeStan",
    .options_size = sizeof(stan_options),
    .fields = fields,
    .create = create,
    .destroy = destroy,
    .add_prior = add_prior,
    .report = report};
