#include "run/merge.h"

#include "base/memory.h"
#include "io/contents.h"
#include "io/dataset.h"
#include "io/reader.h"
#include "io/writer.h"
#include "par/world.h"
#include "run/created.h"
#include "run/whole.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Numbers in memory at a time, and draws that lie together in the file. */
enum { MOST_NUMBERS = 1 << 21, LONG_CHUNK = 1 << 14 };

typedef struct merging {
    em_merging *order;
    em_reader *reader;      /* the posteriors of all */
    em_contents **contents; /* [n_input] */
    em_grid *grid;
    em_whole *whole;
    em_writer *writer;
    em_created created;
    em_signature signature;
} merging;

static const em_contents *first_of(const merging *m)
{
    return m->contents[0];
}

/* ---------------------------------------------------------------- what goes together */

static em_status check_complete(const merging *m)
{
    for (const em_reader *file = m->reader; file; file = em_reader_next(file)) {
        int64_t complete = 1;

        em_reader_int((em_reader *)file, "complete", &complete);
        if (!complete)
            return em_fail(EM_EDATA,
                           "%s: found a run that has not ended, expected a complete file: emass "
                           "run --resume goes on with it",
                           em_reader_path(file));
    }
    return EM_OK;
}

/* The chains of one start are as many in all files, or R-hat of superchains means nothing. */
static em_status check_superchains(const merging *m)
{
    const em_reader *first = m->reader;
    int64_t of_first = 0;

    em_reader_int(m->reader, "superchains", &of_first);
    for (em_reader *file = em_reader_next(first); file; file = em_reader_next(file)) {
        int64_t n = 0;

        em_reader_int(file, "superchains", &n);
        if (n * em_reader_n_own_chain(first) != of_first * em_reader_n_own_chain(file))
            return em_fail(EM_EDATA,
                           "%s: found %lld superchains of %lld chains, expected %lld of %lld as %s "
                           "has",
                           em_reader_path(file), (long long)n,
                           (long long)em_reader_n_own_chain(file), (long long)of_first,
                           (long long)em_reader_n_own_chain(first), em_reader_path(first));
    }
    return EM_OK;
}

static em_status open_inputs(merging *m)
{
    const em_merging *order = m->order;
    em_status status = em_reader_open_all(order->n_input, order->input, "posterior", &m->reader);

    if (!status && em_reader_n_draw(m->reader) < 1)
        status = em_fail(EM_EDATA, "%s: found no draws, expected those of a run", order->input[0]);
    if (!status)
        status = check_complete(m);
    if (!status)
        status = check_superchains(m);
    if (!status)
        status = em_allocate(order->n_input, sizeof *m->contents, &m->contents);
    for (int64_t i = 0; !status && i < order->n_input; i++)
        status = em_contents_read(order->input[i], &m->contents[i]);
    return status;
}

/* ---------------------------------------------------------------- labels */

/* The texts of an axis; NULL for numbers from 0 on. */
typedef struct labels {
    int64_t n;
    char **text;
} labels;

static void release_labels(labels *out)
{
    for (int64_t i = 0; out->text && i < out->n; i++)
        em_release(&out->text[i]);
    em_release(&out->text);
}

static bool is_index(const labels *found)
{
    char number[32];

    for (int64_t i = 0; i < found->n; i++) {
        snprintf(number, sizeof number, "%lld", (long long)i);
        if (strcmp(found->text[i], number) != 0)
            return false;
    }
    return true;
}

static em_status read_labels(const char *path, const em_contents_group *group, const char *axis,
                             int64_t extent, labels *out)
{
    const em_contents_array *scale = axis ? em_contents_array_of(group, axis) : NULL;
    char place[1024];
    em_status status;

    *out = (labels){0, NULL};
    if (!scale || scale->n_axes != 1 || scale->shape[0] != extent)
        return EM_OK;
    snprintf(place, sizeof place, "%s/%s", group->name, axis);
    status = em_read_labels(path, place, &out->n, &out->text);
    if (!status && is_index(out))
        release_labels(out);
    return status;
}

