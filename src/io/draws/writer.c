#include "io/draws/writer.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/memory.h"
#include "io/draws/draw_group.h"
#include "io/draws/enclosed.h"
#include "io/draws/group.h"
#include "io/hdf5/hdf5.h"
#include "par/mpi_world.h"
#include "par/world.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { MAX_GROUPS = 32 };

struct em_writer {
    const em_grid *grid;
    char *path;
    hid_t file;
    int n_group;
    int32_t n_dimension;
    em_group group[MAX_GROUPS];
    em_draws *draws[MAX_GROUPS]; /* NULL: a group of arrays */
    int n_signature;
    const em_text_attribute *signature; /* borrowed: what every group is signed with */
};

/* Creates the file, or finds that it may be replaced. Rank 0 does this by open(), because its error
 * is clear and O_EXCL excludes a race with another run of the same output. Local. */
static em_status reserve(const char *path, bool overwrite, bool *made)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);

    *made = descriptor >= 0;
    if (!*made && errno == EEXIST) {
        if (!overwrite)
            return em_fail(EM_EUSAGE, "%s exists: give --overwrite, --resume or another --output",
                           path);
        return em_file_check(path);
    }
    if (descriptor < 0)
        return em_fail(EM_EIO, "%s: cannot create the output: %s", path, strerror(errno));
    close(descriptor);
    return EM_OK;
}

/* Selects the file format of HDF5 1.8. It is the first that stores attributes larger than 64 KiB,
 * and the last that does not mark a file as open for writing. So the file can be read while it is
 * written, and after a kill. */
static void set_format(hid_t access)
{
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
    em_h5_keep_metadata(access);
}

/* Fails with the error of a call with no file open, for which em_h5_check could not name the file.
 */
static em_status file_failure(const char *path, const char *what)
{
    char reason[512];

    em_h5_message(reason, sizeof reason);
    return em_fail(EM_EIO, "%s: cannot %s: %s", path, what, reason);
}

static em_status open_file(em_writer *writer)
{
    EM_SCOPED_ID hid_t creation = em_group_creation_list(H5P_FILE_CREATE);
    EM_SCOPED_ID hid_t access = em_h5_parallel_access(em_grid_world(writer->grid));
    em_status status = EM_OK;

    set_format(access);
    writer->file = H5Fcreate(writer->path, H5F_ACC_TRUNC, creation, access);
    if (writer->file < 0)
        status = file_failure(writer->path, "create the output");
    return em_agree(status ? status : em_h5_reserve_start(writer->path));
}

/* Closes all open objects of the file. Collective. */
static void close_objects(em_writer *writer)
{
    for (int i = 0; i < writer->n_group; i++) {
        if (writer->draws[i])
            em_draws_close(writer->draws[i]);
        em_group_close(&writer->group[i]);
    }
}

static void destroy(em_writer **out)
{
    em_writer *writer = *out;

    if (!writer)
        return;
    for (int i = 0; i < writer->n_group; i++)
        em_draws_destroy(&writer->draws[i]);
    em_release_all(&writer->path, out);
}

em_status em_writer_create(const em_grid *grid, const char *path, bool overwrite, em_writer **out)
{
    bool made = false;
    em_status status = em_allocate(1, sizeof **out, out);
    em_writer *writer = *out;

    em_h5_quiet();
    if (!status) {
        writer->grid = grid;
        status = em_copy_text(path, &writer->path);
    }
    if (!status && em_world_rank() == 0)
        status = reserve(path, overwrite, &made);
    status = status ? status : em_fault_file("hdf5-create", path);
    status = em_agree(status ? status : em_h5_reserve_start(path));
    status = status ? status : open_file(writer);
    status = status ? status : em_writer_put_int(writer, "complete", 0);
    if (status && made)
        unlink(path);
    if (status)
        em_writer_close(out, false);
    return status;
}

/* Writes all attributes. It goes on if one fails, because all ranks must make the same calls.
 * Collective. */
static em_status put_signature(const em_writer *writer, hid_t object)
{
    em_status status = EM_OK;

    for (int i = 0; i < writer->n_signature; i++) {
        const em_text_attribute *a = &writer->signature[i];
        const em_status one = em_attribute_write_text(object, a->name, a->text);
        status = status ? status : one;
    }
    return em_agree(status);
}

em_status em_writer_sign(em_writer *writer, int n, const em_text_attribute *text)
{
    writer->n_signature = n;
    writer->signature = text;
    return put_signature(writer, writer->file);
}

