#include "io/numbers.h"

#include "base/memory.h"
#include "base/text.h"
#include "io/foreign.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDEST_NAME = 1 << 12 };

static const hsize_t most_numbers = (hsize_t)1 << 40; /* 8 TB: no product overflows */

static const char *const part_name[EM_N_NUMBERS_PART] = {"value", "start", "column", "response"};

struct em_numbers {
    const char *path; /* for messages */
    char *file_path;
    em_foreign file;
    em_numbers_form form;
    hid_t part[EM_N_NUMBERS_PART], name;
};

bool em_numbers_is_hdf5(const char *path)
{
    static const char signature[] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
    char start[sizeof signature];
    const int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const bool is = descriptor >= 0 && read(descriptor, start, sizeof start) == sizeof start &&
                    memcmp(start, signature, sizeof start) == 0;

    if (descriptor >= 0)
        close(descriptor);
    return is;
}

/* ---------------------------------------------------------------- shapes */

/* The extents of a dataset of numbers of at most `most_axes` dimensions; those that it lacks are 1.
 */
static em_status get_shape(em_numbers *n, hid_t dataset, int most_axes, hsize_t shape[2])
{
    hid_t space = H5Dget_space(dataset);
    const int rank = H5Sget_simple_extent_ndims(space);
    const bool numbers = em_foreign_is_number(dataset);
    em_status status = EM_OK;

    shape[0] = shape[1] = 1;
    if (!numbers || rank < 1 || rank > most_axes)
        status = em_fail(EM_EDATA, "%s: found %s of %d dimensions, expected numbers in %d", n->path,
                         numbers ? "numbers" : "no numbers", rank, most_axes);
    else
        H5Sget_simple_extent_dims(space, shape, NULL);
    em_h5_close(&space);
    if (!status && shape[1] > 0 && shape[0] > most_numbers / shape[1])
        status = em_fail(EM_EDATA, "%s: found %llu x %llu numbers, expected fewer", n->path,
                         (unsigned long long)shape[0], (unsigned long long)shape[1]);
    if (!status)
        status = em_foreign_claim(&n->file, dataset, (double)shape[0] * (double)shape[1], 0);
    return status;
}

/* Opens a part that is there; *length -1: it is not. */
static em_status open_part(em_numbers *n, hid_t group, em_numbers_part part, int64_t *length)
{
    hsize_t shape[2];
    em_status status = em_foreign_member(&n->file, group, part_name[part], &n->part[part]);

    *length = -1;
    if (status || n->part[part] < 0)
        return status;
    status = get_shape(n, n->part[part], 1, shape);
    *length = (int64_t)shape[0];
    return status;
}

static em_status expect(const em_numbers *n, const char *what, int64_t found, int64_t expected)
{
    return found == expected ? EM_OK
                             : em_fail(EM_EDATA, "%s: found %s of length %lld, expected %lld",
                                       n->path, what, (long long)found, (long long)expected);
}

/* The names decide how many columns a sparse table has. */
static em_status open_names(em_numbers *n, hid_t group, int64_t *length)
{
    hsize_t extent = 0;
    em_status status = em_foreign_member(&n->file, group, "name", &n->name);

    *length = -1;
    if (status || n->name < 0)
        return status;
    hid_t space = H5Dget_space(n->name), type = H5Dget_type(n->name);
    const size_t width = H5Tget_size(type);
    if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 || width > WIDEST_NAME ||
        H5Sget_simple_extent_ndims(space) != 1)
        status = em_fail(EM_EDATA, "%s: found no list of texts as `name`, expected one", n->path);
    else
        H5Sget_simple_extent_dims(space, &extent, NULL);
    if (!status)
        status = em_foreign_claim_text(&n->file, (double)extent * (double)width);
    em_h5_close(&space);
    em_h5_close(&type);
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

/* The attribute is text, sixteen hexadecimal digits. */
static em_status get_hash(em_numbers *n, hid_t group)
{
    hid_t attribute =
        H5Aexists(group, "hash") > 0 ? H5Aopen(group, "hash", H5P_DEFAULT) : H5I_INVALID_HID;
    hid_t type = attribute >= 0 ? H5Aget_type(attribute) : H5I_INVALID_HID;
    char text[64] = "";

    if (type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 &&
        H5Tget_size(type) == 17 && H5Aget_storage_size(attribute) == 17)
        n->form.hashed = H5Aread(attribute, type, text) >= 0;
    text[16] = '\0';
    n->form.hash = strtoull(text, NULL, 16);
    em_h5_close(&type);
    em_h5_close(&attribute);
    return EM_OK;
}

