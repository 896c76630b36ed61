/* Sets up a Stan program as a model. */
#include "base/available_memory.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/text/json.h"
#include "model/stan/stan_columns.h"
#include "model/stan/stan_model.h"
#include "model/stan/stan_program.h"
#include "model/stan/stan_shape.h"
#include "par/world.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { MOST_DATA_BYTES = 1 << 30 };

/* ---------------------------------------------------------------- output of the program */

/* A program may print at every evaluation, so only its first lines are printed. */
enum { MOST_LINES = 20 };

/* The lines that a program has printed. They are global, because the callback is given no pointer.
 */
static struct {
    int n_line;
    int length; /* of the line being put together; what does not fit is cut off */
    int last_length;
    char line[1024], last[1024];
} printed;

/* A line that repeats the one before it is not printed. */
static bool is_repeated(void)
{
    const bool same = printed.n_line > 0 && printed.length == printed.last_length &&
                      memcmp(printed.line, printed.last, (size_t)printed.length) == 0;

    printed.last_length = printed.length;
    memcpy(printed.last, printed.line, (size_t)printed.length);
    return same;
}

static void print(const char *text, int length)
{
    for (int i = 0; i < length && printed.n_line < MOST_LINES; i++) {
        if (text[i] == '\n' && is_repeated()) {
            printed.length = 0;
        } else if (text[i] == '\n') {
            em_say("the program prints: %.*s", printed.length, printed.line);
            printed.length = 0;
            if (++printed.n_line == MOST_LINES)
                em_say("the program prints more, which is not shown");
        } else if (printed.length < (int)sizeof printed.line)
            printed.line[printed.length++] = (unsigned char)text[i] < 0x20 ? ' ' : text[i];
    }
}

static void print_nothing(const char *text, int length)
{
    (void)text;
    (void)length;
}

/* ---------------------------------------------------------------- creation */

static em_status check_options(const em_stan_options *options, const em_model_context *context)
{
    if (!options->program == !options->library)
        return em_fail(EM_ECONFIG, "model: found %s, expected either a program or a library",
                       options->program ? "both a program and a library" : "neither");
    if (context->n_shard > 1)
        return em_fail(EM_ECONFIG,
                       "run.shards: found %lld, expected 1: a Stan program has no observations "
                       "that could be divided among shards",
                       (long long)context->n_shard);
    return EM_OK;
}

/* Composes the JSON object from which the library constructs the model. */
static em_status join_data(const em_stan *self, const char *translated, const char *data,
                           char **out)
{
    em_text_stream text;
    const em_status status = em_text_begin(&text);
    FILE *file = text.out;

    if (status)
        return status;
    fputc('{', file);
    if (translated) {
        fputs("\"__stanli\": {\"build_id\": ", file);
        em_json_write_string(self->library.identity, file);
        fputs(", \"mir\": ", file);
        em_json_write_string(translated, file);
        fprintf(file, ", \"name\": \"program\"}%s", *data ? "," : "");
    }
    fprintf(file, "%s}", data);
    return em_text_end(&text, EM_OK, out);
}

static bool is_mapping(const char *data)
{
    return data && *data == '{';
}

/* The name of the data in messages. */
static const char *source_of(const char *data, const char *option)
{
    return !data ? "no data" : is_mapping(data) ? option : data;
}

/* The names of a program and its data in messages. */
typedef struct both {
    char text[512];
} both;

static both program_and_data(const em_stan *self, const em_stan_options *options)
{
    both out;

    snprintf(out.text, sizeof out.text, "%s with %s", self->name,
             source_of(options->data, "model.data"));
    return out;
}

/* Fails because a model could not be constructed. If data are missing, the message names them and
 * their declaration. */
static em_status construction_failed(const em_stan *self, const em_stan_options *options,
                                     double room, char *error)
{
    const char *data = source_of(options->data, "model.data");

    for (int64_t i = 0; self->declared && i < self->declared->count; i++) {
        const em_stan_declaration *wanted = &self->declared->declaration[i];
        if (wanted->block == EM_STAN_DATA && !em_stan_data_find(self->data, wanted->name)) {
            char what[512];
            snprintf(what, sizeof what, "%s: no %s in it, which %s declares as %s", data,
                     em_excerpt_of(wanted->name).text, self->name,
                     em_excerpt_of(wanted->text).text);
            return em_stan_library_fail(&self->library, EM_EDATA, what, error);
        }
    }
    const both what = program_and_data(self, options);
    if (error && strstr(error, "bad_alloc")) {
        self->library.free_error(error);
        return em_fail(EM_EMEMORY,
                       "%s: out of memory: it takes more than the %.3g GB available to a rank",
                       what.text, room / 1e9);
    }
    return em_stan_library_fail(&self->library, EM_EDATA, what.text, error);
}

