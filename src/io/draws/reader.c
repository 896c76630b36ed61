#include "base/memory.h"
#include "base/text.h"
#include "io/draws/dataset.h"
#include "io/draws/labels.h"
#include "io/draws/reader_file.h"

#include <hdf5_hl.h>
#include <math.h>
#include <string.h>

/* An existing group that the user may have meant. */
static const char *find_group(const em_reader *reader)
{
    static const char *const any[] = {"posterior", "predictions", "prior", "posterior_predictive",
                                      "prior_predictive"};

    for (size_t i = 0; i < sizeof any / sizeof *any; i++)
        if (H5Lexists(reader->file.file, any[i], H5P_DEFAULT) > 0)
            return any[i];
    return NULL;
}

static em_status open_group(em_reader *reader, const char *group)
{
    em_status status = em_foreign_open(reader->path, &reader->file);

    if (status || !group)
        return status;
    status = em_foreign_object(&reader->file, group, &reader->group);
    if (!status && H5Iget_type(reader->group) != H5I_GROUP) {
        const char *there = find_group(reader);
        status = em_fail(EM_EDATA, "%s: found no group %s, expected one of draws", reader->path,
                         em_excerpt_of(group).text);
        if (there)
            status = em_fail(EM_EDATA,
                             "%s: found no group %s, expected one of draws (it has group %s: emass "
                             "summary --group %s)",
                             reader->path, em_excerpt_of(group).text, there, there);
    }
    return status;
}

/* The number of draws at the start of a row of log densities that were written. Unwritten draws are
 * NaN. */
static int64_t count_written(int64_t n_draw, const double *lp)
{
    int64_t n = 0;

    while (n < n_draw && !isnan(lp[n]))
        n++;
    return n;
}

/* The log densities of all planned draws, [n_chain][n_planned]. */
static em_status read_lp(em_reader *reader, const char *path, double **lp)
{
    hsize_t extent[H5S_MAX_RANK] = {0};
    EM_SCOPED_ID hid_t id = H5I_INVALID_HID, space = H5I_INVALID_HID;
    em_status status = em_foreign_object(&reader->file, path, &id);

    if (!status && em_foreign_is_number(id))
        space = H5Dget_space(id);
    if (!status &&
        (H5Sget_simple_extent_ndims(space) != 2 ||
         H5Sget_simple_extent_dims(space, extent, NULL) != 2 ||
         extent[0] != (hsize_t)reader->n_chain || extent[1] != (hsize_t)reader->n_planned))
        status =
            em_fail(EM_EDATA, "%s: %s is %llu x %llu numbers, expected %lld x %lld", reader->path,
                    path, (unsigned long long)extent[0], (unsigned long long)extent[1],
                    (long long)reader->n_chain, (long long)reader->n_planned);
    status = status ? status : em_foreign_claim(&reader->file, id, em_foreign_count(id), 1);
    status = status ? status : em_allocate(reader->n_chain * reader->n_planned, sizeof **lp, lp);
    return status ? status : em_reader_read(id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, *lp);
}

/* Leaves out draws that were not written. The file of a run that has not ended has space for later
 * draws. Only draws that all chains have are used. */
static em_status leave_out_unwritten(em_reader *reader, const char *group)
{
    const char *stats =
        strncmp(group, "warmup_", 7) == 0 ? "warmup_sample_stats/lp" : "sample_stats/lp";
    int64_t complete = 1;
    EM_SCOPED double *lp = NULL;

    if (!em_reader_int(reader, "complete", &complete) || complete)
        return EM_OK;
    if (strcmp(group, "averages") == 0) { /* written when the run ends */
        reader->n_draw = 0;
        return EM_OK;
    }
    const em_status status = read_lp(reader, stats, &lp);
    for (int64_t c = 0; !status && c < reader->n_chain; c++) {
        const int64_t written = count_written(reader->n_planned, lp + c * reader->n_planned);
        reader->n_draw = written < reader->n_draw ? written : reader->n_draw;
    }
    return status;
}

/* Finds the variables of draws in a group. */

static em_status take_axes(const em_reader *reader, int n, const hsize_t *extent,
                           em_reader_variable *variable)
{
    double size = 1, longest = 0;

    if (n > EM_MOST_READER_AXES)
        return em_fail(EM_EDATA, "%s: %s has %d axes, expected at most %d", reader->path,
                       variable->name, n + 2, EM_MOST_READER_AXES + 2);
    variable->n_axes = n;
    variable->size = 1;
    for (int i = 0; i < n; i++) {
        size *= (double)extent[i];
        longest = fmax(longest, (double)extent[i]);
    }
    if (size > 0x1p53 || longest > 0x1p53)
        return em_fail(EM_EDATA,
                       "%s: %s has %.0f elements and an axis of %.0f, expected at most 2^53",
                       reader->path, variable->name, size, longest);
    for (int i = 0; i < n; i++) {
        variable->shape[i] = (int64_t)extent[i];
        variable->size *= variable->shape[i];
    }
    return EM_OK;
}

/* Checks the numbers of chains and draws of a variable. Those of the first variable hold for the
 * whole group. */
