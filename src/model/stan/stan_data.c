#include "model/stan/stan_data.h"

#include "base/memory.h"
#include "base/text.h"
#include "base/text/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 16, MOST_NAME = 256, MOST_VARIABLES = 10000 };

/* A text that is parsed, and the result. */
typedef struct data_reading {
    const char *path, *at;
    int64_t line;
    FILE *out;
    em_stan_data *data;
    em_stan_datum *datum; /* the variable that is being read */
} data_reading;

static em_status unexpected(const data_reading *r, const char *expected)
{
    if (!*r->at)
        return em_fail(EM_EDATA, "%s:%lld: found the end of the file, expected %s", r->path,
                       (long long)r->line, expected);
    return em_fail(EM_EDATA, "%s:%lld: found '%.*s', expected %s", r->path, (long long)r->line,
                   (int)strcspn(em_excerpt_of(r->at).text, " \t\r\n"), em_excerpt_of(r->at).text,
                   expected);
}

static char next(data_reading *r)
{
    for (; *r->at && strchr(" \t\r\n", *r->at); r->at++)
        r->line += *r->at == '\n';
    return *r->at;
}

/* Copies the expected character and moves past it. */
static em_status copy(data_reading *r, char wanted, const char *expected)
{
    if (next(r) != wanted)
        return unexpected(r, expected);
    fputc(*r->at++, r->out);
    return EM_OK;
}

/* Moves past a string without escapes; its text has *length characters from *start on. */
static em_status read_string(data_reading *r, const char *expected, const char **start,
                             size_t *length)
{
    if (next(r) != '"')
        return unexpected(r, expected);
    *start = r->at + 1;
    *length = strcspn(*start, "\"\\\n");
    if ((*start)[*length] != '"' || *length > MOST_NAME)
        return unexpected(r, expected);
    r->at = *start + *length + 1;
    return EM_OK;
}

/* ---------------------------------------------------------------- numbers */

static const struct {
    const char *word, *written;
} not_finite[] = {{"NaN", "\"NaN\""},      {"nan", "\"NaN\""},       {".nan", "\"NaN\""},
                  {"Infinity", "\"Inf\""}, {"+Infinity", "\"Inf\""}, {"-Infinity", "\"-Inf\""},
                  {"Inf", "\"Inf\""},      {"+Inf", "\"Inf\""},      {"-Inf", "\"-Inf\""},
                  {"inf", "\"Inf\""},      {"-inf", "\"-Inf\""},     {".inf", "\"Inf\""},
                  {"-.inf", "\"-Inf\""}};

static const char *not_finite_of(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof not_finite / sizeof *not_finite; i++)
        if (strlen(not_finite[i].word) == length && memcmp(not_finite[i].word, text, length) == 0)
            return not_finite[i].written;
    return NULL;
}

static void forget(data_reading *r)
{
    r->data->n_kept -= r->datum->n_value;
    em_release(&r->datum->value);
    r->datum->n_value = 0;
}

/* Adds a value to the variable; if there are too many values, all are dropped. */
static em_status keep(data_reading *r, double value)
{
    em_stan_datum *datum = r->datum;

    if (datum->capacity < 0)
        return EM_OK;
    if (datum->is_tuple || r->data->n_kept == EM_STAN_MOST_KEPT) {
        forget(r);
        datum->capacity = -1;
        return EM_OK;
    }
    em_status status =
        em_reserve(&datum->value, &datum->capacity, datum->n_value, datum->n_value + 1);
    if (status)
        return status;
    datum->value[datum->n_value++] = value;
    r->data->n_kept++;
    return EM_OK;
}

/* Fails with a message that names the variable and quotes the value. */
static em_status not_a_number(const data_reading *r)
{
    const em_excerpt found = em_excerpt_of(r->at);
    const bool is_text = found.text[0] == '"';
    const size_t length =
        is_text ? 1 + strcspn(found.text + 1, "\"") + 1 : strcspn(found.text, " \t\r\n,]}");

    if (!*r->at || length == 0)
        return unexpected(r, "a number, a list or NaN");
    return em_fail(EM_EDATA,
                   is_text ? "%s:%lld: %s: found the text %.*s, expected a number, a list or NaN"
                           : "%s:%lld: %s: found '%.*s', expected a number, a list or NaN",
                   r->path, (long long)r->line, r->datum->name, (int)length, found.text);
}

