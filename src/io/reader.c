#include "io/reader.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/memory.h"
#include "io/hdf5.h"

#include <errno.h>
#include <hdf5_hl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_AXES = 8, LONGEST_LABEL = 256 };
static const int64_t most_elements = INT64_C(1) << 24; /* more rows than a table is read for */

typedef struct dataset {
    em_reader_variable variable;
    hid_t id;
} dataset;

struct em_reader {
    char *path;
    hid_t file, group;
    int64_t n_chain, n_draw, n_planned, n_variable;
    dataset *variable;
};

/* ---------------------------------------------------------------- what a file claims */

/* Whether the dataset stores enough for so many numbers to be believed, and the bytes it stores. */
static bool is_believable(hid_t id, double numbers, hsize_t *stored)
{
    *stored = H5Dget_storage_size(id);
    return em_is_believable(numbers, (double)*stored);
}

/* How many numbers a dataset claims, whatever the product of its extents. */
static double claimed(hid_t id)
{
    hid_t space = H5Dget_space(id);
    hsize_t extent[H5S_MAX_RANK];
    const int rank = H5Sget_simple_extent_dims(space, extent, NULL);
    double product = 1;

    for (int i = 0; i < rank; i++)
        product *= (double)extent[i];
    em_h5_close(&space);
    return product;
}

/* ---------------------------------------------------------------- labels of elements */

/* The coordinates of one axis as text, [n] of LONGEST_LABEL bytes each; numbers where it has no
 * coordinate of its own. */
static em_status number_labels(hid_t scale, int64_t n, char (*label)[LONGEST_LABEL])
{
    int64_t *number = NULL;
    em_status status = em_allocate(n, sizeof *number, &number);

    for (int64_t i = 0; !status && i < n; i++)
        number[i] = i;
    if (!status && scale >= 0)
        H5Dread(scale, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, number);
    for (int64_t i = 0; !status && i < n; i++)
        snprintf(label[i], LONGEST_LABEL, "%lld", (long long)number[i]);
    em_release(&number);
    return status;
}

/* Labels of `width` bytes: texts of that length, or rows of so many characters. */
static em_status fixed_labels(hid_t scale, hid_t type, int64_t n, size_t width,
                              char (*label)[LONGEST_LABEL])
{
    const int precision = width < LONGEST_LABEL ? (int)width : LONGEST_LABEL;
    hsize_t stored;
    char *text = NULL;
    em_status status = EM_OK;

    if (!is_believable(scale, (double)n * (double)width, &stored))
        status = em_h5_check_read(-1, scale, "labels wider than all that is stored");
    if (!status)
        status = em_allocate(n, width, &text);
    if (!status)
        status = em_h5_check_read(H5Dread(scale, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text), scale,
                                  "cannot read the labels");
    for (int64_t i = 0; !status && i < n; i++)
        snprintf(label[i], LONGEST_LABEL, "%.*s", precision, text + (size_t)i * width);
    em_release(&text);
    return status;
}

static em_status variable_labels(hid_t scale, hid_t type, hid_t space, int64_t n,
                                 char (*label)[LONGEST_LABEL])
{
    hid_t memory = H5Tcopy(H5T_C_S1);
    char **text = NULL;
    em_status status = em_allocate(n, sizeof *text, &text);

    H5Tset_size(memory, H5T_VARIABLE);
    H5Tset_cset(memory, H5Tget_cset(type));
    if (!status)
        status = em_h5_check_read(H5Dread(scale, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, text),
                                  scale, "cannot read the labels");
    for (int64_t i = 0; !status && i < n; i++)
        snprintf(label[i], LONGEST_LABEL, "%s", text[i] ? text[i] : "");
    if (!status)
        H5Dvlen_reclaim(memory, space, H5P_DEFAULT, text);
    em_release(&text);
    em_h5_close(&memory);
    return status;
}

