#include "io/writer.h"

#include "base/fault.h"
#include "base/memory.h"
#include "io/attribute.h"
#include "io/dataset.h"
#include "io/dimension.h"
#include "par/mpi_grid.h"
#include "par/world.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_GROUPS = 32,
    MAX_CHUNK_BYTES = 1 << 24, /* of draws of one chain; HDF5's own limit is 4 GiB */
    DRAW_CHUNK = 1024,         /* of the draw coordinate */
    FILL_BYTES = 1 << 24       /* written at a time when filling */
};

typedef struct series {
    em_storage storage;
    int64_t size; /* numbers per draw */
    em_dataset dataset;
} series;

/* A group of draws, or of arrays (then n_series is 0). */
typedef struct group {
    char *name;
    hid_t id;
    em_dimensions dimensions;
    em_dimension *draw;
    int64_t n_series, n_draw, width;
    series *series;
} group;

struct em_writer {
    const em_grid *grid;
    char *path;
    hid_t file;
    int n_group;
    group group[MAX_GROUPS];
    int64_t bytes;
    int64_t buffer_bytes;
    void *buffer; /* one series of one call of em_writer_put_draws */
};

static int64_t element_count(const em_variable *variable)
{
    int64_t count = 1;

    for (int i = 0; i < variable->n_axes; i++)
        count *= variable->shape[i];
    return count;
}

/*
 * Rank 0 makes the file, or finds that it may be replaced: a plain open() says clearly what is
 * wrong with a path, and cannot race with another run that wants the same name. Local.
 */
static em_status reserve(const char *path, bool overwrite, bool *made)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);

    *made = descriptor >= 0;
    if (!*made && errno == EEXIST) {
        if (!overwrite)
            return em_fail(EM_EUSAGE, "%s exists: give --overwrite, --resume or another --output",
                           path);
        descriptor = open(path, O_WRONLY);
    }
    if (descriptor < 0)
        return em_fail(EM_EIO, "%s: cannot create the output: %s", path, strerror(errno));
    close(descriptor);
    return EM_OK;
}

static hid_t creation_list(hid_t class)
{
    hid_t list = H5Pcreate(class);

    H5Pset_obj_track_times(list, false);
    H5Pset_link_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    H5Pset_attr_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    return list;
}

/*
 * The format of HDF5 1.8 is the first that stores attributes larger than 64 KiB, and the last that
 * does not mark a file as open for writing: it can be read while it is written, or after a kill.
 */
static hid_t access_list(MPI_Comm world)
{
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    MPI_Info hints;

    /* "Data sieving" reads, patches and writes back what lies between the pieces of a rank: Open
     * MPI 4.1 loses other ranks' data in this (darshan-hpc/darshan#1064, open-mpi/ompi#12718). */
    setenv("OMPI_MCA_fbtl_posix_write_datasieving", "0", 0);
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "romio_ds_write", "disable");
    H5Pset_fapl_mpio(list, world, hints);
    MPI_Info_free(&hints);
    H5Pset_libver_bounds(list, H5F_LIBVER_V18, H5F_LIBVER_V18);
    H5Pset_coll_metadata_write(list, true);
    return list;
}

static em_status open_file(em_writer *writer)
{
    hid_t creation = creation_list(H5P_FILE_CREATE);
    hid_t access = access_list(em_grid_world(writer->grid));
    char reason[512];
    em_status status = EM_OK;

    writer->file = H5Fcreate(writer->path, H5F_ACC_TRUNC, creation, access);
    if (writer->file < 0) {
        em_h5_message(reason, sizeof reason);
        status = em_fail(EM_EIO, "%s: cannot create the output: %s", writer->path, reason);
    }
    em_h5_close(&creation);
    em_h5_close(&access);
    return em_agree(status);
}

static void close_group(group *closed)
{
    for (int64_t i = 0; i < closed->n_series; i++)
        em_dataset_close(&closed->series[i].dataset);
    em_dimensions_close(&closed->dimensions);
    em_h5_close(&closed->id);
    em_release(&closed->series);
    em_release(&closed->name);
}

