#include "model/regression/glm.h"

#include "base/clones.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

/* One number for each chain of a panel. Sparse rows update all chains together. */
typedef double lanes[EM_GLM_CHAINS];

struct em_glm {
    em_owner memory; /* of its arrays */
    const em_design *design;
    int n_shape;
    double known[EM_GLM_SHAPES];                 /* NaN: unknown */
    double shape[EM_GLM_CHAINS * EM_GLM_SHAPES]; /* of the panel's chains */
    double *eta, *density;                       /* [EM_GLM_CHAINS][EM_TILE_ROWS] */
    double *slope[EM_GLM_SHAPES];                /* likewise, of those that are unknown */
    double *work[2];
    double *response, *weight;   /* [EM_TILE_ROWS] */
    double *partial;             /* dense: [EM_GLM_CHAINS][n_column][8] */
    double *row_theta, *row_sum; /* dense, minibatches: [row_stride], the one for the response 0 */
    lanes *theta, *sum;          /* sparse: [n_column] */
    lanes origin, residual;      /* sparse: what every row has; the sum of the residuals */
};

/* Allocates arrays with a number for each chain of a panel and each observation of a tile. */
static em_status allocate_tile(em_glm *glm)
{
    enum { TILE = EM_GLM_CHAINS * EM_TILE_ROWS };
    em_status status = em_own_all(&glm->memory, EM_ARRAY(glm->response, EM_TILE_ROWS),
                                  EM_ARRAY(glm->weight, EM_TILE_ROWS), EM_ARRAY(glm->eta, TILE),
                                  EM_ARRAY(glm->density, TILE), EM_ARRAY(glm->work[0], TILE),
                                  EM_ARRAY(glm->work[1], TILE));

    for (int k = 0; !status && k < glm->n_shape; k++)
        if (isnan(glm->known[k]))
            status = em_own_all(&glm->memory, EM_ARRAY(glm->slope[k], TILE));
    return status;
}

static em_status allocate_sums(em_glm *glm)
{
    const int64_t n = glm->design->n_column;

    if (glm->design->sparse)
        return em_own_all(&glm->memory, EM_ARRAY(glm->theta, n), EM_ARRAY(glm->sum, n));
    return em_own_all(&glm->memory, EM_ARRAY(glm->partial, EM_GLM_CHAINS * n * EM_LANES),
                      EM_ARRAY(glm->row_theta, em_stride(n + 1)),
                      EM_ARRAY(glm->row_sum, em_stride(n + 1)));
}

em_status em_glm_create(const em_design *design, int n_shape, const double *shape, em_glm **out)
{
    em_status status = em_allocate(1, sizeof **out, out);
    em_glm *glm = *out;

    if (status)
        return status;
    glm->design = design;
    glm->n_shape = n_shape;
    for (int k = 0; k < n_shape; k++)
        glm->known[k] = shape[k];
    status = allocate_tile(glm);
    status = status ? status : allocate_sums(glm);
    if (status)
        em_release_owner(out);
    return status;
}

void em_glm_shape(const em_glm *glm, const double *theta, double *shape)
{
    const double *log_shape = theta + glm->design->n_column;

    for (int k = 0; k < glm->n_shape; k++)
        shape[k] = isnan(glm->known[k]) ? exp(*log_shape++) : glm->known[k];
}

/* The rows first..first + count of a selection. If the selection has no index, these are the row
 * numbers themselves. */
typedef struct batch {
    const int64_t *index;
    int64_t first, count;
} batch;

static int64_t row_of(const batch *b, int64_t i)
{
    return b->index ? b->index[b->first + i] : b->first + i;
}

/* The sum over a tile's observations, in one fixed order. */
static double sum_tile(const double *x)
{
    double sum[EM_LANES] = {0};

    for (int64_t i = 0; i < EM_TILE_ROWS; i += EM_LANES)
        for (int k = 0; k < EM_LANES; k++)
            sum[k] += x[i + k];
    return em_add_lanes(sum);
}

