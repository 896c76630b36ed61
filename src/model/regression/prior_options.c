#include "model/regression/prior_options.h"

#include "base/memory.h"
#include "base/text.h"
#include "base/text/json.h"
#include "base/text/nearest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The value to read, and the option of the config that messages name. */
typedef struct prior_target {
    char key[160];
    int n_shape;
    const char *const *shape;
    em_prior_options *out;
} prior_target;

static em_status fail(const prior_target *at, const char *found, const char *expected)
{
    return em_fail(EM_ECONFIG, "%s: found %s, expected %s", at->key, em_excerpt_of(found).text,
                   expected);
}

static em_status fail_value(const prior_target *at, const json_t *found, const char *expected)
{
    return fail(at, em_json_excerpt(found).text, expected);
}

/* ---------------------------------------------------------------- a distribution */

static em_status set_number(const prior_target *at, char letter, double value, em_prior *out)
{
    char found[64];

    snprintf(found, sizeof found, "%g", value);
    if (letter != 'l' && !(value >= 1e-300 && value <= 1e300))
        return fail(at, found, "a positive number (1e-300 to 1e300) for df, scale, rate or shape");
    if (letter == 'l' && !(fabs(value) <= 1e300))
        return fail(at, found, "a location from -1e300 to 1e300");
    *em_prior_number(out, letter) = value;
    return EM_OK;
}

static em_status fail_count(const prior_target *at, const em_prior_law *law, const json_t *found)
{
    char expected[160];

    snprintf(expected, sizeof expected, "%s: [", law->name);
    for (const char *c = law->numbers; *c; c++)
        em_append(sizeof expected, expected, "%s%s", c > law->numbers ? ", " : "",
                  *c == 'l'                    ? "location"
                  : *c == 's'                  ? "scale"
                  : *c == 'r'                  ? "rate"
                  : strstr(law->name, "gamma") ? "shape"
                                               : "degrees of freedom");
    em_append(sizeof expected, expected, "]");
    return fail_value(at, found, expected);
}

/* Reads a list such as [0, 10], or one number alone. */
static em_status read_numbers(const prior_target *at, em_prior_kind kind, const json_t *value,
                              em_prior *out)
{
    const em_prior_law *law = &em_prior_laws[kind];
    const bool is_list = json_is_array(value);
    em_status status = EM_OK;

    *out = (em_prior){.kind = kind, .df = 1};
    if ((is_list ? json_array_size(value) : 1) != strlen(law->numbers))
        return fail_count(at, law, value);
    for (size_t i = 0; !status && law->numbers[i]; i++) {
        const json_t *number = is_list ? json_array_get(value, i) : value;
        double x;
        status = em_json_finite(number, &x) ? set_number(at, law->numbers[i], x, out)
                                            : fail_value(at, number, "a number");
    }
    return status;
}

static em_status find_kind(const prior_target *at, const char *name, bool positive,
                           em_prior_kind *out)
{
    em_nearest nearest = em_nearest_start(name);
    const char *last = NULL; /* of the names, which is joined by "or" */
    char expected[200] = "";

    for (int k = EM_PRIOR_DEFAULT + 1; k < EM_N_PRIOR; k++) {
        const em_prior_law *law = &em_prior_laws[k];
        *out = (em_prior_kind)k;
        if (law->positive != positive)
            continue;
        if (strcmp(law->name, name) == 0)
            return EM_OK;
        em_nearest_offer(&nearest, law->name);
        if (last)
            em_append(sizeof expected, expected, "%s%s", *expected ? ", " : "", last);
        last = law->name;
    }
    em_append(sizeof expected, expected, " or %s", last);
    if (nearest.name)
        em_append(sizeof expected, expected, "; did you mean %s?", nearest.name);
    return fail(at, name, expected);
}

/* {normal: [0, 10]} */
static em_status read_prior(const prior_target *at, bool positive, const json_t *value,
                            em_prior *out)
{
    void *first = json_object_iter((json_t *)value);
    em_prior_kind kind = EM_PRIOR_DEFAULT;

    if (!json_is_object(value))
        return fail_value(at, value,
                          positive ? "a distribution such as {exponential: 1}"
                                   : "a distribution such as {normal: [0, 2.5]}");
    if (json_object_size(value) != 1)
        return fail_value(at, value, first ? "one distribution" : "a distribution");
    const em_status status = find_kind(at, json_object_iter_key(first), positive, &kind);
    return status ? status : read_numbers(at, kind, json_object_iter_value(first), out);
}

/* ---------------------------------------------------------------- of the coefficients */

