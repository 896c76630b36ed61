#include "io/checkpoint/archive.h"

#include "base/fault.h"
#include "base/memory.h"
#include "io/checkpoint/checksum_trailer.h"
#include "io/hdf5/hdf5.h"
#include "par/mpi_world.h"
#include "par/world.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The last character is the version. It changes with what is saved, or how. */
static const em_checksum_trailer trailer = {{'E', 'M', 'A', 'S', 'S', 'C', 'K', 'E'},
                                            "a checkpoint"};

enum { MOST_TEXT = 1 << 24 };

struct em_archive {
    const em_grid *grid;
    char *path;
    hid_t file;
    bool saves;
    em_visitor visitor;
};

em_status em_archive_check(const char *path)
{
    uint64_t bytes;

    return em_checksum_trailer_check(&trailer, path, &bytes);
}

/* ---------------------------------------------------------------- arrays */

/* A rectangle of an array in the file, which this rank writes or reads. A rank without rows takes
 * part in the transfer all the same. */
typedef struct array_slab {
    em_number kind;
    int64_t rows, columns; /* of the array */
    int64_t first_row, n_row, first_column, n_column;
    void *x; /* [n_row][n_column] */
} array_slab;

typedef struct number_type {
    hid_t in_file, in_memory;
} number_type;

static number_type type_of(em_number kind)
{
    const number_type types[] = {[EM_NUMBER_DOUBLE] = {H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE},
                                 [EM_NUMBER_INT64] = {H5T_STD_I64LE, H5T_NATIVE_INT64},
                                 [EM_NUMBER_INT32] = {H5T_STD_I32LE, H5T_NATIVE_INT32},
                                 [EM_NUMBER_UINT16] = {H5T_STD_U16LE, H5T_NATIVE_UINT16},
                                 [EM_NUMBER_UINT8] = {H5T_STD_U8LE, H5T_NATIVE_UINT8}};

    return types[kind];
}

/* The name of the array in a checkpoint that is read: earlier versions had other names. */
static const char *stored_name(const em_archive *archive, const char *name)
{
    static const char *const renamed[][2] = {{"acceptance_statistics", "moves"},
                                             {"chain_statistics", "tally"},
                                             {"outlying", "flagged"},
                                             {"phases", "stages"},
                                             {"warmup_schedule", "course"}};

    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (strcmp(name, renamed[i][0]) == 0 && H5Lexists(archive->file, name, H5P_DEFAULT) <= 0)
            return renamed[i][1];
    return name;
}

/* Whether a checkpoint of an earlier version may be without the array, which then is as at the
 * start. */
static bool may_lack(const char *name)
{
    return strcmp(name, "noncentring_priors") == 0 || strcmp(name, "noncentring_is_first") == 0;
}

/* Creates the array, or opens it and checks its extent. */
static em_status open_array(em_archive *archive, const char *name, const array_slab *s, hid_t *id)
{
    const hsize_t wanted[2] = {(hsize_t)s->rows, (hsize_t)s->columns};
    hsize_t found[2] = {0, 0};
    EM_SCOPED_ID hid_t space = H5I_INVALID_HID, list = H5I_INVALID_HID;

    if (archive->saves) {
        space = H5Screate_simple(2, wanted, NULL);
        list = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_obj_track_times(list, false);
        *id = H5Dcreate2(archive->file, name, type_of(s->kind).in_file, space, H5P_DEFAULT, list,
                         H5P_DEFAULT);
    } else {
        *id = H5Dopen2(archive->file, stored_name(archive, name), H5P_DEFAULT);
        if (*id >= 0)
            space = H5Dget_space(*id);
        if (space >= 0 && H5Sget_simple_extent_ndims(space) == 2)
            H5Sget_simple_extent_dims(space, found, NULL);
    }
    em_status status = archive->saves ? em_h5_check(*id, archive->file, "cannot create %s", name)
                                      : em_h5_check_read(*id, archive->file, name);
    if (!status && !archive->saves && memcmp(found, wanted, sizeof found) != 0)
        status = em_fail(EM_EDATA, "%s: %s is %llu x %llu, expected %lld x %lld", archive->path,
                         name, (unsigned long long)found[0], (unsigned long long)found[1],
                         (long long)s->rows, (long long)s->columns);
    return status;
}