static em_status axis_labels(hid_t scale, int64_t n, char (*label)[LONGEST_LABEL])
{
    hsize_t extent[H5S_MAX_RANK] = {0};
    hid_t type, space;
    int rank;
    em_status status;

    if (scale < 0)
        return number_labels(scale, n, label);
    type = H5Dget_type(scale);
    space = H5Dget_space(scale);
    rank = H5Sget_simple_extent_dims(space, extent, NULL);
    if (rank < 1 || rank > 2 || extent[0] != (hsize_t)n)
        status = number_labels(H5I_INVALID_HID, n, label);
    else if (rank == 2 && H5Tget_class(type) == H5T_STRING && H5Tget_size(type) == 1)
        status = fixed_labels(scale, type, n, (size_t)extent[1], label);
    else if (rank == 2 || H5Tget_class(type) != H5T_STRING)
        status = number_labels(rank == 1 ? scale : H5I_INVALID_HID, n, label);
    else if (H5Tis_variable_str(type) > 0)
        status = variable_labels(scale, type, space, n, label);
    else
        status = fixed_labels(scale, type, n, H5Tget_size(type), label);
    em_h5_close(&type);
    em_h5_close(&space);
    return status;
}

static herr_t first_scale(hid_t variable, unsigned axis, hid_t scale, void *out)
{
    (void)variable;
    (void)axis;
    *(hid_t *)out = scale;
    H5Iinc_ref(scale); /* the iteration closes its own */
    return 1;
}

/* The coordinate dataset of an axis, or invalid. */
static hid_t scale_of(hid_t id, unsigned axis)
{
    hid_t scale = H5I_INVALID_HID;

    if (H5DSget_num_scales(id, axis) > 0)
        H5DSiterate_scales(id, axis, NULL, first_scale, &scale);
    return scale;
}

/* "theta[Choate]", "beta[2,x]": element k of the variable from the labels of its axes. */
static em_status write_labels(em_reader_variable *variable, char (*const *axis)[LONGEST_LABEL])
{
    em_status status = em_allocate(variable->size, sizeof *variable->label, &variable->label);

    for (int64_t k = 0; !status && k < variable->size; k++) {
        char text[MOST_AXES * LONGEST_LABEL];
        size_t length = (size_t)snprintf(text, sizeof text, "%s", variable->name);
        int64_t stride = variable->size;
        for (int i = 0; i < variable->n_axes && length < sizeof text; i++) {
            stride /= variable->shape[i];
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i ? "," : "[",
                                       axis[i][k / stride % variable->shape[i]]);
        }
        status = em_format_text(&variable->label[k], "%s%s", text, variable->n_axes ? "]" : "");
    }
    return status;
}

static em_status label_elements(dataset *d)
{
    char(*axis[MOST_AXES])[LONGEST_LABEL] = {NULL};
    em_status status = EM_OK;

    for (int i = 0; !status && i < d->variable.n_axes; i++) {
        hid_t scale = scale_of(d->id, (unsigned)i + 2);
        status = em_allocate(d->variable.shape[i], LONGEST_LABEL, &axis[i]);
        if (!status)
            status = axis_labels(scale, d->variable.shape[i], axis[i]);
        em_h5_close(&scale);
    }
    if (!status)
        status = write_labels(&d->variable, axis);
    for (int i = 0; i < d->variable.n_axes; i++)
        em_release(&axis[i]);
    return status;
}

/* ---------------------------------------------------------------- variables of the group */