static em_status read_column(const prior_target *at, const char *name, const json_t *value)
{
    em_prior_options *o = at->out;

    if (strcmp(name, "default") == 0)
        return read_prior(at, false, value, &o->coefficient);
    if (strcmp(name, "intercept") == 0)
        return fail(at, name, "columns: its prior is model.prior.intercept");
    em_status status = em_reserve(&o->named, &o->capacity, o->n_named, o->n_named + 1);
    if (status)
        return status;
    em_named_prior *named = &o->named[o->n_named];
    *named = (em_named_prior){.name = NULL};
    status = em_copy_text(name, &named->name);
    o->n_named += !status;
    return status ? status : read_prior(at, false, value, &named->prior);
}

static bool is_distribution(const char *name)
{
    bool found = false;

    for (int k = EM_PRIOR_DEFAULT + 1; k < EM_N_PRIOR; k++)
        found |= strcmp(em_prior_laws[k].name, name) == 0;
    return found;
}

/* Whether the value is a mapping of columns, {age: {...}, default: {...}}, or looks like one:
 * {default: flat}. */
static bool is_of_columns(json_t *value)
{
    void *first = json_object_iter(value);
    const char *name = first ? json_object_iter_key(first) : "";
    const json_t *prior = first ? json_object_iter_value(first) : NULL;

    return json_is_object(prior) || strcmp(name, "default") == 0 ||
           (json_is_string(prior) && !is_distribution(name));
}

/* Reads one distribution for all coefficients, or one for each of some columns. */
static em_status read_coefficients(const prior_target *at, json_t *value)
{
    em_status status = EM_OK;
    const char *name;
    json_t *column;

    if (!json_is_object(value))
        return fail_value(
            at, value,
            "a distribution such as {normal: [0, 2.5]}, or one for each of some columns");
    if (!is_of_columns(value))
        return read_prior(at, false, value, &at->out->coefficient);
    json_object_foreach(value, name, column)
    {
        status = status ? status : read_column(at, name, column);
    }
    return status;
}

/* ---------------------------------------------------------------- the whole option */

static em_status fail_key(const prior_target *at, const char *key)
{
    static const char *const keys[] = {"coefficients", "intercept", "autoscale"};
    em_nearest nearest = em_nearest_start(key);
    char expected[200] = "coefficients, intercept, ";

    for (int i = 0; i < 3; i++)
        em_nearest_offer(&nearest, keys[i]);
    for (int k = 0; k < at->n_shape; k++) {
        em_nearest_offer(&nearest, at->shape[k]);
        em_append(sizeof expected, expected, "%s, ", at->shape[k]);
    }
    em_append(sizeof expected, expected, "autoscale%s%s%s", nearest.name ? "; did you mean " : "",
              nearest.name ? nearest.name : "", nearest.name ? "?" : "");
    return em_fail(EM_ECONFIG, "model.prior: found %s, expected %s", em_excerpt_of(key).text,
                   expected);
}

static em_status read_member(prior_target *at, const char *key, json_t *value)
{
    em_prior_options *o = at->out;

    snprintf(at->key, sizeof at->key, "model.prior.%s", em_excerpt_of(key).text);
    if (strcmp(key, "coefficients") == 0)
        return read_coefficients(at, value);
    if (strcmp(key, "intercept") == 0)
        return read_prior(at, false, value, &o->intercept);
    if (strcmp(key, "autoscale") == 0) {
        const em_excerpt word = em_json_excerpt(value);
        o->autoscale = strcmp(word.text, "true") == 0;
        return o->autoscale || strcmp(word.text, "false") == 0
                   ? EM_OK
                   : fail(at, word.text, "true or false");
    }
    for (int k = 0; k < at->n_shape; k++)
        if (strcmp(key, at->shape[k]) == 0)
            return read_prior(at, true, value, &o->shape[k]);
    return fail_key(at, key);
}

em_status em_prior_options_read(const char *json, int n_shape, const char *const *shape,
                                em_prior_options *out)
{
    prior_target at = {.key = "model.prior", .n_shape = n_shape, .shape = shape, .out = out};
    em_status status = EM_OK;
    const char *key;
    json_t *value;
    em_excerpt why;

    *out = (em_prior_options){.n_named = 0};
    if (!json)
        return EM_OK;
    json_auto_t *all = em_json_load(json, &why);
    if (!json_is_object(all))
        status = fail(&at, all ? em_json_excerpt(all).text : why.text,
                      "a mapping such as {coefficients: {normal: [0, 2.5]}, autoscale: true}");
    json_object_foreach(all, key, value)
    {
        status = status ? status : read_member(&at, key, value);
    }
    return status;
}

void em_prior_options_release(em_prior_options *options)
{
    for (int64_t i = 0; i < options->n_named; i++)
        em_release(&options->named[i].name);
    em_release(&options->named);
}