static em_status destroy(em_writer **out)
{
    em_writer *writer = *out;
    em_status status = EM_OK;
    char reason[512];

    if (!writer)
        return EM_OK;
    for (int i = 0; i < writer->n_group; i++)
        close_group(&writer->group[i]);
    if (em_h5_close(&writer->file) < 0) {
        em_h5_message(reason, sizeof reason);
        status = em_fail(EM_EIO, "%s: cannot close: %s", writer->path, reason);
    }
    em_release(&writer->buffer);
    em_release(&writer->path);
    em_release(out);
    return status;
}

em_status em_writer_create(const em_grid *grid, const char *path, bool overwrite, em_writer **out)
{
    em_writer *writer = NULL;
    bool made = false;
    em_status status = em_allocate(1, sizeof *writer, &writer);

    em_h5_quiet();
    *out = NULL;
    if (!status) {
        writer->grid = grid;
        status = em_copy_text(path, &writer->path);
    }
    if (!status && em_world_rank() == 0)
        status = reserve(path, overwrite, &made);
    if (!status && em_fault("hdf5-create"))
        status = em_fail(EM_EIO, "%s: cannot create the output: injected fault", path);
    status = em_agree(status);
    if (!status)
        status = open_file(writer);
    if (!status)
        status = em_writer_put_int(writer, "complete", 0);
    if (status) {
        destroy(&writer);
        if (made)
            unlink(path);
    }
    *out = writer;
    return status;
}

em_status em_writer_flush(em_writer *writer)
{
    return em_agree(
        em_h5_check(H5Fflush(writer->file, H5F_SCOPE_LOCAL), writer->file, "cannot flush"));
}

/* The group of this name, made if it is not there yet. Collective. */
static em_status get_group(em_writer *writer, const char *name, group **out)
{
    group *made = &writer->group[writer->n_group];
    hid_t list;
    em_status status;

    for (int i = 0; i < writer->n_group; i++)
        if (strcmp(writer->group[i].name, name) == 0) {
            *out = &writer->group[i];
            return EM_OK;
        }
    if (writer->n_group == MAX_GROUPS)
        return em_fail(EM_EINTERNAL, "%s: more than %d groups", writer->path, MAX_GROUPS);
    writer->n_group++;
    status = em_agree(em_copy_text(name, &made->name));
    if (status)
        return status;
    list = creation_list(H5P_GROUP_CREATE);
    made->id = H5Gcreate2(writer->file, name, H5P_DEFAULT, list, H5P_DEFAULT);
    status = em_agree(em_h5_check(made->id, writer->file, "cannot create group %s", name));
    em_h5_close(&list);
    made->dimensions.group = made->id;
    *out = made;
    return status;
}

/* Axis i of a variable: its dimension, by the name given or the default one. Collective. */
static em_status get_axis(group *owner, const em_variable *variable, int i, em_dimension **out)
{
    char name[512];

    if (variable->axis[i])
        snprintf(name, sizeof name, "%s", variable->axis[i]);
    else
        snprintf(name, sizeof name, "%s_dim_%d", variable->name, i);
    return em_dimension_get(&owner->dimensions, name, variable->shape[i], 0, variable->label[i],
                            out);
}

static em_status get_axes(group *owner, const em_variable *variable, em_dimension **axis)
{
    em_status status = EM_OK;

    for (int i = 0; i < variable->n_axes && !status; i++)
        status = get_axis(owner, variable, i, &axis[i]);
    return status;
}

/* Creates the dataset of a variable whose extents are set. Collective. */
static em_status create_dataset(group *owner, const em_variable *variable, em_storage storage,
                                em_dataset *dataset, em_dimension *const *axis)
{
    em_status status;

    dataset->type = em_dataset_type(storage);
    status = em_dataset_create(owner->id, variable->name, dataset);
    if (status)
        return status;
    status = em_dataset_mark(dataset, storage);
    if (!status)
        status = em_dimension_attach(&owner->dimensions, variable->name, dataset, axis);
    return em_agree(status);
}