/* Adds to `sum` the sum of the row of each chain. Elements beyond `count` are set to 0 first. */
static void add_rows_of(int64_t count, int64_t n_chain, double *row, int64_t stride, double *sum)
{
    for (int64_t c = 0; c < n_chain; c++, row += EM_TILE_ROWS) {
        for (int64_t i = count; i < EM_TILE_ROWS; i++)
            row[i] = 0;
        sum[c * stride] += sum_tile(row);
    }
}

static void apply_link(em_glm *glm, em_glm_link *link, int64_t n_chain)
{
    link(&(em_glm_tile){n_chain,
                        glm->response,
                        glm->shape,
                        glm->eta,
                        glm->density,
                        {glm->slope[0], glm->slope[1]},
                        {glm->work[0], glm->work[1]}});
}

/* Multiplies the terms of each row by its weight. */
static void weigh(em_glm *glm, int64_t n_chain)
{
    for (int64_t c = 0; c < n_chain; c++)
        for (int64_t i = 0; i < EM_TILE_ROWS; i++) {
            glm->eta[c * EM_TILE_ROWS + i] *= glm->weight[i];
            glm->density[c * EM_TILE_ROWS + i] *= glm->weight[i];
            for (int k = 0; k < glm->n_shape; k++)
                if (glm->slope[k])
                    glm->slope[k][c * EM_TILE_ROWS + i] *= glm->weight[i];
        }
}

/* Adds the likelihood of a batch for its responses and the linear predictors in glm->eta, which are
 * replaced by the residuals. */
static void add_likelihood(em_glm *glm, em_glm_link *link, int64_t count, const em_query *p)
{
    double *gradient = p->gradient + glm->design->n_column;

    apply_link(glm, link, p->n_chain);
    if (glm->design->weight)
        weigh(glm, p->n_chain);
    for (int64_t c = 0; c < p->n_chain; c++)
        for (int64_t i = count; i < EM_TILE_ROWS; i++)
            glm->eta[c * EM_TILE_ROWS + i] = 0;
    add_rows_of(count, p->n_chain, glm->density, 1, p->log_density);
    for (int k = 0; k < glm->n_shape; k++)
        if (glm->slope[k])
            add_rows_of(count, p->n_chain, glm->slope[k], p->stride, gradient++);
}

/* Reads the responses of a batch, and adds its offsets to the predictors. */
static void take_observations(em_glm *glm, const batch *b, int64_t n_chain)
{
    const em_design *x = glm->design;

    for (int64_t i = 0; i < b->count; i++)
        glm->response[i] = x->response[row_of(b, i)];
    for (int64_t i = 0; x->weight && i < b->count; i++)
        glm->weight[i] = x->weight[row_of(b, i)];
    for (int64_t c = 0; x->offset && c < n_chain; c++)
        for (int64_t i = 0; i < b->count; i++)
            glm->eta[c * EM_TILE_ROWS + i] += x->offset[row_of(b, i)];
}

static void set_shapes(em_glm *glm, const em_query *p)
{
    for (int64_t c = 0; c < p->n_chain; c++)
        em_glm_shape(glm, p->theta + c * p->stride, glm->shape + c * EM_GLM_SHAPES);
}

static void add_dense(em_glm *glm, em_glm_link *link, const em_query *p)
{
    const em_tiled *x = &glm->design->dense;
    const int64_t end = p->rows.first + p->rows.count;

    set_shapes(glm, p);
    memset(glm->partial, 0, (size_t)(p->n_chain * x->n_column * EM_LANES) * sizeof(double));
    for (int64_t i = p->rows.first; i < end; i += EM_TILE_ROWS) {
        const batch b = {NULL, i, end - i < EM_TILE_ROWS ? end - i : EM_TILE_ROWS};
        em_tile_predict(x, i / EM_TILE_ROWS, p->n_chain, p->stride, p->theta, glm->eta);
        take_observations(glm, &b, p->n_chain);
        add_likelihood(glm, link, b.count, p);
        em_tile_accumulate(x, i / EM_TILE_ROWS, p->n_chain, glm->eta, glm->partial);
    }
    em_tile_finish(p->n_chain, x->n_column, glm->partial, p->stride, p->gradient);
}