/* Constructs the model within the memory that is available. */
static em_status construct_within(em_stan *self, double room, const em_stan_options *options,
                                  const char *joined)
{
    char *error = NULL;
    const em_status status = em_stan_check_memory(program_and_data(self, options).text,
                                                  self->declared, self->data, room);

    if (status)
        return status;
    const em_memory_bound bound = em_memory_bind(room);
    self->program = self->library.construct(joined, self->seed, &error);
    em_memory_unbind(bound);
    return self->program ? EM_OK : construction_failed(self, options, room, error);
}

/* Constructs the model from the text that every rank has. Local. */
static em_status construct(em_stan *self, const em_stan_options *options, const char *translated,
                           const char *simpler)
{
    EM_SCOPED char *joined = NULL;
    em_status status = join_data(self, translated, self->data->text, &joined);

    if (!status && simpler)
        status = join_data(self, simpler, self->data->text, &self->simpler);
    em_release(&self->data->text);
    if (!status) {
        printed.n_line = printed.length = 0;
        self->library.set_print(em_world_rank() == 0 ? print : print_nothing, NULL);
        status =
            construct_within(self, em_memory_available() / em_world_node_size(), options, joined);
        const char *const program = translated ? translated : self->library.identity;
        self->model.data_hash = XXH64(joined, strlen(joined), 0);
        self->model.program_hash = XXH64(program, strlen(program), 0);
    }
    return status;
}

static bool matches(const em_texts *patterns, const char *name)
{
    for (int64_t i = 0; i < patterns->count; i++)
        if (fnmatch(patterns->value[i], name, 0) == 0)
            return true;
    return false;
}

static em_report_group group_of(const em_stan_options *options, const char *name)
{
    if (matches(&options->posterior_predictive, name))
        return EM_POSTERIOR_PREDICTIVE;
    if (matches(&options->predictions, name))
        return EM_PREDICTIONS;
    return matches(&options->log_likelihood, name) ? EM_LOG_LIKELIHOOD : EM_POSTERIOR;
}

/* Sets the group and type of a generated quantity by the program's declaration; `first`: the index
 * of its first element in a draw. */
static void classify(const em_stan *self, const em_stan_options *options, int64_t first,
                     em_variable *variable)
{
    const em_stan_declaration *declared =
        em_stan_declared_find(self->declared, EM_STAN_GENERATED, variable->name);

    variable->group = group_of(options, variable->name);
    variable->storage = declared && declared->is_integer ? EM_STORE_INT : EM_STORE_REAL;
    variable->from_one = variable->n_axes > 0;
    variable->role = first < self->n_parameter                         ? EM_PARAMETER
                     : first < self->n_parameter + self->n_transformed ? EM_TRANSFORMED_PARAMETER
                                                                       : EM_GENERATED_QUANTITY;
}

static bool has_variable(const em_stan *self, const char *name)
{
    for (int64_t v = 0; v < self->model.n_variable; v++)
        if (strcmp(self->model.variable[v].name, name) == 0)
            return true;
    return false;
}

/* Checks that variables that are named exist. A pattern may match none. Local. Errors: EM_ECONFIG.
 */
static em_status check_asked(const em_stan *self, const em_texts *patterns, const char *option)
{
    for (int64_t i = 0; i < patterns->count; i++)
        if (!strpbrk(patterns->value[i], "*?[") && !has_variable(self, patterns->value[i]))
            return em_fail(EM_ECONFIG,
                           "model.%s: found '%s', expected names of generated quantities; the "
                           "program has %s%s",
                           option, em_excerpt_of(patterns->value[i]).text,
                           self->model.n_variable > 0 ? self->model.variable[0].name : "nothing",
                           self->model.n_variable > 1 ? ", ..." : "");
    return EM_OK;
}

/* Warns that an interpreter that lacks a function computes neither transformed parameters nor
 * generated quantities. */
