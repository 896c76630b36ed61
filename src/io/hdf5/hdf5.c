#include "io/hdf5/hdf5.h"

#include "base/fault.h"
#include "base/file.h"
#include "io/hdf5/crash_handler.h"
#include "par/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Bytes for headers, attributes and small arrays that are written until the next flush. */
enum { METADATA_BYTES = 1 << 16 };

typedef struct message {
    char *text;
    size_t bytes;
} message;

em_h5_printing em_h5_silence(void)
{
    em_h5_printing before = {NULL, NULL};
    H5E_auto2_t function;

    if (H5Eget_auto2(H5E_DEFAULT, &function, &before.to) >= 0)
        memcpy(&before.function, &function, sizeof function);
    em_h5_quiet();
    return before;
}

void em_h5_restore(em_h5_printing before)
{
    H5E_auto2_t function;

    memcpy(&function, &before.function, sizeof function);
    H5Eset_auto2(H5E_DEFAULT, function, before.to);
}

static herr_t keep_first(unsigned n, const H5E_error2_t *error, void *data)
{
    const message *kept = data;

    if (n == 0)
        snprintf(kept->text, kept->bytes, "%s", error->desc ? error->desc : "");
    return 0;
}

/* Cuts a message of HDF5 to its reason. HDF5 lists the call, its arguments and the reason: "...,
 * errno = 2, error message = 'No such file or directory', flags = 0". */
static int cut_to_reason(char *text)
{
    static const char number[] = "errno = ", words[] = "error message = '";
    const char *found = strstr(text, number);
    const int code = found ? atoi(found + strlen(number)) : 0;
    char *reason = strstr(text, words);
    char *end = reason ? strchr(reason += strlen(words), '\'') : NULL;

    if (end) {
        *end = '\0';
        memmove(text, reason, strlen(reason) + 1);
    }
    return code;
}

int em_h5_message(char *text, size_t bytes)
{
    message kept = {text, bytes};

    text[0] = '\0';
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &kept);
    return cut_to_reason(text);
}

/* A text for error messages if the disk is full, else "". MPI often loses this reason on its way to
 * HDF5. */
static const char *full_disk(const char *path)
{
    struct statvfs disk;

    return statvfs(path, &disk) == 0 && disk.f_bavail == 0 ? " (no space left on the disk)" : "";
}

em_status em_h5_check(int64_t result, hid_t location, const char *format, ...)
{
    char reason[512], what[512], file[1024] = "", object[256] = "";
    va_list arguments;

    if (result >= 0)
        return EM_OK;
    em_h5_message(reason, sizeof reason); /* first: the next call of HDF5 clears it */
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    H5Fget_name(location, file, sizeof file);
    H5Iget_name(location, object, sizeof object);
    return em_fail(EM_EIO, "%s:%s: %s%s%s%s", file, object, what, *reason ? ": " : "", reason,
                   full_disk(file));
}

em_status em_h5_check_read(int64_t result, hid_t location, const char *what)
{
    char reason[512];
    const bool is_system = em_h5_message(reason, sizeof reason) != 0 || strstr(reason, "MPI_");
    const em_status status = em_h5_check(result, location, "%s", what);

    return status && !is_system ? EM_EDATA : status;
}

em_status em_h5_fault(const char *site, hid_t location)
{
    return em_h5_check(em_fault(site) ? -1 : 0, location, "%s fails: injected by EMASS_FAULT",
                       site);
}

bool em_h5_may_be(const char *path)
{
    static const char signature[8] = "\211HDF\r\n\032\n", zeros[8] = "";
    char first[8] = "?";
    EM_SCOPED_BY(em_file_close) int descriptor = -1;

    return em_file_open(path, O_RDONLY | O_NOFOLLOW, &descriptor) == EM_OK &&
           pread(descriptor, first, sizeof first, 0) == sizeof first &&
           (memcmp(first, signature, sizeof first) == 0 || memcmp(first, zeros, sizeof first) == 0);
}

/* Reserves space without changing the length of the file. Only a refusal is an error: file systems
 * that cannot reserve space do nothing. */
static bool reserve_range(int descriptor, off_t from, off_t to)
{
    struct rlimit most;
    int result;

    errno = EFBIG;
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && (rlim_t)to > most.rlim_cur)
        return false;
    do
        result = fallocate(descriptor, FALLOC_FL_KEEP_SIZE, from, to - from);
    while (result != 0 && errno == EINTR);
    return result == 0 || (errno != ENOSPC && errno != EDQUOT && errno != EFBIG);
}

