#include "io/draws/contents.h"

#include "base/memory.h"
#include "io/draws/dataset.h"
#include "io/draws/labels.h"
#include "io/hdf5/foreign.h"

#include <hdf5_hl.h>
#include <string.h>

enum { MOST_NAMES = 1 << 16 }; /* in a group */

/* The state of an iteration over a file. */
typedef struct group_walk group_walk;
struct group_walk {
    em_contents *contents;
    em_foreign *file;
    em_contents_group *group; /* that is being filled */
    int64_t n_left;           /* there is room for */
    em_status status;
    H5I_type_t type; /* of the members to take, */
    em_status (*take)(group_walk *w, const char *name, hid_t id);
};

/* ---------------------------------------------------------------- attributes */

static em_status read_text(hid_t id, hid_t type, char **out)
{
    const size_t size = H5Tget_size(type);
    em_status status = em_allocate((int64_t)size + 1, 1, out);

    return status ? status : em_h5_check_read(H5Aread(id, type, *out), id, "cannot read a text");
}

static em_status read_attribute(hid_t id, hid_t type, em_contents_attribute *out, bool *kept)
{
    switch (H5Tget_class(type)) {
    case H5T_STRING:
        out->kind = EM_ATTRIBUTE_TEXT;
        *kept = H5Tis_variable_str(type) == 0;
        return *kept ? read_text(id, type, &out->text) : EM_OK;
    case H5T_INTEGER:
        out->kind = EM_ATTRIBUTE_INT;
        *kept = H5Aread(id, H5T_NATIVE_INT64, &out->integer) >= 0;
        return em_format_text(&out->text, "%lld", (long long)out->integer);
    case H5T_FLOAT:
        out->kind = EM_ATTRIBUTE_REAL;
        *kept = H5Aread(id, H5T_NATIVE_DOUBLE, &out->real) >= 0;
        return em_format_text(&out->text, "%.17g", out->real);
    default:
        *kept = false;
        return EM_OK;
    }
}

static herr_t take_attribute(hid_t root, const char *name, const H5A_info_t *info, void *data)
{
    group_walk *w = data;
    em_contents_attribute *out = &w->contents->attribute[w->contents->n_attribute];
    hid_t id = H5Aopen(root, name, H5P_DEFAULT), type = H5Aget_type(id), space = H5Aget_space(id);
    bool kept = false;

    (void)info;
    if (w->n_left-- > 0 && H5Sget_simple_extent_npoints(space) == 1)
        w->status = read_attribute(id, type, out, &kept);
    if (!w->status && kept)
        w->status = em_label_copy(name, &out->name);
    if (kept)
        w->contents->n_attribute++;
    else
        em_release(&out->text);
    em_h5_close_all(&space, &type, &id);
    return w->status || w->n_left <= 0 ? 1 : 0;
}