static int64_t draws_per_chunk(int64_t wanted, int64_t draw_bytes)
{
    const int64_t most = draw_bytes > 0 ? MAX_CHUNK_BYTES / draw_bytes : wanted;
    const int64_t chosen = wanted < most ? wanted : most;

    return chosen > 1 ? chosen : 1;
}

static em_status add_series(em_writer *writer, group *owner, em_dimension *chain,
                            const em_series *wanted, int64_t n_chunk_draw, series *made)
{
    const em_variable *variable = &wanted->variable;
    em_dataset *dataset = &made->dataset;
    em_dimension *axis[EM_DATASET_AXES] = {chain, owner->draw};
    em_status status = get_axes(owner, variable, axis + 2);

    if (status)
        return status;
    made->storage = wanted->storage;
    made->size = element_count(variable);
    dataset->n_axes = 2 + variable->n_axes;
    dataset->extent[EM_CHAIN_AXIS] = (hsize_t)em_grid_n_chain(writer->grid);
    dataset->extent[EM_DRAW_AXIS] = (hsize_t)owner->n_draw;
    dataset->chunk[EM_CHAIN_AXIS] = 1; /* so that a chunk belongs to one rank */
    dataset->chunk[EM_DRAW_AXIS] = (hsize_t)draws_per_chunk(
        n_chunk_draw, made->size * (int64_t)H5Tget_size(em_dataset_type(made->storage)));
    for (int i = 0; i < variable->n_axes; i++) {
        dataset->extent[2 + i] = (hsize_t)variable->shape[i];
        dataset->chunk[2 + i] = variable->shape[i] > 0 ? (hsize_t)variable->shape[i] : 1;
    }
    return create_dataset(owner, variable, made->storage, dataset, axis);
}

/* Makes room for `n_row` draws of the largest series. Local. */
static em_status reserve_buffer(em_writer *writer, const group *source, int64_t n_row)
{
    int64_t largest = 0;
    em_status status;

    for (int64_t i = 0; i < source->n_series; i++)
        largest = source->series[i].size > largest ? source->series[i].size : largest;
    if (n_row * largest * (int64_t)sizeof(double) <= writer->buffer_bytes)
        return EM_OK;
    em_release(&writer->buffer);
    writer->buffer_bytes = 0;
    status = em_allocate(n_row * largest, sizeof(double), &writer->buffer);
    if (!status)
        writer->buffer_bytes = n_row * largest * (int64_t)sizeof(double);
    return status;
}

/* One series out of rows that hold all of them; where it is all of them, the rows themselves. */
static const void *pack(em_writer *writer, const group *source, const series *packed, int64_t n_row,
                        const double *value)
{
    const size_t bytes = (size_t)packed->size * H5Tget_size(packed->dataset.type);
    char *next = writer->buffer;

    if (packed->storage == EM_STORE_REAL && packed->size == source->width)
        return value;
    for (int64_t row = 0; row < n_row; row++, next += bytes, value += source->width)
        em_dataset_convert(packed->storage, packed->size, value, next);
    return writer->buffer;
}

static em_status put_series(em_writer *writer, const series *put, int64_t first, int64_t n,
                            const void *value)
{
    const bool writes = em_grid_shard(writer->grid) == 0;
    const hsize_t start[EM_DATASET_AXES] = {(hsize_t)em_grid_first_chain(writer->grid),
                                            (hsize_t)first};
    hsize_t count[EM_DATASET_AXES];
    char what[64];

    memcpy(count, put->dataset.extent, sizeof count);
    count[EM_CHAIN_AXIS] = (hsize_t)em_grid_n_local_chain(writer->grid);
    count[EM_DRAW_AXIS] = (hsize_t)n;
    snprintf(what, sizeof what, "draws %lld..%lld", (long long)first, (long long)(first + n - 1));
    return em_dataset_write(&put->dataset, (em_slab){start, writes ? count : NULL}, value, what);
}

