#include "sampler/riemannian/riemann.h"

#include "base/memory.h"
#include "math/linalg.h"
#include "sampler/riemannian/riemannian_metric.h"

#include <math.h>
#include <string.h>

static const double tolerance = 1e-10, return_tolerance = 1e-7;
enum { MOST_ROUNDS = 20 };

const char *const em_riemann_metrics[] = {"full", "diagonal", NULL};

em_metric_kind em_riemann_metric_of(const void *options)
{
    (void)options;
    return EM_METRIC_FISHER;
}

em_status em_riemann_create(em_owner *owner, int64_t dim, const em_riemann_options *options,
                            em_riemann **out)
{
    const int64_t stride = em_stride(dim);
    const em_status status = em_own_all(owner, EM_ARRAY(*out, 1));
    em_riemann *r = *out;

    if (status)
        return status;
    *r = (em_riemann){.owner = owner,
                      .dim = dim,
                      .diagonal = options->metric == EM_RIEMANN_DIAGONAL,
                      .rounds = options->fixed_point};
    return em_own_all(owner, EM_ARRAY(r->theta, stride), EM_ARRAY(r->momentum, stride),
                      EM_ARRAY(r->gradient, stride), EM_ARRAY(r->half_trace, dim),
                      EM_ARRAY(r->at, dim), EM_ARRAY(r->velocity, dim), EM_ARRAY(r->start, dim),
                      EM_ARRAY(r->next, dim), EM_ARRAY(r->before, dim), EM_ARRAY(r->half, dim),
                      EM_ARRAY(r->back, dim));
}

/* Allocates work space of the size of the metric, once its structure is known. */
static em_status riemann_prepare(em_riemann *r)
{
    const int64_t n = r->dim;
    em_status status = EM_OK;

    if (r->inverse)
        return EM_OK;
    r->by_element = em_posterior_is_diagonal(r->posterior);
    if (!r->by_element)
        status = em_metric_check_dim(n);
    const int64_t size = r->by_element ? n : n * n;
    return status ? status
                  : em_own_all(r->owner, EM_ARRAY(r->derivative, r->by_element ? 0 : n * n * n),
                               EM_ARRAY(r->factor, size), EM_ARRAY(r->there, size),
                               EM_ARRAY(r->inverse, size));
}

/* ---- the metric ---- */

static void riemann_keep_diagonal(int64_t n, double *matrix)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            matrix[i * n + j] *= i == j;
}

/* Evaluates a diagonal metric; `whole`: also its root. */
static em_status riemann_evaluate_elements(em_riemann *r, const double *theta, bool whole)
{
    const em_diagonal ask = {.theta = theta, .metric = r->inverse};
    em_status status = EM_OK;

    em_posterior_diagonal(r->posterior, r->chain, &ask);
    for (int64_t i = 0; i < r->dim; i++) {
        const double G = r->inverse[i];
        if (!(G > 0 && isfinite(G)))
            status = EM_NONFINITE;
        if (whole)
            r->factor[i] = sqrt(G);
        r->inverse[i] = 1 / G;
    }
    return status;
}

/* Computes G^-1; `whole`: also its factor and derivatives. */
static em_status riemann_evaluate(em_riemann *r, const double *theta, bool whole)
{
    const int64_t n = r->dim;

    if (r->by_element)
        return riemann_evaluate_elements(r, theta, whole);
    em_status status = em_posterior_metric(r->posterior, r->chain, theta, r->inverse,
                                           whole ? r->derivative : NULL);

    if (status)
        return status;
    for (int64_t k = 0; r->diagonal && k < n; k++)
        if (whole)
            riemann_keep_diagonal(n, r->derivative + k * n * n);
    if (r->diagonal)
        riemann_keep_diagonal(n, r->inverse);
    if (whole)
        memcpy(r->factor, r->inverse, (size_t)(n * n) * sizeof *r->factor);
    return em_invert_spd(n, r->inverse, n);
}

