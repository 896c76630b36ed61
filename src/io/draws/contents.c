#include "io/draws/contents.h"

#include "base/memory.h"
#include "io/draws/dataset.h"
#include "io/draws/labels.h"
#include "io/hdf5/foreign.h"

#include <hdf5_hl.h>
#include <string.h>

enum { MOST_NAMES = 1 << 16 }; /* in a group */

/* The state of an iteration over a file. */
typedef struct contents_walk {
    em_contents *contents;
    em_foreign *file;
    int64_t n_left; /* attributes there is memory for */
    em_status status;
} contents_walk;

/* ---------------------------------------------------------------- attributes */

static em_status read_text(em_owner *owner, hid_t id, hid_t type, char **out)
{
    const size_t size = H5Tget_size(type);
    em_status status = em_own_all(owner, EM_ARRAY(*out, (int64_t)size + 1));

    return status ? status : em_h5_check_read(H5Aread(id, type, *out), id, "cannot read a text");
}

static em_status read_attribute(em_owner *owner, hid_t id, hid_t type, em_contents_attribute *out,
                                bool *kept)
{
    switch (H5Tget_class(type)) {
    case H5T_STRING:
        out->kind = EM_ATTRIBUTE_TEXT;
        *kept = H5Tis_variable_str(type) == 0;
        return *kept ? read_text(owner, id, type, &out->text) : EM_OK;
    case H5T_INTEGER:
        out->kind = EM_ATTRIBUTE_INT;
        *kept = H5Aread(id, H5T_NATIVE_INT64, &out->integer) >= 0;
        return em_own(owner, em_format_text(&out->text, "%lld", (long long)out->integer),
                      &out->text);
    case H5T_FLOAT:
        out->kind = EM_ATTRIBUTE_REAL;
        *kept = H5Aread(id, H5T_NATIVE_DOUBLE, &out->real) >= 0;
        return em_own(owner, em_format_text(&out->text, "%.17g", out->real), &out->text);
    default:
        *kept = false;
        return EM_OK;
    }
}

static herr_t take_attribute(hid_t root, const char *name, const H5A_info_t *info, void *data)
{
    contents_walk *w = data;
    em_contents_attribute *out = &w->contents->attribute[w->contents->n_attribute];
    EM_SCOPED_ID hid_t id = H5Aopen(root, name, H5P_DEFAULT), type = H5Aget_type(id),
                       space = H5Aget_space(id);
    bool kept = false;

    (void)info;
    if (w->n_left-- > 0 && H5Sget_simple_extent_npoints(space) == 1)
        w->status = read_attribute(&w->contents->memory, id, type, out, &kept);
    if (!w->status && kept)
        w->status = em_own(&w->contents->memory, em_label_copy(name, &out->name), &out->name);
    if (kept)
        w->contents->n_attribute++;
    else
        em_release_from(&w->contents->memory, &out->text);
    return w->status || w->n_left <= 0 ? 1 : 0;
}

static em_status take_attributes(contents_walk *w)
{
    H5O_info_t info = {0};

    H5Oget_info(w->file->file, &info);
    w->n_left = info.num_attrs < MOST_NAMES ? (int64_t)info.num_attrs : MOST_NAMES;
    w->status = em_own_all(&w->contents->memory, EM_ARRAY(w->contents->attribute, w->n_left + 1));
    if (!w->status && w->n_left > 0)
        H5Aiterate2(w->file->file, H5_INDEX_NAME, H5_ITER_INC, NULL, take_attribute, w);
    return w->status;
}

/* ---------------------------------------------------------------- datasets */

static em_storage storage_of(hid_t id, hid_t type)
{
    char text[16];

    switch (H5Tget_class(type)) {
    case H5T_FLOAT:
        return H5Tget_size(type) <= sizeof(float) ? EM_STORE_SINGLE : EM_STORE_REAL;
    case H5T_ENUM:
        return EM_STORE_BOOL;
    default:
        return em_attribute_read_text(id, "dtype", sizeof text, text) && strcmp(text, "bool") == 0
                   ? EM_STORE_BOOL
                   : EM_STORE_INT;
    }
}

