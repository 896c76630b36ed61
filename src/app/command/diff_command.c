#include "app/command/command.h"
#include "app/command/compare_draws.h"

#include "app/summary/command_arguments.h"
#include "app/summary/evidence.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/draws/contents.h"
#include "io/draws/reader.h"
#include "par/world.h"
#include "run/config/config.h"
#include "run/config/config_folder.h"
#include "run/config/yaml.h"
#include "run/output/output.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct diff {
    const char *path[2];
    em_contents *contents[2];
    bool all; /* what changes from run to run, too */
    int64_t n_line, n_number;
    int64_t first_draw,
        first_chain; /* the first draw, and the first chain in it, with a difference */
    char *first;     /* the text about that difference; NULL: no draws differ */
} diff;

/* ---------------------------------------------------------------- numbers */

/* Maps a double to an integer such that the order of doubles is that of the integers. */
static int64_t ordinal_of(double x)
{
    int64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? INT64_MIN - bits : bits;
}

static int64_t ordinal_of_single(double x)
{
    const float single = (float)x;
    int32_t bits;

    memcpy(&bits, &single, sizeof bits);
    return bits < 0 ? INT32_MIN - (int64_t)bits : bits;
}

/* Writes how many representable numbers lie between two values; "" for integers and for values that
 * are far apart. */
static void name_distance(em_storage storage, const double *value, size_t bytes, char *out)
{
    const uint64_t most = 1000000;
    const bool single = storage == EM_STORE_SINGLE;
    const int64_t a = single ? ordinal_of_single(value[0]) : ordinal_of(value[0]);
    const int64_t b = single ? ordinal_of_single(value[1]) : ordinal_of(value[1]);
    const uint64_t ulps = a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;

    out[0] = '\0';
    if ((single || storage == EM_STORE_REAL) && !isnan(value[0]) && !isnan(value[1]) &&
        ulps <= most)
        snprintf(out, bytes, ", %llu ulp%s", (unsigned long long)ulps, em_plural(ulps));
}

/* Prints a line about a difference. */
static void EM_PRINTF(2, 3) print_line(diff *d, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    d->n_line++;
}

static void say_alone(diff *d, const char *what, const char *name, int which)
{
    print_line(d, "%s%s%s: in %s alone", what, *what ? " " : "", name, d->path[which]);
}

static void print_difference(diff *d, const char *group, const char *where, em_storage storage,
                             const em_difference *found)
{
    char distance[48];

    name_distance(storage, found->value, sizeof distance, distance);
    print_line(d, "%s: %s: %.17g | %.17g%s; %lld of %lld numbers differ", group, where,
               found->value[0], found->value[1], distance, (long long)found->count,
               (long long)found->of);
}

/* ---------------------------------------------------------------- draws */

/* Stores a difference if it is the first so far, by draw and then by chain. */
static em_status remember(diff *d, const char *group, const char *where, const em_difference *found)
{
    if (d->first && (found->draw > d->first_draw ||
                     (found->draw == d->first_draw && found->chain >= d->first_chain)))
        return EM_OK;
    em_release(&d->first);
    d->first_draw = found->draw;
    d->first_chain = found->chain;
    return em_format_text(&d->first, "%s: %s", group, where);
}

static em_status compare_variable(diff *d, const char *group, em_reader **reader,
                                  const int64_t *variable, em_storage storage)
{
    const em_reader_variable *v = em_reader_variable_at(reader[0], variable[0]);
    em_difference found = {.count = 0};
    EM_SCOPED char *where = NULL;
    em_status status = em_compare_draws(reader, variable, false, &found);

    d->n_number += found.of;
    if (status || found.count == 0)
        return status;
    status = em_format_text(&where, "%s, chain %lld, draw %lld", em_reader_label(v, found.element),
                            (long long)found.chain, (long long)found.draw);
    status = status ? status : remember(d, group, where, &found);
    if (!status)
        print_difference(d, group, where, storage, &found);
    return status;
}

