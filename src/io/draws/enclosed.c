#include "io/draws/enclosed.h"

#include "base/file.h"
#include "base/memory.h"
#include "io/hdf5/foreign.h"
#include "io/hdf5/hdf5.h"
#include "par/world.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ROW: the bytes of a row. MOST_ROWS: the rows that are read or written at a time. */
enum { ROW = 1024, MOST_ROWS = 1024 };

static const char dataset_name[] = "bytes", length_name[] = "length";

/* ---------------------------------------------------------------- into an output */

static em_status measure(const char *path, int *descriptor, int64_t *length)
{
    const em_status status = em_file_open(path, O_RDONLY | O_NOFOLLOW, descriptor);

    *length = status ? 0 : (int64_t)lseek(*descriptor, 0, SEEK_END);
    return status == EM_EDATA ? em_fail(EM_EIO, "%s", em_error_text()) : status;
}

static em_status create(em_group *group, int64_t length, em_dataset *dataset)
{
    const int64_t n_row = (length + ROW - 1) / ROW;
    em_dimension *axis[2];
    em_status status = em_dimension_get(&group->dimensions, "row", n_row, 0, NULL, &axis[0]);

    *dataset = (em_dataset){.id = H5I_INVALID_HID,
                            .type = H5T_NATIVE_UINT8,
                            .n_axes = 2,
                            .extent = {(hsize_t)n_row, ROW}};
    if (!status)
        status = em_dimension_get(&group->dimensions, "column", ROW, 0, NULL, &axis[1]);
    status = status ? status : em_dataset_create(group->id, dataset_name, dataset);
    status = status ? status : em_agree(em_attribute_write_int(dataset->id, length_name, length));
    if (!status)
        status = em_agree(em_dimension_attach(&group->dimensions, dataset_name, dataset, axis));
    return status ? status : em_agree(em_dimensions_finish(&group->dimensions));
}

/* Writes rows that rank 0 reads. The other ranks take part in the transfers without rows.
 * Collective. */
static em_status write_rows(const em_dataset *dataset, const char *path, int descriptor,
                            int64_t length, char *rows)
{
    const bool writes = em_world_rank() == 0;
    em_status status = EM_OK;

    for (int64_t row = 0; !status && row * ROW < length; row += MOST_ROWS) {
        const int64_t left = length - row * ROW;
        const int64_t n = left < (int64_t)MOST_ROWS * ROW ? left : (int64_t)MOST_ROWS * ROW;
        const hsize_t start[2] = {(hsize_t)row, 0};
        const hsize_t count[2] = {(hsize_t)((n + ROW - 1) / ROW), ROW};
        if (writes) {
            memset(rows, 0, (size_t)MOST_ROWS * ROW);
            status = em_file_read_at(descriptor, path, (off_t)(row * ROW), rows, (size_t)n);
        }
        status = em_agree(status);
        if (!status)
            status = em_agree(em_dataset_write(
                dataset, writes ? (em_slab){start, count} : (em_slab){NULL, NULL}, rows, path));
    }
    return status;
}

em_status em_enclosed_put(em_group *group, const char *path)
{
    EM_SCOPED_BY(em_dataset_close) em_dataset dataset = {.id = H5I_INVALID_HID};
    EM_SCOPED_BY(em_file_close) int descriptor = -1;
    int64_t length = 0;
    EM_SCOPED char *rows = NULL;
    em_status status = em_allocate((int64_t)MOST_ROWS * ROW, 1, &rows);

    if (!status && em_world_rank() == 0)
        status = measure(path, &descriptor, &length);
    status = em_agree(status);
    em_broadcast(&length, sizeof length);
    status = status ? status : create(group, length, &dataset);
    return status ? status : write_rows(&dataset, path, descriptor, length, rows);
}

/* ---------------------------------------------------------------- out of an output */

/* Whether the dataset has the layout that em_enclosed_put gives it, with all bytes in the file. */
static bool is_enclosed(hid_t dataset, int64_t length)
{
    EM_SCOPED_ID hid_t space =
        em_foreign_is_number(dataset) ? H5Dget_space(dataset) : H5I_INVALID_HID;
    hsize_t extent[2] = {0, 0};
    bool is = space >= 0 && H5Sget_simple_extent_ndims(space) == 2;

    if (is)
        H5Sget_simple_extent_dims(space, extent, NULL);
    return is && length > 0 && extent[1] == ROW && extent[0] == ((hsize_t)length + ROW - 1) / ROW &&
           (hsize_t)length <= H5Dget_storage_size(dataset);
}

static em_status read_rows(hid_t dataset, int64_t row, int64_t n_row, char *rows)
{
    const hsize_t start[2] = {(hsize_t)row, 0}, count[2] = {(hsize_t)n_row, ROW};
    EM_SCOPED_ID hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(2, count, NULL);

    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    return em_h5_check_read(H5Dread(dataset, H5T_NATIVE_UINT8, memory, space, H5P_DEFAULT, rows),
                            dataset, dataset_name);
}

static em_status copy_rows(hid_t dataset, int64_t length, const char *to, int descriptor)
{
    EM_SCOPED char *rows = NULL;
    em_status status = em_allocate((int64_t)MOST_ROWS * ROW, 1, &rows);

    for (int64_t row = 0; !status && row * ROW < length; row += MOST_ROWS) {
        const int64_t left = length - row * ROW;
        const int64_t n = left < (int64_t)MOST_ROWS * ROW ? left : (int64_t)MOST_ROWS * ROW;
        status = read_rows(dataset, row, (n + ROW - 1) / ROW, rows);
        if (!status)
            status = em_file_write_at(descriptor, to, (off_t)(row * ROW), rows, (size_t)n);
    }
    if (!status && fsync(descriptor) != 0)
        status = em_fail(EM_EIO, "%s: cannot be written", to);
    return status;
}

static em_status take(const em_foreign *file, hid_t dataset, const char *group, const char *to)
{
    const int64_t length =
        H5Iget_type(dataset) == H5I_DATASET ? em_attribute_read_int(dataset, length_name, -1) : -1;
    EM_SCOPED_BY(em_file_close) int descriptor = -1;

    if (length < 0 || !is_enclosed(dataset, length) || (double)length > file->bytes)
        return em_fail(EM_EDATA, "%s: %s/%s is damaged, or was not written by emass", file->path,
                       group, dataset_name);
    unlink(to);
    em_status status = em_file_open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, &descriptor);
    status = status ? status : copy_rows(dataset, length, to, descriptor);
    if (status)
        unlink(to);
    return status;
}

em_status em_enclosed_take(const char *from, const char *group, const char *to)
{
    EM_SCOPED_BY(em_foreign_close) em_foreign file;
    EM_SCOPED_ID hid_t dataset = H5I_INVALID_HID;
    char path[256];
    em_status status = em_foreign_open(from, &file);

    snprintf(path, sizeof path, "%s/%s", group, dataset_name);
    status = status ? status : em_foreign_object(&file, path, &dataset);
    return status ? status : take(&file, dataset, group, to);
}