static em_status reserve_bytes(const char *path, off_t from, off_t to)
{
    EM_SCOPED_BY(em_file_close) int descriptor = -1;
    em_status status = em_file_open(path, O_WRONLY, &descriptor);

    status = status ? status : em_fault_file("hdf5-reserve", path);
    if (!status && !reserve_range(descriptor, from, to))
        status = em_fail(EM_EIO, "%s: cannot grow to %lld bytes: %s", path, (long long)to,
                         strerror(errno));
    return status;
}

em_status em_h5_reserve_start(const char *path)
{
    return em_world_rank() == 0 ? reserve_bytes(path, 0, METADATA_BYTES) : EM_OK;
}

em_status em_h5_make(const char *path)
{
    if (em_world_rank() != 0)
        return EM_OK;
    if (unlink(path) != 0 && errno != ENOENT)
        return em_fail(EM_EIO, "%s: cannot be removed: %s", path, strerror(errno));
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return em_fail(EM_EIO, "%s: cannot be created: %s", path, strerror(errno));
    close(descriptor);
    return em_h5_reserve_start(path);
}

em_status em_h5_reserve(hid_t location, int64_t bytes)
{
    char path[4096] = "";
    struct stat now = {.st_size = 0};

    if (em_world_rank() != 0)
        return EM_OK;
    H5Fget_name(location, path, sizeof path);
    stat(path, &now);
    return reserve_bytes(path, now.st_size, now.st_size + bytes + METADATA_BYTES);
}

em_status em_h5_flush(hid_t location)
{
    const em_status status = em_agree(em_h5_fault("hdf5-flush", location));

    return status ? status
                  : em_agree(
                        em_h5_check(H5Fflush(location, H5F_SCOPE_LOCAL), location, "cannot flush"));
}

/* Whether MPI uses "data sieving": it reads, patches and writes back what lies between the pieces
 * of a rank. Open MPI 4.1 loses data of other ranks in this (darshan-hpc/darshan#1064,
 * open-mpi/ompi#12718). The program emass turns it off in its environment (em_world_start); the
 * library does not change the environment of its host. */
static bool sieves(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    const char *setting = getenv("OMPI_MCA_fbtl_posix_write_datasieving");
    int length;

    MPI_Get_library_version(library, &length);
    return strncmp(library, "Open MPI", 8) == 0 &&
           !(setting && (strcmp(setting, "0") == 0 || strcmp(setting, "false") == 0));
}

hid_t em_h5_parallel_access(MPI_Comm world)
{
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    MPI_Info hints;

    MPI_Info_create(&hints);
    MPI_Info_set(hints, "romio_ds_write", "disable");
    H5Pset_fapl_mpio(list, world, hints);
    MPI_Info_free(&hints);
    H5Pset_coll_metadata_write(list, !sieves());
    return list;
}

void em_h5_keep_metadata(hid_t access)
{
    enum { CACHE_BYTES = 1 << 27 };
    H5AC_cache_config_t cache = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};

    H5Pget_mdc_config(access, &cache);
    cache.set_initial_size = true;
    cache.initial_size = cache.max_size = CACHE_BYTES;
    cache.incr_mode = H5C_incr__off;
    cache.flash_incr_mode = H5C_flash_incr__off;
    cache.decr_mode = H5C_decr__off;
    H5Pset_mdc_config(access, &cache);
}

/* The transfer mode for collective writes. If collective writes may lose data, each rank writes
 * independently, which is slower. */
hid_t em_h5_collective_transfer(void)
{
    hid_t list = H5Pcreate(H5P_DATASET_XFER);

    H5Pset_dxpl_mpio(list, H5FD_MPIO_COLLECTIVE);
    if (sieves())
        H5Pset_dxpl_mpio_collective_opt(list, H5FD_MPIO_INDIVIDUAL_IO);
    else
        H5Pset_dxpl_mpio_chunk_opt(list, H5FD_MPIO_CHUNK_ONE_IO);
    return list;
}

herr_t em_h5_close(hid_t *id)
{
    const hid_t closed = *id;

    *id = H5I_INVALID_HID;
    return closed > 0 ? (H5Idec_ref(closed) < 0 ? -1 : 0) : 0;
}

