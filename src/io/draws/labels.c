#include "io/draws/labels.h"

#include "base/memory.h"
#include "base/text.h"
#include "io/hdf5/crash_handler.h"

#include <hdf5_hl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_AXES = 8 };

typedef char label_text[EM_LABEL_BYTES];

em_status em_label_copy(const char *name, char **out)
{
    label_text text;

    em_text_escape(name, text, sizeof text);
    return em_copy_text(text, out);
}

/* ---------------------------------------------------------------- coordinates */

static herr_t first_scale(hid_t variable, unsigned axis, hid_t scale, void *out)
{
    (void)variable;
    (void)axis;
    *(hid_t *)out = scale;
    H5Iinc_ref(scale); /* the iteration closes its own */
    return 1;
}

em_status em_scale_of(const em_foreign *file, hid_t dataset, unsigned axis, hid_t *scale)
{
    *scale = H5I_INVALID_HID;
    em_h5_crash_handler_begin(file->path);
    if (H5DSget_num_scales(dataset, axis) > 0)
        H5DSiterate_scales(dataset, axis, NULL, first_scale, scale);
    em_h5_crash_handler_end();
    if (*scale < 0)
        return EM_OK;
    const em_status status = em_foreign_check(file, *scale);
    if (status)
        em_h5_close(scale);
    return status;
}

em_status em_axis_name(const em_foreign *file, hid_t dataset, unsigned axis,
                       char name[EM_AXIS_BYTES])
{
    char path[EM_AXIS_BYTES] = "";
    EM_SCOPED_ID hid_t scale = H5I_INVALID_HID;
    em_status status = em_scale_of(file, dataset, axis, &scale);

    if (scale >= 0)
        H5Iget_name(scale, path, sizeof path);
    const char *last = strrchr(path, '/');
    strcpy(name, last ? last + 1 : path);
    return status;
}

/* ---------------------------------------------------------------- labels of one axis */

/* Uses numbers if the coordinate has no labels. */
static em_status number_labels(hid_t scale, int64_t base, int64_t n, label_text *label)
{
    EM_SCOPED int64_t *number = NULL;
    em_status status = em_allocate(n, sizeof *number, &number);

    for (int64_t i = 0; !status && i < n; i++)
        number[i] = i;
    if (!status && scale >= 0 && em_foreign_is_number(scale))
        H5Dread(scale, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, number);
    for (int64_t i = 0; !status && i < n; i++)
        snprintf(label[i], sizeof label[i], "%lld",
                 (long long)((uint64_t)number[i] + (uint64_t)base));
    return status;
}

/* Labels of `width` bytes: texts of that length, or rows of so many characters. Bytes that do not
 * fit into a label are ignored, except the rest of a character. */
static em_status fixed_labels(em_foreign *file, hid_t scale, hid_t type, int64_t n, size_t width,
                              label_text *label)
{
    char one[EM_LABEL_BYTES + 4] = "";
    const size_t used = width < sizeof one ? width : sizeof one - 1;
    EM_SCOPED char *text = NULL;
    em_status status = em_foreign_claim_text(file, (double)n * (double)width);

    status = status ? status : em_allocate(n, width, &text);
    if (!status)
        status = em_h5_check_read(H5Dread(scale, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text), scale,
                                  "cannot read the labels");
    for (int64_t i = 0; !status && i < n; i++) {
        memcpy(one, text + (size_t)i * width, used);
        em_text_escape(one, label[i], sizeof label[i]);
    }
    return status;
}

/* Claims memory for texts that HDF5 reads; all of them may refer to one text in the file. */
static void *take_text(size_t bytes, void *file)
{
    return em_foreign_claim_text(file, (double)bytes) ? NULL : malloc(bytes);
}

static void give_text(void *text, void *file)
{
    (void)file;
    free(text);
}

static em_status variable_labels(em_foreign *file, hid_t scale, hid_t type, hid_t space, int64_t n,
                                 label_text *label)
{
    EM_SCOPED_ID hid_t memory = H5Tcopy(H5T_C_S1), transfer = H5Pcreate(H5P_DATASET_XFER);
    EM_SCOPED char **text = NULL;
    em_status status = em_allocate(n, sizeof *text, &text);

    H5Tset_size(memory, H5T_VARIABLE);
    H5Tset_cset(memory, H5Tget_cset(type));
    H5Pset_vlen_mem_manager(transfer, take_text, file, give_text, file);
    em_h5_crash_handler_begin(file->path);
    if (!status)
        status = em_h5_check_read(H5Dread(scale, memory, H5S_ALL, H5S_ALL, transfer, text), scale,
                                  "cannot read the labels");
    em_h5_crash_handler_end();
    for (int64_t i = 0; !status && i < n; i++)
        em_text_escape(text[i] ? text[i] : "", label[i], sizeof label[i]);
    if (text)
        H5Dvlen_reclaim(memory, space, transfer, text);
    return status;
}

