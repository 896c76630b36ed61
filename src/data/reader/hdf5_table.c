/* Tables in HDF5 files (io/hdf5/numbers.h). Each rank reads an equal part of the rows. */
#include "base/memory.h"
#include "base/text.h"
#include "data/reader/readers.h"
#include "io/draws/reader.h"
#include "io/hdf5/numbers.h"
#include "par/grid.h"
#include "par/message.h"
#include "par/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SLAB_NUMBERS = 1 << 17 }; /* 1 MiB at a time */

/* A table of which a range of rows is being read. */
struct em_rows_source {
    em_numbers *numbers;
    em_numbers_form form;
    em_table *table;
    bool chosen;      /* numbers that are not finite are checked after the columns are chosen */
    int64_t row, end; /* rows row .. end - 1 are still to be read */
    int64_t most;     /* numbers of the table after which no more rows are read */
    int64_t *start, *column;
    double *response;
    int64_t column_capacity;
};

static em_status check_finite(const em_rows_source *s, int64_t row, int64_t column, double value)
{
    return isfinite(value) || s->chosen
               ? EM_OK
               : em_fail(EM_EDATA, "%s:%lld: found %g for column %lld, expected a finite number",
                         s->table->path, (long long)row + 1, value, (long long)column + 1);
}

/* Reads directly into the table, which has memory for all rows. */
static em_status read_dense(em_rows_source *s, int64_t count)
{
    double *to = s->table->value + s->table->n_value;
    em_status status = em_numbers_read(s->numbers, EM_NUMBERS_VALUE, s->row, count, to);

    for (int64_t i = 0; !status && !s->chosen && i < count * s->form.n_column; i++)
        if (!isfinite(to[i]))
            status = check_finite(s, s->row + i / s->form.n_column, i % s->form.n_column, to[i]);
    return status ? status : em_table_end_rows(s->table, s->row + 1, count);
}

static em_status fail_sparse(const em_rows_source *s, int64_t row, const char *found)
{
    return em_fail(EM_EDATA, "%s:%lld: found %s, expected ascending ones within the table",
                   s->table->path, (long long)row + 1, found);
}

/* What is wrong with the starts of the entries of row i and of the next row; NULL: nothing. All
 * entries of the file are between the start of the first row and the end of the last. */
static const char *objection_to_starts(const em_rows_source *s, int64_t i)
{
    const int64_t row = s->row + i, first = s->start[i], end = s->start[i + 1];

    if (first < 0 || end > s->form.n_entry)
        return "a start of entries out of range";
    if (end < first)
        return "starts of entries that descend";
    if ((row == 0 && first != 0) || (row == s->form.n_row - 1 && end != s->form.n_entry))
        return "starts of entries that do not span all entries";
    return NULL;
}

typedef struct entry {
    int64_t column;
    double value;
} entry;

/* Sorts the entries of one row by column, because rows of scipy's matrices may have their columns
 * in any order. */
static em_status sort_entries(int64_t n, int64_t *column, double *value)
{
    EM_SCOPED entry *all = NULL;
    int64_t ascending = 1;

    while (ascending < n && column[ascending] > column[ascending - 1])
        ascending++;
    if (ascending >= n)
        return EM_OK;
    const em_status status = em_allocate(n, sizeof *all, &all);
    for (int64_t k = 0; !status && k < n; k++)
        all[k] = (entry){column[k], value[k]};
    if (!status)
        qsort(all, (size_t)n, sizeof *all, em_by_first_integer);
    for (int64_t k = 0; !status && k < n; k++) {
        column[k] = all[k].column;
        value[k] = all[k].value;
    }
    return status;
}

/* Appends the entries of row i. Zeros that AnnData stores are left out, because sparse rows hold no
 * zeros. */
static em_status push_entries(const em_rows_source *s, int64_t i, double *value)
{
    const int64_t first = s->start[i] - s->start[0], end = s->start[i + 1] - s->start[0];
    const bool foreign = em_numbers_form_of(s->numbers).index[false] != NULL;
    em_status status =
        foreign ? sort_entries(end - first, s->column + first, value + first) : EM_OK;
    int64_t last = -1;

    for (int64_t k = first; !status && k < end; k++) {
        if (foreign && last >= 0 && s->column[k] == last)
            return em_fail(EM_EDATA,
                           "%s:%lld: found column %lld twice, expected it once: "
                           "adata.X.sum_duplicates()",
                           s->table->path, (long long)(s->row + i) + 1, (long long)last);
        if (s->column[k] <= last || s->column[k] >= s->form.n_column)
            return fail_sparse(s, s->row + i, "columns out of order or range");
        last = s->column[k];
        status = check_finite(s, s->row + i, last, value[k]);
        if (!status && (value[k] != 0 || !foreign))
            status = em_table_push_sparse(s->table, (int32_t)last, value[k]);
    }
    return status;
}

