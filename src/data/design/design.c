#include "data/design/design.h"

#include "base/memory.h"
#include "base/text.h"
#include "data/shard/redistribute_rows.h"
#include "data/table/column_moments.h"
#include "par/message.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

static void warn_constant(const em_table *table, const em_moments *moments)
{
    int64_t count = 0, first = 0;

    for (int64_t j = table->n_column; j-- > 0;)
        if (em_moments_constant(table, moments, j)) {
            first = j;
            count++;
        }
    if (table->total == 1)
        em_say("warning: %s: found 1 row: the posterior is almost the prior", table->path);
    else if (count > 1)
        em_say("warning: %s: column %s and %lld more: all values are equal", table->path,
               em_excerpt_of(table->name[first]).text, (long long)count - 1);
    else if (count == 1)
        em_say("warning: %s: column %s: all values are equal", table->path,
               em_excerpt_of(table->name[first]).text);
}

/* Whether the squares of the numbers in column j, and the sums of the squares, are finite. */
static bool can_be_scaled(const em_moments *moments, int64_t j)
{
    const double most = 1e145;

    return moments->count[j] == 0 || (moments->smallest[j] > -most && moments->largest[j] < most);
}

em_status em_design_scaling(const em_table *table, double *centre, double *scale)
{
    EM_SCOPED_BY(em_moments_release) em_moments moments = {0};
    em_status status = em_moments_find(table, centre != NULL, &moments);

    for (int64_t j = 0; !status && centre && j < table->n_column; j++) {
        centre[j] = moments.mean[j];
        scale[j] = em_moments_constant(table, &moments, j) ? 1 : moments.sd[j];
        if (!can_be_scaled(&moments, j) || !(scale[j] > 0))
            status = em_fail(EM_EDATA,
                             "%s: column %s: found numbers from %g to %g, expected some that can "
                             "be standardised: measure them in another unit",
                             table->path, em_excerpt_of(table->name[j]).text, moments.smallest[j],
                             moments.largest[j]);
    }
    if (!status)
        warn_constant(table, &moments);
    return status;
}