/* The name of the coordinate of an axis, "" where it has none. */
static void axis_name(hid_t id, unsigned axis, char *name, size_t bytes)
{
    hid_t scale = scale_of(id, axis);
    char path[1024] = "";

    if (scale >= 0)
        H5Iget_name(scale, path, sizeof path);
    snprintf(name, bytes, "%s", strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    em_h5_close(&scale);
}

static bool is_number(hid_t id)
{
    hid_t type = H5Dget_type(id);
    const H5T_class_t class = H5Tget_class(type);

    em_h5_close(&type);
    return class == H5T_FLOAT || class == H5T_INTEGER || class == H5T_ENUM;
}

static em_status take_axes(const em_reader *reader, int n, const hsize_t *extent,
                           em_reader_variable *variable)
{
    variable->n_axes = n;
    variable->size = 1;
    if (n > MOST_AXES)
        return em_fail(EM_EDATA, "%s: %s has %d axes, expected at most %d", reader->path,
                       variable->name, n + 2, MOST_AXES + 2);
    for (int i = 0; i < n; i++) {
        if (extent[i] > (hsize_t)(most_elements / (variable->size ? variable->size : 1)))
            return em_fail(EM_EDATA, "%s: %s has more elements than can be read", reader->path,
                           variable->name);
        variable->shape[i] = (int64_t)extent[i];
        variable->size *= variable->shape[i];
    }
    return EM_OK;
}

/* The first of (chain, draw, ...) sets their extents. */
static em_status take_draws(em_reader *reader, const hsize_t extent[2], const dataset *d)
{
    hsize_t stored;

    if (!is_believable(d->id, (double)extent[0] * (double)extent[1], &stored))
        return em_fail(EM_EDATA, "%s: %s claims %llu chains of %llu draws, but has only %llu bytes",
                       reader->path, d->variable.name, (unsigned long long)extent[0],
                       (unsigned long long)extent[1], (unsigned long long)stored);
    if (reader->n_variable == 0) {
        reader->n_chain = (int64_t)extent[0];
        reader->n_draw = reader->n_planned = (int64_t)extent[1];
    }
    if ((int64_t)extent[0] != reader->n_chain || (int64_t)extent[1] != reader->n_planned)
        return em_fail(EM_EDATA,
                       "%s: %s has %lld chains of %lld draws, the variable before %lld of %lld",
                       reader->path, d->variable.name, (long long)extent[0], (long long)extent[1],
                       (long long)reader->n_chain, (long long)reader->n_planned);
    return EM_OK;
}

/* Takes the extent of a dataset into the reader. */
static em_status take_extent(em_reader *reader, dataset *d)
{
    hid_t space = H5Dget_space(d->id);
    hsize_t extent[H5S_MAX_RANK];
    const int rank = H5Sget_simple_extent_dims(space, extent, NULL);
    em_status status = take_axes(reader, rank - 2, extent + 2, &d->variable);

    em_h5_close(&space);
    return status ? status : take_draws(reader, extent, d);
}

/* Sets *wanted for datasets of (chain, draw, ...): others, coordinates among them, are passed over.
 */
static em_status is_wanted(const em_reader *reader, const char *name, hid_t id, bool *wanted)
{
    char first[64], second[64];
    hid_t space = H5Dget_space(id);
    const int rank = H5Sget_simple_extent_ndims(space);

    em_h5_close(&space);
    *wanted = false;
    if (rank < 2 || H5DSis_scale(id) > 0 || !is_number(id))
        return EM_OK;
    axis_name(id, 0, first, sizeof first);
    axis_name(id, 1, second, sizeof second);
    if (strcmp(first, "draw") == 0 && strcmp(second, "chain") == 0)
        return em_fail(EM_EDATA, "%s: %s has the axes (draw, chain), expected (chain, draw, ...)",
                       reader->path, name);
    *wanted = strcmp(first, "chain") == 0 && strcmp(second, "draw") == 0;
    return EM_OK;
}

static em_status take_dataset(em_reader *reader, const char *name, hid_t id)
{
    dataset *d = &reader->variable[reader->n_variable];
    bool wanted;
    em_status status = is_wanted(reader, name, id, &wanted);

    if (status || !wanted) {
        em_h5_close(&id);
        return status;
    }
    d->id = id;
    status = em_copy_text(name, &d->variable.name);
    if (!status)
        status = take_extent(reader, d);
    reader->n_variable++;
    return status ? status : label_elements(d);
}

static H5_index_t order_of(hid_t group)
{
    hid_t list = H5Gget_create_plist(group);
    unsigned order = 0;

    H5Pget_link_creation_order(list, &order);
    em_h5_close(&list);
    return order & H5P_CRT_ORDER_INDEXED ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
}

static em_status take_variables(em_reader *reader)
{
    const H5_index_t order = order_of(reader->group);
    H5G_info_t info = {0};
    em_status status =
        em_h5_check_read(H5Gget_info(reader->group, &info), reader->file, "cannot list the group");

    if (!status)
        status = em_allocate((int64_t)info.nlinks, sizeof *reader->variable, &reader->variable);
    for (hsize_t i = 0; !status && i < info.nlinks; i++) {
        char name[256] = "";
        H5Lget_name_by_idx(reader->group, ".", order, H5_ITER_INC, i, name, sizeof name,
                           H5P_DEFAULT);
        const hid_t id = H5Dopen2(reader->group, name, H5P_DEFAULT);
        if (id >= 0)
            status = take_dataset(reader, name, id);
    }
    return status;
}

/* ---------------------------------------------------------------- open and close */

/* Whether a path is to blame and not the disk. */
static bool leads_nowhere(int code)
{
    return code == 0 || code == ENOENT || code == ENOTDIR || code == EISDIR || code == EACCES;
}

static em_status open_file(const char *path, hid_t *file)
{
    em_status status = em_fault_file("hdf5-open", path);
    char reason[512];

    if (!status)
        status = em_file_check(path);
    /* A reader's lock could make a writer of the same file fail. */
    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);
    if (!status && (*file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT)) < 0) {
        const int code = em_h5_message(reason, sizeof reason);
        status = em_fail(leads_nowhere(code) ? EM_EDATA : EM_EIO, "%s: expected an HDF5 file: %s",
                         path, reason);
    }
    return status;
}

