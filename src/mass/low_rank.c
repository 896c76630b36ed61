/*
 * W = S (I + V (Lambda - I) V^T) S: a scale of each coordinate, and a few directions, orthonormal
 * in those scales, that are wider or narrower than that. With B = I + V (Lambda - I) V^T, of which
 * every power is I + V (Lambda^p - I) V^T,
 *
 *     W = S B S,   M = S^-1 B^-1 S^-1,   L = S^-1 B^-1/2,   L^-1 = B^1/2 S,   L^-T = S B^1/2,
 *
 * so that all maps are: scale, two products with V, scale; 4 dim r operations for r directions.
 */
#include "base/clones.h"
#include "base/memory.h"
#include "mass/mass.h"
#include "mass/span.h"
#include "math/linalg.h"
#include "math/simd/panel.h"

#include <math.h>
#include <string.h>

/* CHAINS: the number of chains whose coefficients are kept at a time. TILE: the number of
 * coordinates that stay in the first-level cache. */
enum { CHAINS = 8, TILE = 512, MOST_RANK = EM_MASS_MOST_RANK };

typedef struct low_rank_mass {
    em_mass base;
    int64_t n_direction, column_stride;
    double *scale, *inverse_scale; /* [stride] */
    double *value;                 /* Lambda, [n_direction] */
    double *row;                   /* V^T, [n_direction][stride] */
    double *column;                /* V, [dim][column_stride] */
} low_rank_mass;

/* The number of doubles that describe the mass: scales [dim], values [most_rank], which are 1 for
 * unused directions, and directions [most_rank][dim]. */
static int64_t size(const em_mass_form *form)
{
    return form->dim + form->most_rank * (1 + form->dim);
}

/* Describes the arrays in the output file. If there are no directions, only the scales are stored.
 */
static int arrays(const em_mass_form *form, em_mass_array *out)
{
    const int64_t dim = form->dim, r = form->most_rank;

    out[0] = (em_mass_array){"inv_mass_scale", 1, {dim}, 0};
    out[1] = (em_mass_array){"inv_mass_value", 1, {r}, dim};
    out[2] = (em_mass_array){"inv_mass_direction", 2, {r, dim}, dim + r};
    return r > 0 ? 3 : 1;
}

static void spread(const em_mass_form *form, const double *diagonal, double *number)
{
    for (int64_t i = 0; i < form->dim; i++)
        number[i] = sqrt(diagonal[i]);
    em_directions_clear(form->dim, form->most_rank, number + form->dim);
}

static em_status allocate(low_rank_mass *mass, int64_t rank)
{
    const int64_t dim = mass->base.dim, stride = mass->base.stride;

    mass->n_direction = rank;
    mass->column_stride = em_stride(rank);
    return em_own_all(&mass->base.memory, EM_ARRAY(mass->scale, stride),
                      EM_ARRAY(mass->inverse_scale, stride), EM_ARRAY(mass->value, rank),
                      EM_ARRAY(mass->row, rank * stride),
                      EM_ARRAY(mass->column, dim * mass->column_stride));
}

static bool is_positive(double x)
{
    return x > 0 && isfinite(x);
}

/* Sets Lambda and V from the directions whose value is not 1. */
static em_status set_directions(low_rank_mass *mass, const em_mass_form *form, const double *value)
{
    const double *direction = value + form->most_rank;
    const int64_t dim = form->dim;
    int64_t r = 0;

    for (int64_t k = 0; k < form->most_rank; k++) {
        if (value[k] == 1)
            continue;
        if (!is_positive(value[k]))
            return EM_NONFINITE;
        mass->value[r] = value[k];
        memcpy(mass->row + r * mass->base.stride, direction + k * dim, (size_t)dim * sizeof *value);
        for (int64_t i = 0; i < dim; i++)
            mass->column[i * mass->column_stride + r] = direction[k * dim + i];
        r++;
    }
    return EM_OK;
}