static em_status take_attributes(group_walk *w)
{
    H5O_info_t info = {0};

    H5Oget_info(w->file->file, &info);
    w->n_left = info.num_attrs < MOST_NAMES ? (int64_t)info.num_attrs : MOST_NAMES;
    w->status = em_allocate(w->n_left + 1, sizeof *w->contents->attribute, &w->contents->attribute);
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

/* The name of an axis, by its coordinate. */
static em_status name_axis(const em_foreign *file, hid_t id, unsigned axis, char **out)
{
    char path[1024] = "";
    const char *last;
    hid_t scale;
    em_status status = em_scale_of(file, id, axis, &scale);

    if (!status && scale >= 0 && H5Iget_name(scale, path, sizeof path) > 0) {
        last = strrchr(path, '/');
        status = em_label_copy(last ? last + 1 : path, out);
    }
    em_h5_close(&scale);
    return status;
}

static em_status take_axes(const em_foreign *file, hid_t id, em_contents_array *out)
{
    hid_t space = H5Dget_space(id);
    hsize_t extent[H5S_MAX_RANK] = {0};
    const int rank = H5Sget_simple_extent_dims(space, extent, NULL);
    em_status status = EM_OK;

    em_h5_close(&space);
    if (rank > EM_CONTENTS_AXES)
        return em_fail(EM_EDATA, "%s: %s has %d axes, expected at most %d", file->path, out->name,
                       rank, EM_CONTENTS_AXES);
    out->n_axes = rank > 0 ? rank : 0;
    if (out->is_coordinate && !out->is_number && rank == 2)
        out->n_axes = 1;
    for (int i = 0; !status && i < out->n_axes; i++) {
        if (extent[i] > (hsize_t)1 << 53)
            return em_fail(EM_EDATA, "%s: %s has an axis of %llu numbers, expected at most 2^53",
                           file->path, out->name, (unsigned long long)extent[i]);
        out->shape[i] = (int64_t)extent[i];
        if (!out->is_coordinate)
            status = name_axis(file, id, (unsigned)i, &out->axis[i]);
    }
    return status;
}

static em_status take_array(group_walk *w, const char *name, hid_t id)
{
    em_contents_array *out = &w->group->array[w->group->n_array++];
    hid_t type = H5Dget_type(id);
    em_status status = em_label_copy(name, &out->name);

    out->is_number = em_foreign_is_number(id);
    out->storage = storage_of(id, type);
    out->is_coordinate = H5DSis_scale(id) > 0;
    em_role_read(id, &out->role, &out->index_base, &out->unwatched);
    em_h5_close(&type);
    status = status ? status : take_axes(w->file, id, out);
    out->has_draws = !status && out->is_number && out->n_axes >= 2 && out->axis[0] &&
                     out->axis[1] && strcmp(out->axis[0], "chain") == 0 &&
                     strcmp(out->axis[1], "draw") == 0;
    return status;
}

/* One step of a walk over a group, for members of type w->type. */
static herr_t take_member(hid_t group, const char *name, const H5L_info_t *info, void *data)
{
    group_walk *w = data;
    hid_t id;

    (void)info;
    if (w->n_left-- == 0)
        return 1;
    w->status = em_foreign_member(w->file, group, name, &id);
    if (!w->status && id >= 0 && H5Iget_type(id) == w->type)
        w->status = w->take(w, name, id);
    em_h5_close(&id);
    return w->status ? 1 : 0;
}

/* ---------------------------------------------------------------- groups */

static H5_index_t order_of(hid_t group, bool is_file)
{
    hid_t list = is_file ? H5Fget_create_plist(group) : H5Gget_create_plist(group);
    unsigned order = 0;

    H5Pget_link_creation_order(list, &order);
    em_h5_close(&list);
    return order & H5P_CRT_ORDER_INDEXED ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
}

static int64_t count_links(hid_t group)
{
    H5G_info_t info = {0};

    H5Gget_info(group, &info);
    return info.nlinks < MOST_NAMES ? (int64_t)info.nlinks : MOST_NAMES;
}

static em_status take_group(group_walk *w, const char *name, hid_t id)
{
    group_walk inner = {.contents = w->contents,
                        .file = w->file,
                        .n_left = count_links(id),
                        .type = H5I_DATASET,
                        .take = take_array};

    inner.group = &w->contents->group[w->contents->n_group++];
    inner.status = em_label_copy(name, &inner.group->name);
    if (!inner.status)
        inner.status = em_allocate(inner.n_left, sizeof *inner.group->array, &inner.group->array);
    if (!inner.status)
        H5Literate(id, order_of(id, false), H5_ITER_INC, NULL, take_member, &inner);
    return inner.status;
}

static em_status take_groups(group_walk *w)
{
    w->n_left = count_links(w->file->file);
    w->type = H5I_GROUP;
    w->take = take_group;
    w->status = em_allocate(w->n_left, sizeof *w->contents->group, &w->contents->group);
    if (!w->status)
        H5Literate(w->file->file, order_of(w->file->file, true), H5_ITER_INC, NULL, take_member, w);
    return w->status;
}

em_status em_contents_read(const char *path, em_contents **out)
{
    em_foreign file;
    group_walk w = {.file = &file};
    em_status status = em_allocate(1, sizeof **out, out);

    if (status)
        return status;
    w.contents = *out;
    status = em_foreign_open(path, &file);
    status = status ? status : take_attributes(&w);
    status = status ? status : take_groups(&w);
    em_h5_close(&file.file);
    if (status)
        em_contents_release(out);
    return status;
}

static void release_group(em_contents_group *group)
{
    for (int64_t i = 0; i < group->n_array; i++) {
        em_release(&group->array[i].name);
        for (int axis = 0; axis < EM_CONTENTS_AXES; axis++)
            em_release(&group->array[i].axis[axis]);
    }
    em_release_all(&group->array, &group->name);
}

void em_contents_release(em_contents **out)
{
    em_contents *contents = *out;

    if (!contents)
        return;
    for (int64_t i = 0; i < contents->n_attribute; i++)
        em_release_all(&contents->attribute[i].name, &contents->attribute[i].text);
    for (int64_t i = 0; i < contents->n_group; i++)
        release_group(&contents->group[i]);
    em_release_all(&contents->attribute, &contents->group);
    em_release(out);
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