/* Collective. */
static em_status transfer(const em_archive *archive, hid_t id, const array_slab *s)
{
    const hsize_t start[2] = {(hsize_t)s->first_row, (hsize_t)s->first_column};
    const hsize_t size[2] = {(hsize_t)s->n_row, (hsize_t)s->n_column};
    const hsize_t total = (hsize_t)(s->n_row * s->n_column);
    const hid_t type = type_of(s->kind).in_memory;
    EM_SCOPED_ID hid_t space = H5Dget_space(id), memory = H5Screate_simple(1, &total, NULL);
    EM_SCOPED_ID hid_t list = em_h5_collective_transfer();
    em_status status;

    if (total > 0)
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, size, NULL);
    else
        H5Sselect_none(space);
    if (archive->saves)
        status = em_h5_check(H5Dwrite(id, type, memory, space, list, s->x), id, "cannot write");
    else
        status = em_h5_check_read(H5Dread(id, type, memory, space, list, s->x), id, "cannot read");
    return em_agree(status);
}

/* Saves or restores an array. Collective. */
static em_status move(em_archive *archive, const char *name, const array_slab *s)
{
    EM_SCOPED_ID hid_t id = H5I_INVALID_HID;
    if (!archive->saves && may_lack(name) && H5Lexists(archive->file, name, H5P_DEFAULT) <= 0)
        return EM_OK;
    em_status status =
        em_fault_file(archive->saves ? "checkpoint-write" : "checkpoint-read", archive->path);

    if (!status && archive->saves)
        status = em_h5_reserve(archive->file, s->rows * s->columns *
                                                  (int64_t)H5Tget_size(type_of(s->kind).in_file));
    status = em_agree(status); /* before some ranks alone create anything */
    status = status ? status : em_agree(open_array(archive, name, s, &id));
    if (!status && s->rows * s->columns > 0)
        status = transfer(archive, id, s);
    return status;
}

static em_status visit_chains(void *context, const char *name, int64_t n, double *x)
{
    em_archive *archive = context;
    const em_grid *grid = archive->grid;
    const bool takes_part = !archive->saves || em_grid_shard(grid) == 0;

    const array_slab s = {.rows = em_grid_n_chain(grid),
                          .columns = n,
                          .first_row = em_grid_first_chain(grid),
                          .n_row = takes_part ? em_grid_n_local_chain(grid) : 0,
                          .n_column = n,
                          .x = x};

    return move(archive, name, &s);
}

static em_status visit_shared(void *context, const char *name, int64_t n, double *x)
{
    em_archive *archive = context;

    const array_slab s = {.rows = 1,
                          .columns = n,
                          .n_row = !archive->saves || em_world_rank() == 0,
                          .n_column = n,
                          .x = x};

    return move(archive, name, &s);
}

static em_status visit_sharded(void *context, const char *name, em_number kind, int64_t total,
                               int64_t first, int64_t count, void *x)
{
    em_archive *archive = context;
    const em_grid *grid = archive->grid;
    const array_slab s = {kind,
                          em_grid_n_chain(grid),
                          total,
                          em_grid_first_chain(grid),
                          em_grid_n_local_chain(grid),
                          first,
                          count,
                          x};

    return move(archive, name, &s);
}

bool em_archive_has(em_archive *archive, const char *name)
{
    return H5Lexists(archive->file, name, H5P_DEFAULT) > 0;
}

const em_visitor *em_archive_visitor(em_archive *archive)
{
    return &archive->visitor;
}

/* Text is saved as an array of doubles, one for each byte, and its length as another: texts are
 * short, and need no other type of arrays. */
em_status em_archive_put_text(em_archive *archive, const char *name, const char *text)
{
    const int64_t length = (int64_t)strlen(text);
    EM_SCOPED double *code = NULL;
    double size = (double)length;
    char size_name[128];
    em_status status = em_agree(em_allocate(length, sizeof *code, &code));

    snprintf(size_name, sizeof size_name, "%s_length", name);
    for (int64_t i = 0; !status && i < length; i++)
        code[i] = (unsigned char)text[i];
    status = status ? status : visit_shared(archive, size_name, 1, &size);
    return status ? status : visit_shared(archive, name, length, code);
}

