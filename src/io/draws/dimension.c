#include "io/draws/dimension.h"

#include "base/memory.h"
#include "base/text.h"
#include "io/hdf5/hdf5.h"
#include "par/world.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* One row of a REFERENCE_LIST, with no hidden padding: its bytes go into the file as they are. */
typedef struct reference {
    hobj_ref_t dataset;
    int32_t axis;
    int32_t padding;
} reference;

struct em_dimension {
    char *name;
    int32_t number; /* in the file, as netCDF counts them */
    em_dataset coordinate;
    int64_t n_reference, capacity;
    reference *reference;
    bool changed; /* has references that are not in the file yet */
    em_dimension *next;
};

/* Writes the coordinate 0, 1, ... */
static em_status write_index(const em_dataset *coordinate)
{
    const int64_t extent = (int64_t)coordinate->extent[0];
    EM_SCOPED int64_t *index = NULL;
    em_status status = em_agree(em_allocate(extent, sizeof *index, &index));

    if (!status) {
        for (int64_t i = 0; i < extent; i++)
            index[i] = i;
        status = em_agree(em_dataset_write_all(coordinate, index));
    }
    return status;
}

/* The bytes of the longest label, but at least one, because a dimension of length 0 would be
 * unlimited. */
static int64_t longest(int64_t n, const char *const *label)
{
    size_t length = 1;

    for (int64_t i = 0; i < n; i++)
        length = strlen(label[i]) > length ? strlen(label[i]) : length;
    return (int64_t)length;
}

/* The labels as characters, [extent][width], filled up with zeros. */
static em_status write_labels(const em_dataset *coordinate, const char *const *label)
{
    const int64_t extent = (int64_t)coordinate->extent[0];
    const size_t width = (size_t)coordinate->extent[1];
    EM_SCOPED char *text = NULL;
    em_status status = em_agree(em_allocate(extent, width, &text));

    if (!status) {
        for (int64_t i = 0; i < extent; i++)
            memcpy(text + (size_t)i * width, label[i], strlen(label[i]));
        status = em_agree(em_dataset_write_all(coordinate, text));
    }
    return status;
}

/* Writes zeros, which are not read: the dataset represents a dimension without coordinate. */
static em_status write_nothing(const em_dataset *coordinate)
{
    EM_SCOPED char *zeros = NULL;
    em_status status = em_agree(
        em_allocate((int64_t)coordinate->extent[0], H5Tget_size(coordinate->type), &zeros));

    return status ? status : em_agree(em_dataset_write_all(coordinate, zeros));
}

/* `name` is the name of the dimension, or the text for a dimension without coordinate. */
static em_status mark_scale(const em_dimension *dimension, const char *name)
{
    const hid_t id = dimension->coordinate.id;
    em_status status = em_attribute_write_text(id, "CLASS", "DIMENSION_SCALE");
    EM_SCOPED_ID hid_t space = H5Screate(H5S_SCALAR);

    status = status ? status : em_attribute_write_text(id, "NAME", name);
    return status ? status
                  : em_attribute_write(id, "_Netcdf4Dimid", H5T_NATIVE_INT32, space,
                                       &dimension->number);
}

/* Writes the attributes by which xarray reads the characters of labels as text, and netCDF reads
 * their dataset as a coordinate of two dimensions. */
static em_status mark_labels(const em_dimension *dimension, const em_dimension *length)
{
    const int32_t number[] = {dimension->number, length->number};
    const hid_t id = dimension->coordinate.id;
    const hsize_t two = 2;
    EM_SCOPED_ID hid_t space = H5Screate_simple(1, &two, NULL);
    em_status status = em_attribute_write_text(id, "_Encoding", "utf-8");

    return status ? status
                  : em_attribute_write(id, "_Netcdf4Coordinates", H5T_NATIVE_INT32, space, number);
}

/* Appends a new dimension to the list before it is complete, so that closing the list also closes
 * it after an error. */