/* The index of the group of this name, which is created if it does not exist. Collective. */
static em_status get_group(em_writer *writer, const char *name, int *index)
{
    for (*index = 0; *index < writer->n_group; ++*index)
        if (strcmp(writer->group[*index].name, name) == 0)
            return EM_OK;
    if (writer->n_group == MAX_GROUPS)
        return em_fail(EM_EINTERNAL, "%s: more than %d groups", writer->path, MAX_GROUPS);
    em_group *group = &writer->group[writer->n_group++];
    const em_status status = em_group_create(writer->file, name, &writer->n_dimension, group);
    return status ? status : put_signature(writer, group->id);
}

em_status em_writer_add_draws(em_writer *writer, const char *name, int64_t n_series,
                              const em_variable *series, em_draw_space space, int *group)
{
    static const char sample_dims[2][8] = {"chain", "draw"};
    em_status status = get_group(writer, name, group);

    if (!status)
        status = em_agree(em_attribute_write_words(writer->group[*group].id, "sample_dims", 2,
                                                   sizeof *sample_dims, *sample_dims));
    return status ? status
                  : em_draws_create(writer->grid, &writer->group[*group], n_series, series, space,
                                    &writer->draws[*group]);
}

em_status em_writer_put_draws(em_writer *writer, int group, int64_t first, int64_t n,
                              const double *value)
{
    return em_draws_put(writer->draws[group], first, n, value);
}

em_status em_writer_put_chain(em_writer *writer, int group, int64_t chain, int64_t first, int64_t n,
                              const double *value)
{
    return em_draws_put_chain(writer->draws[group], chain, first, n, value);
}

void em_writer_truncate(em_writer *writer, int group, int64_t n_draw)
{
    em_draws_keep(writer->draws[group], n_draw);
}

em_status em_writer_put_array(em_writer *writer, const char *name, const em_variable *variable,
                              const double *value)
{
    int group;
    em_status status = get_group(writer, name, &group);

    return status ? status : em_group_put(&writer->group[group], variable, value);
}

em_status em_writer_put_record(em_writer *writer, const char *group, em_variable variable,
                               size_t n_column, const em_record_column *column, size_t size,
                               const void *record)
{
    em_status status = EM_OK;

    for (const em_record_column *c = column; !status && c < column + n_column; c++) {
        EM_SCOPED double *value = NULL;
        variable.name = c->name;
        variable.storage = c->storage;
        variable.n_axes = c->n > 1 ? 2 : 1;
        variable.shape[1] = c->n;
        status = em_agree(em_allocate(variable.shape[0] * c->n, sizeof *value, &value));
        for (int64_t i = 0; !status && i < variable.shape[0]; i++)
            memcpy(value + i * c->n, (const char *)record + (size_t)i * size + c->member,
                   (size_t)c->n * sizeof *value);
        status = status ? status : em_writer_put_array(writer, group, &variable, value);
    }
    return status;
}

em_status em_writer_enclose(em_writer *writer, const char *name, const char *path)
{
    int group;
    em_status status = get_group(writer, name, &group);

    return status ? status : em_enclosed_put(&writer->group[group], path);
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

em_status em_writer_flush(em_writer *writer)
{
    return em_h5_flush(writer->file);
}

/* Completes the file on one rank alone: truncates the draws and sets the attribute. Local. */
static em_status mark_complete(const em_writer *writer)
{
    EM_SCOPED_ID hid_t access = H5Pcreate(H5P_FILE_ACCESS);

    set_format(access);
    hid_t file = H5Fopen(writer->path, H5F_ACC_RDWR, access);
    em_status status = file < 0 ? file_failure(writer->path, "open again")
                                : em_fault_file("hdf5-open", writer->path);
    for (int i = 0; i < writer->n_group && !status; i++)
        if (writer->draws[i])
            status = em_draws_shrink(writer->draws[i], file);
    status = status ? status : em_attribute_write_int(file, "complete", 1);
    if (em_h5_close(&file) < 0 && !status)
        status = file_failure(writer->path, "close");
    return status;
}

static em_status complete_file(em_writer *writer)
{
    em_status status = EM_OK;

    close_objects(writer);
    if (em_h5_close(&writer->file) < 0)
        status = file_failure(writer->path, "close");
    status = em_agree(status ? status : em_fault_file("hdf5-close", writer->path));
    return em_agree(!status && em_world_rank() == 0 ? mark_complete(writer) : status);
}

em_status em_writer_close(em_writer **out, bool complete)
{
    em_status status = EM_OK;

    if (*out && complete)
        status = complete_file(*out);
    else if (*out) {
        close_objects(*out);
        em_h5_close(&(*out)->file);
    }
    destroy(out);
    return status;
}

void em_writer_discard(em_writer **out)
{
    if (*out && em_world_rank() == 0)
        unlink((*out)->path);
    em_writer_close(out, false);
}