static em_status riemann_set_position(em_riemann *r, const double *theta)
{
    const int64_t n = r->dim;
    const int64_t diagonal = r->by_element ? 1 : n + 1;
    em_status status = riemann_evaluate(r, theta, true);

    if (!status && !r->by_element)
        status = em_cholesky(n, r->factor, n);
    if (status)
        return status;
    memcpy(r->at, theta, (size_t)n * sizeof *theta);
    r->half_log_determinant = 0;
    for (int64_t k = 0; k < n; k++)
        r->half_log_determinant += log(r->factor[k * diagonal]);
    for (int64_t k = 0; !r->by_element && k < n; k++)
        r->half_trace[k] = em_dot(n * n, r->inverse, r->derivative + k * n * n) / 2;
    return EM_OK;
}

em_status em_riemann_set_position(em_riemann *r, em_posterior *posterior, int64_t chain,
                                  const double *theta)
{
    r->posterior = posterior;
    r->chain = chain;
    const em_status status = riemann_prepare(r);
    return status ? status : riemann_set_position(r, theta);
}

void em_riemann_add_noise(const em_riemann *r, double scale, const double *z, double *p)
{
    for (int64_t i = 0; i < r->dim; i++)
        p[i] += scale *
                (r->by_element ? r->factor[i] * z[i] : em_dot(i + 1, r->factor + i * r->dim, z));
}

/* v = G^-1 p */
static void riemann_velocity(em_riemann *r, const double *p)
{
    for (int64_t i = 0; i < r->dim; i++)
        r->velocity[i] =
            r->by_element ? r->inverse[i] * p[i] : em_dot(r->dim, r->inverse + i * r->dim, p);
}

void em_riemann_take_state(em_riemann *r, const em_block *block, int64_t c)
{
    const size_t bytes = (size_t)block->stride * sizeof(double);

    memcpy(r->theta, block->theta + c * block->stride, bytes);
    memcpy(r->momentum, block->momentum + c * block->stride, bytes);
    memcpy(r->gradient, block->gradient + c * block->stride, bytes);
    r->log_density = block->log_density[c];
}

void em_riemann_put_state(const em_riemann *r, em_block *block, int64_t c)
{
    const size_t bytes = (size_t)block->stride * sizeof(double);

    memcpy(block->theta + c * block->stride, r->theta, bytes);
    memcpy(block->momentum + c * block->stride, r->momentum, bytes);
    memcpy(block->gradient + c * block->stride, r->gradient, bytes);
    block->log_density[c] = r->log_density;
}

em_query em_riemann_query(em_riemann *r, const em_block *block, int64_t c)
{
    em_query query = em_block_query_of(block, c);

    query.theta = r->theta;
    query.log_density = &r->log_density;
    query.gradient = r->gradient;
    return query;
}

double em_riemann_kinetic(em_riemann *r)
{
    riemann_velocity(r, r->momentum);
    return em_dot(r->dim, r->momentum, r->velocity) / 2;
}

/* ---- the integrator ---- */

/* The kick of a diagonal metric, which adds to g the sum over i of its derivatives with weights
 * (v_i^2 - 1 / G_i) / 2. */
static void riemann_kick_elements(em_riemann *r, double eps)
{
    double *weight = r->velocity;
    const em_diagonal ask = {.theta = r->at, .weight = weight, .slope = r->next};

    for (int64_t i = 0; i < r->dim; i++)
        weight[i] = (r->velocity[i] * r->velocity[i] - r->inverse[i]) / 2;
    em_posterior_diagonal(r->posterior, r->chain, &ask);
    for (int64_t k = 0; k < r->dim; k++)
        r->next[k] = r->start[k] + eps / 2 * (r->gradient[k] + r->next[k]);
}

/* next = start - eps/2 dH/dtheta(theta, p) */
static void riemann_kick(em_riemann *r, double eps, const double *p)
{
    const int64_t n = r->dim;

    riemann_velocity(r, p);
    if (r->by_element) {
        riemann_kick_elements(r, eps);
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        double curvature = 0;
        for (int64_t i = 0; i < n; i++)
            curvature += r->velocity[i] * em_dot(n, r->derivative + (k * n + i) * n, r->velocity);
        r->next[k] = r->start[k] + eps / 2 * (r->gradient[k] - r->half_trace[k] + curvature / 2);
    }
}

