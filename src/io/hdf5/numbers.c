#include "io/hdf5/numbers.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/hdf5/anndata.h"
#include "io/hdf5/crash_handler.h"
#include "io/hdf5/foreign.h"
#include "io/hdf5/hdf5.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const hsize_t most_numbers = (hsize_t)1 << 40; /* 8 TB: no product overflows */

/* The names of the parts: ours, and those of a matrix in compressed rows of AnnData (.h5ad). */
static const char *const part_name[EM_N_NUMBERS_PART] = {"value", "start", "column", "response"},
                         *const csr_name[EM_N_NUMBERS_PART] = {"data", "indptr", "indices", NULL};

struct em_numbers {
    const char *path; /* for messages */
    char *file_path;
    em_foreign file;
    em_numbers_form form;
    hid_t part[EM_N_NUMBERS_PART], name;
    bool csr;       /* of AnnData */
    int descriptor; /* for advice; -1: none */
};

bool em_numbers_is_hdf5(const char *path)
{
    static const char signature[] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
    char start[sizeof signature];
    EM_SCOPED_BY(em_file_close)
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return descriptor >= 0 && read(descriptor, start, sizeof start) == sizeof start &&
           memcmp(start, signature, sizeof start) == 0;
}

/* ---------------------------------------------------------------- shapes */

/* Reads the extents of a dataset of numbers with at most `most_axes` dimensions. Extents that it
 * lacks are 1. */
static em_status get_shape(em_numbers *n, hid_t dataset, int most_axes, hsize_t shape[2])
{
    EM_SCOPED_ID hid_t space = H5Dget_space(dataset);
    const int rank = H5Sget_simple_extent_ndims(space);
    const bool numbers = em_foreign_is_number(dataset);
    em_status status = EM_OK;

    shape[0] = shape[1] = 1;
    if (!numbers || rank < 1 || rank > most_axes)
        status = em_fail(EM_EDATA, "%s: found %s of %d dimensions, expected numbers in %d", n->path,
                         numbers ? "numbers" : "no numbers", rank, most_axes);
    else
        H5Sget_simple_extent_dims(space, shape, NULL);
    if (!status && shape[1] > 0 && shape[0] > most_numbers / shape[1])
        status = em_fail(EM_EDATA, "%s: found %llu x %llu numbers, expected at most %llu", n->path,
                         (unsigned long long)shape[0], (unsigned long long)shape[1],
                         (unsigned long long)most_numbers);
    return status ? status
                  : em_foreign_claim(&n->file, dataset, (double)shape[0] * (double)shape[1], 0);
}

static hid_t memory_type(em_numbers_part part)
{
    return part == EM_NUMBERS_START || part == EM_NUMBERS_COLUMN ? H5T_NATIVE_INT64
                                                                 : H5T_NATIVE_DOUBLE;
}

/* Opens a part if it exists; *length -1: it does not exist. */
static em_status open_part(em_numbers *n, hid_t group, em_numbers_part part, int64_t *length)
{
    const char *name = n->csr ? csr_name[part] : part_name[part];
    hsize_t shape[2];
    em_status status = name ? em_foreign_member(&n->file, group, name, &n->part[part]) : EM_OK;

    *length = -1;
    if (status || n->part[part] < 0)
        return status;
    status = get_shape(n, n->part[part], 1, shape);
    *length = (int64_t)shape[0];
    if (!status && memory_type(part) == H5T_NATIVE_INT64 && !em_foreign_is_integer(n->part[part]))
        status = em_fail(EM_EDATA, "%s: found numbers with fractions as `%s`, expected integers",
                         n->path, name);
    return status;
}

static em_status expect(const em_numbers *n, const char *what, int64_t found, int64_t expected)
{
    return found == expected ? EM_OK
                             : em_fail(EM_EDATA, "%s: found %s of length %lld, expected %lld",
                                       n->path, what, (long long)found, (long long)expected);
}

