#include "base/options/field.h"

#include "base/memory.h"
#include "base/text.h"
#include "base/text/json.h"
#include "base/text/nearest.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The pointer to the member that a field describes, under each type that the member may have. */
typedef union member {
    void *at;
    bool *boolean;
    int64_t *integer;
    double *real;
    char **text;
    int *choice;
    em_reals *reals;
    em_texts *texts;
} member;

static member member_of(const em_field *field, void *options)
{
    return (member){(char *)options + field->offset};
}

static const struct {
    char letter;
    double seconds;
} units[] = {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};

enum { N_UNIT = sizeof units / sizeof *units };

static void release_texts(em_texts *texts)
{
    em_release_texts(texts->count, &texts->value);
    texts->count = 0;
}

void em_value_release(em_value *value)
{
    release_texts(&value->text);
    value->kind = EM_VALUE_NULL;
}

const em_field *em_field_find(const em_field *table, const char *name)
{
    for (const em_field *field = table; field && field->name; field++)
        if (strcmp(field->name, name) == 0)
            return field;
    return NULL;
}

/* ---- expected values in messages ---- */

static bool is_bounded(const em_field *field)
{
    return field->minimum != 0 || field->maximum != 0;
}

void em_field_write_expected(const em_field *field, FILE *out)
{
    static const char *const what[] = {
        [EM_FIELD_BOOL] = "true or false",
        [EM_FIELD_INT] = "an integer",
        [EM_FIELD_REAL] = "a number",
        [EM_FIELD_DURATION] = "a duration (90, 90s, 10m, 3h, 1d or 01:30:00)",
        [EM_FIELD_TEXT] = "text",
        [EM_FIELD_PATH] = "a path",
        [EM_FIELD_DATA] = "a path or a mapping",
        [EM_FIELD_REALS] = "a list of numbers",
        [EM_FIELD_TEXTS] = "a list of texts",
        [EM_FIELD_JSON] = "a value, a list or a mapping",
    };

    if (field->type == EM_FIELD_CHOICE) {
        fputs("one of ", out);
        for (const char *const *choice = field->choices; *choice; choice++)
            fprintf(out, "%s%s", choice == field->choices ? "" : ", ", *choice);
    } else
        fputs(what[field->type], out);
    if (is_bounded(field)) {
        fputs(isinf(field->maximum) ? " of at least " : " from ", out);
        em_json_write_number(field->minimum, out);
        if (!isinf(field->maximum)) {
            fputs(" to ", out);
            em_json_write_number(field->maximum, out);
        }
        if (field->type == EM_FIELD_DURATION)
            fputs(" seconds", out);
    }
    if (field->word)
        fprintf(out, ", or %s", field->word);
}

/* Fails with "found ..., expected ...", quoting `text` or, if it is NULL, naming the kind of
 * value. */
static em_status mismatch(const em_field *field, const char *text, const char *instead)
{
    em_nearest nearest = em_nearest_start(text ? text : "");
    char expected[512] = "";
    FILE *out = fmemopen(expected, sizeof expected - 1, "w");

    if (out) {
        em_field_write_expected(field, out);
        fclose(out);
    }
    if (field->type == EM_FIELD_CHOICE && text)
        for (const char *const *choice = field->choices; *choice; choice++)
            em_nearest_offer(&nearest, *choice);
    if (field->word && text)
        em_nearest_offer(&nearest, field->word);
    return em_fail(EM_ECONFIG, "found %s%s%s, expected %s%s%s%s", text ? "'" : "",
                   text ? em_excerpt_of(text).text : instead, text ? "'" : "", expected,
                   nearest.name ? "; did you mean " : "", nearest.name ? nearest.name : "",
                   nearest.name ? "?" : "");
}

/* ---- reading ---- */

/* Reads a finite decimal number. *rest: the text after the number; `rest` NULL: no text may follow.
 */
static bool read_real(const char *text, const char **rest, double *out)
{
    const size_t length = strspn(text, "0123456789+-.eE"); /* no hex, no inf, no nan */
    char *end;

    *out = strtod(text, &end);
    if (rest)
        *rest = end;
    return end > text && end <= text + length && (rest || !*end) && isfinite(*out);
}

/* Reads an integer such as 1000 or 1e6. INT64_MIN is refused, because it stands for words such as
 * auto. */
static bool read_integer(const char *text, int64_t *out)
{
    static const double exact = 9007199254740992; /* 2^53: every integer up to it is a double */
    double real;

    if (!read_real(text, NULL, &real))
        return false;
    if (strspn(text, "+-0123456789") == strlen(text)) {
        *out = (int64_t)strtoimax(text, NULL, 10);
        return *out > INT64_MIN && *out < INT64_MAX; /* where strtoimax stops short */
    }
    *out = fabs(real) <= exact ? (int64_t)real : 0;
    return (double)*out == real;
}

