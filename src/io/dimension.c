#include "io/dimension.h"

#include "base/memory.h"
#include "io/attribute.h"
#include "par/world.h"

#include <stddef.h>
#include <string.h>

/* One row of a REFERENCE_LIST, with no hidden padding: its bytes go into the file as they are. */
typedef struct reference {
    hobj_ref_t dataset;
    int32_t axis;
    int32_t padding;
} reference;

struct em_dimension {
    char *name;
    em_dataset coordinate;
    int64_t n_reference, capacity;
    reference *reference;
    bool changed; /* has references that are not in the file yet */
    em_dimension *next;
};

/* The coordinate 0, 1, ... */
static em_status write_index(const em_dataset *coordinate)
{
    const int64_t extent = (int64_t)coordinate->extent[0];
    int64_t *index;
    em_status status = em_agree(em_allocate(extent, sizeof *index, &index));

    if (!status) {
        for (int64_t i = 0; i < extent; i++)
            index[i] = i;
        status = em_agree(em_dataset_write_all(coordinate, index));
    }
    em_release(&index);
    return status;
}

static size_t longest(int64_t n, const char *const *label)
{
    size_t length = 0;

    for (int64_t i = 0; i < n; i++)
        length = strlen(label[i]) > length ? strlen(label[i]) : length;
    return length;
}

static em_status write_labels(const em_dataset *coordinate, const char *const *label)
{
    const int64_t extent = (int64_t)coordinate->extent[0];
    const size_t width = H5Tget_size(coordinate->type);
    char *text;
    em_status status = em_agree(em_allocate(extent, width, &text));

    if (!status) {
        for (int64_t i = 0; i < extent; i++)
            strcpy(text + (size_t)i * width, label[i]);
        status = em_agree(em_dataset_write_all(coordinate, text));
    }
    em_release(&text);
    return status;
}

static hid_t label_type(int64_t n, const char *const *label)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    H5Tset_size(type, longest(n, label) + 1);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

static em_status mark_scale(const em_dimension *dimension)
{
    const hid_t id = dimension->coordinate.id;
    const em_status first = em_attribute_write_text(id, "CLASS", "DIMENSION_SCALE");
    const em_status second = em_attribute_write_text(id, "NAME", dimension->name);

    return first ? first : second;
}

/* The new dimension is in the list from the start, so that closing the list closes it. */
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
    return em_copy_text(name, &(*out)->name);
}

static em_status create(em_dimensions *dimensions, const char *name, int64_t extent, int64_t chunk,
                        const char *const *label, em_dimension **out)
{
    em_status status = em_agree(append(dimensions, name, out));
    em_dataset *coordinate;

    if (status)
        return status;
    coordinate = &(*out)->coordinate;
    coordinate->type = label ? label_type(extent, label) : H5Tcopy(H5T_NATIVE_INT64);
    coordinate->n_axes = 1;
    coordinate->extent[0] = (hsize_t)extent;
    coordinate->chunk[0] = (hsize_t)chunk;
    status = em_dataset_create(dimensions->group, name, coordinate);
    if (!status)
        status = em_agree(mark_scale(*out));
    if (!status)
        status = label ? write_labels(coordinate, label) : write_index(coordinate);
    return status;
}

em_status em_dimension_get(em_dimensions *dimensions, const char *name, int64_t extent,
                           int64_t chunk, const char *const *label, em_dimension **out)
{
    for (em_dimension *d = dimensions->first; d; d = d->next)
        if (strcmp(d->name, name) == 0) {
            *out = d;
            if (d->coordinate.extent[0] == (hsize_t)extent)
                return EM_OK;
            return em_fail(EM_EINTERNAL, "axis '%s' has %lld elements, and %lld in another array",
                           name, (long long)extent, (long long)d->coordinate.extent[0]);
        }
    return create(dimensions, name, extent, chunk, label, out);
}

static em_status add_reference(em_dimension *dimension, hobj_ref_t dataset, int axis)
{
    reference *grown;
    em_status status;

    if (dimension->n_reference == dimension->capacity) {
        status = em_allocate(2 * dimension->capacity + 4, sizeof *grown, &grown);
        if (status)
            return status;
        if (dimension->n_reference > 0)
            memcpy(grown, dimension->reference, (size_t)dimension->n_reference * sizeof *grown);
        em_release(&dimension->reference);
        dimension->reference = grown;
        dimension->capacity = 2 * dimension->capacity + 4;
    }
    dimension->reference[dimension->n_reference++] = (reference){dataset, axis, 0};
    dimension->changed = true;
    return EM_OK;
}

/* References from a dataset to its dimensions, scale[n_axes], and back. Local. */
static em_status refer(hid_t group, const char *name, int n_axes, em_dimension *const *axis,
                       hobj_ref_t *scale)
{
    hobj_ref_t self;
    em_status status = em_h5_check(H5Rcreate(&self, group, name, H5R_OBJECT, -1), group,
                                   "cannot refer to %s", name);

    for (int i = 0; i < n_axes && !status; i++) {
        status = em_h5_check(H5Rcreate(&scale[i], group, axis[i]->name, H5R_OBJECT, -1), group,
                             "cannot refer to %s", axis[i]->name);
        if (!status)
            status = add_reference(axis[i], self, i);
    }
    return status;
}

em_status em_dimension_attach(const em_dimensions *dimensions, const char *name,
                              const em_dataset *dataset, em_dimension *const *axis)
{
    const hsize_t n_axes = (hsize_t)dataset->n_axes;
    hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ), space = H5Screate_simple(1, &n_axes, NULL);
    hobj_ref_t scale[EM_DATASET_AXES];
    hvl_t list[EM_DATASET_AXES];
    em_status status = em_agree(refer(dimensions->group, name, dataset->n_axes, axis, scale));

    for (int i = 0; i < dataset->n_axes; i++)
        list[i] = (hvl_t){1, &scale[i]};
    if (!status && n_axes > 0)
        status = em_attribute_write(dataset->id, "DIMENSION_LIST", type, space, list);
    em_h5_close(&space);
    em_h5_close(&type);
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
    hid_t type = reference_type();
    em_status failed = EM_OK, status = EM_OK;

    for (em_dimension *d = dimensions->first; d; d = d->next) {
        const hsize_t n = (hsize_t)d->n_reference;
        hid_t space = H5Screate_simple(1, &n, NULL);

        if (d->changed)
            failed =
                em_attribute_write(d->coordinate.id, "REFERENCE_LIST", type, space, d->reference);
        status = status ? status : failed;
        d->changed = false;
        em_h5_close(&space);
    }
    em_h5_close(&type);
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
        em_release(&closed->name);
        em_release(&closed->reference);
        em_release(&closed);
    }
}
