#include "io/draws/reader_file.h"

#include "base/memory.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

/* A group that is there, of those that may be meant. */
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

/* Draws at the start of a row of log densities, which are NaN where none has been written yet. */
static int64_t count_written(int64_t n_draw, const double *lp)
{
    int64_t n = 0;

    while (n < n_draw && !isnan(lp[n]))
        n++;
    return n;
}

/* The log densities of all draws that there is room for, [n_chain][n_planned]. */
static em_status read_lp(em_reader *reader, const char *path, double **lp)
{
    hsize_t extent[H5S_MAX_RANK] = {0};
    hid_t id, space = H5I_INVALID_HID;
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
    if (!status)
        status = em_foreign_claim(&reader->file, id, em_foreign_count(id), 1);
    if (!status)
        status = em_allocate(reader->n_chain * reader->n_planned, sizeof **lp, lp);
    if (!status)
        status = em_reader_read(id, H5S_ALL, H5S_ALL, *lp);
    em_h5_close(&space);
    em_h5_close(&id);
    return status;
}

/* A run that has not ended has room for draws to come: only those that all chains have are shown.
 */
static em_status leave_out_unwritten(em_reader *reader, const char *group)
{
    const char *stats =
        strncmp(group, "warmup_", 7) == 0 ? "warmup_sample_stats/lp" : "sample_stats/lp";
    int64_t complete = 1;
    double *lp = NULL;
    em_status status;

    if (!em_reader_int(reader, "complete", &complete) || complete)
        return EM_OK;
    status = read_lp(reader, stats, &lp);
    for (int64_t c = 0; !status && c < reader->n_chain; c++) {
        const int64_t written = count_written(reader->n_planned, lp + c * reader->n_planned);
        reader->n_draw = written < reader->n_draw ? written : reader->n_draw;
    }
    em_release(&lp);
    return status;
}

em_status em_reader_open(const char *path, const char *group, em_reader **out)
{
    em_reader *reader = NULL;
    em_status status = em_allocate(1, sizeof *reader, &reader);

    *out = NULL;
    if (status)
        return status;
    reader->file.file = reader->group = H5I_INVALID_HID;
    status = em_copy_text(path, &reader->path);
    if (!status)
        status = open_group(reader, group);
    if (!status && group)
        status = em_reader_take_variables(reader);
    if (!status && group && reader->n_variable == 0)
        status = em_fail(EM_EDATA, "%s: found no (chain, draw, ...) variable in the group %s", path,
                         em_excerpt_of(group).text);
    if (!status && group)
        status = leave_out_unwritten(reader, group);
    reader->n_own_draw = reader->n_draw;
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
    em_reader_close(&reader->next);
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
    em_h5_close(&reader->file.file);
    em_release(&reader->path);
    em_release(out);
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
