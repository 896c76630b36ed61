#include "data/design.h"

#include "base/memory.h"
#include "base/text.h"
#include "par/world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What is known of the columns of the whole table; all [n_column]. */
typedef struct moments {
    double *centre, *scale; /* to be applied */
    double *count;          /* of the entries that are there; where a sparse row has none it is 0 */
    bool *constant;
} moments;

static void moments_release(moments *m)
{
    em_release(&m->centre);
    em_release(&m->scale);
    em_release(&m->count);
    em_release(&m->constant);
}

static int64_t column_of(const em_table *table, int64_t row, int64_t k)
{
    return table->column ? table->column[k] : k - table->start[row];
}

/* Counts, and finds the columns whose values are all equal. Work space: `first`, [n_column]. */
static void find_constant(const em_table *table, double *first, moments *m)
{
    for (int64_t j = 0; j < table->n_column; j++)
        m->constant[j] = true;
    for (int64_t i = 0; i < table->n_row; i++)
        for (int64_t k = table->start[i]; k < table->start[i + 1]; k++) {
            int64_t j = column_of(table, i, k);
            if (m->count[j]++ == 0)
                first[j] = table->value[k];
            m->constant[j] &= table->value[k] == first[j];
        }
    for (int64_t j = 0; j < table->n_column; j++)
        m->constant[j] &= m->count[j] == (double)table->n_row || first[j] == 0;
}

/* Mean and standard deviation, in two passes. */
static void find_moments(const em_table *table, moments *m)
{
    const double n = (double)table->n_row;
    double *mean = m->centre, *sd = m->scale;

    for (int64_t j = 0; j < table->n_column; j++)
        mean[j] = sd[j] = 0;
    for (int64_t i = 0; i < table->n_row; i++)
        for (int64_t k = table->start[i]; k < table->start[i + 1]; k++)
            mean[column_of(table, i, k)] += table->value[k] / n;
    for (int64_t i = 0; i < table->n_row; i++)
        for (int64_t k = table->start[i]; k < table->start[i + 1]; k++) {
            int64_t j = column_of(table, i, k);
            sd[j] += (table->value[k] - mean[j]) * (table->value[k] - mean[j]);
        }
    for (int64_t j = 0; j < table->n_column; j++)
        sd[j] = sqrt((sd[j] + (n - m->count[j]) * mean[j] * mean[j]) / (n - 1));
}

static void warn_constant(const em_table *table, const bool *constant)
{
    int64_t count = 0, first = 0;

    for (int64_t j = table->n_column; j-- > 0;)
        if (constant[j]) {
            first = j;
            count++;
        }
    if (count > 1)
        em_say("warning: %s: column %s and %lld more: all values are equal", table->path,
               em_excerpt_of(table->name[first]).text, (long long)count - 1);
    else if (count == 1)
        em_say("warning: %s: column %s: all values are equal", table->path,
               em_excerpt_of(table->name[first]).text);
}

static em_status moments_create(const em_table *table, bool standardise, moments *m)
{
    const int64_t n = table->n_column;
    em_status status = em_allocate(n, sizeof *m->centre, &m->centre);

    if (!status)
        status = em_allocate(n, sizeof *m->scale, &m->scale);
    if (!status)
        status = em_allocate(n, sizeof *m->count, &m->count);
    if (!status)
        status = em_allocate(n, sizeof *m->constant, &m->constant);
    if (status)
        return status;
    find_constant(table, m->centre, m);
    warn_constant(table, m->constant);
    if (standardise)
        find_moments(table, m);
    for (int64_t j = 0; j < n; j++) {
        if (!standardise)
            m->centre[j] = 0;
        if (!standardise || m->constant[j])
            m->scale[j] = 1;
    }
    return EM_OK;
}

static em_status copy_names(const em_table *table, bool intercept, em_design *design)
{
    em_status status = em_allocate(design->n_column, sizeof *design->name, &design->name);

    if (!status && intercept)
        status = em_copy_text("intercept", &design->name[0]);
    for (int64_t j = 0; !status && j < table->n_column; j++)
        status = em_copy_text(table->name[j], &design->name[intercept + j]);
    return status;
}

/* Rows first..first + n_row of the table into tiles, column by column. */
static em_status fill_dense(const em_table *table, int64_t first, bool intercept, const moments *m,
                            em_design *design)
{
    em_tiled *x = &design->dense;
    em_status status;

    x->n_row = design->n_row;
    x->n_column = design->n_column;
    x->n_tile = (x->n_row + EM_TILE_ROWS - 1) / EM_TILE_ROWS;
    status = em_allocate(x->n_tile * x->n_column * EM_TILE_ROWS, sizeof *x->tile, &x->tile);
    for (int64_t i = 0; !status && i < x->n_row; i++) {
        double *tile = x->tile + i / EM_TILE_ROWS * x->n_column * EM_TILE_ROWS + i % EM_TILE_ROWS;
        if (intercept)
            tile[0] = 1;
        for (int64_t j = 0; j < table->n_column; j++)
            tile[(intercept + j) * EM_TILE_ROWS] = (0 - m->centre[j]) / m->scale[j];
        for (int64_t k = table->start[first + i]; k < table->start[first + i + 1]; k++) {
            int64_t j = column_of(table, first + i, k);
            tile[(intercept + j) * EM_TILE_ROWS] = (table->value[k] - m->centre[j]) / m->scale[j];
        }
    }
    return status;
}

