#include "io/hdf5/foreign.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/text.h"
#include "io/hdf5/crash_handler.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { LONGEST_NAME = 256, WIDEST_NUMBER = 16 };

static const double free_numbers = 0x1p20, /* 8 MB as doubles */
    free_elements = 0x1p16, free_text = 0x1p24, free_chunk = 0x1p25;
static const double gain = 1032;        /* the largest number of bytes from one compressed byte */
static const double text_per_byte = 16; /* labels are read for each variable that has them */

/* ---------------------------------------------------------------- files */

/* Whether an error number shows that the path is wrong, and not the disk. */
static bool leads_nowhere(int code)
{
    return code == 0 || code == ENOENT || code == ENOTDIR || code == EISDIR || code == EACCES;
}

/* Measures the file again after opening it, because a run in progress makes it longer. */
static em_status measure(const char *path, double *bytes)
{
    struct stat now;

    if (stat(path, &now) != 0)
        return em_fail(EM_EIO, "%s: %s", path, strerror(errno));
    *bytes = (double)now.st_size;
    return EM_OK;
}

em_status em_foreign_open(const char *path, em_foreign *file)
{
    em_status status = em_fault_file("hdf5-open", path);
    char reason[512];

    *file = (em_foreign){.path = path, .file = H5I_INVALID_HID};
    em_h5_quiet();
    status = status ? status : em_file_check(path);
    if (status)
        return status;
    EM_SCOPED_ID hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_file_locking(access, false,
                        true); /* the lock of a reader could make a writer of the file fail */
    em_h5_crash_handler_begin(path);
    file->file = H5Fopen(path, H5F_ACC_RDONLY, access);
    em_h5_crash_handler_end();
    const int code = em_h5_message(reason, sizeof reason); /* the next call of HDF5 clears it */
    if (file->file >= 0)
        return measure(path, &file->bytes);
    return em_fail(leads_nowhere(code) ? EM_EDATA : EM_EIO, "%s: expected an HDF5 file: %s", path,
                   reason);
}

/* ---------------------------------------------------------------- datasets */

/* The reason why the storage of a dataset is refused; NULL: it is accepted. A second compression
 * would multiply the gain of the first. */
static const char *objection_to_filters(hid_t list)
{
    bool deflated = false;

    for (int i = 0; i < H5Pget_nfilters(list); i++) {
        unsigned flags;
        size_t n = 0;
        const H5Z_filter_t filter =
            H5Pget_filter2(list, (unsigned)i, &flags, &n, NULL, 0, NULL, NULL);

        if (filter == H5Z_FILTER_DEFLATE && deflated)
            return "is compressed twice";
        if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
            filter != H5Z_FILTER_FLETCHER32)
            return "is compressed by a filter other than deflate";
        deflated |= filter == H5Z_FILTER_DEFLATE;
    }
    return NULL;
}

/* Whether a chunk is too large to read. HDF5 holds a whole chunk in memory, even if the dataset
 * uses little of it. */
static bool is_chunk_too_large(const em_foreign *file, hid_t list, size_t item_bytes)
{
    hsize_t extent[H5S_MAX_RANK];
    const int rank = H5Pget_chunk(list, H5S_MAX_RANK, extent);
    double bytes = (double)item_bytes;

    for (int i = 0; i < rank; i++)
        bytes *= (double)extent[i];
    return bytes > free_chunk + gain * file->bytes;
}

static const char *objection(const em_foreign *file, hid_t list, hid_t type)
{
    if (H5Pget_layout(list) == H5D_VIRTUAL)
        return "is a virtual dataset, whose values are in others";
    if (H5Pget_external_count(list) != 0)
        return "keeps its values outside the file";
    if (H5Pget_layout(list) != H5D_CHUNKED)
        return NULL;
    if (is_chunk_too_large(file, list, H5Tget_size(type)))
        return "has chunks larger than the file can fill";
    return objection_to_filters(list);
}

em_status em_foreign_check(const em_foreign *file, hid_t dataset)
{
    EM_SCOPED_ID hid_t list = H5Dget_create_plist(dataset), type = H5Dget_type(dataset);
    const char *found = list < 0 || type < 0 ? "is damaged" : objection(file, list, type);
    char name[LONGEST_NAME] = "";

    if (!found)
        return EM_OK;
    H5Iget_name(dataset, name, sizeof name);
    return em_fail(EM_EDATA, "%s: %s %s, which is not read", file->path, name, found);
}

static H5T_class_t class_of_number(hid_t object)
{
    EM_SCOPED_ID hid_t type =
        H5Iget_type(object) == H5I_DATASET ? H5Dget_type(object) : H5I_INVALID_HID;
    const H5T_class_t class = H5Tget_class(type);
    const bool small = H5Tget_size(type) <= WIDEST_NUMBER;

    return small ? class : H5T_NO_CLASS;
}

bool em_foreign_is_number(hid_t object)
{
    const H5T_class_t class = class_of_number(object);

    return class == H5T_FLOAT || class == H5T_INTEGER || class == H5T_ENUM;
}