void em_h5_close_each(hid_t *const *id, size_t n)
{
    for (size_t i = 0; i < n; i++)
        em_h5_close(id[i]);
}

hid_t em_attribute_open(hid_t object, const char *name, H5T_class_t class, hid_t *type)
{
    hid_t id = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : H5I_INVALID_HID;
    EM_SCOPED_ID hid_t space = id >= 0 ? H5Aget_space(id) : H5I_INVALID_HID;

    *type = id >= 0 ? H5Aget_type(id) : H5I_INVALID_HID;
    if (id >= 0 && (H5Tget_class(*type) != class || H5Sget_simple_extent_npoints(space) != 1))
        em_h5_close(&id);
    return id;
}

int64_t em_attribute_read_int(hid_t object, const char *name, int64_t otherwise)
{
    EM_SCOPED_ID hid_t type = H5I_INVALID_HID,
                       id = em_attribute_open(object, name, H5T_INTEGER, &type);
    int64_t value = otherwise;

    if (id >= 0 && H5Aread(id, H5T_NATIVE_INT64, &value) < 0)
        value = otherwise;
    return value;
}

bool em_attribute_read_text(hid_t object, const char *name, size_t bytes, char *text)
{
    EM_SCOPED_ID hid_t type = H5I_INVALID_HID,
                       id = em_attribute_open(object, name, H5T_STRING, &type);
    bool found = id >= 0 && H5Tis_variable_str(type) == 0 && H5Tget_size(type) < bytes;

    memset(text, 0, bytes);
    return found && H5Aread(id, type, text) >= 0;
}

bool em_attribute_read_any_text(hid_t object, const char *name, size_t bytes, char *text)
{
    EM_SCOPED_ID hid_t type = H5I_INVALID_HID,
                       id = em_attribute_open(object, name, H5T_STRING, &type);
    char *variable = NULL, path[1024] = "";
    bool found = id >= 0 && H5Tis_variable_str(type) > 0;

    if (!found) {
        found = em_attribute_read_text(object, name, bytes, text);
    } else {
        memset(text, 0, bytes);
        H5Fget_name(object, path, sizeof path);
        em_h5_crash_handler_begin(path);
        found = H5Aread(id, type, &variable) >= 0;
        em_h5_crash_handler_end();
        found = found && variable && strlen(variable) < bytes;
        if (found)
            memcpy(text, variable, strlen(variable));
    }
    H5free_memory(variable);
    return found;
}

em_status em_attribute_write(hid_t object, const char *name, hid_t type, hid_t space,
                             const void *value)
{
    EM_SCOPED_ID hid_t attribute = H5I_INVALID_HID;
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
    return status ? status : em_h5_fault("hdf5-attribute", object);
}

static em_status write_scalar(hid_t object, const char *name, hid_t type, const void *value)
{
    EM_SCOPED_ID hid_t scalar = H5Screate(H5S_SCALAR);
    return em_attribute_write(object, name, type, scalar, value);
}

em_status em_attribute_write_text(hid_t object, const char *name, const char *text)
{
    EM_SCOPED_ID hid_t type = H5Tcopy(H5T_C_S1);

    H5Tset_size(type, strlen(text) + 1);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return write_scalar(object, name, type, text);
}

em_status em_attribute_write_words(hid_t object, const char *name, int n, size_t size,
                                   const char *words)
{
    const hsize_t extent = (hsize_t)n;
    EM_SCOPED_ID hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &extent, NULL);

    H5Tset_size(type, size);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return em_attribute_write(object, name, type, space, words);
}

em_status em_attribute_write_int(hid_t object, const char *name, int64_t value)
{
    return write_scalar(object, name, H5T_NATIVE_INT64, &value);
}

em_status em_attribute_write_real(hid_t object, const char *name, double value)
{
    return write_scalar(object, name, H5T_NATIVE_DOUBLE, &value);
}

void em_h5_libraries(size_t size, char *text)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    unsigned major, minor, release;
    int length;

    MPI_Get_library_version(mpi, &length);
    H5get_libversion(&major, &minor, &release);
    snprintf(text, size, "%.*s, HDF5 %u.%u.%u", (int)strcspn(mpi, ",\n"), mpi, major, minor,
             release);
}