static em_status fill_sparse(const em_table *table, int64_t first, bool intercept,
                             em_design *design)
{
    const int64_t *from = table->start + first;
    int64_t n = from[design->n_row] - from[0] + intercept * design->n_row, to = 0;
    em_status status = em_allocate(design->n_row + 1, sizeof *design->start, &design->start);

    if (!status)
        status = em_allocate(n, sizeof *design->column, &design->column);
    if (!status)
        status = em_allocate(n, sizeof *design->value, &design->value);
    for (int64_t i = 0; !status && i < design->n_row; i++) {
        if (intercept)
            design->value[to++] = 1; /* of column 0 */
        for (int64_t k = from[i]; k < from[i + 1]; k++, to++) {
            design->column[to] = table->column[k] + intercept;
            design->value[to] = table->value[k];
        }
        design->start[i + 1] = to;
    }
    return status;
}

static em_status copy_response(const em_table *table, int64_t first, em_design *design)
{
    em_status status = em_allocate_doubles(design->n_row, &design->response);

    if (!status)
        memcpy(design->response, table->response + first,
               (size_t)design->n_row * sizeof *design->response);
    return status;
}

static em_status take_offset(const em_table *table, int64_t first, em_design *design)
{
    em_status status = EM_OK;

    if (table->exposure)
        status = em_allocate(design->n_row + 1, sizeof *design->offset, &design->offset);
    for (int64_t i = 0; !status && design->offset && i < design->n_row; i++)
        design->offset[i] = log(table->exposure[first + i]);
    return status;
}

static bool stays_sparse(const em_table *table, bool standardise)
{
    return table->column && !standardise &&
           (double)table->start[table->n_row] <=
               EM_SPARSE_DENSITY * (double)table->n_row * (double)table->n_column;
}

static em_status fill(const em_table *table, const em_table_options *options, int64_t first,
                      em_design *design)
{
    moments m = {NULL, NULL, NULL, NULL};
    em_status status = moments_create(table, options->standardise, &m);

    if (!status)
        status = copy_names(table, options->intercept, design);
    if (!status)
        status = copy_response(table, first, design);
    if (!status)
        status = take_offset(table, first, design);
    if (!status)
        status = design->sparse ? fill_sparse(table, first, options->intercept, design)
                                : fill_dense(table, first, options->intercept, &m, design);
    moments_release(&m);
    return status;
}

/* Rows that are dealt together: tiles of sparse data have entries enough, four for each column,
 * that passes over the columns cost little beside them. */
static int64_t tile_of(const em_table *table, bool standardise)
{
    const double entries = (double)table->start[table->n_row];
    const double columns = (double)table->n_column * (double)table->n_row;

    if (!stays_sparse(table, standardise) || !(entries > 0))
        return EM_TILE_ROWS;
    const double tiles = fmin(ceil(4 * columns / entries / EM_TILE_ROWS), (double)table->n_row);
    return EM_TILE_ROWS * (tiles > 1 ? (int64_t)tiles : 1);
}

em_status em_design_create(const em_table *table, const em_table_options *options, int64_t shard,
                           int64_t n_shard, em_design **out)
{
    const em_share rows =
        em_deal_rows(table->n_row, tile_of(table, options->standardise), shard, n_shard);
    em_status status;

    *out = NULL;
    if (table->n_column + options->intercept == 0)
        return em_fail(EM_EDATA, "%s:1: found the response alone, expected features or intercept",
                       table->path);
    status = em_allocate(1, sizeof **out, out);
    if (status)
        return status;
    (*out)->rows = rows;
    (*out)->n_row = rows.count;
    (*out)->n_column = table->n_column + options->intercept;
    (*out)->hash = table->hash;
    (*out)->sparse = stays_sparse(table, options->standardise);
    status = fill(table, options, rows.first, *out);
    if (status)
        em_design_destroy(out);
    return status;
}

em_status em_design_store_rows(em_design *design)
{
    const em_tiled *x = &design->dense;
    em_status status = EM_OK;

    design->row_stride = em_stride(x->n_column + 1);
    if (!design->sparse)
        status = em_allocate((x->n_row + 1) * design->row_stride, sizeof(double), &design->row);
    for (int64_t i = 0; !status && i < x->n_row; i++) {
        const double *tile =
            x->tile + i / EM_TILE_ROWS * x->n_column * EM_TILE_ROWS + i % EM_TILE_ROWS;
        double *row = design->row + i * design->row_stride;
        for (int64_t j = 0; j < x->n_column; j++)
            row[j] = tile[j * EM_TILE_ROWS];
        row[x->n_column] = design->response[i];
    }
    return status;
}

static void scale(double factor, int64_t n, double *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] *= factor;
}

void em_design_scale(em_design *design, double factor)
{
    const em_tiled *x = &design->dense;

    scale(factor, design->n_row, design->response);
    scale(factor, x->n_tile * x->n_column * EM_TILE_ROWS, x->tile);
    if (design->sparse)
        scale(factor, design->start[design->n_row], design->value);
}

void em_design_destroy(em_design **out)
{
    em_design *design = *out;

    if (!design)
        return;
    for (int64_t j = 0; design->name && j < design->n_column; j++)
        em_release(&design->name[j]);
    em_release(&design->name);
    em_release(&design->response);
    em_release(&design->offset);
    em_release(&design->dense.tile);
    em_release(&design->row);
    em_release(&design->start);
    em_release(&design->column);
    em_release(&design->value);
    em_release(out);
}