static em_status take_draws(em_reader *reader, const hsize_t extent[2], const char *name)
{
    if (extent[0] == 0)
        return em_fail(EM_EDATA, "%s: %s has no chains, expected one or more", reader->path, name);
    if (extent[0] > 1 << 30 || extent[1] > (hsize_t)1 << 53)
        return em_fail(
            EM_EDATA, "%s: %s has %llu chains of %llu draws, expected at most 2^30 of 2^53",
            reader->path, name, (unsigned long long)extent[0], (unsigned long long)extent[1]);
    if (reader->n_variable == 0) {
        reader->n_chain = (int64_t)extent[0];
        reader->n_draw = reader->n_planned = (int64_t)extent[1];
    }
    if ((int64_t)extent[0] != reader->n_chain || (int64_t)extent[1] != reader->n_planned)
        return em_fail(EM_EDATA,
                       "%s: %s has %lld chains of %lld draws, the variable before %lld of %lld",
                       reader->path, name, (long long)extent[0], (long long)extent[1],
                       (long long)reader->n_chain, (long long)reader->n_planned);
    return EM_OK;
}

/* Copies the extent of a dataset to the reader, after checking that the file can hold that much. */
static em_status take_extent(em_reader *reader, em_reader_entry *d)
{
    EM_SCOPED_ID hid_t space = H5Dget_space(d->id);
    hsize_t extent[H5S_MAX_RANK];
    const int rank = H5Sget_simple_extent_dims(space, extent, NULL);
    em_status status = take_axes(reader, rank - 2, extent + 2, &d->variable);

    status = status ? status : take_draws(reader, extent, d->variable.name);
    return status ? status
                  : em_foreign_claim(&reader->file, d->id,
                                     (double)extent[0] * (double)extent[1] *
                                         fmax(1, (double)d->variable.size),
                                     (double)d->variable.size);
}

/* Sets *wanted for datasets with the axes (chain, draw, ...). Others, such as coordinates, are
 * ignored. */
static em_status is_wanted(const em_reader *reader, const char *name, hid_t id, bool *wanted)
{
    char first[EM_AXIS_BYTES], second[EM_AXIS_BYTES];
    EM_SCOPED_ID hid_t space = H5Dget_space(id);
    const int rank = H5Sget_simple_extent_ndims(space);

    *wanted = false;
    if (rank < 2 || H5DSis_scale(id) > 0 || !em_foreign_is_number(id))
        return EM_OK;
    em_status status = em_axis_name(&reader->file, id, 0, first);
    status = status ? status : em_axis_name(&reader->file, id, 1, second);
    if (!status && strcmp(first, "draw") == 0 && strcmp(second, "chain") == 0)
        status = em_fail(EM_EDATA, "%s: %s has the axes (draw, chain), expected (chain, draw, ...)",
                         reader->path, em_excerpt_of(name).text);
    *wanted = !status && strcmp(first, "chain") == 0 && strcmp(second, "draw") == 0;
    return status;
}

static em_status take_dataset(void *context, const char *name, hid_t *id)
{
    em_reader *reader = context;
    em_reader_entry *d = &reader->variable[reader->n_variable];
    bool wanted;
    em_status status = is_wanted(reader, name, *id, &wanted);

    if (status || !wanted)
        return status;
    d->id = *id;
    *id = H5I_INVALID_HID;
    status = em_label_copy(name, &d->variable.name);
    status = status ? status : take_extent(reader, d);
    em_role_read(d->id, &d->variable.role, &d->variable.index_base, &d->variable.unwatched);
    reader->n_variable++;
    return status ? status : em_label_axes(&reader->file, d->id, &d->variable);
}

static em_status take_variables(em_reader *reader)
{
    const int64_t most = em_foreign_n_link(reader->group);
    em_status status = em_allocate(most, sizeof *reader->variable, &reader->variable);

    return status ? status
                  : em_foreign_each(&reader->file, reader->group, H5I_DATASET, most, take_dataset,
                                    reader);
}

em_status em_reader_open(const char *path, const char *group, em_reader **out)
{
    em_status status = em_allocate(1, sizeof **out, out);
    em_reader *reader = *out;

    if (status)
        return status;
    reader->file.file = reader->group = H5I_INVALID_HID;
    status = em_copy_text(path, &reader->path);
    status = status ? status : open_group(reader, group);
    if (!status && group)
        status = take_variables(reader);
    if (!status && group && reader->n_variable == 0)
        status = em_fail(
            EM_EDATA,
            "%s: found no (chain, draw, ...) variable in the group %s, expected one or more", path,
            em_excerpt_of(group).text);
    if (!status && group)
        status = leave_out_unwritten(reader, group);
    reader->n_own_draw = reader->n_draw;
    if (status)
        em_reader_close(out);
    return status;
}

void em_reader_close(em_reader **out)
{
    em_reader *reader = *out;

    if (!reader)
        return;
    em_reader_close(&reader->next);
    for (int64_t i = 0; i < reader->n_variable; i++) {
        em_reader_variable *variable = &reader->variable[i].variable;
        em_label_release(variable);
        em_release(&variable->name);
        em_h5_close(&reader->variable[i].id);
    }
    em_release(&reader->variable);
    em_h5_close_all(&reader->group, &reader->file.file);
    em_release_all(&reader->path, out);
}

