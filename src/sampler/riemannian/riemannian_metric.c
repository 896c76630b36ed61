#include "sampler/riemannian/riemannian_metric.h"

#include "base/memory.h"
#include "math/linalg.h"

#include <math.h>
#include <string.h>

const char *const em_metric_names[] = {"mass", "expanded_mean", "density", "fisher", NULL};

em_status em_metric_check_dim(int64_t dim)
{
    enum { MOST = 4096 };

    return dim <= MOST ? EM_OK
                       : em_fail(EM_ECONFIG,
                                 "the derivative of the metric takes dim^3 numbers: found "
                                 "dimension %lld, expected at most %d",
                                 (long long)dim, MOST);
}

em_status em_metric_create(em_owner *owner, const em_metric_options *options, em_divergence of,
                           int64_t n_chain, int64_t dim, em_metric **out)
{
    const em_status status = em_own_all(owner, EM_ARRAY(*out, 1));
    em_metric *m = *out;

    if (status)
        return status;
    *m = (em_metric){.owner = owner,
                     .kind = (em_metric_kind)options->kind,
                     .scale = options->scale,
                     .shift = options->shift,
                     .of = of,
                     .dim = dim,
                     .stride = em_stride(dim)};
    const int64_t n_kept = m->kind == EM_METRIC_DENSITY ? n_chain : 0;
    return em_own_all(owner, EM_ARRAY(m->divergence, m->stride), EM_ARRAY(m->log_density, n_kept),
                      EM_ARRAY(m->gradient, n_kept * m->stride));
}

/* Allocates memory for a root of this structure. The structure seldom changes for one metric. */
static em_status metric_prepare(em_metric *m, em_structure structure)
{
    const int64_t n = m->dim;
    const bool dense = structure == EM_MASS_DENSE;

    if (m->root && m->structure == structure)
        return EM_OK;
    em_release_from(m->owner, &m->root);
    em_release_from(m->owner, &m->derivative);
    em_release_from(m->owner, &m->scratch);
    m->structure = structure;
    em_status status = em_own_all(m->owner, EM_ARRAY(m->root, dense ? n * n : m->stride));
    if (!status && dense)
        status = em_own_all(m->owner, EM_ARRAY(m->scratch, n * n + 3 * n));
    if (!status && dense && m->kind == EM_METRIC_FISHER)
        status = em_own_all(m->owner, EM_ARRAY(m->derivative, n * n * n));
    return status;
}

/* ---- the metrics ---- */

/* One chain, whose density of all data at its position is known. */
typedef struct position {
    em_posterior *posterior;
    int64_t chain;
    const em_mass *mass;
    const double *theta, *gradient;
    double log_density;
} position;

/* Sets A to the Cholesky factor of W. */
static em_status metric_set_mass(em_metric *m, const position *at)
{
    if (m->placed && m->version == at->mass->version)
        return EM_OK;
    em_status status = metric_prepare(m, at->mass->ops->structure);
    status = status ? status : em_mass_matrix(at->mass, EM_MAP_VELOCITY, m->structure, m->root);
    if (status)
        return status;
    if (m->structure == EM_MASS_DENSE)
        status = em_cholesky(m->dim, m->root, m->dim);
    else
        for (int64_t i = 0; i < m->dim; i++)
            m->root[i] = sqrt(m->root[i]);
    m->version = at->mass->version;
    m->placed = !status;
    return status;
}

/* Sets a_i = sqrt(theta_i). A chain may begin below zero. */
static em_status metric_set_expanded_mean(em_metric *m, const position *at)
{
    const em_status status = metric_prepare(m, EM_MASS_DIAG);
    const int64_t n = status ? 0 : m->dim;
    double *restrict a = m->root, *restrict divergence = m->divergence;

    for (int64_t i = 0; i < n; i++)
        a[i] = sqrt(fabs(at->theta[i]));
    for (int64_t i = 0; m->of == EM_DIVERGENCE_OF_ROOT && i < n; i++)
        divergence[i] = 0.5 / a[i];
    for (int64_t i = 0; m->of != EM_DIVERGENCE_OF_ROOT && i < n; i++)
        divergence[i] = 1;
    return status;
}

/* Sets a_i = sqrt(D) |U + C|^1/4, where dU / dtheta_i = -gradient_i. */
static em_status metric_set_density(em_metric *m, const position *at)
{
    const double x = m->shift - at->log_density;
    const double a = sqrt(m->scale * sqrt(fabs(x))), change = -a / (4 * x);
    const double factor = m->of == EM_DIVERGENCE_OF_ROOT ? change : 2 * a * change;
    em_status status = metric_prepare(m, EM_MASS_DIAG);

    for (int64_t i = 0; !status && i < m->dim; i++) {
        m->root[i] = a;
        m->divergence[i] = factor * at->gradient[i];
    }
    return status;
}

/* Computes the divergence of G^-1, which is -G^-1 sum_j dG_j G^-1 e_j. */
static void metric_diverge_inverse(em_metric *m)
{
    const int64_t n = m->dim;
    double *column = m->scratch, *sum = column + n, *part = sum + n;

    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int64_t j = 0; j < n; j++) {
        em_metric_root(m, m->root + j * n, column);
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < n; k++)
                sum[i] -= m->derivative[(j * n + i) * n + k] * column[k];
    }
    em_metric_root_transposed(m, sum, part);
    em_metric_root(m, part, m->divergence);
}