/* Draws per transfer when filling, the same on all ranks. */
static int64_t fill_block(const em_writer *writer, const series *filled)
{
    const int64_t n_group = em_grid_n_group(writer->grid);
    const int64_t most_chains = (em_grid_n_chain(writer->grid) + n_group - 1) / n_group;
    const int64_t row_bytes = most_chains * filled->size * (int64_t)sizeof(double);
    const int64_t block = row_bytes > 0 ? FILL_BYTES / row_bytes : 1;

    return block > 1 ? block : 1;
}

/* Writes NaN (no number, false) into draws first .. end of one series. Collective. */
static em_status fill_series(em_writer *writer, const series *filled, int64_t first, int64_t end)
{
    const int64_t block = fill_block(writer, filled);
    const int64_t n = em_grid_n_local_chain(writer->grid) * block * filled->size;
    const double nan = NAN;
    char *value, *next;
    em_status failed, status = em_agree(em_allocate(n, sizeof(double), &value));

    if (status)
        return status;
    next = value;
    for (int64_t i = 0; i < n; i++, next += H5Tget_size(filled->dataset.type))
        em_dataset_convert(filled->storage, 1, &nan, next);
    for (; first < end; first += block) {
        failed =
            put_series(writer, filled, first, block < end - first ? block : end - first, value);
        status = status ? status : failed;
    }
    em_release(&value);
    return em_agree(status);
}

/*
 * The draws to come are NaN until they are written: a run that is killed leaves no zeros that look
 * like draws, and a full disk is noticed before sampling. The flush puts all metadata into the file
 * and extends it to its full length: what MPI leaves out between two pieces it writes is then read
 * as zeros everywhere. Collective.
 */
static em_status fill_group(em_writer *writer, const group *filled, int64_t first)
{
    em_status status = em_writer_flush(writer);

    for (int64_t i = 0; i < filled->n_series && !status; i++)
        status = fill_series(writer, &filled->series[i], first, filled->n_draw);
    return status;
}

em_status em_writer_add_draws(em_writer *writer, const char *name, int64_t n_series,
                              const em_series *wanted, int64_t n_draw, int64_t n_chunk_draw,
                              int *handle)
{
    em_dimension *chain = NULL;
    group *made = NULL;
    em_status status = get_group(writer, name, &made);

    if (!status)
        status = em_agree(em_allocate(n_series, sizeof *made->series, &made->series));
    if (status)
        return status;
    *handle = (int)(made - writer->group);
    made->n_draw = n_draw;
    status = em_dimension_get(&made->dimensions, "chain", em_grid_n_chain(writer->grid), 0, NULL,
                              &chain);
    if (!status)
        status = em_dimension_get(&made->dimensions, "draw", n_draw, DRAW_CHUNK, NULL, &made->draw);
    for (; made->n_series < n_series && !status; made->n_series++) {
        series *added = &made->series[made->n_series];
        status = add_series(writer, made, chain, &wanted[made->n_series], n_chunk_draw, added);
        made->width += added->size;
    }
    if (!status)
        status = em_agree(em_dimensions_finish(&made->dimensions));
    return status ? status : fill_group(writer, made, 0);
}

static em_status resize(group *resized, int64_t n_draw)
{
    em_status status = em_dimension_resize(resized->draw, n_draw);

    for (int64_t i = 0; i < resized->n_series && !status; i++)
        status = em_agree(em_dataset_resize(&resized->series[i].dataset, n_draw));
    resized->n_draw = n_draw;
    return status;
}

/* Makes room for `n_draw` draws, and as many again: growing changes the metadata of the file, and a
 * run that is killed in that moment may lose it. Collective. */
static em_status grow(em_writer *writer, group *grown, int64_t n_draw)
{
    const int64_t old = grown->n_draw;
    em_status status = resize(grown, n_draw > 2 * old ? n_draw : 2 * old);

    return status ? status : fill_group(writer, grown, old);
}