static em_status open_group(em_reader *reader, const char *group)
{
    em_status status = open_file(reader->path, &reader->file);

    if (status)
        return status;
    if (H5Lexists(reader->file, group, H5P_DEFAULT) > 0)
        reader->group = H5Gopen2(reader->file, group, H5P_DEFAULT);
    if (reader->group < 0)
        return em_fail(EM_EDATA, "%s: found no group %s, expected one of draws", reader->path,
                       group);
    return EM_OK;
}

static int64_t element_count(hid_t id)
{
    hid_t space = H5Dget_space(id);
    const int64_t count = (int64_t)H5Sget_simple_extent_npoints(space);

    em_h5_close(&space);
    return count;
}

static em_status read_numbers(hid_t id, hid_t memory, hid_t space, double *out)
{
    const em_status status =
        em_h5_check_read(H5Dread(id, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, out), id,
                         "cannot read the numbers");

    return status ? status : em_h5_fault("hdf5-read", id);
}

/* Draws at the start of a row of log densities, which are NaN where none has been written yet. */
static int64_t count_written(int64_t n_draw, const double *lp)
{
    int64_t n = 0;

    while (n < n_draw && !isnan(lp[n]))
        n++;
    return n;
}

/* A run that has not ended has room for draws to come: only those that all chains have are shown.
 */
static em_status leave_out_unwritten(em_reader *reader, const char *group)
{
    const char *stats =
        strncmp(group, "warmup_", 7) == 0 ? "warmup_sample_stats/lp" : "sample_stats/lp";
    int64_t complete = 1;
    double *lp = NULL;
    hid_t id;
    em_status status;

    if (!em_reader_int(reader, "complete", &complete) || complete)
        return EM_OK;
    id = H5Dopen2(reader->file, stats, H5P_DEFAULT);
    status = em_h5_check_read(id, reader->file, stats);
    if (!status && element_count(id) != reader->n_chain * reader->n_planned)
        status =
            em_fail(EM_EDATA, "%s: %s has %lld numbers, expected %lld", reader->path, stats,
                    (long long)element_count(id), (long long)(reader->n_chain * reader->n_planned));
    if (!status)
        status = em_allocate(reader->n_chain * reader->n_planned, sizeof *lp, &lp);
    if (!status)
        status = read_numbers(id, H5S_ALL, H5S_ALL, lp);
    for (int64_t c = 0; !status && c < reader->n_chain; c++) {
        const int64_t written = count_written(reader->n_planned, lp + c * reader->n_planned);
        reader->n_draw = written < reader->n_draw ? written : reader->n_draw;
    }
    em_release(&lp);
    em_h5_close(&id);
    return status;
}