/* Opens the names of columns. Their number is the number of columns of a sparse table. */
static em_status open_names(em_numbers *n, hid_t group, int64_t *length)
{
    hsize_t extent = 0;
    em_status status = em_foreign_member(&n->file, group, "name", &n->name);

    *length = -1;
    if (status || n->name < 0)
        return status;
    EM_SCOPED_ID hid_t space = H5Dget_space(n->name), type = H5Dget_type(n->name);
    const size_t width = H5Tget_size(type);
    if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 ||
        width > EM_WIDEST_NAME || H5Sget_simple_extent_ndims(space) != 1)
        status = em_fail(EM_EDATA, "%s: found no list of texts as `name`, expected one", n->path);
    else
        H5Sget_simple_extent_dims(space, &extent, NULL);
    status = status ? status : em_foreign_claim_text(&n->file, (double)extent * (double)width);
    *length = (int64_t)extent;
    return status;
}

static em_status open_value(em_numbers *n, hid_t group, hsize_t shape[2])
{
    em_status status = em_foreign_member(&n->file, group, "value", &n->part[EM_NUMBERS_VALUE]);

    if (!status && H5Iget_type(n->part[EM_NUMBERS_VALUE]) != H5I_DATASET)
        status =
            em_fail(EM_EDATA, "%s: found a group without `value`, expected a dataset", n->path);
    return status ? status
                  : get_shape(n, n->part[EM_NUMBERS_VALUE], n->part[EM_NUMBERS_START] < 0 ? 2 : 1,
                              shape);
}

/* Reads an attribute that is a text of sixteen hexadecimal digits. */
static bool get_digits(hid_t group, const char *name, uint64_t *value)
{
    char text[18];
    const bool is = em_attribute_read_text(group, name, sizeof text, text) && strlen(text) == 16;

    *value = strtoull(text, NULL, 16);
    return is;
}

/* Reads the number of columns of a sparse table whose columns have no names. */
static em_status get_columns(em_numbers *n, hid_t group)
{
    uint64_t columns;

    if (!get_digits(group, "columns", &columns) || columns > INT32_MAX)
        return em_fail(EM_EDATA,
                       "%s: found a sparse table without `name`, expected it, or how many columns "
                       "there are",
                       n->path);
    n->form.n_column = (int64_t)columns;
    return EM_OK;
}

/* Opens a matrix of AnnData in compressed rows: indptr, indices, data. A matrix in compressed
 * columns is recognised by the length of indptr if that differs. */
static em_status open_csr(em_numbers *n, hid_t group)
{
    int64_t start, column, value, extent[2];
    em_status status = open_part(n, group, EM_NUMBERS_START, &start);

    status = status ? status : open_part(n, group, EM_NUMBERS_COLUMN, &column);
    status = status ? status : open_part(n, group, EM_NUMBERS_VALUE, &value);
    if (!status && (value < 0 || column < 0 || !em_anndata_extent(group, extent)))
        status = em_fail(EM_EDATA,
                         "%s: found a group with indptr, expected a matrix of AnnData: also data, "
                         "indices and the attribute shape",
                         n->path);
    if (!status &&
        (em_anndata_is_by_columns(group) || (start != extent[0] + 1 && start == extent[1] + 1)))
        status = em_fail(EM_EDATA,
                         "%s: found a matrix in compressed columns, expected compressed rows: "
                         "write it by adata.X = adata.X.tocsr()",
                         n->path);
    if (status)
        return status;
    n->form = (em_numbers_form){.n_row = extent[0], .n_column = extent[1], .n_entry = value};
    status = expect(n, "`indptr`", start, extent[0] + 1);
    return status ? status : expect(n, "`indices`", column, value);
}

