/* What a file has besides draws: attributes, arrays and their labels. */
#include "base/memory.h"
#include "base/text.h"
#include "io/draws/labels.h"
#include "io/draws/reader_file.h"

#include <hdf5_hl.h>
#include <stdio.h>
#include <string.h>

/* The root attribute, where it is one value of this class, and its type. */
static hid_t open_attribute(const em_reader *reader, const char *name, H5T_class_t class,
                            hid_t *type)
{
    hid_t attribute = H5I_INVALID_HID, space;
    hssize_t count;

    *type = H5I_INVALID_HID;
    if (H5Aexists(reader->file.file, name) > 0)
        attribute = H5Aopen(reader->file.file, name, H5P_DEFAULT);
    if (attribute < 0)
        return attribute;
    *type = H5Aget_type(attribute);
    space = H5Aget_space(attribute);
    count = H5Sget_simple_extent_npoints(space);
    em_h5_close(&space);
    if (count != 1 || H5Tget_class(*type) != class)
        em_h5_close(&attribute);
    return attribute;
}

bool em_reader_text(em_reader *reader, const char *name, char **text)
{
    bool found = false;
    hid_t type, attribute = open_attribute(reader, name, H5T_STRING, &type);

    *text = NULL;
    if (attribute >= 0 && H5Tis_variable_str(type) == 0 &&
        em_allocate((int64_t)H5Tget_size(type) + 1, 1, text) == EM_OK)
        found = H5Aread(attribute, type, *text) >= 0;
    if (!found)
        em_release(text);
    em_h5_close(&type);
    em_h5_close(&attribute);
    return found;
}

static bool read_number(em_reader *reader, const char *name, H5T_class_t class, hid_t memory,
                        void *value)
{
    hid_t type, attribute = open_attribute(reader, name, class, &type);
    const bool found = attribute >= 0 && H5Aread(attribute, memory, value) >= 0;

    em_h5_close(&type);
    em_h5_close(&attribute);
    return found;
}

bool em_reader_int(em_reader *reader, const char *name, int64_t *value)
{
    return read_number(reader, name, H5T_INTEGER, H5T_NATIVE_INT64, value);
}

bool em_reader_real(em_reader *reader, const char *name, double *value)
{
    return read_number(reader, name, H5T_FLOAT, H5T_NATIVE_DOUBLE, value);
}

bool em_reader_has(em_reader *reader, const char *group, const char *name)
{
    char path[512];
    hid_t object = H5I_INVALID_HID;
    bool has;

    snprintf(path, sizeof path, "%s/%s", group, name);
    has = em_foreign_object(&reader->file, path, &object) == EM_OK && object >= 0;
    em_h5_close(&object);
    return has;
}

/* A dataset of numbers of an open file. */
static em_status read_array(em_foreign *file, const char *name, hid_t *id, int64_t *count,
                            double **value)
{
    em_status status = em_foreign_object(file, name, id);

    if (!status && !em_foreign_is_number(*id))
        status = em_fail(EM_EDATA, "%s: found no numbers called %s, expected a file of emass",
                         file->path, name);
    if (!status)
        status = em_foreign_claim(file, *id, em_foreign_count(*id), 1);
    if (status)
        return status;
    *count = (int64_t)em_foreign_count(*id);
    status = em_allocate(*count, sizeof **value, value);
    return status ? status : em_reader_read(*id, H5S_ALL, H5S_ALL, *value);
}

em_status em_read_array(const char *path, const char *name, int64_t *count, double **value)
{
    hid_t id = H5I_INVALID_HID;
    em_foreign file;
    em_status status = em_foreign_open(path, &file);

    *value = NULL;
    if (!status)
        status = read_array(&file, name, &id, count, value);
    em_h5_close(&id);
    em_h5_close(&file.file);
    return status;
}

static em_status read_labels(em_foreign *file, const char *name, hid_t *id, int64_t *count,
                             char ***label)
{
    hsize_t extent[H5S_MAX_RANK] = {0};
    hid_t space = H5I_INVALID_HID;
    int rank = 0;
    em_status status = em_foreign_object(file, name, id);

    if (!status && *id >= 0 && H5Iget_type(*id) == H5I_DATASET) {
        space = H5Dget_space(*id);
        rank = H5Sget_simple_extent_dims(space, extent, NULL);
        em_h5_close(&space);
    }
    if (!status && (rank < 1 || rank > 2))
        status = em_fail(EM_EDATA, "%s: found no coordinate %s, expected a file of emass",
                         file->path, name);
    if (!status)
        status = em_foreign_claim(file, *id, (double)extent[0], (double)extent[0]);
    *count = status ? 0 : (int64_t)extent[0];
    return status ? status : em_labels_of(file, *id, *count, label);
}

em_status em_read_labels(const char *path, const char *name, int64_t *count, char ***label)
{
    hid_t id = H5I_INVALID_HID;
    em_foreign file;
    em_status status = em_foreign_open(path, &file);

    *label = NULL;
    if (!status)
        status = read_labels(&file, name, &id, count, label);
    for (int64_t i = 0; status && *label && i < *count; i++)
        em_release(&(*label)[i]);
    if (status)
        em_release(label);
    em_h5_close(&id);
    em_h5_close(&file.file);
    return status;
}