static void compare_extent(diff *d, const char *group, em_reader **reader)
{
    const int64_t n_chain[] = {em_reader_n_chain(reader[0]), em_reader_n_chain(reader[1])};
    const int64_t n_draw[] = {em_reader_n_draw(reader[0]), em_reader_n_draw(reader[1])};

    if (n_chain[0] != n_chain[1] || n_draw[0] != n_draw[1])
        print_line(d, "%s: %lld chains x %lld draws | %lld chains x %lld draws", group,
                   (long long)n_chain[0], (long long)n_draw[0], (long long)n_chain[1],
                   (long long)n_draw[1]);
}

/* Compares labels element by element, and prints the first that differ. Returns whether there are
 * as many. */
static bool compare_names(diff *d, const char *group, const em_reader_variable *a,
                          const em_reader_variable *b)
{
    int64_t k = 0;

    if (a->size != b->size) {
        print_line(d, "%s: %s: %lld numbers a draw | %lld numbers a draw", group, a->name,
                   (long long)a->size, (long long)b->size);
        return false;
    }
    while (k < a->size && strcmp(em_reader_label(a, k), em_reader_label(b, k)) == 0)
        k++;
    if (k < a->size)
        print_line(d, "%s: %s | %s", group, em_reader_label(a, k), em_reader_label(b, k));
    return true;
}

static em_status compare_variables(diff *d, const em_contents_group *group, em_reader **reader)
{
    em_status status = EM_OK;

    compare_extent(d, group->name, reader);
    for (int which = 0; which < 2; which++)
        for (int64_t i = 0; !status && i < em_reader_n_variable(reader[which]); i++) {
            const em_reader_variable *v = em_reader_variable_at(reader[which], i);
            const em_contents_array *array = em_contents_array_of(group, v->name);
            const int64_t pair[] = {i, em_reader_find(reader[!which], v->name)};

            if (pair[1] < 0)
                say_alone(d, group->name, v->name, which);
            else if (which == 0 &&
                     compare_names(d, group->name, v, em_reader_variable_at(reader[1], pair[1])))
                status = compare_variable(d, group->name, reader, pair,
                                          array ? array->storage : EM_STORE_REAL);
        }
    return status;
}

static em_status compare_draws(diff *d, const em_contents_group *group)
{
    em_reader *reader[2] = {NULL, NULL};
    em_status status = em_reader_open(d->path[0], group->name, &reader[0]);

    status = status ? status : em_reader_open(d->path[1], group->name, &reader[1]);
    status = status ? status : compare_variables(d, group, reader);
    em_reader_close(&reader[0]);
    em_reader_close(&reader[1]);
    return status;
}

/* ---------------------------------------------------------------- arrays */

/* "inv_mass[3,4]" */
static void name_element(const em_contents_array *array, int64_t k, size_t bytes, char *out)
{
    int64_t stride = 1;

    snprintf(out, bytes, "%s", array->name);
    for (int i = 0; i < array->n_axes; i++)
        stride *= array->shape[i];
    for (int i = 0; i < array->n_axes; i++) {
        stride /= array->shape[i];
        em_append(bytes, out, "%s%lld", i > 0 ? "," : "[",
                  (long long)(k / stride % array->shape[i]));
    }
    em_append(bytes, out, "%s", array->n_axes > 0 ? "]" : "");
}

static em_status compare_numbers(diff *d, const char *group, const em_contents_array *array)
{
    em_difference found = {.count = 0};
    double *value[2] = {NULL, NULL};
    int64_t count[2] = {0, 0};
    char where[512];
    em_status status = EM_OK;

    for (int i = 0; !status && i < 2; i++)
        status = em_read_array(d->path[i], group, array->name, &count[i], &value[i]);
    if (!status && count[0] != count[1]) {
        print_line(d, "%s: %s: %lld numbers | %lld numbers", group, array->name,
                   (long long)count[0], (long long)count[1]);
    } else if (!status) {
        em_compare_block(&(em_draw_pair){.a = value[0], .b = value[1], .size = count[0], .n = 1},
                         &found);
        d->n_number += found.of;
    }
    if (found.count > 0) {
        name_element(array, found.element, sizeof where, where);
        print_difference(d, group, where, array->storage, &found);
    }
    em_release_all(&value[0], &value[1]);
    return status;
}