static em_status open_group(em_numbers *n, hid_t group)
{
    int64_t start, column, response, names;
    hsize_t shape[2];
    em_status status = open_part(n, group, EM_NUMBERS_START, &start);

    if (!status)
        status = open_value(n, group, shape);
    if (!status)
        status = open_part(n, group, EM_NUMBERS_COLUMN, &column);
    if (!status)
        status = open_part(n, group, EM_NUMBERS_RESPONSE, &response);
    if (!status)
        status = open_names(n, group, &names);
    if (status)
        return status;
    const bool sparse = start >= 0;
    n->form = (em_numbers_form){.n_row = sparse ? start - 1 : (int64_t)shape[0],
                                .n_column = names >= 0 ? names : (int64_t)shape[1],
                                .n_entry = sparse ? (int64_t)shape[0] : -1,
                                .labelled = response >= 0};
    if (sparse && names < 0)
        return em_fail(EM_EDATA, "%s: found a sparse table without `name`, expected it", n->path);
    status = expect(n, "`name`", n->form.n_column, sparse ? names : (int64_t)shape[1]);
    if (!status && sparse)
        status = expect(n, "`column`", column, n->form.n_entry);
    if (!status && response >= 0)
        status = expect(n, "`response`", response, n->form.n_row);
    return status ? status : get_hash(n, group);
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

static em_status open_object(em_numbers *n, const char *place)
{
    hid_t object;
    em_status status = em_foreign_object(&n->file, place, &object);

    if (!status && H5Iget_type(object) == H5I_DATASET)
        return open_dataset(n, object);
    if (!status && H5Iget_type(object) == H5I_GROUP)
        status = open_group(n, object);
    else if (!status)
        status = em_fail(EM_EDATA, "%s: found no dataset '%s', expected one in %s", n->path, place,
                         n->file_path);
    em_h5_close(&object);
    return status;
}

em_status em_numbers_open(const char *path, const char *place, em_numbers **out)
{
    const char *colon = strstr(path, ":/");
    em_numbers *n;
    em_status status = em_allocate(1, sizeof *n, out);

    if (status)
        return status;
    n = *out;
    n->path = path;
    n->name = n->file.file = H5I_INVALID_HID;
    for (int i = 0; i < EM_N_NUMBERS_PART; i++)
        n->part[i] = H5I_INVALID_HID;
    status = em_format_text(&n->file_path, "%.*s",
                            (int)(colon ? (size_t)(colon - path) : strlen(path)), path);
    if (!status)
        status = em_foreign_open(n->file_path, &n->file);
    if (!status)
        status = open_object(n, place);
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
    em_h5_close(&n->name);
    em_h5_close(&n->file.file);
    em_release(&n->file_path);
    em_release(out);
}

em_numbers_form em_numbers_form_of(const em_numbers *n)
{
    return n->form;
}

/* ---------------------------------------------------------------- reading */

em_status em_numbers_names(em_numbers *n, char ***name)
{
    char *text = NULL, one[WIDEST_NAME + 1];
    em_status status = EM_OK;

    *name = NULL;
    if (n->name < 0)
        return EM_OK;
    hid_t type = H5Dget_type(n->name);
    const size_t width = H5Tget_size(type);
    status = em_allocate(n->form.n_column, width, &text);
    if (!status)
        status = em_allocate(n->form.n_column, sizeof **name, name);
    if (!status)
        status = em_h5_check_read(H5Dread(n->name, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text),
                                  n->name, "cannot read the names");
    for (int64_t j = 0; !status && j < n->form.n_column; j++) {
        snprintf(one, sizeof one, "%.*s", (int)width, text + (size_t)j * width);
        status = em_text_valid(one, &(*name)[j]);
    }
    for (int64_t j = 0; status && *name && j < n->form.n_column; j++)
        em_release(&(*name)[j]);
    if (status)
        em_release(name);
    em_h5_close(&type);
    em_release(&text);
    return status;
}

/* Rows (or entries) of a dataset in the file, and as many in memory. */
static void select_rows(hid_t dataset, int64_t first, int64_t count, hid_t *space, hid_t *memory)
{
    hsize_t extent[2] = {0, 1};

    *space = H5Dget_space(dataset);
    const int rank = H5Sget_simple_extent_dims(*space, extent, NULL);
    const hsize_t start[2] = {(hsize_t)first, 0}, n[2] = {(hsize_t)count, extent[1]};
    H5Sselect_hyperslab(*space, H5S_SELECT_SET, start, NULL, n, NULL);
    *memory = H5Screate_simple(rank, n, NULL);
}

static hid_t memory_type(em_numbers_part part)
{
    return part == EM_NUMBERS_START || part == EM_NUMBERS_COLUMN ? H5T_NATIVE_INT64
                                                                 : H5T_NATIVE_DOUBLE;
}

em_status em_numbers_read(const em_numbers *n, em_numbers_part part, int64_t first, int64_t count,
                          void *out)
{
    hid_t space, memory;
    em_status status;

    if (count == 0)
        return EM_OK;
    select_rows(n->part[part], first, count, &space, &memory);
    status =
        em_h5_check_read(H5Dread(n->part[part], memory_type(part), memory, space, H5P_DEFAULT, out),
                         n->part[part], "unreadable content");
    em_h5_close(&space);
    em_h5_close(&memory);
    return status;
}