em_reader *em_reader_next(const em_reader *reader)
{
    return reader->next;
}

const char *em_reader_path(const em_reader *reader)
{
    return reader->path;
}

int64_t em_reader_n_own_chain(const em_reader *reader)
{
    return reader->n_chain;
}

int64_t em_reader_n_own_draw(const em_reader *reader)
{
    return reader->n_own_draw;
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

int64_t em_reader_find(const em_reader *reader, const char *name)
{
    for (int64_t i = 0; i < reader->n_variable; i++)
        if (strcmp(em_reader_variable_at(reader, i)->name, name) == 0)
            return i;
    return -1;
}

/* Reads attributes, arrays and their labels. */

em_status em_reader_read(hid_t id, hid_t type, hid_t memory, hid_t space, void *out)
{
    const em_status status = em_h5_check_read(H5Dread(id, type, memory, space, H5P_DEFAULT, out),
                                              id, "cannot read the numbers");

    return status ? status : em_h5_fault("hdf5-read", id);
}

bool em_reader_text(em_reader *reader, const char *name, char **text)
{
    bool found = false;
    EM_SCOPED_ID hid_t type = H5I_INVALID_HID,
                       attribute = em_attribute_open(reader->file.file, name, H5T_STRING, &type);

    *text = NULL;
    if (attribute >= 0 && H5Tis_variable_str(type) == 0 &&
        em_allocate((int64_t)H5Tget_size(type) + 1, 1, text) == EM_OK)
        found = H5Aread(attribute, type, *text) >= 0;
    if (!found)
        em_release(text);
    return found;
}

static bool read_number(em_reader *reader, const char *name, H5T_class_t class, hid_t memory,
                        void *value)
{
    EM_SCOPED_ID hid_t type = H5I_INVALID_HID,
                       attribute = em_attribute_open(reader->file.file, name, class, &type);

    return attribute >= 0 && H5Aread(attribute, memory, value) >= 0;
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
    EM_SCOPED_ID hid_t object = H5I_INVALID_HID;

    snprintf(path, sizeof path, "%s/%s", group, name);
    return em_foreign_object(&reader->file, path, &object) == EM_OK && object >= 0;
}

/* Reads a dataset of numbers of an open file. */
static em_status read_array(em_foreign *file, const char *name, hid_t *id, int64_t *count,
                            double **value)
{
    em_status status = em_foreign_object(file, name, id);

    if (!status && !em_foreign_is_number(*id))
        status = em_fail(EM_EDATA, "%s: found no variable %s, expected a file of emass", file->path,
                         name);
    status = status ? status : em_foreign_claim(file, *id, em_foreign_count(*id), 1);
    if (status)
        return status;
    *count = (int64_t)em_foreign_count(*id);
    status = em_allocate(*count, sizeof **value, value);
    return status ? status : em_reader_read(*id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, *value);
}

em_status em_read_array(const char *path, const char *group, const char *name, int64_t *count,
                        double **value)
{
    EM_SCOPED_BY(em_foreign_close) em_foreign file;
    EM_SCOPED_ID hid_t id = H5I_INVALID_HID;
    EM_SCOPED char *place = NULL;
    em_status status = em_foreign_open(path, &file);

    *value = NULL;
    status = status ? status : em_format_text(&place, "%s/%s", group, name);
    status = status ? status : read_array(&file, place, &id, count, value);
    if (status)
        em_release(value);
    return status;
}

static em_status read_labels(em_foreign *file, const char *name, hid_t *id, int64_t *count,
                             char ***label)
{
    hsize_t extent[H5S_MAX_RANK] = {0};
    hid_t space = H5I_INVALID_HID;
    int rank = 0;
    em_status status = em_foreign_object(file, name, id);

    if (!status && *id >= 0 && H5Iget_type(*id) == H5I_DATASET) {
        space = H5Dget_space(*id);
        rank = H5Sget_simple_extent_dims(space, extent, NULL);
        em_h5_close(&space);
    }
    if (!status && (rank < 1 || rank > 2))
        status = em_fail(EM_EDATA, "%s: found no coordinate %s, expected a file of emass",
                         file->path, name);
    status = status ? status : em_foreign_claim(file, *id, (double)extent[0], (double)extent[0]);
    *count = status ? 0 : (int64_t)extent[0];
    return status ? status : em_labels_of(file, *id, 0, *count, label);
}

em_status em_read_labels(const char *path, const char *name, int64_t *count, char ***label)
{
    EM_SCOPED_BY(em_foreign_close) em_foreign file;
    EM_SCOPED_ID hid_t id = H5I_INVALID_HID;
    em_status status = em_foreign_open(path, &file);

    *label = NULL;
    status = status ? status : read_labels(&file, name, &id, count, label);
    if (status)
        em_release_texts(*label ? *count : 0, label);
    return status;
}