/* A variable as it is written, which owns what it names. */
typedef struct written {
    em_variable variable;
    labels label[EM_MAX_AXES];
} written;

static void release_written(int64_t n, written **out)
{
    for (int64_t i = 0; *out && i < n; i++)
        for (int axis = 0; axis < EM_MAX_AXES; axis++)
            release_labels(&(*out)[i].label[axis]);
    em_release(out);
}

/* From axis `skip` of the array on. */
static em_status describe(const char *path, const em_contents_group *group,
                          const em_contents_array *array, int skip, written *out)
{
    em_variable *variable = &out->variable;
    em_status status = EM_OK;

    *variable = (em_variable){.name = array->name, .storage = array->storage};
    if (array->n_axes - skip > EM_MAX_AXES)
        return em_fail(EM_EDATA, "%s: %s/%s has %d axes, expected at most %d", path, group->name,
                       array->name, array->n_axes, EM_MAX_AXES + skip);
    for (int i = skip; !status && i < array->n_axes; i++) {
        const int k = variable->n_axes++;
        variable->shape[k] = array->shape[i];
        variable->axis[k] = array->axis[i];
        status = read_labels(path, group, array->axis[i], array->shape[i], &out->label[k]);
        variable->label[k] = (const char *const *)out->label[k].text;
    }
    return status;
}

/* ---------------------------------------------------------------- groups of draws */

/* Draws first .. first + n of one chain, row by row all variables. Local. */
static em_status read_rows(em_reader *reader, int64_t chain, int64_t first, int64_t n,
                           int64_t width, double *part, double *rows)
{
    int64_t column = 0;
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < em_reader_n_variable(reader); i++) {
        const int64_t size = em_reader_variable_at(reader, i)->size;

        status = em_reader_draws(reader, i, chain, 1, first, n, part);
        for (int64_t r = 0; !status && r < n; r++)
            memcpy(rows + r * width + column, part + r * size, (size_t)size * sizeof *part);
        column += size;
    }
    return status;
}

static em_status copy_draws(merging *m, em_reader *reader, int64_t width, int group)
{
    const int64_t n_draw = em_reader_n_draw(reader);
    const int64_t most_chain = em_deal_first(em_grid_n_chain(m->grid), em_grid_n_group(m->grid), 1);
    const int64_t fit = width > 0 && width < MOST_NUMBERS ? MOST_NUMBERS / width : 1;
    const int64_t step = fit < n_draw ? fit : n_draw;
    double *part = NULL, *rows = NULL;
    em_status status = em_allocate_doubles(step * width, &part);

    if (!status)
        status = em_allocate_doubles(step * width, &rows);
    status = em_agree(status);
    for (int64_t c = 0; !status && c < most_chain; c++)
        for (int64_t first = 0; !status && first < n_draw; first += step) {
            const int64_t n = n_draw - first < step ? n_draw - first : step;

            if (c < em_grid_n_local_chain(m->grid))
                status = read_rows(reader, em_grid_first_chain(m->grid) + c, first, n, width, part,
                                   rows);
            status = em_agree(status);
            if (!status)
                status = em_writer_put_chain(m->writer, group, c, first, n, rows);
        }
    em_release(&part);
    em_release(&rows);
    return status;
}

/* The variables as the reader has them, in its order. */
static em_status describe_draws(const merging *m, const em_contents_group *group, em_reader *reader,
                                written *all, em_variable *series, int64_t *width)
{
    em_status status = EM_OK;

    *width = 0;
    for (int64_t i = 0; !status && i < em_reader_n_variable(reader); i++) {
        const em_reader_variable *variable = em_reader_variable_at(reader, i);
        const em_contents_array *array = em_contents_array_of(group, variable->name);

        if (!array)
            return em_fail(EM_EDATA, "%s: two variables of group %s are called %s",
                           m->order->input[0], group->name, variable->name);
        status = describe(m->order->input[0], group, array, 2, &all[i]);
        series[i] = all[i].variable;
        *width += variable->size;
    }
    return status;
}