/* 01:30:00 */
static bool read_clock(const char *text, double *seconds)
{
    unsigned hour, minute, second;
    int end = 0;

    if (strspn(text, "0123456789:") != strlen(text))
        return false;
    if (sscanf(text, "%6u:%2u:%2u%n", &hour, &minute, &second, &end) != 3 || text[end])
        return false;
    *seconds = 3600.0 * hour + 60.0 * minute + second;
    return minute < 60 && second < 60;
}

/* Reads a duration such as 90, 90s, 10m, 3h or 1d. */
static bool read_duration(const char *text, double *seconds)
{
    const char *unit;

    if (read_clock(text, seconds))
        return true;
    if (!read_real(text, &unit, seconds))
        return false;
    for (int i = 0; i < N_UNIT && *unit; i++)
        if (*unit == units[i].letter) {
            *seconds *= units[i].seconds;
            unit++;
            break;
        }
    return !*unit && isfinite(*seconds);
}

/* Whether the value is within the bounds of the field. It is a long double, which holds every
 * int64_t: as a double, 2^53 + 1 would be 2^53. */
static bool is_within(const em_field *field, long double value)
{
    return !is_bounded(field) || (value >= field->minimum && value <= field->maximum);
}

static bool read_choice(const em_field *field, const char *text, int *out)
{
    *out = em_text_find(text, field->choices);
    return *out >= 0;
}

static bool read_bool(const char *text, bool *out)
{
    *out = strcmp(text, "true") == 0;
    return *out || strcmp(text, "false") == 0;
}

/* Whether the option is a char * of its own. */
static bool is_text(const em_field *field)
{
    return field->type == EM_FIELD_TEXT || field->type == EM_FIELD_PATH ||
           field->type == EM_FIELD_DATA || field->type == EM_FIELD_JSON;
}

static em_status set_absent(const em_field *field, void *options)
{
    const member slot = member_of(field, options);

    switch (field->type) {
    case EM_FIELD_INT:
        *slot.integer = INT64_MIN;
        break;
    case EM_FIELD_REAL:
    case EM_FIELD_DURATION:
        *slot.real = NAN;
        break;
    case EM_FIELD_CHOICE:
        *slot.choice = -1;
        break;
    default:
        break; /* zero says it */
    }
    return EM_OK;
}

static bool read_scalar(const em_field *field, const char *text, void *options)
{
    const member slot = member_of(field, options);

    switch (field->type) {
    case EM_FIELD_BOOL:
        return read_bool(text, slot.boolean);
    case EM_FIELD_INT:
        return read_integer(text, slot.integer) && is_within(field, *slot.integer);
    case EM_FIELD_REAL:
        return read_real(text, NULL, slot.real) && is_within(field, *slot.real);
    case EM_FIELD_DURATION:
        return read_duration(text, slot.real) && is_within(field, *slot.real);
    case EM_FIELD_CHOICE:
        return read_choice(field, text, slot.choice);
    default:
        return false;
    }
}

static em_status read_reals(const em_field *field, const em_texts *text, em_reals *out)
{
    em_status status = em_allocate(text->count, sizeof *out->value, &out->value);

    for (int64_t i = 0; !status && i < text->count; i++) {
        out->count = i + 1;
        if (!read_real(text->value[i], NULL, &out->value[i]) || !is_within(field, out->value[i]))
            status = mismatch(field, text->value[i], NULL);
    }
    return status;
}

static em_status read_texts(const em_texts *text, em_texts *out)
{
    em_status status = em_allocate(text->count, sizeof *out->value, &out->value);

    for (int64_t i = 0; !status && i < text->count; i++) {
        status = em_copy_text(text->value[i], &out->value[i]);
        out->count = i + 1;
    }
    return status;
}

/* Converts a scalar to JSON. A number stays as it was written if that is also valid in JSON; all
 * else becomes text. */
static em_status read_json(const em_value *value, char **out)
{
    const char *text = value->text.value[0];
    const size_t length = em_json_number(text, NULL);
    em_text_stream quoted;

    if (value->kind == EM_VALUE_MAPPING || (length > 0 && !text[length]))
        return em_copy_text(text, out);
    const em_status status = em_text_begin(&quoted);
    if (!status)
        em_json_write_string(text, quoted.out);
    return em_text_end(&quoted, status, out);
}