/* Whether V^T V = I, as far as rounding lets it. */
static bool is_orthonormal(const low_rank_mass *mass)
{
    const int64_t stride = mass->base.stride;

    for (int64_t k = 0; k < mass->n_direction; k++)
        for (int64_t l = 0; l <= k; l++) {
            double sum = k == l ? -1 : 0;
            for (int64_t i = 0; i < mass->base.dim; i++)
                sum += mass->row[k * stride + i] * mass->row[l * stride + i];
            if (!(fabs(sum) < 1e-8))
                return false;
        }
    return true;
}

static em_status set_up(em_mass *base, const em_mass_form *form, const double *number)
{
    low_rank_mass *mass = (low_rank_mass *)base;
    int64_t rank = 0;

    for (int64_t k = 0; k < form->most_rank; k++)
        rank += number[form->dim + k] != 1;
    em_status status = allocate(mass, rank);
    for (int64_t i = 0; !status && i < form->dim; i++) {
        if (!is_positive(number[i]))
            return EM_NONFINITE;
        mass->scale[i] = number[i];
        mass->inverse_scale[i] = 1 / number[i];
    }
    status = status ? status : set_directions(mass, form, number + form->dim);
    return !status && !is_orthonormal(mass) ? EM_NONFINITE : status;
}

static void write(const em_mass *base, const em_mass_form *form, double *number)
{
    const low_rank_mass *mass = (const low_rank_mass *)base;
    const int64_t dim = base->dim;
    double *value = number + dim, *direction = value + form->most_rank;

    memcpy(number, mass->scale, (size_t)dim * sizeof *number);
    em_directions_clear(dim, form->most_rank, value);
    for (int64_t k = 0; k < em_least(form->most_rank, mass->n_direction); k++) {
        value[k] = mass->value[k];
        memcpy(direction + k * dim, mass->row + k * base->stride, (size_t)dim * sizeof *number);
    }
}

/* y += V c for n chains; coefficients are [n][MOST_RANK]. */
EM_CLONES static void add_directions(const low_rank_mass *mass, int64_t n,
                                     const double *coefficient, double *out)
{
    const int64_t stride = mass->base.stride;

    for (int64_t first = 0; first < stride; first += TILE) {
        const int64_t count = stride - first < TILE ? stride - first : TILE;
        for (int64_t c = 0; c < n; c++)
            for (int64_t k = 0; k < mass->n_direction; k++) {
                const double x = coefficient[c * MOST_RANK + k];
                const double *restrict v = mass->row + k * stride + first;
                double *restrict y = out + c * stride + first;
                for (int64_t i = 0; i < count; i++)
                    y[i] += x * v[i];
            }
    }
}

/* y <- B^p y */
static void power(const low_rank_mass *mass, double p, int64_t n, double *y)
{
    _Alignas(EM_ALIGNMENT) double coefficient[CHAINS * MOST_RANK];

    if (mass->n_direction == 0)
        return;
    em_panel_product(n, mass->base.dim, mass->n_direction, y, mass->base.stride, mass->column,
                     mass->column_stride, coefficient, MOST_RANK);
    for (int64_t k = 0; k < mass->n_direction; k++) {
        const double x = mass->value[k];
        const double factor = (p == 1 ? x : p == -1 ? 1 / x : p > 0 ? sqrt(x) : 1 / sqrt(x)) - 1;
        for (int64_t c = 0; c < n; c++)
            coefficient[c * MOST_RANK + k] *= factor;
    }
    add_directions(mass, n, coefficient, y);
}

static void multiply(int64_t n, int64_t stride, const double *scale, const double *x, double *out)
{
    for (int64_t c = 0; c < n; c++)
        for (int64_t i = 0; i < stride; i++)
            out[c * stride + i] = scale[i] * x[c * stride + i];
}