/* Adds the likelihood of a batch for the chain with the coefficients glm->row_theta. `index` is
 * padded to a multiple of eight rows; the residuals of rows beyond count are 0. */
static void add_batch(em_glm *glm, em_glm_link *link, const int64_t *index, int64_t count,
                      const em_query *one)
{
    const em_design *x = glm->design;
    const int64_t n = em_stride(count), stride = x->row_stride;

    em_rows_predict(n, index, x->row, stride, glm->row_theta, glm->eta);
    for (int64_t i = 0; i < n; i++)
        glm->response[i] = x->row[index[i] * stride + x->n_column];
    for (int64_t i = 0; x->offset && i < n; i++)
        glm->eta[i] += x->offset[index[i]];
    for (int64_t i = 0; x->weight && i < n; i++)
        glm->weight[i] = x->weight[index[i]];
    add_likelihood(glm, link, count, one);
    em_rows_accumulate(n, index, x->row, stride, glm->eta, glm->row_sum);
}

/* Adds the likelihood of a minibatch for one chain. The last eight rows are completed with the row
 * of zeros. */
static void add_listed(em_glm *glm, em_glm_link *link, const em_query *one)
{
    const em_rows *rows = &one->rows;
    const int64_t whole = rows->count / EM_TILE_ROWS * EM_TILE_ROWS, rest = rows->count - whole;
    int64_t last[EM_TILE_ROWS];

    for (int64_t i = 0; i < whole; i += EM_TILE_ROWS)
        add_batch(glm, link, rows->index + i, EM_TILE_ROWS, one);
    for (int64_t i = 0; i < em_stride(rest); i++)
        last[i] = i < rest ? rows->index[whole + i] : glm->design->n_row;
    add_batch(glm, link, last, rest, one);
}

/* Adds the likelihood one chain after the other, because each chain usually has its own rows. */
static void add_rows(em_glm *glm, em_glm_link *link, const em_query *p)
{
    const int64_t n = glm->design->n_column;

    for (int64_t c = 0; c < p->n_chain; c++) {
        const em_query one = em_query_panel(p, c, 1);
        set_shapes(glm, &one);
        memcpy(glm->row_theta, one.theta, (size_t)n * sizeof(double));
        memset(glm->row_sum, 0, (size_t)n * sizeof(double));
        add_listed(glm, link, &one);
        for (int64_t j = 0; j < n; j++)
            one.gradient[j] += glm->row_sum[j];
    }
}

/* eta[c][i] = x_i . theta[c] for all chains of the panel. Absent chains have theta 0. */
EM_CLONES static void predict_sparse(em_glm *glm, const batch *b)
{
    const em_design *x = glm->design;

    for (int64_t i = 0; i < b->count; i++) {
        int64_t row = row_of(b, i);
        lanes eta;
        memcpy(eta, glm->origin, sizeof eta);
        for (int64_t k = x->start[row]; k < x->start[row + 1]; k++) {
            const double *theta = glm->theta[x->column[k]];
            for (int64_t c = 0; c < EM_GLM_CHAINS; c++)
                eta[c] += x->value[k] * theta[c];
        }
        for (int64_t c = 0; c < EM_GLM_CHAINS; c++)
            glm->eta[c * EM_TILE_ROWS + i] = eta[c];
    }
}

/* sum[j][c] += residual[c][i] x_ij */
EM_CLONES static void accumulate_sparse(em_glm *glm, const batch *b)
{
    const em_design *x = glm->design;

    for (int64_t i = 0; i < b->count; i++) {
        int64_t row = row_of(b, i);
        lanes residual;
        for (int64_t c = 0; c < EM_GLM_CHAINS; c++)
            residual[c] = glm->eta[c * EM_TILE_ROWS + i];
        for (int64_t k = x->start[row]; k < x->start[row + 1]; k++) {
            double *sum = glm->sum[x->column[k]];
            for (int64_t c = 0; c < EM_GLM_CHAINS; c++)
                sum[c] += x->value[k] * residual[c];
        }
        for (int64_t c = 0; c < EM_GLM_CHAINS; c++)
            glm->residual[c] += residual[c];
    }
}