bool em_foreign_is_integer(hid_t object)
{
    return class_of_number(object) == H5T_INTEGER;
}

/* ---------------------------------------------------------------- links */

em_status em_foreign_member(const em_foreign *file, hid_t group, const char *name, hid_t *object)
{
    H5L_info_t info;

    *object = H5I_INVALID_HID;
    if (H5Lexists(group, name, H5P_DEFAULT) <= 0 ||
        H5Lget_info(group, name, &info, H5P_DEFAULT) < 0)
        return EM_OK;
    if (info.type != H5L_TYPE_HARD)
        return em_fail(EM_EDATA, "%s: %s is %s link, which is not followed", file->path,
                       em_excerpt_of(name).text,
                       info.type == H5L_TYPE_SOFT ? "a soft" : "an external");
    *object = H5Oopen(group, name, H5P_DEFAULT);
    if (H5Iget_type(*object) != H5I_DATASET)
        return EM_OK;
    const em_status status = em_foreign_check(file, *object);
    if (status)
        em_h5_close(object);
    return status;
}

em_status em_foreign_object(const em_foreign *file, const char *path, hid_t *object)
{
    em_status status = EM_OK;

    *object = H5Gopen2(file->file, "/", H5P_DEFAULT);
    while (!status && *path && H5Iget_type(*object) == H5I_GROUP) {
        const size_t length = strcspn(path, "/");
        hid_t group = *object;
        char name[LONGEST_NAME] = "";

        if (length > 0 && length < sizeof name) {
            memcpy(name, path, length);
            status = em_foreign_member(file, group, name, object);
            em_h5_close(&group);
        } else if (length > 0) {
            em_h5_close(object);
        }
        path += length + (path[length] == '/');
    }
    if (*path)
        em_h5_close(object); /* a dataset on the way */
    return status;
}

/* The state of an iteration over the links of a group. */
typedef struct link_walk {
    const em_foreign *file;
    H5I_type_t type;
    int64_t n_left;
    em_foreign_take *take;
    void *context;
    em_status status;
} link_walk;

static herr_t take_link(hid_t group, const char *name, const H5L_info_t *info, void *data)
{
    link_walk *w = data;
    EM_SCOPED_ID hid_t id = H5I_INVALID_HID;

    (void)info;
    if (w->n_left-- == 0)
        return 1;
    w->status = em_foreign_member(w->file, group, name, &id);
    if (!w->status && id >= 0 && H5Iget_type(id) == w->type)
        w->status = w->take(w->context, name, &id);
    return w->status ? 1 : 0;
}

static H5_index_t order_of(hid_t group)
{
    EM_SCOPED_ID hid_t list =
        H5Iget_type(group) == H5I_FILE ? H5Fget_create_plist(group) : H5Gget_create_plist(group);
    unsigned order = 0;

    H5Pget_link_creation_order(list, &order);
    return order & H5P_CRT_ORDER_INDEXED ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
}

int64_t em_foreign_n_link(hid_t group)
{
    H5G_info_t info = {0};

    H5Gget_info(group, &info);
    return (int64_t)info.nlinks;
}

em_status em_foreign_each(const em_foreign *file, hid_t group, H5I_type_t type, int64_t most,
                          em_foreign_take *take, void *context)
{
    link_walk w = {file, type, most, take, context, EM_OK};

    H5Literate(group, order_of(group), H5_ITER_INC, NULL, take_link, &w);
    return w.status;
}

/* ---------------------------------------------------------------- what a file may hold */

double em_foreign_count(hid_t dataset)
{
    EM_SCOPED_ID hid_t space = H5Dget_space(dataset);
    hsize_t extent[H5S_MAX_RANK];
    const int rank = H5Sget_simple_extent_dims(space, extent, NULL);
    double product = H5Sget_simple_extent_type(space) == H5S_NULL ? 0 : 1;

    for (int i = 0; i < rank; i++)
        product *= (double)extent[i];
    return product;
}

em_status em_foreign_claim(em_foreign *file, hid_t dataset, double numbers, double elements)
{
    char name[LONGEST_NAME] = "";

    file->numbers += numbers;
    file->elements += elements;
    file->stored += (double)H5Dget_storage_size(dataset);
    if (file->stored <= file->bytes && file->elements <= free_elements + file->bytes &&
        file->numbers <= free_numbers + gain / sizeof(double) * file->bytes)
        return EM_OK;
    H5Iget_name(dataset, name, sizeof name);
    return em_fail(EM_EDATA,
                   "%s: %s has %.0f numbers in %.0f elements, more than the %.0f bytes of the "
                   "file can hold",
                   file->path, name, numbers, elements, file->bytes);
}

em_status em_foreign_claim_text(em_foreign *file, double bytes)
{
    file->text += bytes;
    return file->text <= free_text + text_per_byte * file->bytes
               ? EM_OK
               : em_fail(EM_EDATA,
                         "%s: labels of %.0f bytes, more than the %.0f bytes of the file can hold",
                         file->path, file->text, file->bytes);
}