static void tell_missing(const em_stan *self)
{
    const char *missing = NULL;
    int64_t n = 0;

    for (int64_t i = 0; self->declared && i < self->declared->count; i++) {
        const em_stan_declaration *d = &self->declared->declaration[i];
        if (d->block != EM_STAN_TRANSFORMED && d->block != EM_STAN_GENERATED)
            continue;
        if (has_variable(self, d->name))
            return;
        missing = n++ ? missing : d->name;
    }
    if (n > 0)
        em_say(
            "warning: %s: the draws lack %s%s, because the library cannot compute the "
            "transformed parameters and generated quantities of this program (a library compiled "
            "by BridgeStan may: model.library)",
            self->name, missing, n > 1 ? " and other variables" : "");
}

/* Reads the sizes and names of the constructed program. Local. */
static em_status describe_draws(em_stan *self, const em_stan_options *options)
{
    const em_stan_library *library = &self->library;
    const int dim = library->count_unconstrained(self->program);
    const int n = library->count(self->program, true, true);
    const char *names = library->names(self->program, true, true);
    em_stan_variables *variables = NULL;

    if (dim < 1)
        return em_fail(EM_EDATA, "%s: found no parameters, expected at least one to sample",
                       self->name);
    self->model.dim = dim;
    self->n_parameter = library->count(self->program, false, false);
    self->n_transformed = library->count(self->program, true, false) - self->n_parameter;
    em_status status = em_stan_variables_create(names ? names : "", &variables);
    self->variables = variables;
    if (!status && variables->n_element != n)
        status = em_fail(
            EM_EDATA, "found %lld names for the %d numbers of a draw, expected one name for each",
            (long long)variables->n_element, n);
    if (status)
        return em_fail(status, "%s: %s", self->name, em_excerpt_of(em_error_text()).text);
    for (int64_t v = 0, first = 0; v < variables->n_variable; v++) {
        em_variable *variable = &variables->variable[v];
        int64_t size = 1;
        classify(self, options, first, variable);
        for (int i = 0; i < variable->n_axes; i++)
            size *= variable->shape[i];
        first += size;
    }
    self->model.n_variable = variables->n_variable;
    self->model.variable = variables->variable;
    tell_missing(self);
    status = check_asked(self, &options->posterior_predictive, "posterior_predictive");
    status = status ? status : check_asked(self, &options->predictions, "predictions");
    return status ? status
                  : em_allocate_all(EM_ARRAY(self->gradient, dim), EM_ARRAY(self->flat, n));
}

/* Names the blocks: theta.1 and theta.2, which follow each other, are the block theta. Local. */
static em_status name_blocks(em_stan *self)
{
    const int64_t dim = self->model.dim;
    em_status status = em_allocate(dim, sizeof *self->block, &self->block);
    int64_t bytes = 0, n = 0;

    for (int64_t i = 0; i < dim; i++)
        bytes += (int64_t)strlen(self->unconstrained_name[i]) + 1;
    status = status ? status : em_allocate(bytes, 1, &self->block_names);
    char *next = self->block_names;
    for (int64_t i = 0; !status && i < dim; i++) {
        const char *name = self->unconstrained_name[i];
        const size_t length = strcspn(name, ".:");
        if (n > 0 && strlen(self->block[n - 1].name) == length &&
            strncmp(self->block[n - 1].name, name, length) == 0) {
            self->block[n - 1].count++;
            continue;
        }
        memcpy(next, name, length);
        self->block[n++] = (em_parameters){next, i, 1, false};
        next += length + 1;
    }
    self->model.n_block = n;
    self->model.block = self->block;
    return status;
}

/* Splits "mu,theta.1,theta.2" into the names of the unconstrained parameters. Local. */
static em_status name_parameters(em_stan *self)
{
    const char *names = self->library.unconstrained_names(self->program);
    const int64_t dim = self->model.dim;
    char *rest = NULL, *name;
    int64_t n = 0;
    em_status status = em_copy_text(names ? names : "", &self->name_text);

    if (!status)
        status = em_allocate(dim, sizeof *self->unconstrained_name, &self->unconstrained_name);
    name = status ? NULL : strtok_r(self->name_text, ",", &rest);
    for (; name && n < dim; name = strtok_r(NULL, ",", &rest))
        self->unconstrained_name[n++] = name;
    if (!status && (n < dim || name))
        status = em_fail(
            EM_EDATA, "%s: found %lld%s names of unconstrained parameters, expected %lld",
            self->name, (long long)(n + (name != NULL)), name ? " or more" : "", (long long)dim);
    self->model.unconstrained_name = self->unconstrained_name;
    return status ? status : name_blocks(self);
}