/* Reads the coordinate as text; uses numbers if there is none of that length. */
static em_status scale_labels(em_foreign *file, hid_t scale, int64_t base, int64_t n,
                              label_text *label)
{
    hsize_t extent[H5S_MAX_RANK] = {0};
    EM_SCOPED_ID hid_t type = H5Dget_type(scale), space = H5Dget_space(scale);
    const int rank = H5Sget_simple_extent_dims(space, extent, NULL);
    const bool is_text = H5Tget_class(type) == H5T_STRING;
    em_status status;

    if (rank < 1 || rank > 2 || extent[0] != (hsize_t)n)
        status = number_labels(H5I_INVALID_HID, base, n, label);
    else if (rank == 2 && is_text && H5Tget_size(type) == 1)
        status = fixed_labels(file, scale, type, n, (size_t)extent[1], label);
    else if (rank == 2 || !is_text)
        status = number_labels(rank == 1 ? scale : H5I_INVALID_HID, base, n, label);
    else if (H5Tis_variable_str(type) > 0)
        status = variable_labels(file, scale, type, space, n, label);
    else
        status = fixed_labels(file, scale, type, n, H5Tget_size(type), label);
    return status;
}

em_status em_labels_of(em_foreign *file, hid_t scale, int64_t base, int64_t n, char ***out)
{
    EM_SCOPED label_text *text = NULL;
    em_status status = em_allocate(n, sizeof *text, &text);

    status = status ? status : em_allocate(n, sizeof **out, out);
    if (!status && n > 0)
        status = scale_labels(file, scale, base, n, text);
    for (int64_t i = 0; !status && i < n; i++)
        status = em_copy_text(text[i], &(*out)[i]);
    return status;
}

/* ---------------------------------------------------------------- names of elements */

em_status em_label_axes(em_foreign *file, hid_t dataset, em_reader_variable *variable)
{
    em_status status = em_allocate(1, sizeof *variable->element, &variable->element);

    for (int i = 0; !status && variable->size > 0 && i < variable->n_axes; i++) {
        EM_SCOPED_ID hid_t scale = H5I_INVALID_HID;
        status = em_scale_of(file, dataset, (unsigned)i + 2, &scale);
        if (!status && scale >= 0)
            status = em_labels_of(file, scale, variable->index_base, variable->shape[i],
                                  &variable->axis_label[i]);
    }
    return status;
}

void em_label_release(em_reader_variable *variable)
{
    if (variable->element)
        em_release_texts(variable->size, variable->element);
    em_release(&variable->element);
    for (int i = 0; i < variable->n_axes; i++)
        em_release_texts(variable->shape[i], &variable->axis_label[i]);
}

/* Label `at` of axis i. If the axis has no labels, it is the number, written to `number`. */
static const char *axis_text(const em_reader_variable *variable, int i, int64_t at, char number[24])
{
    if (variable->axis_label[i])
        return variable->axis_label[i][at];
    snprintf(number, 24, "%lld", (long long)(at + variable->index_base));
    return number;
}

int64_t em_label_difference(const em_reader_variable *one, const em_reader_variable *other)
{
    char number[2][24];
    int64_t stride = one->size, first = one->size;

    for (int i = 0; i < one->n_axes && one->size > 0; i++) {
        stride /= one->shape[i];
        for (int64_t at = 0; at < one->shape[i] && at * stride < first; at++)
            if (strcmp(axis_text(one, i, at, number[0]), axis_text(other, i, at, number[1])) != 0)
                first = at * stride;
    }
    return first < one->size ? first : -1;
}

const char *em_reader_label(const em_reader_variable *variable, int64_t k)
{
    char text[(MOST_AXES + 1) * EM_LABEL_BYTES], number[24];
    int64_t stride = variable->size;

    if (!*variable->element &&
        em_allocate(variable->size, sizeof **variable->element, variable->element))
        return variable->name;
    if ((*variable->element)[k])
        return (*variable->element)[k];
    snprintf(text, sizeof text, "%s", variable->name);
    for (int i = 0; i < variable->n_axes; i++) {
        stride /= variable->shape[i];
        em_append(sizeof text, text, "%s%s", i ? "," : "[",
                  axis_text(variable, i, k / stride % variable->shape[i], number));
    }
    em_append(sizeof text, text, "%s", variable->n_axes > 0 ? "]" : "");
    char **name = *variable->element + k;
    return em_copy_text(text, name) ? variable->name : *name;
}
