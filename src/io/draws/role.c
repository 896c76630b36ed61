#include "io/draws/role.h"

#include "io/hdf5/attribute.h"

#include <stdio.h>
#include <string.h>

enum { MOST_BYTES = 64, N_ROLE = EM_GENERATED_QUANTITY + 1 };

static const char *const names[N_ROLE] = {
    [EM_PARAMETER] = "parameter",
    [EM_TRANSFORMED_PARAMETER] = "transformed parameter",
    [EM_GENERATED_QUANTITY] = "generated quantity",
};

em_status em_role_write(hid_t dataset, const em_variable *variable)
{
    em_status status = EM_OK, numbered = EM_OK;

    if (variable->role != EM_PARAMETER)
        status = em_attribute_write_text(dataset, "role", names[variable->role]);
    if (variable->from_one)
        numbered = em_attribute_write_int(dataset, "index_base", 1);
    return status ? status : numbered;
}

/* The attribute, where it is one value of that class; closed by em_h5_close. */
static hid_t open_one(hid_t dataset, const char *name, H5T_class_t class, hid_t *type)
{
    hid_t id = H5Aexists(dataset, name) > 0 ? H5Aopen(dataset, name, H5P_DEFAULT) : H5I_INVALID_HID;
    hid_t space = id >= 0 ? H5Aget_space(id) : H5I_INVALID_HID;

    *type = id >= 0 ? H5Aget_type(id) : H5I_INVALID_HID;
    if (id >= 0 && (H5Tget_class(*type) != class || H5Sget_simple_extent_npoints(space) != 1))
        em_h5_close(&id);
    em_h5_close(&space);
    return id;
}

/* The text, cut to its room; "" where there is none. */
static void read_text(hid_t dataset, const char *name, size_t bytes, char *text)
{
    hid_t type, id = open_one(dataset, name, H5T_STRING, &type);
    char fixed[MOST_BYTES + 1] = "", *variable = NULL;

    if (id >= 0 && H5Tis_variable_str(type) > 0 && H5Aread(id, type, &variable) >= 0 && variable)
        snprintf(text, bytes, "%s", variable);
    else if (id >= 0 && H5Tis_variable_str(type) == 0 && H5Tget_size(type) <= MOST_BYTES &&
             H5Aread(id, type, fixed) >= 0)
        snprintf(text, bytes, "%s", fixed);
    H5free_memory(variable);
    em_h5_close(&id);
    em_h5_close(&type);
}

void em_role_read(hid_t dataset, em_role *role, int64_t *index_base)
{
    char text[MOST_BYTES + 1] = "";
    hid_t type, id = open_one(dataset, "index_base", H5T_INTEGER, &type);

    *role = EM_PARAMETER;
    *index_base = 0;
    read_text(dataset, "role", sizeof text, text);
    for (int i = 0; i < N_ROLE; i++)
        *role = strcmp(text, names[i]) == 0 ? (em_role)i : *role;
    if (id >= 0 && (H5Aread(id, H5T_NATIVE_INT64, index_base) < 0 || *index_base != 1))
        *index_base = 0;
    em_h5_close(&id);
    em_h5_close(&type);
}