/* Reads at most *count rows, and sets *count to those that it has read: fewer if they have many
 * entries. Rows before the first one with wrong starts are read first, because one of them may have
 * another error: the first error of the file is reported on any number of ranks. */
static em_status read_sparse(em_rows_source *s, int64_t *count)
{
    const char *found = NULL;
    EM_SCOPED double *value = NULL;
    int64_t sound = 0;
    em_status status = em_numbers_read(s->numbers, EM_NUMBERS_START, s->row, *count + 1, s->start);

    while (!status && sound < *count && !(found = objection_to_starts(s, sound)) &&
           (sound == 0 || s->start[sound + 1] - s->start[0] <= SLAB_NUMBERS))
        sound++;
    const int64_t n = status ? 0 : s->start[sound] - s->start[0];
    status = status ? status : em_reserve(&s->column, &s->column_capacity, 0, n);
    status = status ? status : em_allocate_doubles(n, &value);
    if (!status)
        status = em_numbers_read(s->numbers, EM_NUMBERS_COLUMN, s->start[0], n, s->column);
    status = status ? status : em_numbers_read(s->numbers, EM_NUMBERS_VALUE, s->start[0], n, value);
    for (int64_t i = 0; !status && i < sound; i++) {
        status = push_entries(s, i, value);
        if (!status)
            status = s->form.labelled
                         ? em_table_end_row_labelled(s->table, s->row + i + 1, s->response[i])
                         : em_table_end_row(s->table, s->row + i + 1);
    }
    *count = sound;
    return !status && found ? fail_sparse(s, s->row + sound, found) : status;
}

static em_status read_response(const em_rows_source *s, int64_t count, double *response)
{
    em_status status = em_numbers_read(s->numbers, EM_NUMBERS_RESPONSE, s->row, count, response);

    for (int64_t i = 0; !status && i < count; i++)
        if (!isfinite(response[i]))
            status =
                em_fail(EM_EDATA, "%s:%lld: found %g for the response, expected a finite number",
                        s->table->path, (long long)(s->row + i + 1), response[i]);
    return status;
}

/* The number of rows to read at a time. */
static int64_t step_of(const em_numbers_form *form)
{
    const int64_t width = form->n_entry >= 0 ? form->n_entry / form->n_row + 1 : form->n_column;

    return width < SLAB_NUMBERS ? SLAB_NUMBERS / width : 1;
}

static em_status read_slabs(em_rows_source *s)
{
    const bool sparse = s->form.n_entry >= 0;
    const int64_t step = step_of(&s->form);
    em_status status = EM_OK;

    while (!status && s->row < s->end && s->table->n_value < s->most) {
        int64_t count = s->end - s->row < step ? s->end - s->row : step;
        if (s->form.labelled)
            status = read_response(s, count,
                                   sparse ? s->response : s->table->response + s->table->n_row);
        status = status ? status : sparse ? read_sparse(s, &count) : read_dense(s, count);
        s->row += count;
    }
    return status;
}

static em_status open_slab(const char *path, const char *place, em_rows_source *s)
{
    em_status status = em_numbers_open(path, place, &s->numbers);

    if (status)
        return status;
    s->form = em_numbers_form_of(s->numbers);
    status = em_allocate(step_of(&s->form) + 1, sizeof *s->start, &s->start);
    return status ? status : em_allocate_doubles(step_of(&s->form), &s->response);
}

static void close_slab(em_rows_source *s)
{
    em_numbers_close(&s->numbers);
    em_release_all(&s->start, &s->column, &s->response);
}

static em_status prepare(em_rows_source *s)
{
    em_table *table = s->table;
    const int64_t n = s->end - s->row;
    em_status status = em_table_begin_run(table, em_world_rank());

    table->n_column = s->form.n_column;
    if (!status && s->form.n_entry >= 0)
        status = em_table_make_sparse(table);
    if (!status && s->form.labelled)
        status = em_reserve(&table->response, &table->response_capacity, table->n_row,
                            table->n_row + n + 1);
    if (!status && s->form.n_entry < 0)
        status = em_reserve(&table->value, &table->value_capacity, table->n_value,
                            table->n_value + n * table->n_column);
    return status;
}