/* Lists the data to store in the file. Arrays without elements, or with the name of another array's
 * coordinate, are left out. Local. */
static em_status describe_data(em_stan *self, const em_stan_options *options)
{
    em_status status = em_allocate(self->data->count, sizeof *self->datum, &self->datum);

    for (int64_t i = 0; !status && i < self->data->count; i++) {
        const em_stan_datum *from = &self->data->datum[i];
        em_datum *to = &self->datum[self->model.n_datum];
        if (from->n_value == 0 || strstr(from->name, "_dim_"))
            continue;
        const em_stan_declaration *declared =
            em_stan_declared_find(self->declared, EM_STAN_DATA, from->name);
        to->group =
            matches(&options->observed_data, from->name) ? "observed_data" : "constant_data";
        to->variable = (em_variable){.name = from->name, .n_axes = from->n_axes};
        to->variable.storage =
            (declared ? declared->is_integer : from->is_integer) ? EM_STORE_INT : EM_STORE_REAL;
        to->value = from->value;
        memcpy(to->variable.shape, from->shape, sizeof from->shape);
        self->model.n_datum++;
    }
    self->model.datum = self->datum;
    return status;
}

/* Reads the translated program, and translates it also without its generated quantities; NULL for a
 * library. Collective. */
static em_status read_program(em_stan *self, const em_stan_options *options, char **translated,
                              char **simpler)
{
    EM_SCOPED char *text = NULL, *shorter = NULL;

    self->draws_random = true;
    if (!options->program)
        return EM_OK;
    em_status status = em_stan_read_text(options->program, EM_STAN_MOST_PROGRAM_BYTES, &text);
    if (!status) /* the names of all functions that draw end like this; included files may have some
                  */
        self->draws_random = strstr(text, "_rng") || strstr(text, "#include");
    if (!status)
        status = em_stan_translate(&self->library, options->program, text, translated);
    status = status ? status : em_agree(em_stan_declared_read(text, &self->declared));
    status = status ? status : em_agree(em_stan_without_generated(text, &shorter));
    if (!status && shorter)
        status = em_stan_translate(&self->library, options->program, shorter, simpler);
    return status;
}

/* Parses data or initial values. `given` NULL: there are none. Collective. */
static em_status read_values(const char *given, const char *option, em_stan_data **data)
{
    EM_SCOPED char *text = NULL;
    em_status status = EM_OK;

    if (is_mapping(given)) /* the config has the data itself, with columns of tables */
        status = em_agree(em_stan_columns_fill_in(given, &text));
    else if (given)
        status = em_stan_read_text(given, MOST_DATA_BYTES, &text);
    return status ? status
                  : em_agree(em_stan_data_read(source_of(given, option), text ? text : "{}", data));
}

/* Reads initial values in the form that the library takes. Collective. */
static em_status read_init(em_stan *self, const char *given)
{
    EM_SCOPED_BY(em_stan_data_destroy) em_stan_data *data = NULL;
    em_status status = given ? read_values(given, "model.init", &data) : EM_OK;

    self->init_name = source_of(given, "model.init");
    if (!status && given)
        status = em_agree(em_stan_check_shapes(self->init_name, self->declared, EM_STAN_PARAMETERS,
                                               data, self->data));
    if (!status && given)
        status = em_agree(em_format_text(&self->init, "{%s}", data->text));
    return status;
}

em_status em_stan_set_up(em_stan *self, const em_stan_options *options,
                         const em_model_context *context)
{
    EM_SCOPED char *translated = NULL, *simpler = NULL;
    em_status status = em_agree(check_options(options, context));

    self->name = options->program ? options->program : options->library;
    self->seed = (unsigned)context->seed;
    if (!status)
        status = em_stan_open(options->library, options->program != NULL, &self->library);
    status = status ? status : read_program(self, options, &translated, &simpler);
    status = status ? status : read_values(options->data, "model.data", &self->data);
    if (!status)
        status =
            em_agree(em_stan_check_shapes(source_of(options->data, "model.data"), self->declared,
                                          EM_STAN_DATA, self->data, self->data));
    status = status ? status : read_init(self, options->init);
    if (!status) {
        status = construct(self, options, translated, simpler);
        status = status ? status : describe_draws(self, options);
        status = status ? status : name_parameters(self);
        status = status ? status : describe_data(self, options);
        status = em_agree(status);
    }
    return status;
}