static em_status read_number(data_reading *r)
{
    bool is_integer = true;
    const size_t length = em_json_number(r->at, &is_integer);

    if (!strchr(" \t\r\n,]}", r->at[length]))
        return not_a_number(r);
    double value = strtod(r->at, NULL);
    if (!isfinite(value))
        return unexpected(r, "a number that fits a double");
    fwrite(r->at, 1, length, r->out);
    r->at += length;
    r->datum->is_integer &= is_integer;
    return keep(r, value);
}

static em_status read_not_finite(data_reading *r)
{
    const char *const at = r->at, *start = at, *written;
    size_t length = strcspn(at, " \t\r\n,]}");
    em_status status = EM_OK;

    if (*at == '"')
        status = read_string(r, "a number, a list or NaN", &start, &length);
    else
        r->at += length;
    written = status ? NULL : not_finite_of(start, length);
    if (!written) {
        r->at = at;
        return not_a_number(r);
    }
    fputs(written, r->out);
    r->datum->is_integer = false;
    return keep(r, strcmp(written, "\"NaN\"") == 0   ? NAN
                   : strcmp(written, "\"Inf\"") == 0 ? INFINITY
                                                     : -INFINITY);
}

/* ---------------------------------------------------------------- lists and tuples */

static em_status read_value(data_reading *r, int depth, int64_t *shape);

/* Reads the elements of a list up to its closing bracket. All lists at the same depth must have the
 * same length. */
static em_status read_list(data_reading *r, int depth, int64_t *shape)
{
    int64_t n = 0;
    em_status status = copy(r, '[', "a list");

    if (depth == MOST_DEPTH)
        return unexpected(r, "lists that are not so deep");
    while (!status && next(r) != ']') {
        if (n > 0)
            status = copy(r, ',', "a comma or the end of the list");
        status = status ? status : read_value(r, depth + 1, shape);
        n++;
    }
    if (!status && shape[depth] >= 0 && shape[depth] != n)
        return em_fail(EM_EDATA, "%s:%lld: %s: found a list of %lld, expected %lld as before it",
                       r->path, (long long)r->line, r->datum->name, (long long)n,
                       (long long)shape[depth]);
    shape[depth] = n;
    return status ? status : copy(r, ']', "the end of the list");
}

/* Reads a tuple, {"1": ..., "2": ...}. Stan checks the shapes of its members. */
static em_status read_tuple(data_reading *r, int depth)
{
    const char *name = NULL;
    size_t length = 0;
    bool first = true;
    em_status status = copy(r, '{', "a tuple");

    if (depth == MOST_DEPTH)
        return unexpected(r, "tuples that are not so deep");
    r->datum->is_tuple = true;
    forget(r);
    while (!status && next(r) != '}') {
        int64_t shape[MOST_DEPTH + 1];
        for (int i = 0; i <= MOST_DEPTH; i++)
            shape[i] = -1;
        if (!first)
            status = copy(r, ',', "a comma or the end of the tuple");
        first = false;
        if (!status)
            status =
                read_string(r, "the number of a member of the tuple, in quotes", &name, &length);
        if (!status) {
            fprintf(r->out, "\"%.*s\"", (int)length, name);
            status = copy(r, ':', "a colon");
        }
        status = status ? status : read_value(r, depth + 1, shape);
    }
    return status ? status : copy(r, '}', "the end of the tuple");
}

static em_status read_value(data_reading *r, int depth, int64_t *shape)
{
    const char first = next(r);

    if (first == '[')
        return read_list(r, depth, shape);
    if (first == '{')
        return read_tuple(r, depth);
    return em_json_number(r->at, NULL) > 0 ? read_number(r) : read_not_finite(r);
}

/* ---------------------------------------------------------------- variables */

