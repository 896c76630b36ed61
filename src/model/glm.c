#include "model/glm.h"

#include "base/memory.h"

#include <string.h>

/* One number of each chain of a panel: sparse rows update all chains together. */
typedef double lanes __attribute__((vector_size(EM_GLM_CHAINS * sizeof(double)), may_alias));

struct em_glm {
    const em_design *design;
    double *eta, *density;       /* [EM_GLM_CHAINS][EM_TILE_ROWS] */
    double *response;            /* [EM_TILE_ROWS] */
    double *partial;             /* dense: [EM_GLM_CHAINS][n_column][8] */
    double *row_theta, *row_sum; /* dense, minibatches: [row_stride], the one for the response 0 */
    lanes *theta, *sum;          /* sparse: [n_column] */
};

em_status em_glm_create(const em_design *design, em_glm **out)
{
    const int64_t panel = EM_GLM_CHAINS * EM_TILE_ROWS, n = design->n_column;
    em_glm *glm;
    em_status status = em_allocate(1, sizeof *glm, out);

    if (status)
        return status;
    glm = *out;
    glm->design = design;
    status = em_allocate_doubles(panel, &glm->eta);
    if (!status)
        status = em_allocate_doubles(panel, &glm->density);
    if (!status)
        status = em_allocate_doubles(EM_TILE_ROWS, &glm->response);
    if (!status && design->sparse) {
        status = em_allocate(n, sizeof *glm->theta, &glm->theta);
        if (!status)
            status = em_allocate(n, sizeof *glm->sum, &glm->sum);
    } else if (!status) {
        status = em_allocate_doubles(EM_GLM_CHAINS * n * EM_LANES, &glm->partial);
        if (!status)
            status = em_allocate(em_stride(n + 1), sizeof(double), &glm->row_theta);
        if (!status)
            status = em_allocate(em_stride(n + 1), sizeof(double), &glm->row_sum);
    }
    if (status)
        em_glm_destroy(out);
    return status;
}

void em_glm_destroy(em_glm **out)
{
    em_glm *glm = *out;

    if (!glm)
        return;
    em_release(&glm->eta);
    em_release(&glm->density);
    em_release(&glm->response);
    em_release(&glm->partial);
    em_release(&glm->row_theta);
    em_release(&glm->row_sum);
    em_release(&glm->theta);
    em_release(&glm->sum);
    em_release(out);
}

/* The rows first..first + count of a selection that stands for itself when it has no index. */
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
    lanes sum = {0};

    for (int64_t i = 0; i < EM_TILE_ROWS; i += EM_LANES)
        sum += *(const lanes *)(x + i);
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/* The likelihood of a batch at its responses and the linear predictors in glm->eta, which become
 * residuals. */
static void apply_link(em_glm *glm, em_glm_link *link, int64_t count, int64_t n_chain,
                       double *log_density)
{
    link(n_chain, glm->response, glm->eta, glm->density);
    for (int64_t c = 0; c < n_chain; c++) {
        double *eta = glm->eta + c * EM_TILE_ROWS, *density = glm->density + c * EM_TILE_ROWS;
        for (int64_t i = count; i < EM_TILE_ROWS; i++)
            eta[i] = density[i] = 0;
        log_density[c] += sum_tile(density);
    }
}

static void take_responses(em_glm *glm, const batch *b)
{
    for (int64_t i = 0; i < b->count; i++)
        glm->response[i] = glm->design->response[row_of(b, i)];
}

static void add_dense(em_glm *glm, em_glm_link *link, const em_query *query)
{
    const em_tiled *x = &glm->design->dense;
    const int64_t n_chain = query->n_chain, end = query->rows.first + query->rows.count;

    memset(glm->partial, 0, (size_t)(n_chain * x->n_column * EM_LANES) * sizeof(double));
    for (int64_t i = query->rows.first; i < end; i += EM_TILE_ROWS) {
        const batch b = {NULL, i, end - i < EM_TILE_ROWS ? end - i : EM_TILE_ROWS};
        em_tile_predict(x, i / EM_TILE_ROWS, n_chain, query->stride, query->theta, glm->eta);
        take_responses(glm, &b);
        apply_link(glm, link, b.count, n_chain, query->log_density);
        em_tile_accumulate(x, i / EM_TILE_ROWS, n_chain, glm->eta, glm->partial);
    }
    em_tile_finish(n_chain, x->n_column, glm->partial, query->stride, query->gradient);
}

/* The rows of a batch, for the chain whose coefficients are glm->row_theta. `index` ends on a
 * multiple of eight rows; those beyond count have residual 0. */
static void add_batch(em_glm *glm, em_glm_link *link, const int64_t *index, int64_t count,
                      double *log_density)
{
    const em_design *x = glm->design;
    const int64_t n = em_stride(count), stride = x->row_stride;

    em_rows_predict(n, index, x->row, stride, glm->row_theta, glm->eta);
    for (int64_t i = 0; i < n; i++)
        glm->response[i] = x->row[index[i] * stride + x->n_column];
    apply_link(glm, link, count, 1, log_density);
    em_rows_accumulate(n, index, x->row, stride, glm->eta, glm->row_sum);
}