static em_status take_axes(const contents_walk *w, hid_t id, em_contents_array *out)
{
    EM_SCOPED_ID hid_t space = H5Dget_space(id);
    hsize_t extent[H5S_MAX_RANK] = {0};
    const int rank = H5Sget_simple_extent_dims(space, extent, NULL);
    em_status status = EM_OK;

    if (rank > EM_CONTENTS_AXES)
        return em_fail(EM_EDATA, "%s: %s has %d axes, expected at most %d", w->file->path,
                       out->name, rank, EM_CONTENTS_AXES);
    out->n_axes = rank > 0 ? rank : 0;
    if (out->is_coordinate && !out->is_number && rank == 2)
        out->n_axes = 1;
    for (int i = 0; !status && i < out->n_axes; i++) {
        char name[EM_AXIS_BYTES] = "";
        if (extent[i] > (hsize_t)1 << 53)
            return em_fail(EM_EDATA, "%s: %s has an axis of %llu numbers, expected at most 2^53",
                           w->file->path, out->name, (unsigned long long)extent[i]);
        out->shape[i] = (int64_t)extent[i];
        if (!out->is_coordinate)
            status = em_axis_name(w->file, id, (unsigned)i, name);
        if (!status && *name)
            status =
                em_own(&w->contents->memory, em_label_copy(name, &out->axis[i]), &out->axis[i]);
    }
    return status;
}

static em_status take_array(void *context, const char *name, hid_t *dataset)
{
    const contents_walk *w = context;
    em_contents_group *group = &w->contents->group[w->contents->n_group - 1];
    em_contents_array *out = &group->array[group->n_array++];
    const hid_t id = *dataset;
    EM_SCOPED_ID hid_t type = H5Dget_type(id);
    em_status status = em_own(&w->contents->memory, em_label_copy(name, &out->name), &out->name);

    out->is_number = em_foreign_is_number(id);
    out->storage = storage_of(id, type);
    out->is_coordinate = H5DSis_scale(id) > 0;
    em_role_read(id, &out->role, &out->index_base, &out->unwatched);
    status = status ? status : take_axes(w, id, out);
    out->has_draws = !status && out->is_number && out->n_axes >= 2 && out->axis[0] &&
                     out->axis[1] && strcmp(out->axis[0], "chain") == 0 &&
                     strcmp(out->axis[1], "draw") == 0;
    return status;
}

/* ---------------------------------------------------------------- groups */

static int64_t count_links(hid_t group)
{
    return em_least(em_foreign_n_link(group), MOST_NAMES);
}

/* Adds a group, and takes its arrays. */
static em_status take_group(void *context, const char *name, hid_t *id)
{
    const contents_walk *w = context;
    em_contents_group *group = &w->contents->group[w->contents->n_group++];
    const int64_t most = count_links(*id);
    em_status status =
        em_own(&w->contents->memory, em_label_copy(name, &group->name), &group->name);

    status = status ? status : em_own_all(&w->contents->memory, EM_ARRAY(group->array, most));
    return status ? status : em_foreign_each(w->file, *id, H5I_DATASET, most, take_array, context);
}

static em_status take_groups(contents_walk *w)
{
    const int64_t most = count_links(w->file->file);
    em_status status = em_own_all(&w->contents->memory, EM_ARRAY(w->contents->group, most));

    return status ? status
                  : em_foreign_each(w->file, w->file->file, H5I_GROUP, most, take_group, w);
}

em_status em_contents_read(const char *path, em_contents **out)
{
    EM_SCOPED_BY(em_foreign_close) em_foreign file = {.file = H5I_INVALID_HID};
    contents_walk w = {.file = &file};
    em_status status = em_allocate(1, sizeof **out, out);

    if (status)
        return status;
    w.contents = *out;
    status = em_foreign_open(path, &file);
    status = status ? status : take_attributes(&w);
    status = status ? status : take_groups(&w);
    if (status)
        em_release_owner(out);
    return status;
}

/* ---------------------------------------------------------------- looking things up */

const em_contents_attribute *em_contents_attribute_of(const em_contents *contents, const char *name)
{
    for (int64_t i = 0; i < contents->n_attribute; i++)
        if (strcmp(contents->attribute[i].name, name) == 0)
            return &contents->attribute[i];
    return NULL;
}

const em_contents_group *em_contents_group_of(const em_contents *contents, const char *name)
{
    for (int64_t i = 0; i < contents->n_group; i++)
        if (strcmp(contents->group[i].name, name) == 0)
            return &contents->group[i];
    return NULL;
}

const em_contents_array *em_contents_array_of(const em_contents_group *group, const char *name)
{
    for (int64_t i = 0; group && i < group->n_array; i++)
        if (strcmp(group->array[i].name, name) == 0)
            return &group->array[i];
    return NULL;
}

bool em_contents_has_draws(const em_contents_group *group)
{
    for (int64_t i = 0; i < group->n_array; i++)
        if (group->array[i].has_draws)
            return true;
    return false;
}