/* All series, one collective transfer each. A rank that fails goes on taking part. */
static em_status put_all_series(em_writer *writer, const group *target, int64_t first, int64_t n,
                                const double *value)
{
    const int64_t n_row = em_grid_n_local_chain(writer->grid) * n;
    em_status status = EM_OK, failed;

    for (int64_t i = 0; i < target->n_series; i++) {
        const series *put = &target->series[i];
        const void *packed = pack(writer, target, put, n_row, value);

        failed = put_series(writer, put, first, n, packed);
        status = status ? status : failed;
        value += put->size;
        writer->bytes +=
            em_grid_n_chain(writer->grid) * n * put->size * (int64_t)H5Tget_size(put->dataset.type);
    }
    return em_agree(status);
}

em_status em_writer_put_draws(em_writer *writer, int handle, int64_t first, int64_t n,
                              const double *value)
{
    group *target = &writer->group[handle];
    em_status status = reserve_buffer(writer, target, em_grid_n_local_chain(writer->grid) * n);

    if (!status && em_fault("hdf5-write"))
        status = em_h5_check(-1, target->id, "cannot write draws %lld..%lld: injected fault",
                             (long long)first, (long long)(first + n - 1));
    status = em_agree(status);
    if (!status && first + n > target->n_draw)
        status = grow(writer, target, first + n);
    return status ? status : put_all_series(writer, target, first, n, value);
}

em_status em_writer_truncate(em_writer *writer, int handle, int64_t n_draw)
{
    return resize(&writer->group[handle], n_draw);
}

static em_status put_values(const em_dataset *dataset, em_storage storage, int64_t n,
                            const double *value)
{
    void *converted;
    em_status status = em_agree(em_allocate(n, H5Tget_size(dataset->type), &converted));

    if (!status) {
        em_dataset_convert(storage, n, value, converted);
        status = em_agree(em_dataset_write_all(dataset, converted));
    }
    em_release(&converted);
    return status;
}

em_status em_writer_put_array(em_writer *writer, const char *name, const em_variable *variable,
                              em_storage storage, const double *value)
{
    em_dataset dataset = {.n_axes = variable->n_axes};
    em_dimension *axis[EM_DATASET_AXES];
    group *owner = NULL;
    em_status status = get_group(writer, name, &owner);

    for (int i = 0; i < variable->n_axes; i++)
        dataset.extent[i] = (hsize_t)variable->shape[i];
    if (!status)
        status = get_axes(owner, variable, axis);
    if (!status)
        status = create_dataset(owner, variable, storage, &dataset, axis);
    if (!status)
        status = em_agree(em_dimensions_finish(&owner->dimensions));
    if (!status)
        status = put_values(&dataset, storage, element_count(variable), value);
    em_dataset_close(&dataset);
    return status;
}

em_status em_writer_put_text(em_writer *writer, const char *name, const char *text)
{
    return em_agree(em_attribute_write_text(writer->file, name, text));
}

em_status em_writer_put_int(em_writer *writer, const char *name, int64_t value)
{
    return em_agree(em_attribute_write_int(writer->file, name, value));
}

em_status em_writer_put_real(em_writer *writer, const char *name, double value)
{
    return em_agree(em_attribute_write_real(writer->file, name, value));
}

em_status em_writer_close(em_writer **out, bool complete)
{
    em_writer *writer = *out;
    em_status status, closed;

    if (!writer)
        return EM_OK;
    status = em_writer_flush(writer); /* nothing is called complete before it is in the file */
    if (!status && em_fault("hdf5-close"))
        status = em_fail(EM_EIO, "%s: cannot close: injected fault", writer->path);
    status = em_agree(status);
    if (!status && complete)
        status = em_writer_put_int(writer, "complete", 1);
    closed = em_agree(destroy(out));
    return status ? status : closed;
}

int64_t em_writer_bytes(const em_writer *writer)
{
    return writer->bytes;
}