/* Computes the scaling of the columns, or uses a given one. Collective. */
static em_status scale_columns(const em_table *table, const em_table_options *options,
                               const em_scaling *given, em_design *design)
{
    const int64_t first = options->intercept;
    const size_t bytes = (size_t)design->n_column * sizeof(double);

    if (given ? !given->centre : !options->standardise)
        return given ? EM_OK : em_design_scaling(table, NULL, NULL);
    em_status status = em_allocate(design->n_column, sizeof *design->centre, &design->centre);
    status = status ? status : em_allocate(design->n_column, sizeof *design->scale, &design->scale);
    status = em_agree_first(status, 0);
    if (status)
        return status;
    if (!given) {
        design->scale[0] = 1;
        return em_design_scaling(table, design->centre + first, design->scale + first);
    }
    memcpy(design->centre, given->centre, bytes);
    memcpy(design->scale, given->scale, bytes);
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

static bool stays_sparse(const em_table *table, bool standardise)
{
    return table->column && !standardise &&
           (double)table->total_entries <=
               EM_SPARSE_DENSITY * (double)table->total * (double)table->n_column;
}

/* A design that is being filled with the rows of its shard. */
typedef struct design_filling {
    em_design *design;
    bool intercept;
    int64_t n_left; /* columns of the table */
    /* Completes sparse rows: the number of entries is known only after the last row. */
    int64_t *start;
    int32_t *column;
    double *value;
    int64_t column_capacity, value_capacity;
} design_filling;

static void put(const design_filling *f, double *row, int64_t j, double value)
{
    const em_design *design = f->design;
    const int64_t to = f->intercept + j;

    row[to * EM_TILE_ROWS] =
        design->centre ? (value - design->centre[to]) / design->scale[to] : value;
}

/* Copies rows into the tiles of the design, column by column. */
static void take_dense(const design_filling *f, const em_row_block *piece)
{
    const em_tiled *x = &f->design->dense;

    for (int64_t i = 0; i < piece->count; i++) {
        const int64_t at = piece->row + i;
        double *row = x->tile + at / EM_TILE_ROWS * x->n_column * EM_TILE_ROWS + at % EM_TILE_ROWS;
        if (f->intercept)
            row[0] = f->design->scale ? 1 / f->design->scale[0] : 1;
        for (int64_t j = 0; j < f->n_left; j++)
            put(f, row, j, piece->start ? 0 : piece->value[i * f->n_left + j]);
        for (int64_t k = 0; piece->start && k < piece->start[i + 1] - piece->start[i]; k++) {
            const int64_t from = piece->start[i] - piece->start[0] + k;
            put(f, row, piece->column[from], piece->value[from]);
        }
    }
}

static em_status take_sparse(design_filling *f, const em_row_block *piece)
{
    int64_t to = f->start[piece->row];
    const int64_t end =
        to + piece->start[piece->count] - piece->start[0] + f->intercept * piece->count;
    em_status status = em_reserve(&f->column, &f->column_capacity, to, end);

    status = status ? status : em_reserve(&f->value, &f->value_capacity, to, end);
    for (int64_t i = 0; !status && i < piece->count; i++) {
        if (f->intercept) {
            f->column[to] = 0;
            f->value[to++] = 1;
        }
        for (int64_t k = piece->start[i] - piece->start[0];
             k < piece->start[i + 1] - piece->start[0]; k++, to++) {
            f->column[to] = piece->column[k] + f->intercept;
            f->value[to] = piece->value[k];
        }
        f->start[piece->row + i + 1] = to;
    }
    return status;
}

static void take_beside(em_design *design, const em_row_block *piece)
{
    const double *exposure = piece->beside[EM_BESIDE_EXPOSURE],
                 *offset = piece->beside[EM_BESIDE_OFFSET],
                 *weight = piece->beside[EM_BESIDE_WEIGHTS];

    for (int64_t i = 0; i < piece->count; i++) {
        if (design->offset)
            design->offset[piece->row + i] =
                (offset ? offset[i] : 0) + (exposure ? log(exposure[i]) : 0);
        if (design->weight)
            design->weight[piece->row + i] = weight[i];
    }
}

static em_status take(void *to, const em_row_block *piece)
{
    design_filling *f = to;

    memcpy(f->design->response + piece->row, piece->response,
           (size_t)piece->count * sizeof *piece->response);
    take_beside(f->design, piece);
    if (f->design->sparse)
        return take_sparse(f, piece);
    take_dense(f, piece);
    return EM_OK;
}

/* Allocates the arrays whose sizes are known before the rows are received. Collective over the
 * ranks that share the arrays. */
static em_status allocate(em_design *design, double *const beside[EM_N_BESIDE])
{
    const bool has_offset = beside[EM_BESIDE_EXPOSURE] || beside[EM_BESIDE_OFFSET];
    em_tiled *x = &design->dense;
    em_status status = em_node_array_allocate(design->node_array, design->n_row,
                                              sizeof *design->response, &design->response);

    if (!status && has_offset)
        status = em_node_array_allocate(design->node_array, design->n_row + 1,
                                        sizeof *design->offset, &design->offset);
    if (!status && beside[EM_BESIDE_WEIGHTS])
        status = em_node_array_allocate(design->node_array, design->n_row + 1,
                                        sizeof *design->weight, &design->weight);
    if (status || design->sparse)
        return status;
    x->n_row = design->n_row;
    x->n_column = design->n_column;
    x->n_tile = (x->n_row + EM_TILE_ROWS - 1) / EM_TILE_ROWS;
    return em_node_array_allocate(design->node_array, x->n_tile * x->n_column * EM_TILE_ROWS,
                                  sizeof *x->tile, &x->tile);
}

static em_status share_array(em_design *design, int64_t count, size_t size, const void *from,
                             void *out)
{
    void *memory;
    em_status status = em_node_array_allocate(design->node_array, count, size, &memory);

    if (!status && em_node_array_writes(design->node_array) && count > 0)
        memcpy(memory, from, (size_t)count * size);
    if (!status)
        em_node_array_publish(design->node_array, memory);
    memcpy(out, &memory, sizeof memory);
    return status;
}

/* Collective over the ranks that share the arrays. */
static em_status share_sparse(const design_filling *f)
{
    em_design *design = f->design;
    const int64_t n = f->start ? f->start[design->n_row] : 0; /* the writer's counts */
    em_status status =
        share_array(design, design->n_row + 1, sizeof *f->start, f->start, &design->start);

    if (!status)
        status = share_array(design, n, sizeof *f->column, f->column, &design->column);
    return status ? status : share_array(design, n, sizeof *f->value, f->value, &design->value);
}

static em_status share(const design_filling *f)
{
    em_design *design = f->design;
    em_status status = design->sparse ? share_sparse(f) : EM_OK;

    if (status)
        return status;
    em_node_array_publish(design->node_array, design->response);
    em_node_array_publish(design->node_array, design->offset);
    em_node_array_publish(design->node_array, design->weight);
    em_node_array_publish(design->node_array, design->dense.tile);
    return EM_OK;
}

static em_status prepare(const em_table *table, const em_table_options *options,
                         const em_scaling *scaling, design_filling *f)
{
    em_design *design = f->design;
    em_status status = scale_columns(table, options, scaling, design);

    if (status)
        return status;
    status = copy_names(table, options->intercept, design);
    if (!status && design->sparse)
        status = em_allocate(design->n_row + 1, sizeof *f->start, &f->start);
    status = em_agree_first(status, 0);
    return status ? status : em_agree_first(allocate(design, table->beside), 0);
}

/* Collective. */
static em_status fill(const em_table *table, const em_table_options *options,
                      const em_scaling *scaling, em_design *design)
{
    design_filling f = {
        .design = design, .intercept = options->intercept, .n_left = table->n_column};
    const bool writes = em_node_array_writes(design->node_array);
    em_status status = prepare(table, options, scaling, &f);

    if (!status)
        status = em_redistribute_rows(table, design->rows.first, writes ? design->rows.count : 0,
                                      take, &f);
    status = status ? status : em_agree_first(share(&f), 0);
    em_release_all(&f.start, &f.column, &f.value);
    return status;
}

/* The rows of a tile; a shard has whole tiles. Tiles of sparse data have at least four entries for
 * each column, so that passes over the columns cost little in comparison. */
static int64_t tile_of(const em_table *table, bool standardise)
{
    const double entries = (double)table->total_entries;
    const double columns = (double)table->n_column * (double)table->total;

    if (!stays_sparse(table, standardise) || !(entries > 0))
        return EM_TILE_ROWS;
    const double tiles = fmin(ceil(4 * columns / entries / EM_TILE_ROWS), (double)table->total);
    return EM_TILE_ROWS * (tiles > 1 ? (int64_t)tiles : 1);
}

em_status em_design_create(const em_table *table, const em_table_options *options,
                           const em_scaling *scaling, int64_t shard, int64_t n_shard,
                           em_design **out)
{
    *out = NULL;
    if (table->n_column + options->intercept == 0)
        return em_fail(EM_EDATA, "%s:1: found only the response, expected features or intercept",
                       table->path);
    em_status status = em_agree_first(em_allocate(1, sizeof **out, out), 0);
    if (!status) {
        (*out)->rows =
            em_shard_rows(table->total, tile_of(table, options->standardise), shard, n_shard);
        (*out)->n_row = (*out)->rows.count;
        (*out)->n_column = table->n_column + options->intercept;
        (*out)->hash = table->hash;
        (*out)->sparse = stays_sparse(table, options->standardise);
        status = em_node_array_create(shard, &(*out)->node_array);
    }
    status = status ? status : fill(table, options, scaling, *out);
    if (status)
        em_design_destroy(out);
    return status;
}

em_status em_design_store_rows(em_design *design)
{
    const em_tiled *x = &design->dense;

    design->row_stride = em_stride(x->n_column + 1);
    if (design->sparse)
        return EM_OK;
    const em_status status = em_node_array_allocate(
        design->node_array, (x->n_row + 1) * design->row_stride, sizeof(double), &design->row);
    if (status)
        return status;
    for (int64_t i = 0; em_node_array_writes(design->node_array) && i < x->n_row; i++) {
        const double *tile =
            x->tile + i / EM_TILE_ROWS * x->n_column * EM_TILE_ROWS + i % EM_TILE_ROWS;
        double *row = design->row + i * design->row_stride;
        for (int64_t j = 0; j < x->n_column; j++)
            row[j] = tile[j * EM_TILE_ROWS];
        row[x->n_column] = design->response[i];
    }
    em_node_array_publish(design->node_array, design->row);
    return EM_OK;
}

void em_design_row(const em_design *design, int64_t i, double *row)
{
    const int64_t n = design->n_column;

    if (!design->sparse) {
        const double *tile =
            design->dense.tile + i / EM_TILE_ROWS * n * EM_TILE_ROWS + i % EM_TILE_ROWS;
        for (int64_t j = 0; j < n; j++)
            row[j] = tile[j * EM_TILE_ROWS];
        return;
    }
    memset(row, 0, (size_t)n * sizeof *row);
    for (int64_t k = design->start[i]; k < design->start[i + 1]; k++)
        row[design->column[k]] = design->value[k];
    for (int64_t j = 0; design->centre && j < n; j++)
        row[j] = (row[j] - design->centre[j]) / design->scale[j];
}

em_status em_design_add_offset(em_design *design, const double *coefficient)
{
    EM_SCOPED double *row = NULL;
    em_status status = EM_OK;

    if (!design->offset)
        status = em_node_array_allocate(design->node_array, design->n_row + 1,
                                        sizeof *design->offset, &design->offset);
    status = status ? status : em_allocate_doubles(design->n_column, &row);
    for (int64_t i = 0; !status && em_node_array_writes(design->node_array) && i < design->n_row;
         i++) {
        em_design_row(design, i, row);
        for (int64_t j = 0; j < design->n_column; j++)
            design->offset[i] += row[j] * coefficient[j];
    }
    if (design->offset)
        em_node_array_publish(design->node_array, design->offset);
    return status;
}

void em_design_shift(em_design *design, double origin)
{
    for (int64_t i = 0; em_node_array_writes(design->node_array) && i < design->n_row; i++)
        design->response[i] -= origin + (design->offset ? design->offset[i] : 0);
    em_node_array_publish(design->node_array, design->response);
    design->origin = origin;
    design->shift = design->offset;
    design->offset = NULL;
}

static void scale(em_design *design, double factor, int64_t n, double *x)
{
    for (int64_t i = 0; em_node_array_writes(design->node_array) && i < n; i++)
        x[i] *= factor;
    em_node_array_publish(design->node_array, x);
}

void em_design_scale(em_design *design, double factor)
{
    const em_tiled *x = &design->dense;

    scale(design, factor, design->n_row, design->response);
    scale(design, factor, x->n_tile * x->n_column * EM_TILE_ROWS, x->tile);
    if (design->sparse)
        scale(design, factor, design->start[design->n_row], design->value);
    for (int64_t j = 0; design->sparse && design->centre && j < design->n_column; j++)
        design->centre[j] *= factor;
}

void em_design_destroy(em_design **out)
{
    em_design *design = *out;

    if (!design)
        return;
    em_release_texts(design->n_column, &design->name);
    void *const shared[] = {&design->response, &design->offset,     &design->weight,
                            &design->shift,    &design->dense.tile, &design->row,
                            &design->start,    &design->column,     &design->value};
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        em_node_array_release(shared[i]);
    em_node_array_destroy(&design->node_array);
    em_release_all(&design->centre, &design->scale, out);
}