/* Computes the divergence of the root. With G = L L^T and A = L^-T, dL_j = L low(A^T dG_j A), where
 * low takes the lower triangle with half the diagonal. So dA_j = -A low(A^T dG_j A)^T, and the
 * divergence is -sum_j sum_k A_jk low(A^T dG_j A)_ik. */
static void metric_diverge_root(em_metric *m)
{
    const int64_t n = m->dim;
    double *GA = m->scratch;

    memset(m->divergence, 0, (size_t)n * sizeof(double));
    for (int64_t j = 0; j < n; j++) {
        em_multiply(n, m->derivative + j * n * n, m->root, n, GA);
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k <= i; k++) {
                double AGA = 0;
                for (int64_t l = 0; l < n; l++)
                    AGA += m->root[l * n + i] * GA[l * n + k];
                m->divergence[i] -= m->root[j * n + k] * AGA * (k < i ? 1 : 0.5);
            }
    }
}

/* Sets A_i = G_i^-1/2, so that dA_i = -A_i^3 dG_i / 2 and d(G_i^-1) = -A_i^4 dG_i. */
static em_status metric_set_diagonal(em_metric *m, const position *at)
{
    const bool of_root = m->of == EM_DIVERGENCE_OF_ROOT;
    em_status status = metric_prepare(m, EM_MASS_DIAG);
    const em_diagonal ask = {.theta = at->theta, .metric = m->root, .own = m->divergence};

    if (status)
        return status;
    em_posterior_diagonal(at->posterior, at->chain, &ask);
    for (int64_t i = 0; i < m->dim; i++) {
        const double a = 1 / sqrt(m->root[i]);
        if (!(a > 0 && isfinite(a)))
            status = EM_NONFINITE;
        m->divergence[i] *= of_root ? -a * a * a / 2 : -a * a * a * a;
        m->root[i] = a;
    }
    return status;
}

static em_status metric_set_fisher(em_metric *m, const position *at)
{
    const int64_t n = m->dim;

    if (em_posterior_is_diagonal(at->posterior))
        return metric_set_diagonal(m, at);
    em_status status = EM_OK;
    if (!m->root) /* at the first position */
        status = em_posterior_share_failure(at->posterior, metric_prepare(m, EM_MASS_DENSE));
    if (!status)
        status =
            em_posterior_metric(at->posterior, at->chain, at->theta, m->scratch, m->derivative);
    status = status ? status : em_cholesky(n, m->scratch, n);
    status = status ? status : em_invert_lower(n, m->scratch, n);
    if (status)
        return status;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            m->root[i * n + j] = m->scratch[j * n + i];
    if (m->of == EM_DIVERGENCE_OF_ROOT)
        metric_diverge_root(m);
    else
        metric_diverge_inverse(m);
    return EM_OK;
}

em_status em_metric_evaluate_density(em_metric *metric, const em_step_context *context,
                                     const em_block *block, bool is_whole)
{
    if (metric->kind != EM_METRIC_DENSITY)
        return EM_OK;
    if (!is_whole) {
        em_query query = em_block_query(block);
        query.log_density = metric->log_density;
        query.gradient = metric->gradient;
        return em_posterior_evaluate(context->posterior, &query);
    }
    memcpy(metric->log_density, block->log_density, (size_t)block->n_chain * sizeof(double));
    memcpy(metric->gradient, block->gradient,
           (size_t)(block->n_chain * block->stride) * sizeof(double));
    return EM_OK;
}

em_status em_metric_set_position(em_metric *metric, const em_step_context *context,
                                 const em_block *block, int64_t c)
{
    static em_status (*const kinds[])(em_metric *, const position *) = {
        [EM_METRIC_MASS] = metric_set_mass,
        [EM_METRIC_EXPANDED_MEAN] = metric_set_expanded_mean,
        [EM_METRIC_DENSITY] = metric_set_density,
        [EM_METRIC_FISHER] = metric_set_fisher};
    const int64_t row = c * block->stride;
    position at = {.posterior = context->posterior,
                   .chain = block->chain[c],
                   .mass = context->mass[c],
                   .theta = block->theta + row,
                   .log_density = NAN};

    if (metric->kind == EM_METRIC_DENSITY) {
        at.gradient = metric->gradient + row;
        at.log_density = metric->log_density[c];
    }
    return kinds[metric->kind](metric, &at);
}

/* ---- products with the metric ---- */

void em_metric_root(const em_metric *metric, const double *x, double *out)
{
    const int64_t n = metric->dim;

    if (metric->structure == EM_MASS_DIAG) {
        for (int64_t i = 0; i < metric->stride; i++)
            out[i] = metric->root[i] * x[i];
        return;
    }
    for (int64_t i = 0; i < n; i++)
        out[i] = em_dot(n, metric->root + i * n, x);
}

void em_metric_root_transposed(const em_metric *metric, const double *x, double *out)
{
    const int64_t n = metric->dim;

    if (metric->structure == EM_MASS_DIAG) {
        em_metric_root(metric, x, out);
        return;
    }
    memset(out, 0, (size_t)n * sizeof *out);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            out[j] += metric->root[i * n + j] * x[i];
}

void em_metric_reflect(const em_metric *metric, double *theta, double *momentum)
{
    if (metric->kind != EM_METRIC_EXPANDED_MEAN)
        return;
    for (int64_t i = 0; momentum && i < metric->dim; i++)
        momentum[i] = theta[i] < 0 ? -momentum[i] : momentum[i];
    for (int64_t i = 0; i < metric->dim; i++)
        theta[i] = fabs(theta[i]);
}