static em_status open_ours(em_numbers *n, hid_t group)
{
    int64_t start, column, response, names;
    hsize_t shape[2];
    em_status status = open_part(n, group, EM_NUMBERS_START, &start);

    status = status ? status : open_value(n, group, shape);
    status = status ? status : open_part(n, group, EM_NUMBERS_COLUMN, &column);
    status = status ? status : open_part(n, group, EM_NUMBERS_RESPONSE, &response);
    status = status ? status : open_names(n, group, &names);
    if (status)
        return status;
    const bool sparse = start >= 0;
    n->form = (em_numbers_form){.n_row = sparse ? start - 1 : (int64_t)shape[0],
                                .n_column = names >= 0 ? names : (int64_t)shape[1],
                                .n_entry = sparse ? (int64_t)shape[0] : -1,
                                .labelled = response >= 0};
    status = sparse && names < 0
                 ? get_columns(n, group)
                 : expect(n, "`name`", n->form.n_column, sparse ? names : (int64_t)shape[1]);
    if (!status && sparse)
        status = expect(n, "`column`", column, n->form.n_entry);
    if (!status && response >= 0)
        status = expect(n, "`response`", response, n->form.n_row);
    n->form.hashed = get_digits(group, "hash", &n->form.hash);
    return status;
}

static em_status open_dataset(em_numbers *n, hid_t dataset)
{
    hsize_t shape[2];
    em_status status = get_shape(n, dataset, 2, shape);

    n->part[EM_NUMBERS_VALUE] = dataset;
    if (!status)
        n->form = (em_numbers_form){
            .n_row = (int64_t)shape[0], .n_column = (int64_t)shape[1], .n_entry = -1};
    return status;
}

/* Finds the names of rows and columns of AnnData. A dense matrix is taken for one of AnnData if
 * these names are as many as its rows and columns. */
static em_status find_indexes(em_numbers *n, const char *place)
{
    bool fits = true;
    em_status status = EM_OK;

    for (int rows = 0; !status && rows < 2; rows++) {
        int64_t length;
        status = em_anndata_index(&n->file, place, rows, &n->form.index[rows], &length);
        n->form.has_index[rows] = length >= 0;
        fits &= length == (rows ? n->form.n_row : n->form.n_column);
    }
    if (n->csr || (!status && fits))
        return status;
    em_release_all(&n->form.index[0], &n->form.index[1]);
    return status == EM_EDATA ? EM_OK : status;
}

static em_status open_object(em_numbers *n, const char *place)
{
    const bool ours = strcmp(place, EM_NUMBERS_PLACE) == 0;
    hid_t object;
    em_status status = em_foreign_object(&n->file, place, &object);

    if (!status && object < 0 && ours) {
        place = "X"; /* the main matrix of AnnData */
        status = em_foreign_object(&n->file, place, &object);
    }
    if (!status && H5Iget_type(object) == H5I_DATASET) {
        status = open_dataset(n, object);
        return status ? status : find_indexes(n, place);
    }
    if (!status && H5Iget_type(object) == H5I_GROUP) {
        n->csr = H5Lexists(object, "indptr", H5P_DEFAULT) > 0;
        status = n->csr ? open_csr(n, object) : open_ours(n, object);
        status = !status && n->csr ? find_indexes(n, place) : status;
    } else if (!status) {
        status = em_fail(EM_EDATA, "%s: found no dataset %s, expected one", n->path,
                         ours ? EM_NUMBERS_PLACE " or X" : place);
    }
    em_h5_close(&object);
    return status;
}