static em_status compare_labels(diff *d, const char *group, const char *name)
{
    char **label[2] = {NULL, NULL}, place[1024];
    int64_t count[2] = {0, 0}, k = 0;
    em_status status = EM_OK;

    snprintf(place, sizeof place, "%s/%s", group, name);
    for (int i = 0; !status && i < 2; i++)
        status = em_read_labels(d->path[i], place, &count[i], &label[i]);
    while (!status && k < count[0] && k < count[1] && strcmp(label[0][k], label[1][k]) == 0)
        k++;
    if (!status && (k < count[0] || k < count[1]))
        print_line(d, "%s: %s[%lld]: %s | %s", group, name, (long long)k,
                   k < count[0] ? label[0][k] : "(none)", k < count[1] ? label[1][k] : "(none)");
    for (int i = 0; i < 2; i++)
        em_release_texts(count[i], &label[i]);
    return status;
}

static em_status compare_array(diff *d, const char *group, const em_contents_array *array)
{
    if (array->has_draws || strcmp(array->name, "chain") == 0 || strcmp(array->name, "draw") == 0)
        return EM_OK; /* compared as draws */
    if (array->is_coordinate)
        return array->n_axes == 1 && !array->is_number ? compare_labels(d, group, array->name)
                                                       : EM_OK;
    return array->is_number ? compare_numbers(d, group, array) : EM_OK;
}

static em_status compare_group(diff *d, const em_contents_group *a, const em_contents_group *b)
{
    const em_contents_group *const group[] = {a, b};
    em_status status = EM_OK;

    if (em_contents_has_draws(a) && em_contents_has_draws(b))
        status = compare_draws(d, a);
    for (int which = 0; which < 2; which++)
        for (int64_t i = 0; !status && i < group[which]->n_array; i++) {
            const em_contents_array *array = &group[which]->array[i];
            const bool alone = !em_contents_array_of(group[!which], array->name);

            if (!alone && which == 0)
                status = compare_array(d, a->name, array);
            else if (alone && !array->has_draws && !array->is_coordinate)
                say_alone(d, a->name, array->name, which);
        }
    return status;
}

/* Whether the group is the state for resuming a run. It consists of bytes, in which single
 * differences have no meaning, so they are not listed. */
static bool is_state(const diff *d, const em_contents_group *group)
{
    return !d->all && strcmp(group->name, EM_OUTPUT_CHECKPOINT) == 0;
}

static em_status compare_groups(diff *d)
{
    em_status status = EM_OK;

    for (int which = 0; which < 2; which++)
        for (int64_t i = 0; !status && i < d->contents[which]->n_group; i++) {
            const em_contents_group *one = &d->contents[which]->group[i];
            const em_contents_group *other = em_contents_group_of(d->contents[!which], one->name);

            if (is_state(d, one))
                continue;
            if (!other)
                say_alone(d, "group", one->name, which);
            else if (which == 0)
                status = compare_group(d, one, other);
        }
    return status;
}

/* ---------------------------------------------------------------- attributes and configs */

/* Attributes that change from run to run even if the draws are equal. */
static bool is_volatile(const char *name)
{
    static const char *const known[] = {"created_at", "sampling_time",   "ranks", "groups",
                                        "host",       EM_HOME_ATTRIBUTE, NULL};

    return em_text_find(name, known) >= 0;
}

/* `config` is compared key by key, where both files have it. */
static void compare_attributes(diff *d)
{
    for (int which = 0; which < 2; which++)
        for (int64_t i = 0; i < d->contents[which]->n_attribute; i++) {
            const em_contents_attribute *one = &d->contents[which]->attribute[i];
            const em_contents_attribute *other =
                em_contents_attribute_of(d->contents[!which], one->name);

            if ((other && strcmp(one->name, "config") == 0) || (!d->all && is_volatile(one->name)))
                continue;
            if (!other)
                say_alone(d, "attribute", one->name, which);
            else if (which == 0 && strcmp(one->text, other->text) != 0)
                print_line(d, "attribute %s: %s | %s", one->name, em_excerpt_of(one->text).text,
                           em_excerpt_of(other->text).text);
        }
}

