#include "model/regression/prior_options.h"

#include "base/memory.h"
#include "base/text.h"
#include "base/text/json.h"
#include "base/text/nearest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text being read, and which option of the config the place belongs to. */
typedef struct scan {
    const char *at;
    char key[160];
    int n_shape;
    const char *const *shape;
    em_prior_options *out;
} scan;

static em_status fail(const scan *s, const char *found, const char *expected)
{
    return em_fail(EM_ECONFIG, "%s: found %s, expected %s", s->key,
                   *found ? em_excerpt_of(found).text : "nothing", expected);
}

static bool take(scan *s, char c)
{
    s->at += strspn(s->at, " ");
    if (*s->at != c)
        return false;
    s->at++;
    return true;
}

/* The next key of a mapping, or its end: *key is NULL. */
static em_status next_key(scan *s, bool first, char **key)
{
    em_status status;

    *key = NULL;
    if (take(s, '}'))
        return EM_OK;
    if (!first && !take(s, ','))
        return fail(s, s->at, "a mapping");
    s->at += strspn(s->at, " ");
    if (*s->at != '"')
        return fail(s, s->at, "a key");
    status = em_json_read_string(&s->at, key);
    if (!status && !take(s, ':'))
        status = fail(s, s->at, "a value");
    return status;
}

/* ---------------------------------------------------------------- a distribution */

/* A number, quoted or not. */
static em_status read_number(scan *s, double *out)
{
    char *end, *text = NULL;
    const char *from;
    em_status status = EM_OK;

    s->at += strspn(s->at, " ");
    from = s->at;
    if (*s->at == '"') {
        status = em_json_read_string(&s->at, &text);
        if (status)
            return status;
        *out = strtod(text, &end);
        if (end == text || *end || !isfinite(*out))
            status = fail(s, text, "a number");
        em_release(&text);
        return status;
    }
    s->at += em_json_number(s->at, NULL);
    *out = strtod(from, NULL);
    return s->at > from && isfinite(*out) ? EM_OK : fail(s, from, "a number");
}

static em_status set_number(scan *s, char letter, double value, em_prior *out)
{
    char found[64];

    snprintf(found, sizeof found, "%g", value);
    if (letter != 'l' && !(value >= 1e-300 && value <= 1e300))
        return fail(s, found, "a number above 0, from 1e-300 to 1e300, for that");
    if (letter == 'l' && !(fabs(value) <= 1e300))
        return fail(s, found, "a location from -1e300 to 1e300");
    *(letter == 'd' ? &out->df : letter == 'l' ? &out->location : &out->scale) = value;
    return EM_OK;
}

static em_status fail_count(const scan *s, const em_prior_form *form, const char *from)
{
    char expected[160];
    int at = snprintf(expected, sizeof expected, "%s: [", form->name);

    for (const char *c = form->numbers; *c; c++)
        at += snprintf(expected + at, sizeof expected - (size_t)at, "%s%s",
                       c > form->numbers ? ", " : "",
                       *c == 'l'                     ? "location"
                       : *c == 's'                   ? "scale"
                       : *c == 'r'                   ? "rate"
                       : strstr(form->name, "gamma") ? "shape"
                                                     : "degrees of freedom");
    snprintf(expected + at, sizeof expected - (size_t)at, "]");
    return fail(s, from, expected);
}

/* [0, 10], or one number alone. */
static em_status read_numbers(scan *s, em_prior_kind kind, em_prior *out)
{
    const em_prior_form *form = &em_prior_forms[kind];
    const char *from = s->at + strspn(s->at, " ");
    const bool is_list = take(s, '[');
    em_status status = EM_OK;

    *out = (em_prior){.kind = kind, .df = 1};
    if (!is_list && form->numbers[1])
        return fail_count(s, form, from);
    for (const char *c = form->numbers; !status && *c; c++) {
        double value = 0;
        if (c > form->numbers && !take(s, ','))
            return fail_count(s, form, from);
        s->at += strspn(s->at, " ");
        if (*s->at == ']')
            return fail_count(s, form, from);
        status = read_number(s, &value);
        if (!status)
            status = set_number(s, *c, value, out);
    }
    if (!status && is_list && !take(s, ']'))
        status = fail_count(s, form, from);
    return status;
}

static em_status find_kind(const scan *s, const char *name, bool positive, em_prior_kind *out)
{
    em_nearest nearest = em_nearest_start(name);
    char expected[200];

    for (int k = EM_PRIOR_DEFAULT + 1; k < EM_N_PRIOR; k++) {
        *out = (em_prior_kind)k;
        if (em_prior_forms[k].positive != positive)
            continue;
        if (strcmp(em_prior_forms[k].name, name) == 0)
            return EM_OK;
        em_nearest_offer(&nearest, em_prior_forms[k].name);
    }
    snprintf(expected, sizeof expected, "%s%s%s%s",
             positive ? "exponential, half_normal, half_student_t, half_cauchy, gamma or "
                        "inverse_gamma"
                      : "normal, student_t or cauchy",
             nearest.name ? "; did you mean " : "", nearest.name ? nearest.name : "",
             nearest.name ? "?" : "");
    return fail(s, name, expected);
}

/* {normal: [0, 10]}, whose brace has been taken; *key is the name of the distribution. */
static em_status read_named_kind(scan *s, const char *name, bool positive, em_prior *out)
{
    em_prior_kind kind = EM_PRIOR_DEFAULT;
    em_status status = find_kind(s, name, positive, &kind);

    if (!status)
        status = read_numbers(s, kind, out);
    if (!status && !take(s, '}'))
        status = fail(s, s->at, "one distribution");
    return status;
}