static em_status append(em_dimensions *dimensions, const char *name, em_dimension **out)
{
    em_dimension **end = &dimensions->first;
    em_status status = em_allocate(1, sizeof **out, out);

    if (status)
        return status;
    while (*end)
        end = &(*end)->next;
    *end = *out;
    (*out)->coordinate.id = (*out)->coordinate.type = H5I_INVALID_HID;
    (*out)->number = (*dimensions->count)++;
    return em_copy_text(name, &(*out)->name);
}

static em_dimension *find(const em_dimensions *dimensions, const char *name)
{
    em_dimension *d = dimensions->first;

    while (d && strcmp(d->name, name) != 0)
        d = d->next;
    return d;
}

/* Adds a dimension. `layout` has the type, extents and chunks of its coordinate, which is not
 * written yet. Takes over the type. Collective. */
static em_status add(em_dimensions *dimensions, const char *name, const char *scale_name,
                     em_dataset layout, em_dimension **out)
{
    em_status status = em_agree(append(dimensions, name, out));

    if (status) {
        em_h5_close(&layout.type);
        return status;
    }
    (*out)->coordinate = layout;
    status = em_dataset_create(dimensions->group, name, &(*out)->coordinate);
    return status ? status : em_agree(mark_scale(*out, scale_name));
}

static em_status create_index(em_dimensions *dimensions, const char *name, int64_t extent,
                              int64_t chunk, em_dimension **out)
{
    const em_dataset layout = {.id = H5I_INVALID_HID,
                               .type = H5Tcopy(H5T_NATIVE_INT64),
                               .n_axes = 1,
                               .extent = {(hsize_t)extent},
                               .chunk = {(hsize_t)chunk}};
    em_status status = add(dimensions, name, name, layout, out);

    return status ? status : write_index(&(*out)->coordinate);
}

/* The dimension string<n> without coordinate, by which netCDF describes the length of labels. */
static em_status get_length(em_dimensions *dimensions, int64_t n, em_dimension **out)
{
    const em_dataset layout = {.id = H5I_INVALID_HID,
                               .type = H5Tcopy(H5T_IEEE_F32BE),
                               .n_axes = 1,
                               .extent = {(hsize_t)n}};
    char name[32], scale_name[96];

    snprintf(name, sizeof name, "string%lld", (long long)n);
    snprintf(scale_name, sizeof scale_name,
             "This is a netCDF dimension but not a netCDF variable.%10lld", (long long)n);
    if ((*out = find(dimensions, name)))
        return EM_OK;
    const em_status status = add(dimensions, name, scale_name, layout, out);
    return status ? status : write_nothing(&(*out)->coordinate);
}

static em_status create_labels(em_dimensions *dimensions, const char *name, int64_t extent,
                               const char *const *label, em_dimension **out)
{
    em_dataset layout = {.id = H5I_INVALID_HID, .n_axes = 2, .extent = {(hsize_t)extent}};
    em_dimension *length;
    em_status status = get_length(dimensions, longest(extent, label), &length);

    if (status)
        return status;
    layout.type = H5Tcopy(H5T_C_S1);
    layout.extent[1] = length->coordinate.extent[0];
    status = add(dimensions, name, name, layout, out);
    status = status ? status : em_agree(mark_labels(*out, length));
    return status ? status : write_labels(&(*out)->coordinate, label);
}

/* Copies labels, and replaces the bytes of those that are not UTF-8 by escapes. Without this, a
 * table header in another encoding would keep other programs from reading the whole group. Local.
 */
static em_status copy_valid(int64_t n, const char *const *label, char ***copy)
{
    em_status status = em_allocate(n, sizeof **copy, copy);

    for (int64_t i = 0; !status && i < n; i++)
        status = em_text_valid(label[i], &(*copy)[i]);
    return status;
}

static em_status create(em_dimensions *dimensions, const char *name, int64_t extent, int64_t chunk,
                        const char *const *label, em_dimension **out)
{
    char **valid = NULL;

    if (!label)
        return create_index(dimensions, name, extent, chunk, out);
    em_status status = em_agree(copy_valid(extent, label, &valid));
    if (!status)
        status = create_labels(dimensions, name, extent, (const char *const *)valid, out);
    em_release_texts(extent, &valid);
    return status;
}