em_status em_field_read(const em_field *field, const em_value *value, void *options)
{
    const member slot = member_of(field, options);

    if (value->kind == EM_VALUE_NULL && field->fallback && !*field->fallback)
        return set_absent(field, options);
    if (value->kind == EM_VALUE_NULL)
        return mismatch(field, NULL, "nothing");
    if (field->type == EM_FIELD_JSON && value->kind != EM_VALUE_LIST)
        return read_json(value, slot.text);
    if (field->type == EM_FIELD_DATA && value->kind == EM_VALUE_MAPPING)
        return em_copy_text(value->text.value[0], slot.text);
    if (value->kind == EM_VALUE_MAPPING)
        return mismatch(field, NULL, "a mapping");
    if (field->type == EM_FIELD_REALS)
        return read_reals(field, &value->text, slot.reals);
    if (field->type == EM_FIELD_TEXTS)
        return read_texts(&value->text, slot.texts);
    if (value->kind == EM_VALUE_LIST)
        return mismatch(field, NULL, "a list");
    const char *text = value->text.value[0];
    if (is_text(field))
        return *text ? em_copy_text(text, slot.text) : mismatch(field, text, NULL);
    if (field->word && strcmp(text, field->word) == 0)
        return set_absent(field, options);
    return read_scalar(field, text, options) ? EM_OK : mismatch(field, text, NULL);
}

/* ---- writing ---- */

/* Writes a duration in the largest unit in which it is a whole number. */
static void write_duration(double seconds, FILE *out)
{
    int i = 0;

    while (i < N_UNIT - 1 && (seconds == 0 || fmod(seconds, units[i].seconds) != 0))
        i++;
    em_json_write_number(seconds / units[i].seconds, out);
    fputc(units[i].letter, out);
}

/* Writes a text without quotes if no reader could take it for another type, else in single quotes.
 */
static void write_text(const char *text, FILE *out)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/_";
    static const char digits[] = "0123456789.-";
    size_t length = 0;

    while (text[length] &&
           (strchr(first, text[length]) || (length && strchr(digits, text[length]))))
        length++;
    if (length && !text[length] && strcasecmp(text, "null") != 0)
        fputs(text, out);
    else
        em_print_in_quotes(out, '\'', text);
}

static void write_list(const em_field *field, const member slot, FILE *out)
{
    const bool real = field->type == EM_FIELD_REALS;
    const int64_t count = real ? slot.reals->count : slot.texts->count;

    fputc('[', out);
    for (int64_t i = 0; i < count; i++) {
        fputs(i ? ", " : "", out);
        if (real)
            em_json_write_number(slot.reals->value[i], out);
        else
            write_text(slot.texts->value[i], out);
    }
    fputc(']', out);
}

static bool is_absent(const em_field *field, const member slot)
{
    switch (field->type) {
    case EM_FIELD_INT:
        return *slot.integer == INT64_MIN;
    case EM_FIELD_REAL:
    case EM_FIELD_DURATION:
        return isnan(*slot.real);
    case EM_FIELD_TEXT:
    case EM_FIELD_PATH:
    case EM_FIELD_DATA:
    case EM_FIELD_JSON:
        return !*slot.text;
    case EM_FIELD_CHOICE:
        return *slot.choice < 0;
    default:
        return false;
    }
}

void em_field_write(const em_field *field, const void *options, FILE *out)
{
    const member slot = member_of(field, (void *)options);

    if (is_absent(field, slot)) {
        fputs(field->word ? field->word : "null", out);
        return;
    }
    switch (field->type) {
    case EM_FIELD_BOOL:
        fputs(*slot.boolean ? "true" : "false", out);
        break;
    case EM_FIELD_INT:
        fprintf(out, "%" PRId64, *slot.integer);
        break;
    case EM_FIELD_REAL:
        em_json_write_number(*slot.real, out);
        break;
    case EM_FIELD_DURATION:
        write_duration(*slot.real, out);
        break;
    case EM_FIELD_CHOICE:
        fputs(field->choices[*slot.choice], out);
        break;
    case EM_FIELD_TEXT:
    case EM_FIELD_PATH:
        write_text(*slot.text, out);
        break;
    case EM_FIELD_JSON: /* JSON is YAML */
        fputs(*slot.text, out);
        break;
    case EM_FIELD_DATA:
        if (**slot.text == '{')
            fputs(*slot.text, out);
        else
            write_text(*slot.text, out);
        break;
    case EM_FIELD_REALS:
    case EM_FIELD_TEXTS:
        write_list(field, slot, out);
        break;
    }
}

void em_field_release(const em_field *table, void *options)
{
    for (const em_field *field = table; field && field->name && options; field++) {
        const member slot = member_of(field, options);
        if (is_text(field))
            em_release(slot.text);
        if (field->type == EM_FIELD_REALS)
            em_release(&slot.reals->value);
        if (field->type == EM_FIELD_TEXTS)
            release_texts(slot.texts);
    }
}