/* Checks that no name stands for two columns, because such a name would be ambiguous. */
static em_status check_names(const char *path, const char *index, int64_t n, char *const *name)
{
    int64_t twin;
    em_status status = em_text_find_twin(n, (const char *const *)name, &twin);

    if (!status && twin >= 0)
        status = em_fail(EM_EDATA,
                         "%s: found '%s' again as number %lld in %s, expected every name once: "
                         "adata.var_names_make_unique()",
                         path, em_excerpt_of(name[twin]).text, (long long)twin + 1, index);
    return status;
}

em_status em_read_index(const em_numbers *numbers, const char *path, bool rows, char ***name)
{
    const em_numbers_form form = em_numbers_form_of(numbers);
    const int64_t expected = rows ? form.n_row : form.n_column;
    const char *colon = strstr(path, ":/"), *index = em_numbers_form_of(numbers).index[rows];
    const char *of = rows ? "row" : "column";
    EM_SCOPED char *file = NULL;
    int64_t n = 0;
    em_status status =
        em_format_text(&file, "%.*s", (int)(colon ? colon - path : (long)strlen(path)), path);

    if (!status && !em_numbers_form_of(numbers).has_index[rows])
        status = em_fail(EM_EDATA, "%s: found no list of names at %s, expected one of each %s",
                         file, index, of);
    status = status ? status : em_read_labels(file, index, &n, name);
    if (!status && n != expected)
        status = em_fail(EM_EDATA, "%s: found %lld names in %s, expected %lld, one for each %s",
                         file, (long long)n, index, (long long)expected, of);
    if (status)
        em_release_texts(n, name);
    return status;
}

em_status em_read_column_names(const em_numbers *numbers, const char *path, bool chosen,
                               char ***name)
{
    const char *index = em_numbers_form_of(numbers).index[false];
    const int64_t n = em_numbers_form_of(numbers).n_column;
    em_status status =
        index ? em_read_index(numbers, path, false, name) : em_numbers_names(numbers, name);

    if (!status && index && !chosen)
        status = check_names(path, index, n, *name);
    if (status)
        em_release_texts(n, name);
    return status;
}

em_status em_read_hdf5(const char *path, const char *colon, bool chosen, bool dense_names,
                       em_table *table, uint64_t *hash)
{
    EM_SCOPED_BY(close_slab)
    em_rows_source s = {.table = table, .chosen = chosen, .most = INT64_MAX};
    em_status status = em_agree_first(open_slab(path, colon ? colon + 1 : EM_NUMBERS_PLACE, &s), 0);

    if (!status) {
        s.row = em_partition_first(s.form.n_row, em_world_size(), em_world_rank());
        s.end = em_partition_first(s.form.n_row, em_world_size(), em_world_rank() + 1);
        *hash = s.form.hashed ? s.form.hash : 0;
        status = prepare(&s);
        if (!status &&
            (s.form.n_entry >= 0 || dense_names || !em_numbers_form_of(s.numbers).index[false]))
            status = em_read_column_names(s.numbers, path, chosen, &table->name);
        table->is_named = table->name != NULL;
        status = em_agree_first(status, 0);
    }
    return status ? status : em_agree_first(read_slabs(&s), s.row);
}

/* ---------------------------------------------------------------- some rows at a time */

em_status em_rows_source_open(const char *path, em_rows_source **out)
{
    em_status status = em_allocate(1, sizeof **out, out);

    status = status ? status : open_slab(path, EM_NUMBERS_PLACE, *out);
    if (status)
        em_rows_source_close(out);
    return status;
}

void em_rows_source_close(em_rows_source **source)
{
    if (*source)
        close_slab(*source);
    em_release(source);
}

const em_numbers *em_rows_source_numbers(const em_rows_source *source)
{
    return source->numbers;
}

em_status em_rows_source_read(em_rows_source *s, int64_t first, int64_t most, int64_t *count,
                              em_table *table)
{
    s->table = table;
    s->row = first;
    s->end = first + *count;
    s->most = most;
    em_status status = prepare(s);
    status = status ? status : read_slabs(s);
    *count = s->row - first;
    return status;
}