em_status em_dimension_get(em_dimensions *dimensions, const char *name, int64_t extent,
                           int64_t chunk, const char *const *label, em_dimension **out)
{
    *out = find(dimensions, name);
    if (!*out)
        return create(dimensions, name, extent, chunk, label, out);
    if ((*out)->coordinate.extent[0] == (hsize_t)extent)
        return EM_OK;
    return em_fail(EM_EINTERNAL, "axis '%s' has %lld elements, and %lld in another array", name,
                   (long long)extent, (long long)(*out)->coordinate.extent[0]);
}

static em_status add_reference(em_dimension *dimension, hobj_ref_t dataset, int axis)
{
    const em_status status = em_reserve(&dimension->reference, &dimension->capacity,
                                        dimension->n_reference, dimension->n_reference + 1);

    if (status)
        return status;
    dimension->reference[dimension->n_reference++] = (reference){dataset, axis, 0};
    dimension->changed = true;
    return EM_OK;
}

/* Sets references from a dataset to its dimensions, scale[n_axes], and from each dimension back to
 * the dataset. Local. */
static em_status refer(hid_t group, const char *name, int n_axes, em_dimension *const *axis,
                       hobj_ref_t *scale)
{
    hobj_ref_t self;
    em_status status = em_h5_check(H5Rcreate(&self, group, name, H5R_OBJECT, -1), group,
                                   "cannot refer to %s", name);

    for (int i = 0; i < n_axes && !status; i++) {
        status = em_h5_check(H5Rcreate(&scale[i], group, axis[i]->name, H5R_OBJECT, -1), group,
                             "cannot refer to %s", axis[i]->name);
        status = status ? status : add_reference(axis[i], self, i);
    }
    return status;
}

em_status em_dimension_attach(const em_dimensions *dimensions, const char *name,
                              const em_dataset *dataset, em_dimension *const *axis)
{
    const hsize_t n_axes = (hsize_t)dataset->n_axes;
    EM_SCOPED_ID hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ),
                       space = H5Screate_simple(1, &n_axes, NULL);
    hobj_ref_t scale[EM_DATASET_AXES];
    hvl_t list[EM_DATASET_AXES];
    em_status status = em_agree(refer(dimensions->group, name, dataset->n_axes, axis, scale));

    for (int i = 0; i < dataset->n_axes; i++)
        list[i] = (hvl_t){1, &scale[i]};
    if (!status && n_axes > 0)
        status = em_attribute_write(dataset->id, "DIMENSION_LIST", type, space, list);
    return status;
}

static hid_t reference_type(void)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(reference));

    H5Tinsert(type, "dataset", offsetof(reference, dataset), H5T_STD_REF_OBJ);
    H5Tinsert(type, "dimension", offsetof(reference, axis), H5T_NATIVE_INT32);
    return type;
}

em_status em_dimensions_finish(em_dimensions *dimensions)
{
    EM_SCOPED_ID hid_t type = reference_type();
    em_status failed = EM_OK, status = EM_OK;

    for (em_dimension *d = dimensions->first; d; d = d->next) {
        const hsize_t n = (hsize_t)d->n_reference;
        EM_SCOPED_ID hid_t space = H5Screate_simple(1, &n, NULL);

        if (d->changed)
            failed =
                em_attribute_write(d->coordinate.id, "REFERENCE_LIST", type, space, d->reference);
        status = status ? status : failed;
        d->changed = false;
    }
    return status;
}

em_status em_dimension_resize(em_dimension *dimension, int64_t extent)
{
    em_status status = em_agree(em_dataset_resize(&dimension->coordinate, extent));

    return status ? status : write_index(&dimension->coordinate);
}

void em_dimensions_close(em_dimensions *dimensions)
{
    while (dimensions->first) {
        em_dimension *closed = dimensions->first;

        dimensions->first = closed->next;
        em_dataset_close(&closed->coordinate);
        em_h5_close(&closed->coordinate.type);
        em_release_all(&closed->name, &closed->reference, &closed);
    }
}