static em_status add_datum(em_stan_data *data, const char *name, size_t length)
{
    em_status status = em_reserve(&data->datum, &data->capacity, data->count, data->count + 1);

    if (status)
        return status;
    data->datum[data->count] = (em_stan_datum){.is_integer = true};
    status = em_format_text(&data->datum[data->count].name, "%.*s", (int)length, name);
    data->count += !status;
    return status;
}

/* Checks a name. Stan's names do not end with two underscores, and names of its interpreter begin
 * with them. */
static em_status check_name(const data_reading *r, const em_stan_data *data, const char *name,
                            size_t length)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    const bool is_name = length > 0 && strspn(name, letters) >= length && *name != '_';

    if (!is_name)
        return em_fail(EM_EDATA, "%s:%lld: found '%.*s', expected the name of a variable", r->path,
                       (long long)r->line, (int)length, name);
    if (em_stan_data_find_word(data, name, length))
        return em_fail(EM_EDATA, "%s:%lld: found %.*s again, expected each variable once", r->path,
                       (long long)r->line, (int)length, name);
    return data->count < MOST_VARIABLES
               ? EM_OK
               : em_fail(EM_EDATA, "%s: more than %d variables", r->path, MOST_VARIABLES);
}

static em_status read_variable(data_reading *r, em_stan_data *data)
{
    int64_t shape[MOST_DEPTH + 1];
    const char *name = NULL;
    size_t length = 0;
    em_status status = read_string(r, "the name of a variable, in quotes", &name, &length);

    for (int i = 0; i <= MOST_DEPTH; i++)
        shape[i] = -1;
    status = status ? status : check_name(r, data, name, length);
    status = status ? status : add_datum(data, name, length);
    if (status)
        return status;
    r->data = data;
    r->datum = &data->datum[data->count - 1];
    fprintf(r->out, "\"%s\"", r->datum->name);
    status = copy(r, ':', "a colon");
    status = status ? status : read_value(r, 0, shape);
    for (int i = 0; !status && i < EM_MAX_AXES && shape[i] >= 0; i++)
        r->datum->shape[r->datum->n_axes++] = shape[i];
    return status;
}

static em_status read_object(data_reading *r, em_stan_data *data)
{
    if (next(r) != '{')
        return unexpected(r, "JSON: {\"name\": value, ...}");
    r->at++;
    while (next(r) != '}') {
        em_status status = data->count > 0 ? copy(r, ',', "a comma or the end of the data") : EM_OK;
        status = status ? status : read_variable(r, data);
        if (status)
            return status;
    }
    r->at++;
    return next(r) ? unexpected(r, "nothing after the data") : EM_OK;
}

em_status em_stan_data_read(const char *path, const char *text, em_stan_data **out)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    const size_t mark = strncmp(text, byte_order_mark, 3) == 0 ? 3 : 0;
    em_text_stream written;
    data_reading r = {.path = path, .at = text + mark, .line = 1};
    em_status status = em_allocate(1, sizeof **out, out);

    if (status)
        return status;
    status = em_text_begin(&written);
    r.out = written.out;
    status = status ? status : read_object(&r, *out);
    status = em_text_end(&written, status, &(*out)->text);
    if (status)
        em_stan_data_destroy(out);
    return status;
}

void em_stan_data_destroy(em_stan_data **data)
{
    for (int64_t i = 0; *data && i < (*data)->count; i++)
        em_release_all(&(*data)->datum[i].name, &(*data)->datum[i].value);
    if (*data)
        em_release_all(&(*data)->datum, &(*data)->text);
    em_release(data);
}

const em_stan_datum *em_stan_data_find_word(const em_stan_data *data, const char *word,
                                            size_t length)
{
    for (int64_t i = 0; i < data->count; i++)
        if (strlen(data->datum[i].name) == length && memcmp(data->datum[i].name, word, length) == 0)
            return &data->datum[i];
    return NULL;
}

const em_stan_datum *em_stan_data_find(const em_stan_data *data, const char *name)
{
    return em_stan_data_find_word(data, name, strlen(name));
}
