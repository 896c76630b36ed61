#include "io/hdf5/anndata.h"

#include "base/memory.h"

#include <string.h>

enum { LONGEST_INDEX = 128 };

bool em_anndata_extent(hid_t group, int64_t extent[2])
{
    if (H5Aexists(group, "shape") <= 0)
        return false;
    EM_SCOPED_ID hid_t id = H5Aopen(group, "shape", H5P_DEFAULT);
    EM_SCOPED_ID hid_t type = H5Aget_type(id);
    EM_SCOPED_ID hid_t space = H5Aget_space(id);
    const bool is = H5Tget_class(type) == H5T_INTEGER && H5Sget_simple_extent_npoints(space) == 2 &&
                    H5Aread(id, H5T_NATIVE_INT64, extent) >= 0;
    return is && extent[0] >= 0 && extent[1] >= 0 && extent[1] <= INT32_MAX;
}

bool em_anndata_is_by_columns(hid_t group)
{
    char kind[16];

    em_attribute_read_any_text(group, "encoding-type", sizeof kind, kind);
    return strcmp(kind, "csc_matrix") == 0;
}

em_status em_anndata_index(const em_foreign *file, const char *place, bool rows, char **path,
                           int64_t *length)
{
    const bool raw = strncmp(place + strspn(place, "/"), "raw/", 4) == 0;
    const char *axis = rows ? "obs" : raw ? "raw/var" : "var";
    char name[LONGEST_INDEX];
    EM_SCOPED_ID hid_t group = H5I_INVALID_HID, index = H5I_INVALID_HID;
    em_status status = em_foreign_object(file, axis, &group);

    *length = -1;
    *path = NULL;
    if (status)
        return status;
    em_attribute_read_any_text(group, "_index", sizeof name, name);
    if (*name == '\0' || strchr(name, '/'))
        memcpy(name, "_index", sizeof "_index");
    status = em_format_text(path, "%s/%s", axis, name);
    if (!status && H5Iget_type(group) == H5I_GROUP)
        status = em_foreign_member(file, group, name, &index);
    if (!status && H5Iget_type(index) == H5I_DATASET)
        *length = (int64_t)em_foreign_count(index);
    return status;
}