/* A minibatch for one chain; what the last eight rows lack is made up by the row of zeros. */
static void add_listed(em_glm *glm, em_glm_link *link, const em_rows *rows, double *log_density)
{
    const int64_t whole = rows->count / EM_TILE_ROWS * EM_TILE_ROWS, rest = rows->count - whole;
    int64_t last[EM_TILE_ROWS];

    for (int64_t i = 0; i < whole; i += EM_TILE_ROWS)
        add_batch(glm, link, rows->index + i, EM_TILE_ROWS, log_density);
    for (int64_t i = 0; i < em_stride(rest); i++)
        last[i] = i < rest ? rows->index[whole + i] : glm->design->n_row;
    add_batch(glm, link, last, rest, log_density);
}

/* One chain after the other: each has its own rows, as a rule. */
static void add_rows(em_glm *glm, em_glm_link *link, const em_query *query)
{
    const int64_t n = glm->design->n_column;

    for (int64_t c = 0; c < query->n_chain; c++) {
        const int64_t row = c * query->stride;
        memcpy(glm->row_theta, query->theta + row, (size_t)n * sizeof(double));
        memset(glm->row_sum, 0, (size_t)n * sizeof(double));
        add_listed(glm, link, &query->rows, query->log_density + c);
        for (int64_t j = 0; j < n; j++)
            query->gradient[row + j] += glm->row_sum[j];
    }
}

/* Compiled for each instruction set and chosen at run time. */
#ifdef __x86_64__
#define CLONED __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define CLONED
#endif

/* eta[c][i] = x_i . theta[c], for all chains of the panel: those that are absent have theta 0. */
CLONED static void predict_sparse(em_glm *glm, const batch *b)
{
    const em_design *x = glm->design;

    for (int64_t i = 0; i < b->count; i++) {
        int64_t row = row_of(b, i);
        lanes eta = {0};
        for (int64_t k = x->start[row]; k < x->start[row + 1]; k++)
            eta += x->value[k] * glm->theta[x->column[k]];
        for (int64_t c = 0; c < EM_GLM_CHAINS; c++)
            glm->eta[c * EM_TILE_ROWS + i] = eta[c];
    }
}

/* sum[j][c] += residual[c][i] x_ij */
CLONED static void accumulate_sparse(em_glm *glm, const batch *b)
{
    const em_design *x = glm->design;

    for (int64_t i = 0; i < b->count; i++) {
        int64_t row = row_of(b, i);
        lanes residual;
        for (int64_t c = 0; c < EM_GLM_CHAINS; c++)
            residual[c] = glm->eta[c * EM_TILE_ROWS + i];
        for (int64_t k = x->start[row]; k < x->start[row + 1]; k++)
            glm->sum[x->column[k]] += x->value[k] * residual;
    }
}

static void add_sparse(em_glm *glm, em_glm_link *link, const em_query *query)
{
    const em_rows *rows = &query->rows;
    const int64_t n = glm->design->n_column, n_chain = query->n_chain;
    const int64_t first = rows->index ? 0 : rows->first;

    for (int64_t j = 0; j < n; j++)
        for (int64_t c = 0; c < EM_GLM_CHAINS; c++)
            glm->theta[j][c] = c < n_chain ? query->theta[c * query->stride + j] : 0;
    memset(glm->sum, 0, (size_t)n * sizeof *glm->sum);
    for (int64_t i = 0; i < rows->count; i += EM_TILE_ROWS) {
        const batch b = {rows->index, first + i,
                         rows->count - i < EM_TILE_ROWS ? rows->count - i : EM_TILE_ROWS};
        predict_sparse(glm, &b);
        take_responses(glm, &b);
        apply_link(glm, link, b.count, n_chain, query->log_density);
        accumulate_sparse(glm, &b);
    }
    for (int64_t c = 0; c < n_chain; c++)
        for (int64_t j = 0; j < n; j++)
            query->gradient[c * query->stride + j] += glm->sum[j][c];
}

void em_glm_add(em_glm *glm, em_glm_link *link, const em_query *query)
{
    void (*const add)(em_glm *, em_glm_link *, const em_query *) = glm->design->sparse ? add_sparse
                                                                   : query->rows.index ? add_rows
                                                                                       : add_dense;

    for (int64_t c = 0; c < query->n_chain; c += EM_GLM_CHAINS) {
        const em_query panel = em_query_panel(query, c, EM_GLM_CHAINS);
        add(glm, link, &panel);
    }
}

void em_glm_add_prior(int64_t dim, double variance, const em_query *query)
{
    for (int64_t c = 0; c < query->n_chain; c++)
        for (int64_t j = 0; j < dim; j++) {
            const double beta = query->theta[c * query->stride + j];
            query->log_density[c] -= beta * beta / (2 * variance);
            query->gradient[c * query->stride + j] -= beta / variance;
        }
}

em_variable em_glm_variable(const em_design *design)
{
    return (em_variable){.name = "beta",
                         .n_axes = 1,
                         .shape = {design->n_column},
                         .axis = {"coefficient"},
                         .label = {(const char *const *)design->name}};
}