static em_status write_draws(merging *m, const em_contents_group *group, em_reader *reader)
{
    const int64_t n = em_reader_n_variable(reader);
    written *all = NULL;
    em_variable *series = NULL;
    int64_t width = 0;
    int number = 0;
    em_status status = em_allocate(n, sizeof *all, &all);

    if (!status)
        status = em_allocate(n, sizeof *series, &series);
    if (!status)
        status = describe_draws(m, group, reader, all, series, &width);
    status = em_agree(status);
    if (!status)
        status = em_writer_add_draws(m->writer, group->name, n, series, em_reader_n_draw(reader),
                                     LONG_CHUNK, &number);
    if (!status)
        status = copy_draws(m, reader, width, number);
    release_written(n, &all);
    em_release(&series);
    return status;
}

/* Groups of draws without which a file is not what the others are. */
static bool is_needed(const char *group)
{
    return strcmp(group, "posterior") == 0 || strcmp(group, "sample_stats") == 0;
}

/* One that all files have, of as many draws; others are left out, and said to be. */
static em_status merge_draws(merging *m, const em_contents_group *group)
{
    em_reader *reader = NULL;
    em_status status = em_reader_open_all(m->order->n_input, m->order->input, group->name, &reader);

    if (status == EM_EDATA && !is_needed(group->name)) {
        em_say("warning: group %s is left out: %s", group->name, em_error_text());
        return EM_OK;
    }
    status = em_agree(status);
    if (!status && em_reader_n_draw(reader) > 0)
        status = write_draws(m, group, reader);
    em_reader_close(&reader);
    return status;
}

/* ---------------------------------------------------------------- arrays */

/* Whether an array has to be the same in all files. */
static bool is_data(const char *group)
{
    return strcmp(group, "constant_data") == 0 || strcmp(group, "observed_data") == 0;
}

static em_status read_array(const char *path, const char *group, const char *name, int64_t *count,
                            double **value)
{
    char place[1024];

    snprintf(place, sizeof place, "%s/%s", group, name);
    return em_read_array(path, place, count, value);
}

/* Data of the first file, which the others have too. Local. */
static em_status read_data(const merging *m, const em_contents_group *group,
                           const em_contents_array *array, double **out)
{
    int64_t count, other;
    double *value = NULL;
    em_status status = read_array(m->order->input[0], group->name, array->name, &count, out);

    for (int64_t i = 1; !status && i < m->order->n_input; i++) {
        status = read_array(m->order->input[i], group->name, array->name, &other, &value);
        if (!status && (other != count || memcmp(value, *out, (size_t)count * sizeof *value) != 0))
            status = em_fail(EM_EDATA,
                             "%s: found other numbers in %s/%s than %s has, expected the "
                             "same data",
                             m->order->input[i], group->name, array->name, m->order->input[0]);
        em_release(&value);
    }
    return status;
}

static em_status merge_data(merging *m, const em_contents_group *group,
                            const em_contents_array *array)
{
    written out = {.variable = {.name = NULL}};
    double *value = NULL;
    em_status status = read_data(m, group, array, &value);

    if (!status)
        status = describe(m->order->input[0], group, array, 0, &out);
    status = em_agree(status);
    if (!status)
        status = em_writer_put_array(m->writer, group->name, &out.variable, value);
    for (int axis = 0; axis < EM_MAX_AXES; axis++)
        release_labels(&out.label[axis]);
    em_release(&value);
    return status;
}

/* An array of several files as one. */
typedef struct stacked {
    const em_contents_group *group;
    const char *name;
    bool of_chains; /* its first axis is `chain`, and goes on; else there is a new one, `run` */
    written out;    /* the first axis is that */
    int64_t row;    /* numbers of a run, or of a chain */
    double *value;  /* [rows][row] */
} stacked;

/* The array as file i has it; NULL: it has none of as many axes. */
static const em_contents_array *part_of(const merging *m, const stacked *s, int64_t i)
{
    const em_contents_group *group = em_contents_group_of(m->contents[i], s->group->name);
    const em_contents_array *array = em_contents_array_of(group, s->name);
    const em_contents_array *first = em_contents_array_of(s->group, s->name);

    return array && array->is_number && array->n_axes == first->n_axes ? array : NULL;
}

