#include "io/hdf5.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

typedef struct message {
    char *text;
    size_t bytes;
} message;

void em_h5_quiet(void)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static herr_t keep_first(unsigned n, const H5E_error2_t *error, void *data)
{
    const message *kept = data;

    if (n == 0)
        snprintf(kept->text, kept->bytes, "%s", error->desc ? error->desc : "");
    return 0;
}

void em_h5_message(char *text, size_t bytes)
{
    message kept = {text, bytes};

    text[0] = '\0';
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &kept);
}

/* MPI often loses the reason on its way to HDF5. */
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
    em_h5_message(reason, sizeof reason); /* first: the next call of HDF5 forgets it */
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    H5Fget_name(location, file, sizeof file);
    H5Iget_name(location, object, sizeof object);
    return em_fail(EM_EIO, "%s:%s: %s%s%s%s", file, object, what, *reason ? ": " : "", reason,
                   full_disk(file));
}

hid_t em_h5_parallel_access(MPI_Comm world)
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
    H5Pset_coll_metadata_write(list, true);
    return list;
}

herr_t em_h5_close(hid_t *id)
{
    const hid_t closed = *id;

    *id = H5I_INVALID_HID;
    return closed > 0 ? (H5Idec_ref(closed) < 0 ? -1 : 0) : 0;
}