static em_status decode(const em_archive *archive, const char *name, int64_t length,
                        const double *code, char *text)
{
    for (int64_t i = 0; i < length; i++) {
        if (!(code[i] >= 1 && code[i] <= 255))
            return em_fail(EM_EDATA, "%s: %s has the character %g, expected 1 to 255",
                           archive->path, name, code[i]);
        text[i] = (char)(unsigned char)code[i];
    }
    return EM_OK;
}

em_status em_archive_get_text(em_archive *archive, const char *name, char **text)
{
    double *code = NULL, size = 0;
    char size_name[128];

    *text = NULL;
    snprintf(size_name, sizeof size_name, "%s_length", name);
    em_status status = visit_shared(archive, size_name, 1, &size);
    if (!status && !(size >= 0 && size <= MOST_TEXT))
        status = em_fail(EM_EDATA, "%s: %s has %g characters, expected 0 to %d", archive->path,
                         name, size, MOST_TEXT);
    if (status)
        return status;
    status = em_allocate((int64_t)size, sizeof *code, &code);
    status = status ? status : em_allocate((int64_t)size + 1, 1, text);
    status = em_agree(status);
    status = status ? status : visit_shared(archive, name, (int64_t)size, code);
    status = status ? status : decode(archive, name, (int64_t)size, code, *text);
    em_release(&code);
    if (status)
        em_release(text);
    return status;
}

/* ---------------------------------------------------------------- files */

static em_status open_file(em_archive *archive)
{
    EM_SCOPED_ID hid_t access = em_h5_parallel_access(em_grid_world(archive->grid));
    char reason[512];
    em_status status = EM_OK;

    em_h5_keep_metadata(access); /* the bytes of a checkpoint become part of an output */
    archive->file = archive->saves ? H5Fcreate(archive->path, H5F_ACC_TRUNC, H5P_DEFAULT, access)
                                   : H5Fopen(archive->path, H5F_ACC_RDONLY, access);
    if (archive->file < 0) {
        em_h5_message(reason, sizeof reason);
        status = em_fail(EM_EIO, "%s: cannot be opened: %s", archive->path, reason);
    }
    if (!status && archive->saves)
        status = em_h5_reserve_start(archive->path);
    return em_agree(status);
}

em_status em_archive_open(const em_grid *grid, const char *path, bool saves, em_archive **out)
{
    em_status status = em_allocate(1, sizeof **out, out);
    em_archive *archive = *out;

    em_h5_quiet();
    if (!status) {
        archive->grid = grid;
        archive->saves = saves;
        archive->file = H5I_INVALID_HID;
        archive->visitor = (em_visitor){archive, !saves, visit_chains, visit_shared, visit_sharded};
        status = em_copy_text(path, &archive->path);
    }
    status = status ? status : em_fault_file(saves ? "checkpoint-create" : "checkpoint-open", path);
    if (!status && saves)
        status = em_h5_make(path);
    if (!status && !saves && em_world_rank() == 0)
        status = em_archive_check(path);
    status = em_agree(status);
    status = status ? status : open_file(archive);
    if (status)
        em_archive_close(out, false);
    return status;
}

static em_status finish(em_archive *archive)
{
    em_status status = EM_OK;

    if (em_h5_close(&archive->file) < 0)
        status = em_fail(EM_EIO, "%s: cannot be closed", archive->path);
    status = em_agree(status ? status : em_fault_file("checkpoint-close", archive->path));
    if (!status && em_world_rank() == 0)
        status = em_fault_file("checkpoint-trailer", archive->path);
    return em_agree(!status && em_world_rank() == 0
                        ? em_checksum_trailer_put(&trailer, archive->path)
                        : status);
}

em_status em_archive_close(em_archive **out, bool whole)
{
    em_archive *archive = *out;
    em_status status = EM_OK;

    if (!archive)
        return EM_OK;
    if (archive->saves && whole)
        status = finish(archive);
    if (archive->saves && (!whole || status) && archive->path && em_world_rank() == 0)
        unlink(archive->path);
    em_h5_close(&archive->file);
    em_release_all(&archive->path, out);
    return status;
}