/* The longest of each axis, and its labels. */
static em_status widen(const merging *m, stacked *s)
{
    const int skip = s->of_chains ? 1 : 0;
    em_variable *variable = &s->out.variable;
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < m->order->n_input; i++) {
        const em_contents_array *array = part_of(m, s, i);
        for (int axis = skip; !status && array && axis < array->n_axes; axis++) {
            const int k = axis - skip + 1;
            if (array->shape[axis] <= variable->shape[k])
                continue;
            variable->shape[k] = array->shape[axis];
            release_labels(&s->out.label[k]);
            status = read_labels(m->order->input[i],
                                 em_contents_group_of(m->contents[i], s->group->name),
                                 array->axis[axis], array->shape[axis], &s->out.label[k]);
            variable->label[k] = (const char *const *)s->out.label[k].text;
        }
    }
    return status;
}

/* Rows of an array of `shape`, into rows of the stacked one, which may be wider. */
static void place_rows(const stacked *s, const em_contents_array *array, const double *from,
                       int64_t n_row, double *to)
{
    const int skip = s->of_chains ? 1 : 0;
    const em_variable *variable = &s->out.variable;
    int64_t size = 1;

    for (int axis = skip; axis < array->n_axes; axis++)
        size *= array->shape[axis];
    for (int64_t r = 0; r < n_row; r++)
        for (int64_t k = 0; k < size; k++) {
            int64_t left = k, at = 0, stride = 1;
            for (int axis = array->n_axes - 1; axis >= skip; axis--) {
                at += left % array->shape[axis] * stride;
                left /= array->shape[axis];
                stride *= variable->shape[axis - skip + 1];
            }
            to[r * s->row + at] = from[r * size + k];
        }
}

static em_status fill_stack(const merging *m, stacked *s)
{
    double *to = s->value;
    em_status status = EM_OK;

    for (const em_reader *file = m->reader; !status && file; file = em_reader_next(file)) {
        const int64_t i = s->of_chains ? 0 : 1, own = em_reader_n_own_chain(file);
        const int64_t n_row = i ? 1 : own;
        int64_t number = 0, count;
        double *value = NULL;

        for (const em_reader *r = m->reader; r != file; r = em_reader_next(r))
            number++;
        const em_contents_array *array = part_of(m, s, number);
        if (array && (!s->of_chains || array->shape[0] == own)) {
            status = read_array(em_reader_path(file), s->group->name, s->name, &count, &value);
            if (!status)
                place_rows(s, array, value, n_row, to);
        }
        em_release(&value);
        to += n_row * s->row;
    }
    return status;
}

static em_status lay_stack(const merging *m, const em_contents_array *array, stacked *s)
{
    em_variable *variable = &s->out.variable;
    int64_t n_row;
    em_status status;

    s->of_chains = array->n_axes > 0 && array->axis[0] && strcmp(array->axis[0], "chain") == 0;
    n_row = s->of_chains ? em_grid_n_chain(m->grid) : m->order->n_input;
    *variable = (em_variable){.name = array->name,
                              .storage = array->storage,
                              .n_axes = array->n_axes + (s->of_chains ? 0 : 1),
                              .shape = {n_row},
                              .axis = {s->of_chains ? "chain" : "run"}};
    if (variable->n_axes > EM_MAX_AXES)
        return em_fail(EM_EDATA, "%s: %s/%s has %d axes, expected fewer", m->order->input[0],
                       s->group->name, array->name, array->n_axes);
    for (int k = 1; k < variable->n_axes; k++)
        variable->axis[k] = array->axis[k - (s->of_chains ? 0 : 1)];
    status = widen(m, s);
    s->row = em_variable_size(variable) / n_row;
    if (!status)
        status = em_allocate_doubles(n_row * s->row, &s->value);
    for (int64_t i = 0; !status && i < n_row * s->row; i++)
        s->value[i] = NAN;
    return status ? status : fill_stack(m, s);
}

