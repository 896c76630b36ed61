/* Non-centred coordinates: the map, its gradients, and the posterior in them. */
#include "posterior/noncentring.h"

#include "base/memory.h"
#include "posterior/inside.h"

#include <math.h>
#include <string.h>

const char *const em_noncentring_name[EM_NONCENTRING_NUMBERS] = {
    "level",         "scale",         "degree",        "origin",       "width",
    "shift",         "location_1",    "location_2",    "location_3",   "location_4",
    "coefficient_1", "coefficient_2", "coefficient_3", "coefficient_4"};

/* ---------------------------------------------------------------- the map */

em_status em_noncentring_create(int64_t dim, em_noncentring *out)
{
    em_status status;

    *out = (em_noncentring){.dim = dim};
    status = em_allocate(dim, sizeof *out->row, &out->row);
    return status ? status : em_allocate(dim, sizeof *out->child, &out->child);
}

void em_noncentring_release(em_noncentring *map)
{
    em_release_all(&map->row, &map->child);
}

/* Whether x may be the number of a parameter below `level`. */
static bool is_lower(const em_noncentring *map, const em_noncentring_row *row, double x,
                     double level)
{
    return x >= 0 && x < (double)map->dim && x == floor(x) && row[(int64_t)x].level < level;
}

static bool is_valid(const em_noncentring *map, const em_noncentring_row *row, int64_t i)
{
    const em_noncentring_row *r = &row[i];

    if (r->level == 0)
        return true;
    for (int j = 0; j < EM_MOST_LOCATIONS && r->location[j] >= 0; j++)
        if (!is_lower(map, row, r->location[j], r->level) || !isfinite(r->coefficient[j]))
            return false;
    return r->level > 0 && r->level <= (double)map->dim && r->level == floor(r->level) &&
           is_lower(map, row, r->scale, r->level) && isfinite(r->degree) && isfinite(r->origin) &&
           r->width > 0 && isfinite(r->width) && isfinite(r->shift);
}

em_status em_noncentring_set(em_noncentring *map, const em_noncentring_row *row)
{
    double next = 1;

    for (int64_t i = 0; i < map->dim; i++)
        if (!is_valid(map, row, i))
            return em_fail(EM_EDATA, "the map of non-centred parameters has no valid row %lld",
                           (long long)i);
    memmove(map->row, row, (size_t)map->dim * sizeof *row);
    map->n_child = 0;
    for (double level = next; level < INFINITY; level = next) {
        next = INFINITY;
        for (int64_t i = 0; i < map->dim; i++) {
            if (row[i].level == level)
                map->child[map->n_child++] = i;
            else if (row[i].level > level)
                next = fmin(next, row[i].level);
        }
    }
    return EM_OK;
}

/* The location of a child, of which x has all lower levels. */
static double location_of(const em_noncentring_row *row, const double *x)
{
    double sum = row->shift;

    for (int j = 0; j < EM_MOST_LOCATIONS && row->location[j] >= 0; j++)
        sum += row->coefficient[j] * x[(int64_t)row->location[j]];
    return sum;
}

/* a h(x_k - s), and its derivative by x_k. */
static double log_scale_of(const em_noncentring_row *row, const double *x, double *slope)
{
    const double linear = 12 * row->width, rest = 4 * row->width;
    const double t = x[(int64_t)row->scale] - row->origin, over = fabs(t) - linear;

    *slope = row->degree;
    if (over <= 0)
        return row->degree * t;
    const double bent = tanh(over / rest);
    *slope *= 1 - bent * bent;
    return row->degree * copysign(linear + rest * bent, t);
}

double em_noncentring_to_model(const em_noncentring *map, double *z)
{
    double log_jacobian = 0, slope;

    for (int64_t n = 0; n < map->n_child; n++) {
        const em_noncentring_row *row = &map->row[map->child[n]];
        const double log_scale = log_scale_of(row, z, &slope);
        z[map->child[n]] = location_of(row, z) + exp(log_scale) * z[map->child[n]];
        log_jacobian += log_scale;
    }
    return log_jacobian;
}

