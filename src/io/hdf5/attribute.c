#include "io/hdf5/attribute.h"

#include <string.h>

em_status em_attribute_write(hid_t object, const char *name, hid_t type, hid_t space,
                             const void *value)
{
    hid_t attribute = H5I_INVALID_HID;
    const htri_t exists = H5Aexists(object, name);
    em_status status = em_h5_check(exists, object, "cannot look for attribute '%s'", name);

    if (!status && exists)
        status =
            em_h5_check(H5Adelete(object, name), object, "cannot replace attribute '%s'", name);
    if (!status) {
        attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
        status = em_h5_check(attribute, object, "cannot create attribute '%s'", name);
    }
    if (!status)
        status = em_h5_check(H5Awrite(attribute, type, value), object,
                             "cannot write attribute '%s'", name);
    if (!status)
        status = em_h5_fault("hdf5-attribute", object);
    em_h5_close(&attribute);
    return status;
}

static em_status write_scalar(hid_t object, const char *name, hid_t type, const void *value)
{
    hid_t scalar = H5Screate(H5S_SCALAR);
    em_status status = em_attribute_write(object, name, type, scalar, value);

    em_h5_close(&scalar);
    return status;
}

em_status em_attribute_write_text(hid_t object, const char *name, const char *text)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    em_status status;

    H5Tset_size(type, strlen(text) + 1);
    H5Tset_cset(type, H5T_CSET_UTF8);
    status = write_scalar(object, name, type, text);
    em_h5_close(&type);
    return status;
}

em_status em_attribute_write_words(hid_t object, const char *name, int n, size_t size,
                                   const char *words)
{
    const hsize_t extent = (hsize_t)n;
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &extent, NULL);
    em_status status;

    H5Tset_size(type, size);
    H5Tset_cset(type, H5T_CSET_UTF8);
    status = em_attribute_write(object, name, type, space, words);
    em_h5_close(&space);
    em_h5_close(&type);
    return status;
}

em_status em_attribute_write_int(hid_t object, const char *name, int64_t value)
{
    return write_scalar(object, name, H5T_NATIVE_INT64, &value);
}

em_status em_attribute_write_real(hid_t object, const char *name, double value)
{
    return write_scalar(object, name, H5T_NATIVE_DOUBLE, &value);
}