em_status em_reader_open(const char *path, const char *group, em_reader **out)
{
    em_reader *reader = NULL;
    em_status status = em_allocate(1, sizeof *reader, &reader);

    em_h5_quiet();
    *out = NULL;
    if (status)
        return status;
    reader->file = reader->group = H5I_INVALID_HID;
    status = em_copy_text(path, &reader->path);
    if (!status)
        status = open_group(reader, group);
    if (!status)
        status = take_variables(reader);
    if (!status && reader->n_variable == 0)
        status = em_fail(EM_EDATA, "%s: found no (chain, draw, ...) variable in the group %s", path,
                         group);
    if (!status)
        status = leave_out_unwritten(reader, group);
    if (status)
        em_reader_close(&reader);
    *out = reader;
    return status;
}

void em_reader_close(em_reader **out)
{
    em_reader *reader = *out;

    if (!reader)
        return;
    for (int64_t i = 0; i < reader->n_variable; i++) {
        em_reader_variable *variable = &reader->variable[i].variable;
        for (int64_t k = 0; variable->label && k < variable->size; k++)
            em_release(&variable->label[k]);
        em_release(&variable->label);
        em_release(&variable->name);
        em_h5_close(&reader->variable[i].id);
    }
    em_release(&reader->variable);
    em_h5_close(&reader->group);
    em_h5_close(&reader->file);
    em_release(&reader->path);
    em_release(out);
}

/* ---------------------------------------------------------------- access */

int64_t em_reader_n_chain(const em_reader *reader)
{
    return reader->n_chain;
}

int64_t em_reader_n_draw(const em_reader *reader)
{
    return reader->n_draw;
}

int64_t em_reader_n_planned(const em_reader *reader)
{
    return reader->n_planned;
}

int64_t em_reader_n_variable(const em_reader *reader)
{
    return reader->n_variable;
}

const em_reader_variable *em_reader_variable_at(const em_reader *reader, int64_t i)
{
    return &reader->variable[i].variable;
}

/* The draws of one element, or of a run of elements along the last axis, into rows[chain][draw][n].
 */
