#include "model/glm.h"

#include "base/memory.h"

#include <string.h>

/* One number of each chain of a panel: sparse rows update all chains together. */
typedef double lanes __attribute__((vector_size(EM_GLM_CHAINS * sizeof(double)), may_alias));

struct em_glm {
    const em_design *design;
    double *eta, *density; /* [EM_GLM_CHAINS][EM_TILE_ROWS] */
    double *response;      /* [EM_TILE_ROWS] */
    em_tiled gathered;     /* one tile, of the rows of a minibatch */
    double *partial;       /* dense: [EM_GLM_CHAINS][n_column][8] */
    lanes *theta, *sum;    /* sparse: [n_column] */
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
        glm->gathered = (em_tiled){EM_TILE_ROWS, n, 1, NULL};
        status = em_allocate_doubles(n * EM_TILE_ROWS, &glm->gathered.tile);
        if (!status)
            status = em_allocate_doubles(EM_GLM_CHAINS * n * EM_LANES, &glm->partial);
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
    em_release(&glm->gathered.tile);
    em_release(&glm->partial);
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

/* The likelihood of a batch at the linear predictors in glm->eta, which become residuals. */
static void apply_link(em_glm *glm, em_glm_link *link, const batch *b, int64_t n_chain,
                       double *log_density)
{
    for (int64_t i = 0; i < EM_TILE_ROWS; i++)
        glm->response[i] = i < b->count ? glm->design->response[row_of(b, i)] : 0;
    link(n_chain, glm->response, glm->eta, glm->density);
    for (int64_t c = 0; c < n_chain; c++) {
        double *eta = glm->eta + c * EM_TILE_ROWS, *density = glm->density + c * EM_TILE_ROWS;
        for (int64_t i = b->count; i < EM_TILE_ROWS; i++)
            eta[i] = density[i] = 0;
        log_density[c] += sum_tile(density);
    }
}

/* Copies the rows of a minibatch into a tile; the rows it lacks are zero. */
static void gather(em_glm *glm, const batch *b)
{
    const em_tiled *x = &glm->design->dense;

    memset(glm->gathered.tile, 0, (size_t)(x->n_column * EM_TILE_ROWS) * sizeof(double));
    for (int64_t i = 0; i < b->count; i++) {
        int64_t row = row_of(b, i);
        const double *from =
            x->tile + row / EM_TILE_ROWS * x->n_column * EM_TILE_ROWS + row % EM_TILE_ROWS;
        for (int64_t j = 0; j < x->n_column; j++)
            glm->gathered.tile[j * EM_TILE_ROWS + i] = from[j * EM_TILE_ROWS];
    }
}

static void add_dense(em_glm *glm, em_glm_link *link, const em_rows *rows, int64_t n_chain,
                      int64_t stride, const double *theta, double *log_density, double *gradient)
{
    const int64_t n = glm->design->n_column;
    const em_tiled *x = rows->index ? &glm->gathered : &glm->design->dense;

    memset(glm->partial, 0, (size_t)(n_chain * n * EM_LANES) * sizeof(double));
    for (int64_t i = 0; i < rows->count; i += EM_TILE_ROWS) {
        const batch b = {rows->index, i,
                         rows->count - i < EM_TILE_ROWS ? rows->count - i : EM_TILE_ROWS};
        const int64_t t = rows->index ? 0 : i / EM_TILE_ROWS;
        if (rows->index)
            gather(glm, &b);
        em_tile_predict(x, t, n_chain, stride, theta, glm->eta);
        apply_link(glm, link, &b, n_chain, log_density);
        em_tile_accumulate(x, t, n_chain, glm->eta, glm->partial);
    }
    em_tile_finish(n_chain, n, glm->partial, stride, gradient);
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

static void add_sparse(em_glm *glm, em_glm_link *link, const em_rows *rows, int64_t n_chain,
                       int64_t stride, const double *theta, double *log_density, double *gradient)
{
    const int64_t n = glm->design->n_column;

    for (int64_t j = 0; j < n; j++)
        for (int64_t c = 0; c < EM_GLM_CHAINS; c++)
            glm->theta[j][c] = c < n_chain ? theta[c * stride + j] : 0;
    memset(glm->sum, 0, (size_t)n * sizeof *glm->sum);
    for (int64_t i = 0; i < rows->count; i += EM_TILE_ROWS) {
        const batch b = {rows->index, i,
                         rows->count - i < EM_TILE_ROWS ? rows->count - i : EM_TILE_ROWS};
        predict_sparse(glm, &b);
        apply_link(glm, link, &b, n_chain, log_density);
        accumulate_sparse(glm, &b);
    }
    for (int64_t c = 0; c < n_chain; c++)
        for (int64_t j = 0; j < n; j++)
            gradient[c * stride + j] += glm->sum[j][c];
}

void em_glm_add(em_glm *glm, em_glm_link *link, int64_t n_chain, int64_t stride,
                const double *theta, const em_rows *rows, double *log_density, double *gradient)
{
    const em_rows all = {glm->design->n_row, NULL};

    for (int64_t c = 0; c < n_chain; c += EM_GLM_CHAINS) {
        const int64_t panel = n_chain - c < EM_GLM_CHAINS ? n_chain - c : EM_GLM_CHAINS;
        (glm->design->sparse ? add_sparse : add_dense)(glm, link, rows && rows->index ? rows : &all,
                                                       panel, stride, theta + c * stride,
                                                       log_density + c, gradient + c * stride);
    }
}

void em_glm_add_prior(int64_t dim, double variance, int64_t n_chain, int64_t stride,
                      const double *theta, double *log_density, double *gradient)
{
    for (int64_t c = 0; c < n_chain; c++)
        for (int64_t j = 0; j < dim; j++) {
            double beta = theta[c * stride + j];
            log_density[c] -= beta * beta / (2 * variance);
            gradient[c * stride + j] -= beta / variance;
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
