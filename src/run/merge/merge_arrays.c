#include "run/merge/merge_state.h"

#include "base/memory.h"
#include "io/draws/dataset.h"
#include "par/world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- labels */

static void release_labels(em_merge_labels *out)
{
    em_release_texts(out->n, &out->text);
}

static bool is_index(const em_merge_labels *found)
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
                             int64_t extent, em_merge_labels *out)
{
    const em_contents_array *scale = axis ? em_contents_array_of(group, axis) : NULL;
    char place[1024];

    *out = (em_merge_labels){0, NULL};
    if (!scale || scale->n_axes != 1 || scale->shape[0] != extent)
        return EM_OK;
    snprintf(place, sizeof place, "%s/%s", group->name, axis);
    const em_status status = em_read_labels(path, place, &out->n, &out->text);
    if (!status && is_index(out))
        release_labels(out);
    return status;
}

static void release_written(em_merge_written *out)
{
    for (int axis = 0; axis < EM_MAX_AXES; axis++)
        release_labels(&out->label[axis]);
}

void em_merge_release_written(int64_t n, em_merge_written **out)
{
    for (int64_t i = 0; *out && i < n; i++)
        release_written(&(*out)[i]);
    em_release(out);
}

/* Describes an array from axis `skip` on. */
em_status em_merge_describe(const char *path, const em_contents_group *group,
                            const em_contents_array *array, int skip, em_merge_written *out)
{
    em_variable *variable = &out->variable;
    em_status status = EM_OK;

    *variable = (em_variable){.name = array->name,
                              .storage = array->storage,
                              .from_one = array->index_base == 1,
                              .unwatched = array->unwatched,
                              .role = array->role};
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

/* ---------------------------------------------------------------- arrays */

/* Reads data from the first file. The others have the same data. Local. */
static em_status read_data(const em_merge_state *m, const em_contents_group *group,
                           const em_contents_array *array, double **out)
{
    int64_t count, other;
    double *value = NULL;
    em_status status = em_read_array(m->request->input[0], group->name, array->name, &count, out);

    for (int64_t i = 1; !status && i < m->request->n_input; i++) {
        status = em_read_array(m->request->input[i], group->name, array->name, &other, &value);
        if (!status && (other != count || memcmp(value, *out, (size_t)count * sizeof *value) != 0))
            status = em_fail(EM_EDATA,
                             "%s: found other numbers in %s/%s than %s has, expected the same data",
                             m->request->input[i], group->name, array->name, m->request->input[0]);
        em_release(&value);
    }
    return status;
}

static em_status merge_data(em_merge_state *m, const em_contents_group *group,
                            const em_contents_array *array)
{
    EM_SCOPED_BY(release_written) em_merge_written out = {.variable = {.name = NULL}};
    EM_SCOPED double *value = NULL;
    em_status status = read_data(m, group, array, &value);

    status = status ? status : em_merge_describe(m->request->input[0], group, array, 0, &out);
    status = em_agree(status);
    return status ? status : em_writer_put_array(m->writer, group->name, &out.variable, value);
}

/* An array that stacks those of several files. */
typedef struct stacked {
    const em_contents_group *group;
    const char *name;
    bool of_chains; /* its first axis is `chain`, which is continued; else there is a new axis `run`
                     */
    em_merge_written out; /* the first axis is that */
    int64_t row;          /* numbers of a run, or of a chain */
    double *value;        /* [rows][row] */
} stacked;

/* The array in file i; NULL: the file has none with as many axes. */
static const em_contents_array *part_of(const em_merge_state *m, const stacked *s, int64_t i)
{
    const em_contents_group *group = em_contents_group_of(m->contents[i], s->group->name);
    const em_contents_array *array = em_contents_array_of(group, s->name);
    const em_contents_array *first = em_contents_array_of(s->group, s->name);

    return array && array->is_number && array->n_axes == first->n_axes ? array : NULL;
}

/* Extends each axis to the longest of all files, and takes its labels. */
static em_status widen(const em_merge_state *m, stacked *s)
{
    const int skip = s->of_chains ? 1 : 0;
    em_variable *variable = &s->out.variable;
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < m->request->n_input; i++) {
        const em_contents_array *array = part_of(m, s, i);
        for (int axis = skip; !status && array && axis < array->n_axes; axis++) {
            const int k = axis - skip + 1;
            if (array->shape[axis] <= variable->shape[k])
                continue;
            variable->shape[k] = array->shape[axis];
            release_labels(&s->out.label[k]);
            status = read_labels(m->request->input[i],
                                 em_contents_group_of(m->contents[i], s->group->name),
                                 array->axis[axis], array->shape[axis], &s->out.label[k]);
            variable->label[k] = (const char *const *)s->out.label[k].text;
        }
    }
    return status;
}

/* Copies rows of an array of `shape` to rows of the stacked array, which may be wider. */
static void copy_rows(const stacked *s, const em_contents_array *array, const double *from,
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

static em_status fill_stack(const em_merge_state *m, stacked *s)
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
            status = em_read_array(em_reader_path(file), s->group->name, s->name, &count, &value);
            if (!status)
                copy_rows(s, array, value, n_row, to);
        }
        em_release(&value);
        to += n_row * s->row;
    }
    return status;
}

static em_status lay_stack(const em_merge_state *m, const em_contents_array *array, stacked *s)
{
    em_variable *variable = &s->out.variable;

    s->of_chains = array->n_axes > 0 && array->axis[0] && strcmp(array->axis[0], "chain") == 0;
    const int64_t n_row = s->of_chains ? em_grid_n_chain(m->grid) : m->request->n_input;
    *variable = (em_variable){.name = array->name,
                              .storage = array->storage,
                              .n_axes = array->n_axes + (s->of_chains ? 0 : 1),
                              .shape = {n_row},
                              .axis = {s->of_chains ? "chain" : "run"}};
    if (variable->n_axes > EM_MAX_AXES)
        return em_fail(EM_EDATA, "%s: %s/%s has %d axes, expected at most %d", m->request->input[0],
                       s->group->name, array->name, array->n_axes,
                       EM_MAX_AXES - (s->of_chains ? 0 : 1));
    for (int k = 1; k < variable->n_axes; k++)
        variable->axis[k] = array->axis[k - (s->of_chains ? 0 : 1)];
    em_status status = widen(m, s);
    s->row = em_variable_size(variable) / n_row;
    status = status ? status : em_allocate_doubles(n_row * s->row, &s->value);
    for (int64_t i = 0; !status && i < n_row * s->row; i++)
        s->value[i] = NAN;
    return status ? status : fill_stack(m, s);
}

static em_status merge_array(em_merge_state *m, const em_contents_group *group,
                             const em_contents_array *array)
{
    stacked s = {.group = group, .name = array->name};
    em_status status = em_agree(lay_stack(m, array, &s));

    if (!status)
        status = em_writer_put_array(m->writer, group->name, &s.out.variable, s.value);
    release_written(&s.out);
    em_release(&s.value);
    return status;
}

em_status em_merge_arrays(em_merge_state *m, const em_contents_group *group)
{
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < group->n_array; i++) {
        const em_contents_array *array = &group->array[i];
        if (array->is_coordinate || array->has_draws || !array->is_number)
            continue;
        /* Whether an array has to be the same in all files. */
        status =
            (strcmp(group->name, "constant_data") == 0 || strcmp(group->name, "observed_data") == 0)
                ? merge_data(m, group, array)
                : merge_array(m, group, array);
    }
    return status;
}