double em_noncentring_from_model(const em_noncentring *map, double *x)
{
    double log_jacobian = 0, slope;

    for (int64_t n = map->n_child - 1; n >= 0; n--) {
        const em_noncentring_row *row = &map->row[map->child[n]];
        const double log_scale = log_scale_of(row, x, &slope);
        x[map->child[n]] = (x[map->child[n]] - location_of(row, x)) * exp(-log_scale);
        log_jacobian += log_scale;
    }
    return log_jacobian;
}

/* Adds `sign` times what the derivative by x_i, `g`, gives to those by x_k and x_j. */
static void spread(const em_noncentring_row *row, double sign, double slope, double scaled,
                   double g, double *gradient)
{
    for (int j = 0; j < EM_MOST_LOCATIONS && row->location[j] >= 0; j++)
        gradient[(int64_t)row->location[j]] += sign * row->coefficient[j] * g;
    gradient[(int64_t)row->scale] += sign * slope * (scaled * g + 1);
}

void em_noncentring_pull(const em_noncentring *map, const double *z, const double *x,
                         double *gradient)
{
    double slope;

    for (int64_t n = map->n_child - 1; n >= 0; n--) {
        const int64_t i = map->child[n];
        const double scale = exp(log_scale_of(&map->row[i], x, &slope));
        spread(&map->row[i], 1, slope, scale * z[i], gradient[i], gradient);
        gradient[i] *= scale;
    }
}

/* The same steps backwards. */
void em_noncentring_push(const em_noncentring *map, const double *z, const double *x,
                         double *gradient)
{
    double slope;

    for (int64_t n = 0; n < map->n_child; n++) {
        const int64_t i = map->child[n];
        const double scale = exp(log_scale_of(&map->row[i], x, &slope));
        gradient[i] /= scale;
        spread(&map->row[i], -1, slope, scale * z[i], gradient[i], gradient);
    }
}

/* ---------------------------------------------------------------- the posterior of z */

static em_status answer(em_posterior *posterior, const em_query *query)
{
    const em_noncentring *map = posterior->noncentring;
    const int64_t stride = query->stride;
    em_query inner = *query;
    em_status status;

    if (map->n_child == 0)
        return em_posterior_evaluate(posterior->parent, query);
    memcpy(posterior->theta, query->theta,
           (size_t)(query->n_chain * stride) * sizeof *posterior->theta);
    for (int64_t c = 0; c < query->n_chain; c++)
        posterior->log_jacobian[c] =
            posterior->centred[query->chain[c]]
                ? 0
                : em_noncentring_to_model(map, posterior->theta + c * stride);
    inner.theta = posterior->theta;
    status = em_posterior_evaluate(posterior->parent, &inner);
    for (int64_t c = 0; status >= 0 && c < query->n_chain; c++) {
        if (posterior->centred[query->chain[c]])
            continue;
        em_noncentring_pull(map, query->theta + c * stride, posterior->theta + c * stride,
                            query->gradient + c * stride);
        query->log_density[c] += posterior->log_jacobian[c];
    }
    return status;
}

static void release(em_posterior *posterior)
{
    em_release(&posterior->log_jacobian);
}

em_status em_posterior_create_noncentred(em_posterior *parent, int64_t n_chain, int64_t dim,
                                         const em_noncentring *map, const bool *centred,
                                         em_posterior **out)
{
    em_posterior *posterior = NULL;
    em_status status = em_allocate(1, sizeof *posterior, &posterior);

    *out = NULL;
    if (!status) {
        posterior->answer = answer;
        posterior->release = release;
        status = em_allocate(n_chain * em_stride(dim), sizeof(double), &posterior->theta);
    }
    if (!status)
        status = em_allocate(n_chain, sizeof(double), &posterior->log_jacobian);
    if (status) {
        em_posterior_destroy(&posterior);
        return status;
    }
    posterior->model = parent->model;
    posterior->grid = parent->grid;
    posterior->parent = parent;
    posterior->noncentring = map;
    posterior->centred = centred;
    *out = posterior;
    return EM_OK;
}