/* Sets x = next and returns the distance; NaN if it is not finite. */
static double riemann_take(em_riemann *r, double *x)
{
    double moved = 0;

    for (int64_t i = 0; i < r->dim; i++) {
        const double change = fabs(r->next[i] - x[i]);
        moved = change > moved || isnan(change) ? change : moved;
        x[i] = r->next[i];
    }
    return moved;
}

static bool riemann_goes_on(const em_riemann *r, int64_t round, double moved)
{
    if (r->rounds != INT64_MIN)
        return round < r->rounds;
    return round < MOST_ROUNDS && !(moved < tolerance);
}

static em_status riemann_verdict(const em_riemann *r, double moved)
{
    return moved < (r->rounds == INT64_MIN ? tolerance : INFINITY) ? EM_OK : EM_NONFINITE;
}

static em_status riemann_solve_momentum(em_riemann *r, double eps, double *p)
{
    double moved = INFINITY;

    memcpy(r->start, p, (size_t)r->dim * sizeof *p);
    for (int64_t round = 0; riemann_goes_on(r, round, moved); round++) {
        riemann_kick(r, eps, p);
        moved = riemann_take(r, p);
    }
    return riemann_verdict(r, moved);
}

/* Solves for the new position by fixed-point iteration. The first round uses the metric at theta,
 * where it was evaluated. */
static em_status riemann_solve_position(em_riemann *r, double eps, const double *p, double *theta)
{
    double moved = INFINITY;
    em_status status = EM_OK;

    riemann_velocity(r, p);
    for (int64_t i = 0; i < r->dim; i++)
        r->start[i] = theta[i] + eps / 2 * r->velocity[i];
    for (int64_t round = 0; !status && riemann_goes_on(r, round, moved); round++) {
        if (round > 0)
            status = riemann_evaluate(r, theta, false);
        riemann_velocity(r, p);
        for (int64_t i = 0; i < r->dim; i++)
            r->next[i] = r->start[i] + eps / 2 * r->velocity[i];
        moved = riemann_take(r, theta);
    }
    return status ? status : riemann_verdict(r, moved);
}

em_status em_riemann_advance(em_riemann *r, double eps)
{
    memcpy(r->before, r->theta, (size_t)r->dim * sizeof *r->theta);
    em_status status = riemann_solve_momentum(r, eps, r->momentum);
    status = status ? status : riemann_solve_position(r, eps, r->momentum, r->theta);
    return status ? status : riemann_set_position(r, r->theta);
}

static bool riemann_same(int64_t n, const double *x, const double *y)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(x[i] - y[i]) < return_tolerance))
            return false;
    return true;
}

/* Checks that the step from (before, ...) to (theta, p) is reversible: the solves must also find it
 * from its other end, first p_1/2 = half from p, and then the start. The first momentum follows
 * from these without a solve. */
static em_status riemann_see_way_back(em_riemann *r, double eps)
{
    const size_t vector = (size_t)r->dim * sizeof *r->back;
    const size_t matrix = r->by_element ? vector : (size_t)r->dim * vector;

    memcpy(r->back, r->momentum, vector);
    em_status status = riemann_solve_momentum(r, -eps, r->back);
    if (!status && !riemann_same(r->dim, r->back, r->half))
        status = EM_NONFINITE;
    if (status)
        return status;
    memcpy(r->there, r->inverse, matrix);
    memcpy(r->back, r->theta, vector);
    status = riemann_solve_position(r, -eps, r->half, r->back);
    memcpy(r->inverse, r->there, matrix);
    if (!status && !riemann_same(r->dim, r->back, r->before))
        status = EM_NONFINITE;
    return status;
}

em_status em_riemann_finish(em_riemann *r, double eps)
{
    const size_t vector = (size_t)r->dim * sizeof *r->momentum;

    memcpy(r->half, r->momentum, vector);
    memcpy(r->start, r->momentum, vector);
    riemann_kick(r, eps, r->momentum);
    riemann_take(r, r->momentum);
    return r->rounds == INT64_MIN ? riemann_see_way_back(r, eps) : EM_OK;
}