static void map(const em_mass *base, em_map map, int64_t n_chain, const double *x, double *out)
{
    const low_rank_mass *mass = (const low_rank_mass *)base;
    const double *s = mass->scale, *t = mass->inverse_scale, *one = base->ones;
    const struct {
        const double *before, *after;
        double p;
    } step[EM_N_MAP] = {[EM_MAP_VELOCITY] = {s, s, 1},
                        [EM_MAP_SOLVE] = {t, t, -1},
                        [EM_MAP_MOMENTUM] = {one, t, -0.5},
                        [EM_MAP_WHITEN] = {s, one, 0.5},
                        [EM_MAP_UNWHITEN] = {one, s, 0.5}};
    const int64_t stride = base->stride;

    for (int64_t c = 0; c < n_chain; c += CHAINS) {
        const int64_t n = n_chain - c < CHAINS ? n_chain - c : CHAINS;
        double *y = out + c * stride;
        multiply(n, stride, step[map].before, x + c * stride, y);
        power(mass, step[map].p, n, y);
        multiply(n, stride, step[map].after, y, y);
    }
}

/* Writes the matrix S B S or its inverse S^-1 B^-1 S^-1. */
static em_status matrix(const em_mass *base, em_map map, double *out)
{
    const low_rank_mass *mass = (const low_rank_mass *)base;
    const bool inverts = map == EM_MAP_SOLVE;
    const double *scale = inverts ? mass->inverse_scale : mass->scale;
    const int64_t n = base->dim;

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = i == j;
            for (int64_t k = 0; k < mass->n_direction; k++)
                sum += ((inverts ? 1 / mass->value[k] : mass->value[k]) - 1) *
                       mass->row[k * base->stride + i] * mass->row[k * base->stride + j];
            out[i * n + j] = out[j * n + i] = scale[i] * sum * scale[j];
        }
    return EM_OK;
}

static double log_det(const em_mass *base)
{
    const low_rank_mass *mass = (const low_rank_mass *)base;
    double sum = 0;

    for (int64_t i = 0; i < base->dim; i++)
        sum += 2 * log(mass->scale[i]);
    for (int64_t k = 0; k < mass->n_direction; k++)
        sum += log(mass->value[k]);
    return sum;
}

/* The largest eigenvalue of a map by power iteration, until it changes by less than 1e-6 of
 * itself. */
static double largest_of(const em_mass *mass, em_map which, double *x, double *y)
{
    const int64_t n = mass->dim;
    double value = 0, before = -1;

    for (int64_t i = 0; i < n; i++)
        x[i] = 1 + 0.5 * sin((double)i + 1); /* along no axis */
    for (int k = 0; k < 1000 && fabs(value - before) > 1e-6 * value; k++) {
        const double norm = sqrt(em_dot(n, x, x));
        for (int64_t i = 0; i < n; i++)
            x[i] /= norm;
        map(mass, which, 1, x, y);
        before = value;
        value = em_dot(n, x, y);
        memcpy(x, y, (size_t)n * sizeof *x);
    }
    return value;
}

static em_status range(const em_mass *mass, double *smallest, double *largest)
{
    EM_SCOPED double *work = NULL;
    em_status status = em_allocate(2 * mass->stride, sizeof *work, &work);

    if (status)
        return status;
    *largest = largest_of(mass, EM_MAP_VELOCITY, work, work + mass->stride);
    memset(work, 0, (size_t)mass->stride * sizeof *work);
    *smallest = 1 / largest_of(mass, EM_MAP_SOLVE, work, work + mass->stride);
    return EM_OK;
}

int64_t em_mass_rank(const em_mass *mass)
{
    return mass->ops == &em_mass_low_rank ? ((const low_rank_mass *)mass)->n_direction : 0;
}

const em_mass_ops em_mass_low_rank = {
    .struct_size = sizeof(low_rank_mass),
    .name = "low_rank",
    .doc = "a variance for each coordinate, and the few directions in which the covariance differs "
           "most from a diagonal one",
    .structure = EM_MASS_DENSE,
    .size = size,
    .arrays = arrays,
    .spread = spread,
    .set_up = set_up,
    .write = write,
    .map = map,
    .matrix = matrix,
    .log_det = log_det,
    .range = range,
};