em_status em_numbers_open(const char *path, const char *place, em_numbers **out)
{
    const char *colon = strstr(path, ":/");
    em_status status = em_allocate(1, sizeof **out, out);
    em_numbers *n = *out;

    if (status)
        return status;
    n->path = path;
    n->name = n->file.file = H5I_INVALID_HID;
    for (int i = 0; i < EM_N_NUMBERS_PART; i++)
        n->part[i] = H5I_INVALID_HID;
    status = em_format_text(&n->file_path, "%.*s",
                            (int)(colon ? (size_t)(colon - path) : strlen(path)), path);
    n->descriptor = -1;
    status = status ? status : em_foreign_open(n->file_path, &n->file);
    if (!status)
        n->descriptor = open(n->file_path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    em_h5_crash_handler_begin(n->file_path ? n->file_path : path);
    status = status ? status : open_object(n, place);
    em_h5_crash_handler_end();
    if (!status && (n->form.n_row < 1 || n->form.n_column < 1))
        status = em_fail(EM_EDATA, "%s: found an empty dataset, expected rows of numbers", path);
    if (status)
        em_numbers_close(out);
    return status;
}

void em_numbers_close(em_numbers **out)
{
    em_numbers *n = *out;

    if (!n)
        return;
    for (int i = 0; i < EM_N_NUMBERS_PART; i++)
        em_h5_close(&n->part[i]);
    em_h5_close_all(&n->name, &n->file.file);
    em_file_close(&n->descriptor);
    em_release_all(&n->form.index[0], &n->form.index[1], &n->file_path, out);
}

em_numbers_form em_numbers_form_of(const em_numbers *n)
{
    return n->form;
}

/* ---------------------------------------------------------------- reading */

em_status em_numbers_names(const em_numbers *n, char ***name)
{
    char *text = NULL, one[EM_WIDEST_NAME + 1];

    *name = NULL;
    if (n->name < 0)
        return EM_OK;
    EM_SCOPED_ID hid_t type = H5Dget_type(n->name);
    const size_t width = H5Tget_size(type);
    em_status status = em_allocate(n->form.n_column, width, &text);
    status = status ? status : em_allocate(n->form.n_column, sizeof **name, name);
    if (!status)
        status = em_h5_check_read(H5Dread(n->name, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text),
                                  n->name, "cannot read the names");
    for (int64_t j = 0; !status && j < n->form.n_column; j++) {
        snprintf(one, sizeof one, "%.*s", (int)width, text + (size_t)j * width);
        status = em_text_valid(one, &(*name)[j]);
    }
    if (status)
        em_release_texts(n->form.n_column, name);
    em_release(&text);
    return status;
}

/* Selects rows, or entries, of a dataset in the file, and as many in memory. */
static void select_rows(hid_t dataset, int64_t first, int64_t count, hid_t *space, hid_t *memory)
{
    hsize_t extent[2] = {0, 1};

    *space = H5Dget_space(dataset);
    const int rank = H5Sget_simple_extent_dims(*space, extent, NULL);
    const hsize_t start[2] = {(hsize_t)first, 0}, n[2] = {(hsize_t)count, extent[1]};
    H5Sselect_hyperslab(*space, H5S_SELECT_SET, start, NULL, n, NULL);
    *memory = H5Screate_simple(rank, n, NULL);
}

em_status em_numbers_read(const em_numbers *n, em_numbers_part part, int64_t first, int64_t count,
                          void *out)
{
    EM_SCOPED_ID hid_t space = H5I_INVALID_HID, memory = H5I_INVALID_HID;

    if (count == 0)
        return EM_OK;
    select_rows(n->part[part], first, count, &space, &memory);
    return em_h5_check_read(
        H5Dread(n->part[part], memory_type(part), memory, space, H5P_DEFAULT, out), n->part[part],
        "unreadable content");
}

void em_numbers_ahead(const em_numbers *n, em_numbers_part part, int64_t first, int64_t count)
{
    const haddr_t offset = n->part[part] >= 0 ? H5Dget_offset(n->part[part]) : HADDR_UNDEF;

    if (n->descriptor < 0 || offset == HADDR_UNDEF || count <= 0)
        return;
    EM_SCOPED_ID hid_t type = H5Dget_type(n->part[part]);
    const int64_t size = (int64_t)H5Tget_size(type);
    posix_fadvise(n->descriptor, (off_t)offset + first * size, count * size, POSIX_FADV_WILLNEED);
}

/* ---------------------------------------------------------------- writing */

struct em_numbers_writer {
    hid_t file, group, part[EM_N_NUMBERS_PART];
};

bool em_numbers_is_ours(const char *path)
{
    EM_SCOPED_BY(em_foreign_close) em_foreign file;
    char text[16];

    return em_foreign_open(path, &file) == EM_OK &&
           em_attribute_read_text(file.file, "creation_library", sizeof text, text) &&
           strcmp(text, "emass") == 0;
}

/* Creates a dataset. It is contiguous, which is fastest to read, and stores no time, so that equal
 * tables are equal files. Its disk space is reserved first: HDF5 crashes at the end of a program
 * whose file it could not complete. The flush extends the file over the datasets before it. */
static em_status create_part(hid_t group, const char *name, hid_t type, int rank,
                             const hsize_t *extent, hid_t *out)
{
    const int64_t rows = (int64_t)extent[0] * (rank > 1 ? (int64_t)extent[1] : 1);
    em_status status = em_h5_check(H5Fflush(group, H5F_SCOPE_LOCAL), group, "cannot flush");

    status = status ? status : em_h5_reserve(group, rows * (int64_t)H5Tget_size(type));
    if (status)
        return status;
    EM_SCOPED_ID hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    EM_SCOPED_ID hid_t space = H5Screate_simple(rank, extent, NULL);
    H5Pset_obj_track_times(list, false);
    H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
    *out = H5Dcreate2(group, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    return em_h5_check(*out, group, "cannot create '%s'", name);
}

static em_status create_parts(const em_numbers_form *form, em_numbers_writer *w)
{
    const bool sparse = form->n_entry >= 0;
    const hsize_t rows = (hsize_t)form->n_row, entries = (hsize_t)form->n_entry;
    const hsize_t table[2] = {rows, (hsize_t)form->n_column}, ends = rows + 1;
    const struct {
        bool is;
        hid_t type;
        int rank;
        const hsize_t *extent;
    } part[EM_N_NUMBERS_PART] = {
        [EM_NUMBERS_VALUE] = {true, H5T_IEEE_F64LE, sparse ? 1 : 2, sparse ? &entries : table},
        [EM_NUMBERS_START] = {sparse, H5T_STD_I64LE, 1, &ends},
        [EM_NUMBERS_COLUMN] = {sparse, H5T_STD_I32LE, 1, &entries},
        [EM_NUMBERS_RESPONSE] = {form->labelled, H5T_IEEE_F64LE, 1, &rows}};
    em_status status = EM_OK;

    for (int i = 0; !status && i < EM_N_NUMBERS_PART; i++)
        if (part[i].is)
            status = create_part(w->group, part_name[i], part[i].type, part[i].rank, part[i].extent,
                                 &w->part[i]);
    return status;
}

/* Writes texts. Texts that are longer than a reader accepts are refused and not cut, because names
 * are part of the hash. */
em_status em_numbers_write_texts(em_numbers_writer *w, const char *as, int64_t n, char *const *text)
{
    const hsize_t extent = (hsize_t)n;
    EM_SCOPED_ID hid_t type = H5Tcopy(H5T_C_S1), dataset = H5I_INVALID_HID;
    size_t width = 1;
    EM_SCOPED char *all = NULL;
    em_status status = EM_OK;

    for (int64_t j = 0; j < n; j++)
        width = strlen(text[j]) > width ? strlen(text[j]) : width;
    if (width > EM_WIDEST_NAME)
        status = em_fail(EM_EDATA, "found a %s of %zu bytes, expected at most %d", as, width,
                         EM_WIDEST_NAME);
    status = status ? status : em_allocate(n, width, &all);
    for (int64_t j = 0; !status && j < n; j++)
        memcpy(all + (size_t)j * width, text[j], strlen(text[j]));
    H5Tset_size(type, width);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    H5Tset_cset(type, H5T_CSET_UTF8);
    status = status ? status : create_part(w->group, as, type, 1, &extent, &dataset);
    return status ? status
                  : em_h5_check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, all),
                                dataset, "cannot write '%s'", as);
}