static em_status merge_array(merging *m, const em_contents_group *group,
                             const em_contents_array *array)
{
    stacked s = {.group = group, .name = array->name};
    em_status status = em_agree(lay_stack(m, array, &s));

    if (!status)
        status = em_writer_put_array(m->writer, group->name, &s.out.variable, s.value);
    for (int axis = 0; axis < EM_MAX_AXES; axis++)
        release_labels(&s.out.label[axis]);
    em_release(&s.value);
    return status;
}

static em_status merge_arrays(merging *m, const em_contents_group *group)
{
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < group->n_array; i++) {
        const em_contents_array *array = &group->array[i];
        if (array->is_coordinate || array->has_draws || !array->is_number)
            continue;
        status = is_data(group->name) ? merge_data(m, group, array) : merge_array(m, group, array);
    }
    return status;
}

/* ---------------------------------------------------------------- what files say of themselves */

/* How an attribute of the files becomes one of theirs together. */
typedef enum rule { SAME, SUM, SMALLEST, FIRST, DROPPED } rule;

static rule rule_of(const char *name)
{
    static const struct {
        const char *name;
        rule rule;
    } known[] = {
        {"config", FIRST},
        {"divergences", SUM},
        {"ess_limit", SUM},
        {"failed_reports", SUM},
        {"rescued_chains", SUM},
        {"smallest_e_bfmi", SMALLEST},
        {"superchains", SUM},
        {"complete", DROPPED},
        {"converged", DROPPED},
        {"created_at", DROPPED},
        {"creation_library", DROPPED},
        {"creation_library_language", DROPPED},
        {"creation_library_version", DROPPED},
        {"groups", DROPPED},
        {"host", DROPPED},
        {"inference_library", DROPPED},
        {"inference_library_version", DROPPED},
        {"merged", DROPPED},
        {"ranks", DROPPED},
        {"sampling_time", DROPPED},
        {"smallest_ess", DROPPED},
        {"verdict", DROPPED},
        {"worst_r_hat", DROPPED},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0)
            return known[i].rule;
    return SAME;
}

static double value_of(const em_contents_attribute *attribute)
{
    return attribute->kind == EM_ATTRIBUTE_INT ? (double)attribute->integer : attribute->real;
}

static em_status put_value(merging *m, const em_contents_attribute *like, double value)
{
    return like->kind == EM_ATTRIBUTE_INT ? em_writer_put_int(m->writer, like->name, (int64_t)value)
                                          : em_writer_put_real(m->writer, like->name, value);
}

static em_status put_same(merging *m, const em_contents_attribute *a)
{
    switch (a->kind) {
    case EM_ATTRIBUTE_TEXT:
        return em_writer_put_text(m->writer, a->name, a->text);
    case EM_ATTRIBUTE_INT:
        return em_writer_put_int(m->writer, a->name, a->integer);
    default:
        return em_writer_put_real(m->writer, a->name, a->real);
    }
}

static em_status merge_attribute(merging *m, const em_contents_attribute *first)
{
    const rule how = rule_of(first->name);
    const bool is_text = first->kind == EM_ATTRIBUTE_TEXT;
    double sum = 0, smallest = INFINITY;
    bool same = true;

    for (int64_t i = 0; i < m->order->n_input; i++) {
        const em_contents_attribute *a = em_contents_attribute_of(m->contents[i], first->name);
        same = same && a && a->kind == first->kind && strcmp(a->text, first->text) == 0;
        if (a && a->kind != EM_ATTRIBUTE_TEXT) {
            sum += value_of(a);
            smallest = fmin(smallest, value_of(a));
        }
    }
    if (how == FIRST || (how == SAME && same))
        return put_same(m, first);
    if (!is_text && (how == SUM || how == SMALLEST))
        return put_value(m, first, how == SUM ? sum : smallest);
    return EM_OK;
}

