#include "io/draws/dataset.h"

#include "par/world.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

hid_t em_dataset_type(em_storage storage)
{
    return storage == EM_STORE_INT      ? H5T_NATIVE_INT64
           : storage == EM_STORE_BOOL   ? H5T_NATIVE_INT8
           : storage == EM_STORE_SINGLE ? H5T_NATIVE_FLOAT
                                        : H5T_NATIVE_DOUBLE;
}

/* Converts the numbers to the type of the dataset. HDF5 would convert too, but not with collective
 * transfers. */
void em_dataset_convert(em_storage storage, int64_t n, const double *value, void *out)
{
    int64_t *integer = out;
    int8_t *flag = out;
    float *single = out;

    switch (storage) {
    case EM_STORE_INT:
        for (int64_t i = 0; i < n; i++)
            integer[i] = fabs(value[i]) < 0x1p63 ? (int64_t)value[i] : INT64_MIN;
        break;
    case EM_STORE_BOOL:
        for (int64_t i = 0; i < n; i++)
            flag[i] = fabs(value[i]) > 0;
        break;
    case EM_STORE_SINGLE:
        for (int64_t i = 0; i < n; i++)
            single[i] = (float)value[i];
        break;
    default:
        memcpy(out, value, (size_t)n * sizeof *value);
    }
}

int64_t em_dataset_bytes(const em_dataset *dataset)
{
    enum { CHUNK_INDEX_BYTES = 128 };
    int64_t bytes = (int64_t)H5Tget_size(dataset->type), chunks = 1;

    for (int i = 0; i < dataset->n_axes; i++) {
        const hsize_t chunk = dataset->chunk[0] > 0 ? dataset->chunk[i] : 1;
        const hsize_t n = (dataset->extent[i] + chunk - 1) / chunk;

        bytes *= (int64_t)(n * chunk);
        chunks *= (int64_t)n;
    }
    return dataset->chunk[0] > 0 ? bytes + chunks * CHUNK_INDEX_BYTES : bytes;
}

static int unlimited_axis(const em_dataset *dataset)
{
    return dataset->n_axes == 1 ? 0 : EM_DRAW_AXIS;
}

static hid_t creation_list(const em_dataset *dataset)
{
    const double nan = NAN;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);

    H5Pset_obj_track_times(list, false);
    H5Pset_attr_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
    if (H5Tget_class(dataset->type) == H5T_FLOAT)
        H5Pset_fill_value(list, H5T_NATIVE_DOUBLE, &nan);
    if (dataset->chunk[0] > 0)
        H5Pset_chunk(list, dataset->n_axes, dataset->chunk);
    /* Files are filled by us, not by HDF5: up to 1.10.8 it passes chunk addresses to MPI out of
     * order, and what Open MPI then writes between them is arbitrary. */
    H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
    return list;
}

static hid_t data_space(const em_dataset *dataset)
{
    hsize_t limit[EM_DATASET_AXES];

    memcpy(limit, dataset->extent, sizeof limit);
    if (dataset->chunk[0] > 0)
        limit[unlimited_axis(dataset)] = H5S_UNLIMITED;
    return H5Screate_simple(dataset->n_axes, dataset->extent, limit); /* 0 axes: a scalar */
}

em_status em_dataset_create(hid_t group, const char *name, em_dataset *dataset)
{
    EM_SCOPED_ID hid_t list = creation_list(dataset), space = data_space(dataset);
    em_status status = em_h5_check(space, group, "cannot lay out %s", name);

    status = status ? status : em_h5_fault("hdf5-create", group);
    if (!status && dataset->chunk[0] == 0)
        status = em_h5_reserve(group, em_dataset_bytes(dataset));
    status = em_agree(status);
    if (!status) {
        dataset->id = H5Dcreate2(group, name, dataset->type, space, H5P_DEFAULT, list, H5P_DEFAULT);
        status = em_agree(em_h5_check(dataset->id, group, "cannot create %s", name));
    }
    return status;
}