static em_status write_digits(hid_t group, const char *name, uint64_t value)
{
    char text[17];

    snprintf(text, sizeof text, "%016" PRIx64, value);
    return em_attribute_write_text(group, name, text);
}

static em_status write_about(const em_numbers_form *form, const char *source, em_numbers_writer *w)
{
    em_status status = em_attribute_write_text(w->file, "creation_library", "emass");

    status = status ? status : write_digits(w->group, "hash", form->hash);
    return status ? status : em_attribute_write_text(w->group, "source", source);
}

/* Numbers are written at once and not kept in a buffer, so that a write fails where it is. */
static em_status create_file(const char *path, hid_t *file)
{
    char reason[512];
    em_status status = em_h5_make(path);

    if (status)
        return status;
    em_h5_quiet();
    EM_SCOPED_ID hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_sieve_buf_size(access, 0);
    *file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    em_h5_message(reason, sizeof reason);
    return *file < 0 ? em_fail(EM_EIO, "%s: cannot be created: %s", path, reason)
                     : em_h5_reserve_start(path);
}

em_status em_numbers_create(const char *path, const em_numbers_form *form, char *const *name,
                            const char *source, em_numbers_writer **out)
{
    em_status status = em_allocate(1, sizeof **out, out);
    em_numbers_writer *w = *out;

    if (status)
        return status;
    w->file = w->group = H5I_INVALID_HID;
    for (int i = 0; i < EM_N_NUMBERS_PART; i++)
        w->part[i] = H5I_INVALID_HID;
    status = create_file(path, &w->file);
    if (!status) {
        w->group = H5Gcreate2(w->file, EM_NUMBERS_PLACE, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        status = em_h5_check(w->group, w->file, "cannot create " EM_NUMBERS_PLACE);
    }
    status = status ? status : write_about(form, source, w);
    if (!status)
        status = name ? em_numbers_write_texts(w, "name", form->n_column, name)
                      : write_digits(w->group, "columns", (uint64_t)form->n_column);
    return status ? status : create_parts(form, w);
}

em_status em_numbers_write(em_numbers_writer *w, em_numbers_part part, int64_t first, int64_t count,
                           const void *value)
{
    const hid_t type = part == EM_NUMBERS_COLUMN ? H5T_NATIVE_INT32 : memory_type(part);
    EM_SCOPED_ID hid_t space = H5I_INVALID_HID, memory = H5I_INVALID_HID;

    if (count == 0)
        return EM_OK;
    select_rows(w->part[part], first, count, &space, &memory);
    const em_status status =
        em_h5_check(H5Dwrite(w->part[part], type, memory, space, H5P_DEFAULT, value), w->part[part],
                    "cannot write");
    return status ? status : em_h5_fault("hdf5-write", w->part[part]);
}

em_status em_numbers_finish(em_numbers_writer **out, em_status status)
{
    em_numbers_writer *w = *out;
    herr_t closed = 0;

    if (!w)
        return status;
    for (int i = 0; i < EM_N_NUMBERS_PART; i++)
        closed = em_h5_close(&w->part[i]) < 0 ? -1 : closed;
    closed = em_h5_close(&w->group) < 0 ? -1 : closed;
    const bool flushes = w->file >= 0 && closed >= 0;
    const herr_t flushed = flushes ? H5Fflush(w->file, H5F_SCOPE_GLOBAL) : 0;
    status = status ? status : em_h5_check(flushed, w->file, "cannot write");
    if ((em_h5_close(&w->file) < 0 || closed < 0) && !status)
        status = em_fail(EM_EIO, "the file could not be closed: is the disk full?");
    em_release(out);
    return status;
}