static em_status read_run(const em_reader *reader, const dataset *d, int64_t first, int64_t n,
                          double *rows)
{
    hsize_t start[MOST_AXES + 2] = {0};
    hsize_t count[MOST_AXES + 2] = {(hsize_t)reader->n_chain, (hsize_t)reader->n_draw};
    const int rank = d->variable.n_axes + 2;
    const hsize_t total = (hsize_t)(reader->n_chain * reader->n_draw * n);
    hid_t memory, space;
    em_status status;

    for (int i = rank - 1; i >= 2; i--) {
        start[i] = (hsize_t)(first % d->variable.shape[i - 2]);
        first /= d->variable.shape[i - 2];
        count[i] = i == rank - 1 ? (hsize_t)n : 1;
    }
    if (total == 0)
        return EM_OK;
    space = H5Dget_space(d->id);
    memory = H5Screate_simple(1, &total, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    status = read_numbers(d->id, memory, space, rows);
    em_h5_close(&space);
    em_h5_close(&memory);
    return status;
}

em_status em_reader_elements(em_reader *reader, int64_t i, int64_t first, int64_t n, double *out)
{
    const dataset *d = &reader->variable[i];
    const int64_t last_axis = d->variable.n_axes ? d->variable.shape[d->variable.n_axes - 1] : 1;
    const int64_t n_row = reader->n_chain * reader->n_draw;
    double *rows = NULL;
    em_status status = em_allocate(n_row * (n < last_axis ? n : last_axis), sizeof *rows, &rows);

    for (int64_t end = first + n, size; !status && first < end; first += size) {
        const int64_t left = last_axis - first % last_axis; /* a run stays within the last axis */
        size = end - first < left ? end - first : left;
        status = read_run(reader, d, first, size, rows);
        for (int64_t k = 0; !status && k < size; k++, out += n_row)
            for (int64_t r = 0; r < n_row; r++)
                out[r] = rows[r * size + k];
    }
    em_release(&rows);
    return status;
}

em_status em_reader_draws(em_reader *reader, int64_t i, int64_t first_chain, int64_t n_chain,
                          int64_t first, int64_t n, double *out)
{
    const dataset *d = &reader->variable[i];
    hsize_t start[MOST_AXES + 2] = {(hsize_t)first_chain, (hsize_t)first};
    hsize_t count[MOST_AXES + 2] = {(hsize_t)n_chain, (hsize_t)n};
    const hsize_t total = (hsize_t)(n_chain * n * d->variable.size);
    hid_t memory, space;
    em_status status;

    for (int axis = 0; axis < d->variable.n_axes; axis++)
        count[axis + 2] = (hsize_t)d->variable.shape[axis];
    if (total == 0)
        return EM_OK;
    space = H5Dget_space(d->id);
    memory = H5Screate_simple(1, &total, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    status = read_numbers(d->id, memory, space, out);
    em_h5_close(&space);
    em_h5_close(&memory);
    return status;
}

/* ---------------------------------------------------------------- attributes */

/* The root attribute, where it is one value of this class, and its type. */
static hid_t open_attribute(const em_reader *reader, const char *name, H5T_class_t class,
                            hid_t *type)
{
    hid_t attribute = H5I_INVALID_HID, space;
    hssize_t count;

    *type = H5I_INVALID_HID;
    if (H5Aexists(reader->file, name) > 0)
        attribute = H5Aopen(reader->file, name, H5P_DEFAULT);
    if (attribute < 0)
        return attribute;
    *type = H5Aget_type(attribute);
    space = H5Aget_space(attribute);
    count = H5Sget_simple_extent_npoints(space);
    em_h5_close(&space);
    if (count != 1 || H5Tget_class(*type) != class)
        em_h5_close(&attribute);
    return attribute;
}

bool em_reader_text(em_reader *reader, const char *name, char **text)
{
    bool found = false;
    hid_t type, attribute = open_attribute(reader, name, H5T_STRING, &type);

    *text = NULL;
    if (attribute >= 0 && H5Tis_variable_str(type) == 0 &&
        em_allocate((int64_t)H5Tget_size(type) + 1, 1, text) == EM_OK)
        found = H5Aread(attribute, type, *text) >= 0;
    if (!found)
        em_release(text);
    em_h5_close(&type);
    em_h5_close(&attribute);
    return found;
}

static bool read_number(em_reader *reader, const char *name, H5T_class_t class, hid_t memory,
                        void *value)
{
    hid_t type, attribute = open_attribute(reader, name, class, &type);
    const bool found = attribute >= 0 && H5Aread(attribute, memory, value) >= 0;

    em_h5_close(&type);
    em_h5_close(&attribute);
    return found;
}

bool em_reader_int(em_reader *reader, const char *name, int64_t *value)
{
    return read_number(reader, name, H5T_INTEGER, H5T_NATIVE_INT64, value);
}

bool em_reader_real(em_reader *reader, const char *name, double *value)
{
    return read_number(reader, name, H5T_FLOAT, H5T_NATIVE_DOUBLE, value);
}

bool em_reader_has(em_reader *reader, const char *group, const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", group, name);
    return H5Lexists(reader->file, group, H5P_DEFAULT) > 0 &&
           H5Lexists(reader->file, path, H5P_DEFAULT) > 0;
}

em_status em_read_array(const char *path, const char *name, int64_t *count, double **value)
{
    hid_t file = H5I_INVALID_HID, id = H5I_INVALID_HID;
    hsize_t stored;
    em_status status;

    em_h5_quiet();
    *value = NULL;
    status = open_file(path, &file);
    if (!status)
        id = H5Dopen2(file, name, H5P_DEFAULT);
    if (!status && (id < 0 || !is_number(id)))
        status = em_fail(EM_EDATA, "%s: found no numbers called %s, expected a file of emass", path,
                         name);
    if (!status && !is_believable(id, claimed(id), &stored))
        status = em_fail(EM_EDATA, "%s: %s claims %.0f numbers, but has only %llu bytes", path,
                         name, claimed(id), (unsigned long long)stored);
    if (!status) {
        *count = element_count(id);
        status = em_allocate(*count, sizeof **value, value);
    }
    if (!status)
        status = read_numbers(id, H5S_ALL, H5S_ALL, *value);
    em_h5_close(&id);
    em_h5_close(&file);
    return status;
}
