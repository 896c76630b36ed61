#include "io/draws/group.h"

#include "base/memory.h"
#include "io/draws/dataset.h"
#include "par/world.h"

#include <stdio.h>

hid_t em_group_creation_list(hid_t class)
{
    hid_t list = H5Pcreate(class);

    H5Pset_obj_track_times(list, false);
    H5Pset_link_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    H5Pset_attr_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    return list;
}

em_status em_group_create(hid_t file, const char *name, int32_t *n_dimension, em_group *group)
{
    em_status status = em_copy_text(name, &group->name);

    status = em_agree(status ? status : em_h5_fault("hdf5-create", file));
    if (status)
        return status;
    group->dimensions.count = n_dimension;
    EM_SCOPED_ID hid_t list = em_group_creation_list(H5P_GROUP_CREATE);
    group->id = group->dimensions.group = H5Gcreate2(file, name, H5P_DEFAULT, list, H5P_DEFAULT);
    return em_agree(em_h5_check(group->id, file, "cannot create group %s", name));
}

em_status em_group_axes(em_group *group, const em_variable *variable, em_dimension **axis)
{
    em_status status = EM_OK;
    char own[512];

    for (int i = 0; i < variable->n_axes && !status; i++) {
        snprintf(own, sizeof own, "%s_dim_%d", variable->name, i);
        status = em_dimension_get(&group->dimensions, variable->axis[i] ? variable->axis[i] : own,
                                  variable->shape[i], 0, variable->label[i], &axis[i]);
    }
    return status;
}

em_status em_group_add(em_group *group, const em_variable *variable, em_dataset *dataset,
                       em_dimension *const *axis)
{
    dataset->type = em_dataset_type(variable->storage);
    em_status status = em_dataset_create(group->id, variable->name, dataset);
    if (status)
        return status;
    status = em_dataset_mark(dataset, variable->storage);
    const em_status named = em_role_write(dataset->id, variable);
    em_status attached = em_dimension_attach(&group->dimensions, variable->name, dataset, axis);
    return em_agree(status ? status : named ? named : attached);
}

static em_status write_values(const em_dataset *dataset, const em_variable *variable,
                              const double *value)
{
    const int64_t n = em_variable_size(variable);
    EM_SCOPED void *converted = NULL;
    em_status status = em_agree(em_allocate(n, H5Tget_size(dataset->type), &converted));

    if (!status) {
        em_dataset_convert(variable->storage, n, value, converted);
        status = em_agree(em_dataset_write_all(dataset, converted));
    }
    return status;
}

em_status em_group_put(em_group *group, const em_variable *variable, const double *value)
{
    EM_SCOPED_BY(em_dataset_close) em_dataset dataset = {.n_axes = variable->n_axes};
    em_dimension *axis[EM_DATASET_AXES];
    em_status status = em_group_axes(group, variable, axis);

    for (int i = 0; i < variable->n_axes; i++)
        dataset.extent[i] = (hsize_t)variable->shape[i];
    status = status ? status : em_group_add(group, variable, &dataset, axis);
    status = status ? status : em_agree(em_dimensions_finish(&group->dimensions));
    return status ? status : write_values(&dataset, variable, value);
}

void em_group_close(em_group *group)
{
    em_dimensions_close(&group->dimensions);
    em_h5_close(&group->id);
    em_release(&group->name);
}