/* For columns (x - centre) / scale, computes the coefficients of x itself and the constant that all
 * rows have. */
static void set_sparse_theta(em_glm *glm, const em_query *p)
{
    const em_design *x = glm->design;

    for (int64_t j = 0; j < glm->design->n_column; j++)
        for (int64_t c = 0; c < EM_GLM_CHAINS; c++)
            glm->theta[j][c] = c < p->n_chain ? p->theta[c * p->stride + j] : 0;
    memset(&glm->origin, 0, sizeof glm->origin);
    for (int64_t j = 0; x->centre && j < x->n_column; j++) {
        for (int64_t c = 0; c < EM_GLM_CHAINS; c++) {
            glm->theta[j][c] /= x->scale[j];
            glm->origin[c] -= x->centre[j] * glm->theta[j][c];
        }
    }
}

static void add_sparse(em_glm *glm, em_glm_link *link, const em_query *p)
{
    const em_rows *rows = &p->rows;
    const int64_t n = glm->design->n_column, first = rows->index ? 0 : rows->first;

    set_shapes(glm, p);
    set_sparse_theta(glm, p);
    memset(glm->sum, 0, (size_t)n * sizeof *glm->sum);
    memset(&glm->residual, 0, sizeof glm->residual);
    for (int64_t i = 0; i < rows->count; i += EM_TILE_ROWS) {
        const batch b = {rows->index, first + i,
                         rows->count - i < EM_TILE_ROWS ? rows->count - i : EM_TILE_ROWS};
        predict_sparse(glm, &b);
        take_observations(glm, &b, p->n_chain);
        add_likelihood(glm, link, b.count, p);
        accumulate_sparse(glm, &b);
    }
    for (int64_t j = 0; glm->design->centre && j < n; j++)
        for (int64_t c = 0; c < EM_GLM_CHAINS; c++)
            glm->sum[j][c] = (glm->sum[j][c] - glm->design->centre[j] * glm->residual[c]) /
                             glm->design->scale[j];
    for (int64_t c = 0; c < p->n_chain; c++)
        for (int64_t j = 0; j < n; j++)
            p->gradient[c * p->stride + j] += glm->sum[j][c];
}

static void add_panel(em_glm *glm, em_glm_link *link, const em_query *p)
{
    if (glm->design->sparse)
        add_sparse(glm, link, p);
    else if (p->rows.index)
        add_rows(glm, link, p);
    else
        add_dense(glm, link, p);
}

void em_glm_add(em_glm *glm, em_glm_link *link, const em_query *query)
{
    for (int64_t c = 0; c < query->n_chain; c += EM_GLM_CHAINS) {
        const em_query panel = em_query_panel(query, c, EM_GLM_CHAINS);
        add_panel(glm, link, &panel);
    }
}

/* Computes the linear predictors of a batch, which begins at the beginning of a tile, for the first
 * chain of the panel. */
static void predict(em_glm *glm, const batch *b, const em_query *one)
{
    if (glm->design->sparse)
        predict_sparse(glm, b);
    else
        em_tile_predict(&glm->design->dense, b->first / EM_TILE_ROWS, 1, one->stride, one->theta,
                        glm->eta);
    take_observations(glm, b, 1);
}

void em_glm_each(em_glm *glm, em_glm_link *link, const double *theta, double *eta, double *density)
{
    const int64_t n = glm->design->n_row;
    const em_query one = {.n_chain = 1, .theta = theta};

    set_shapes(glm, &one);
    if (glm->design->sparse)
        set_sparse_theta(glm, &one);
    for (int64_t i = 0; i < n; i += EM_TILE_ROWS) {
        const batch b = {NULL, i, n - i < EM_TILE_ROWS ? n - i : EM_TILE_ROWS};
        predict(glm, &b, &one);
        memcpy(eta + i, glm->eta, (size_t)b.count * sizeof *eta);
        if (!link)
            continue;
        apply_link(glm, link, 1);
        memcpy(density + i, glm->density, (size_t)b.count * sizeof *density);
    }
}
