/*
 * A two-dimensional numeric dataset of an HDF5 file as a table; one dimension is one column.
 *
 * This is the one file outside io/ that calls HDF5: a model reads its table in create, io/ stands
 * above the models, and includes point downward only. Plain serial reads; no MPI.
 */
#include "base/file.h"
#include "base/memory.h"
#include "data/readers.h"

#include <hdf5.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

static const hsize_t max_numbers = (hsize_t)1 << 40; /* 8 TB: the product cannot overflow */

/* Opens what `path` names; `colon` is where the dataset begins. */
static em_status open_dataset(const char *path, const char *colon, hid_t *dataset)
{
    char *file_path;
    hid_t file = H5I_INVALID_HID;
    em_status status = em_format_text(&file_path, "%.*s", (int)(colon - path), path);

    *dataset = H5I_INVALID_HID;
    if (!status)
        status = em_file_check(file_path);
    if (status) {
        em_release(&file_path);
        return status;
    }
    H5E_BEGIN_TRY
    { /* its messages go into ours, not to standard error */
        file = H5Fopen(file_path, H5F_ACC_RDONLY, H5P_DEFAULT);
        if (file >= 0) {
            *dataset = H5Dopen2(file, colon + 1, H5P_DEFAULT);
            H5Fclose(file); /* the dataset keeps it open */
        }
    }
    H5E_END_TRY;
    if (file < 0)
        status =
            em_fail(EM_EDATA, "%s: found no readable HDF5 file '%s', expected file.h5:/dataset",
                    path, file_path);
    else if (*dataset < 0)
        status = em_fail(EM_EDATA, "%s: found no dataset '%s', expected one in %s", path, colon + 1,
                         file_path);
    em_release(&file_path);
    return status;
}

static em_status get_shape(const char *path, hid_t dataset, hsize_t shape[2])
{
    hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
    H5T_class_t class = H5Tget_class(type);
    int rank = H5Sget_simple_extent_ndims(space);
    em_status status = EM_OK;

    shape[1] = 1;
    if ((class != H5T_FLOAT && class != H5T_INTEGER) || rank < 1 || rank > 2)
        status =
            em_fail(EM_EDATA, "%s: found %s of %d dimensions, expected numbers in 2", path,
                    class == H5T_FLOAT || class == H5T_INTEGER ? "numbers" : "no numbers", rank);
    else
        H5Sget_simple_extent_dims(space, shape, NULL);
    H5Tclose(type);
    H5Sclose(space);
    if (!status && (shape[0] == 0 || shape[1] == 0))
        status = em_fail(EM_EDATA, "%s: found an empty dataset, expected rows of numbers", path);
    else if (!status && shape[0] > max_numbers / shape[1])
        status = em_fail(EM_EDATA, "%s: found %llu x %llu numbers, expected fewer", path,
                         (unsigned long long)shape[0], (unsigned long long)shape[1]);
    else if (!status &&
             !em_is_believable((double)(shape[0] * shape[1]), (double)H5Dget_storage_size(dataset)))
        status = em_fail(EM_EDATA, "%s: found %llu x %llu numbers in %llu bytes, expected fewer",
                         path, (unsigned long long)shape[0], (unsigned long long)shape[1],
                         (unsigned long long)H5Dget_storage_size(dataset));
    return status;
}

static em_status read_values(const char *path, hid_t dataset, const hsize_t shape[2], double *value)
{
    herr_t result;

    H5E_BEGIN_TRY
    {
        result = H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value);
    }
    H5E_END_TRY;
    if (result < 0)
        return em_fail(EM_EDATA, "%s: found unreadable content, expected %llu x %llu numbers", path,
                       (unsigned long long)shape[0], (unsigned long long)shape[1]);
    for (hsize_t i = 0; i < shape[0] * shape[1]; i++)
        if (!isfinite(value[i]))
            return em_fail(EM_EDATA, "%s:%llu: found %g for column %llu, expected a finite number",
                           path, (unsigned long long)(i / shape[1] + 1), value[i],
                           (unsigned long long)(i % shape[1] + 1));
    return EM_OK;
}

static em_status append_rows(const hsize_t shape[2], const double *value, em_table *table)
{
    em_status status = EM_OK;

    for (hsize_t i = 0; !status && i < shape[0]; i++) {
        for (hsize_t j = 0; !status && j < shape[1]; j++)
            status = em_table_push(table, value[i * shape[1] + j]);
        if (!status)
            status = em_table_end_row(table, (int64_t)i + 1);
    }
    table->n_column = (int64_t)shape[1];
    table->hash = XXH64(value, (size_t)(shape[0] * shape[1]) * sizeof *value, 0);
    return status;
}

em_status em_read_hdf5(const char *path, const char *colon, em_table *table)
{
    hid_t dataset;
    hsize_t shape[2];
    double *value = NULL;
    em_status status = open_dataset(path, colon, &dataset);

    if (status)
        return status;
    status = get_shape(path, dataset, shape);
    if (!status)
        status = em_allocate((int64_t)(shape[0] * shape[1]), sizeof *value, &value);
    if (!status)
        status = read_values(path, dataset, shape, value);
    if (!status)
        status = append_rows(shape, value, table);
    em_release(&value);
    H5Dclose(dataset);
    return status;
}