static bool is_same_value(const em_value *a, const em_value *b)
{
    if (a->kind != b->kind || a->text.count != b->text.count)
        return false;
    for (int64_t i = 0; i < a->text.count; i++)
        if (strcmp(a->text.value[i], b->text.value[i]) != 0)
            return false;
    return true;
}

static bool is_read_by_key(const em_yaml_entry *entry)
{
    return entry->value.kind == EM_VALUE_MAPPING && entry->value.text.count == 0;
}

static em_excerpt excerpt_of(const em_value *value)
{
    em_excerpt out;

    if (value->text.count == 1)
        return em_excerpt_of(value->text.value[0]);
    snprintf(out.text, sizeof out.text, "%lld values", (long long)value->text.count);
    return out;
}

static void compare_keys(diff *d, em_yaml *const *yaml)
{
    for (int which = 0; which < 2; which++)
        for (int64_t i = 0; i < yaml[which]->count; i++) {
            const em_yaml_entry *one = &yaml[which]->entry[i];
            const em_yaml_entry *other = em_yaml_find(yaml[!which], one->key);

            if (is_read_by_key(one))
                continue;
            if (!other)
                say_alone(d, "config", one->key, which);
            else if (which == 0 && !is_same_value(&one->value, &other->value))
                print_line(d, "config %s: %s | %s", one->key, excerpt_of(&one->value).text,
                           excerpt_of(&other->value).text);
        }
}

/* Compares configs key by key if both can be parsed. A mapping that is the value of a model's
 * option is compared as a whole. */
static em_status compare_configs(diff *d)
{
    const em_contents_attribute *text[2];
    em_yaml *yaml[2] = {NULL, NULL};
    em_status status = EM_OK;

    for (int i = 0; i < 2; i++)
        text[i] = em_contents_attribute_of(d->contents[i], "config");
    if (!text[0] || !text[1] || strcmp(text[0]->text, text[1]->text) == 0)
        return EM_OK;
    for (int i = 0; !status && i < 2; i++)
        status = em_yaml_parse(d->path[i], text[i]->text, em_config_may_be_data, NULL, &yaml[i]);
    if (!status)
        compare_keys(d, yaml);
    em_yaml_destroy(&yaml[0]);
    em_yaml_destroy(&yaml[1]);
    return status;
}

/* ---------------------------------------------------------------- the command */

/* Fails if the file has no draws: two runs that have drawn nothing yet must not count as equal. */
static em_status expect_draws(const diff *d)
{
    EM_SCOPED_BY(em_reader_close) em_reader *reader = NULL;
    em_status status = em_reader_open(d->path[0], "posterior", &reader);

    return status ? status : em_expect_draws(reader, "posterior");
}

static em_status compare(diff *d)
{
    em_status status = em_contents_read(d->path[0], &d->contents[0]);

    status = status ? status : em_contents_read(d->path[1], &d->contents[1]);
    if (!status)
        compare_attributes(d);
    status = status ? status : compare_configs(d);
    status = status ? status : compare_groups(d);
    if (!status && d->n_line == 0 && d->n_number == 0)
        status = expect_draws(d);
    if (status) /* 1 would mean that they differ */
        return EM_EDATA;
    if (d->n_line == 0) {
        printf("%s and %s: no difference in %lld numbers\n", d->path[0], d->path[1],
               (long long)d->n_number);
        return EM_OK;
    }
    return em_fail(EM_ENUMERIC, "%s and %s differ%s%s", d->path[0], d->path[1],
                   d->first ? ", first in " : "", d->first ? d->first : "");
}

em_status em_diff_command(int argc, const char **argv)
{
    int all = 0;
    const struct poptOption options[] = {
        {"all", 0, POPT_ARG_NONE, &all, 0, "times and hosts too", NULL}, POPT_TABLEEND};
    EM_SCOPED_BY(em_command_line_end) em_command_line line;
    diff d = {.all = false};
    em_status status = em_command_line_read(argc, argv, options, "two files", 2, 2, &line);

    if (!status) {
        d = (diff){.path = {line.argument[0], line.argument[1]}, .all = all != 0};
        status = em_agree(em_world_rank() == 0 ? compare(&d) : EM_OK);
    }
    em_release_owner(&d.contents[0]);
    em_release_owner(&d.contents[1]);
    em_release(&d.first);
    return status;
}