static em_status read_prior(scan *s, bool positive, em_prior *out)
{
    char *name = NULL;
    em_status status = EM_OK;

    if (!take(s, '{'))
        return fail(s, s->at,
                    positive ? "a distribution such as {exponential: 1}"
                             : "a distribution such as {normal: [0, 2.5]}");
    status = next_key(s, true, &name);
    if (!status)
        status = name ? read_named_kind(s, name, positive, out) : fail(s, "{}", "a distribution");
    em_release(&name);
    return status;
}

/* ---------------------------------------------------------------- of the coefficients */

static em_status add_named(scan *s, const char *name)
{
    em_prior_options *o = s->out;
    em_status status = EM_OK;

    for (int64_t i = 0; i < o->n_named; i++)
        if (strcmp(o->named[i].name, name) == 0)
            return fail(s, name, "each column once");
    status =
        em_array_reserve(&o->named, &o->capacity, o->n_named, o->n_named + 1, sizeof *o->named);
    if (status)
        return status;
    o->named[o->n_named] = (em_named_prior){.name = NULL};
    status = em_copy_text(name, &o->named[o->n_named].name);
    return status ? status : read_prior(s, false, &o->named[o->n_named++].prior);
}

/* The rest of {age: {...}, default: {...}}, the first of whose names is there. */
static em_status read_columns(scan *s, char **name)
{
    em_status status = EM_OK;

    while (!status && *name) {
        if (strcmp(*name, "default") == 0 && s->out->coefficient.kind)
            status = fail(s, *name, "it once");
        else if (strcmp(*name, "default") == 0)
            status = read_prior(s, false, &s->out->coefficient);
        else if (strcmp(*name, "intercept") == 0)
            status = fail(s, *name, "columns: its prior is model.prior.intercept");
        else
            status = add_named(s, *name);
        em_release(name);
        if (!status)
            status = next_key(s, false, name);
    }
    return status;
}

/* A list or a number behind the first name says that this is a distribution, a mapping that it is a
 * column. */
static em_status read_coefficients(scan *s)
{
    char *name = NULL;
    em_status status = EM_OK;

    if (!take(s, '{'))
        return fail(s, s->at,
                    "a distribution such as {normal: [0, 2.5]}, or one for each of some columns");
    status = next_key(s, true, &name);
    if (!status && !name)
        return fail(s, "{}", "a distribution");
    s->at += strspn(s->at, " ");
    if (!status)
        status = *s->at == '{' ? read_columns(s, &name)
                               : read_named_kind(s, name, false, &s->out->coefficient);
    em_release(&name);
    return status;
}

/* ---------------------------------------------------------------- all of it */

static em_status read_autoscale(scan *s)
{
    static const char *const words[] = {"true", "\"true\"", "false", "\"false\""};

    s->at += strspn(s->at, " ");
    for (int i = 0; i < 4; i++)
        if (strncmp(s->at, words[i], strlen(words[i])) == 0) {
            s->at += strlen(words[i]);
            s->out->autoscale = i < 2;
            return EM_OK;
        }
    return fail(s, s->at, "true or false");
}

static em_status fail_key(scan *s, const char *key)
{
    static const char *const keys[] = {"coefficients", "intercept", "autoscale"};
    em_nearest nearest = em_nearest_start(key);
    char expected[200];
    int at = snprintf(expected, sizeof expected, "coefficients, intercept, ");

    for (int i = 0; i < 3; i++)
        em_nearest_offer(&nearest, keys[i]);
    for (int k = 0; k < s->n_shape; k++) {
        em_nearest_offer(&nearest, s->shape[k]);
        at += snprintf(expected + at, sizeof expected - (size_t)at, "%s, ", s->shape[k]);
    }
    snprintf(expected + at, sizeof expected - (size_t)at, "autoscale%s%s%s",
             nearest.name ? "; did you mean " : "", nearest.name ? nearest.name : "",
             nearest.name ? "?" : "");
    snprintf(s->key, sizeof s->key, "model.prior");
    return fail(s, key, expected);
}

static em_status read_member(scan *s, const char *key)
{
    em_prior_options *o = s->out;

    snprintf(s->key, sizeof s->key, "model.prior.%s", em_excerpt_of(key).text);
    if (strcmp(key, "coefficients") == 0)
        return read_coefficients(s);
    if (strcmp(key, "intercept") == 0)
        return read_prior(s, false, &o->intercept);
    if (strcmp(key, "autoscale") == 0)
        return read_autoscale(s);
    for (int k = 0; k < s->n_shape; k++)
        if (strcmp(key, s->shape[k]) == 0)
            return read_prior(s, true, &o->shape[k]);
    return fail_key(s, key);
}

em_status em_prior_options_read(const char *json, int n_shape, const char *const *shape,
                                em_prior_options *out)
{
    scan s = {.at = json, .key = "model.prior", .n_shape = n_shape, .shape = shape, .out = out};
    char *key = NULL;
    em_status status = EM_OK;

    *out = (em_prior_options){.n_named = 0};
    if (!json)
        return EM_OK;
    if (!take(&s, '{'))
        return fail(&s, json,
                    "a mapping such as {coefficients: {normal: [0, 2.5]}, autoscale: true}");
    for (bool first = true; !status; first = false) {
        snprintf(s.key, sizeof s.key, "model.prior");
        status = next_key(&s, first, &key);
        if (status || !key)
            break;
        status = read_member(&s, key);
        em_release(&key);
    }
    em_release(&key);
    return status;
}

void em_prior_options_release(em_prior_options *options)
{
    for (int64_t i = 0; i < options->n_named; i++)
        em_release(&options->named[i].name);
    em_release(&options->named);
}