em_status em_dataset_mark(const em_dataset *dataset, em_storage storage)
{
    const double nan = NAN;
    const float single_nan = NAN;
    const hsize_t one = 1;
    const bool single = storage == EM_STORE_SINGLE;

    /* No fill value for integers: readers would turn them into reals. */
    if (storage == EM_STORE_INT)
        return EM_OK;
    if (storage == EM_STORE_BOOL)
        return em_attribute_write_text(dataset->id, "dtype", "bool");
    /* An array of one, as netCDF writes it. */
    EM_SCOPED_ID hid_t space = H5Screate_simple(1, &one, NULL);
    return em_attribute_write(dataset->id, "_FillValue", em_dataset_type(storage), space,
                              single ? (const void *)&single_nan : &nan);
}

static bool is_empty(const em_dataset *dataset, em_slab slab)
{
    for (int i = 0; slab.count && i < dataset->n_axes; i++)
        if (slab.count[i] == 0)
            return true;
    return !slab.count;
}

em_status em_dataset_write(const em_dataset *dataset, em_slab slab, const void *value,
                           const char *what)
{
    EM_SCOPED_ID hid_t transfer = em_h5_collective_transfer(), file = H5Dget_space(dataset->id),
                       memory = H5I_INVALID_HID;

    if (!is_empty(dataset, slab)) {
        memory = H5Screate_simple(dataset->n_axes, slab.count, NULL);
        if (dataset->n_axes > 0)
            H5Sselect_hyperslab(file, H5S_SELECT_SET, slab.start, NULL, slab.count, NULL);
    } else {
        memory = H5Scopy(file);
        H5Sselect_none(memory);
        H5Sselect_none(file);
    }
    return em_h5_check(H5Dwrite(dataset->id, dataset->type, memory, file, transfer, value),
                       dataset->id, "cannot write %s", what);
}

em_status em_dataset_write_all(const em_dataset *dataset, const void *value)
{
    const hsize_t start[EM_DATASET_AXES] = {0};
    const em_slab all = {start, dataset->extent}, none = {NULL, NULL};

    const em_status status =
        em_dataset_write(dataset, em_world_rank() == 0 ? all : none, value, "values");

    return status ? status : em_h5_fault("hdf5-array", dataset->id);
}

em_status em_dataset_resize(em_dataset *dataset, int64_t n_draw)
{
    dataset->extent[unlimited_axis(dataset)] = (hsize_t)n_draw;
    const em_status status = em_h5_check(H5Dset_extent(dataset->id, dataset->extent), dataset->id,
                                         "cannot resize to %lld draws", (long long)n_draw);
    return status ? status : em_h5_fault("hdf5-resize", dataset->id);
}

void em_dataset_close(em_dataset *dataset)
{
    em_h5_close(&dataset->id);
}

enum { MOST_BYTES = 64, N_ROLE = EM_GENERATED_QUANTITY + 1 };

static const char *const names[N_ROLE] = {
    [EM_PARAMETER] = "parameter",
    [EM_TRANSFORMED_PARAMETER] = "transformed parameter",
    [EM_GENERATED_QUANTITY] = "generated quantity",
};

em_status em_role_write(hid_t dataset, const em_variable *variable)
{
    em_status status = EM_OK, numbered = EM_OK, watched = EM_OK;

    if (variable->role != EM_PARAMETER)
        status = em_attribute_write_text(dataset, "role", names[variable->role]);
    if (variable->from_one)
        numbered = em_attribute_write_int(dataset, "index_base", 1);
    if (variable->unwatched)
        watched = em_attribute_write_int(dataset, "watched", 0);
    status = status ? status : numbered;
    return status ? status : watched;
}

void em_role_read(hid_t dataset, em_role *role, int64_t *index_base, bool *unwatched)
{
    char text[MOST_BYTES + 1] = "";

    *role = EM_PARAMETER;
    *index_base = em_attribute_read_int(dataset, "index_base", 0) == 1;
    *unwatched = em_attribute_read_int(dataset, "watched", 1) == 0;
    em_attribute_read_any_text(dataset, "role", sizeof text, text);
    for (int i = 0; i < N_ROLE; i++)
        *role = strcmp(text, names[i]) == 0 ? (em_role)i : *role;
}