/* Of each file, in the group `runs`. */
static em_status put_runs(merging *m)
{
    static const char *const name[] = {"seed",        "tuning_steps",    "divergences",
                                       "worst_r_hat", "smallest_e_bfmi", "converged"};
    const int64_t n = m->order->n_input, n_chain = em_grid_n_chain(m->grid);
    em_variable variable = {.n_axes = 1,
                            .shape = {n},
                            .axis = {"run"},
                            .label = {(const char *const *)m->order->input}};
    double *value = NULL;
    int64_t run = 0, chain = 0;
    em_status status = em_agree(em_allocate(n + n_chain, sizeof *value, &value));

    for (size_t k = 0; !status && k < sizeof name / sizeof *name; k++) {
        const em_contents_attribute *first = em_contents_attribute_of(first_of(m), name[k]);
        if (!first || first->kind == EM_ATTRIBUTE_TEXT)
            continue;
        for (int64_t i = 0; i < n; i++) {
            const em_contents_attribute *a = em_contents_attribute_of(m->contents[i], name[k]);
            value[i] = a && a->kind != EM_ATTRIBUTE_TEXT ? value_of(a) : NAN;
        }
        variable.name = name[k];
        variable.storage = first->kind == EM_ATTRIBUTE_INT ? EM_STORE_INT : EM_STORE_REAL;
        status = em_writer_put_array(m->writer, "runs", &variable, value);
    }
    for (const em_reader *file = m->reader; !status && file; file = em_reader_next(file), run++)
        for (int64_t c = 0; c < em_reader_n_own_chain(file); c++)
            value[chain++] = (double)run;
    variable = (em_variable){.name = "run_of_chain",
                             .storage = EM_STORE_INT,
                             .n_axes = 1,
                             .shape = {n_chain},
                             .axis = {"chain"}};
    if (!status)
        status = em_writer_put_array(m->writer, "runs", &variable, value);
    em_release(&value);
    return status;
}

static em_status put_attributes(merging *m)
{
    em_status status = em_created_read(&m->created);

    m->signature = em_created_signature(&m->created);
    if (!status)
        status = em_writer_sign(m->writer, 6, m->signature.text);
    for (int64_t i = 0; !status && i < first_of(m)->n_attribute; i++)
        status = merge_attribute(m, &first_of(m)->attribute[i]);
    return status ? status : em_writer_put_int(m->writer, "merged", m->order->n_input);
}

/* ---------------------------------------------------------------- all of it */

/* Groups that only later files have. */
static void tell_missing(const merging *m)
{
    for (int64_t i = 1; i < m->order->n_input; i++)
        for (int64_t g = 0; g < m->contents[i]->n_group; g++) {
            const char *name = m->contents[i]->group[g].name;
            if (!em_contents_group_of(first_of(m), name))
                em_say("warning: group %s is left out: %s has it, %s has not", name,
                       m->order->input[i], m->order->input[0]);
        }
}

static em_status write_all(merging *m)
{
    em_status status = em_writer_create(m->grid, em_whole_part(m->whole), false, &m->writer);

    if (!status)
        status = put_attributes(m);
    for (int64_t g = 0; !status && g < first_of(m)->n_group; g++) {
        const em_contents_group *group = &first_of(m)->group[g];
        if (strcmp(group->name, "runs") == 0)
            continue; /* of a file that was merged itself */
        if (em_contents_has_draws(group))
            status = merge_draws(m, group);
        if (!status)
            status = merge_arrays(m, group);
    }
    if (!status)
        status = put_runs(m);
    if (!status)
        tell_missing(m);
    return status;
}

static em_status merge(merging *m)
{
    em_status status = em_whole_take(m->order->output, m->order->overwrite, m->order->n_input,
                                     m->order->input, &m->whole);

    if (!status)
        status = em_agree(open_inputs(m));
    if (!status)
        status = em_grid_create(em_reader_n_chain(m->reader), 1, &m->grid);
    if (!status)
        status = write_all(m);
    return em_whole_finish(&m->whole, &m->writer, status);
}

em_status em_merge(em_merging *order)
{
    merging m = {.order = order};
    const em_status status = merge(&m);

    if (!status) {
        order->n_chain = em_reader_n_chain(m.reader);
        order->n_draw = em_reader_n_draw(m.reader);
    }
    for (int64_t i = 0; m.contents && i < order->n_input; i++)
        em_contents_release(&m.contents[i]);
    em_release(&m.contents);
    em_reader_close(&m.reader);
    em_grid_destroy(&m.grid);
    return status;
}
