/* A mass with a dense W and its Cholesky factor: W = C C^T, M = C^-T C^-1, L = C^-T. */
#include "base/memory.h"
#include "mass/mass.h"
#include "math/linalg.h"
#include "math/simd/panel.h"

#include <math.h>
#include <string.h>

/* Matrices are [dim][stride] with padding 0. They multiply a row of a panel from the right. */
typedef struct dense_mass {
    em_mass base;
    double *inverse;         /* W */
    double *factor;          /* C^-1: p_i = sum_j z_j factor[j][i] */
    double *root;            /* C */
    double *root_transposed; /* C^T */
} dense_mass;

static int64_t size(const em_mass_form *form)
{
    return form->dim * form->dim;
}

static int arrays(const em_mass_form *form, em_mass_array *out)
{
    out[0] = (em_mass_array){"inv_mass", 2, {form->dim, form->dim}, 0};
    return 1;
}

static void spread(const em_mass_form *form, const double *diagonal, double *number)
{
    memset(number, 0, (size_t)size(form) * sizeof *number);
    for (int64_t i = 0; i < form->dim; i++)
        number[i * form->dim + i] = diagonal[i];
}

static em_status set_up(em_mass *base, const em_mass_form *form, const double *number)
{
    dense_mass *mass = (dense_mass *)base;
    const int64_t n = form->dim, stride = base->stride;
    em_status status = em_own_all(
        &base->memory, EM_ARRAY(mass->inverse, n * stride), EM_ARRAY(mass->factor, n * stride),
        EM_ARRAY(mass->root, n * stride), EM_ARRAY(mass->root_transposed, n * stride));

    for (int64_t i = 0; !status && i < n; i++) {
        memcpy(mass->inverse + i * stride, number + i * n, (size_t)n * sizeof *number);
        memcpy(mass->root + i * stride, number + i * n, (size_t)n * sizeof *number);
    }
    status = status ? status : em_cholesky(n, mass->root, stride);
    if (status)
        return status;
    memcpy(mass->factor, mass->root, (size_t)(n * stride) * sizeof *number);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            mass->root_transposed[j * stride + i] = mass->root[i * stride + j];
    return em_invert_lower(n, mass->factor, stride);
}

static void write(const em_mass *base, const em_mass_form *form, double *number)
{
    const dense_mass *mass = (const dense_mass *)base;

    for (int64_t i = 0; i < form->dim; i++)
        memcpy(number + i * form->dim, mass->inverse + i * base->stride,
               (size_t)form->dim * sizeof *number);
}

/* Computes x <- M x in place, by solving C y = x and then C^T x = y. */
static void substitute(const dense_mass *mass, double *x)
{
    const int64_t n = mass->base.dim, stride = mass->base.stride;

    for (int64_t i = 0; i < n; i++) {
        const double *row = mass->root + i * stride;
        for (int64_t j = 0; j < i; j++)
            x[i] -= row[j] * x[j];
        x[i] /= row[i];
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        const double *row = mass->root_transposed + i * stride;
        for (int64_t j = i + 1; j < n; j++)
            x[i] -= row[j] * x[j];
        x[i] /= row[i];
    }
}

static void map(const em_mass *base, em_map map, int64_t n_chain, const double *x, double *out)
{
    const dense_mass *mass = (const dense_mass *)base;
    const double *const matrix[EM_N_MAP] = {[EM_MAP_VELOCITY] = mass->inverse,
                                            [EM_MAP_MOMENTUM] = mass->factor,
                                            [EM_MAP_WHITEN] = mass->root,
                                            [EM_MAP_UNWHITEN] = mass->root_transposed};

    if (matrix[map]) {
        em_panel_product(n_chain, base->dim, base->dim, x, base->stride, matrix[map], base->stride,
                         out, base->stride);
        return;
    }
    memcpy(out, x, (size_t)(n_chain * base->stride) * sizeof *out);
    for (int64_t c = 0; c < n_chain; c++)
        substitute(mass, out + c * base->stride);
}

static em_status matrix(const em_mass *base, em_map map, double *out)
{
    const em_mass_form form = {.ops = base->ops, .dim = base->dim};

    write(base, &form, out);
    return map == EM_MAP_SOLVE ? em_invert_spd(base->dim, out, base->dim) : EM_OK;
}

static double log_det(const em_mass *base)
{
    const dense_mass *mass = (const dense_mass *)base;
    double sum = 0;

    for (int64_t i = 0; i < base->dim; i++)
        sum -= 2 * log(mass->factor[i * (base->stride + 1)]);
    return sum;
}

static em_status range(const em_mass *base, double *smallest, double *largest)
{
    const int64_t n = base->dim;
    EM_SCOPED double *work = NULL;
    em_status status = em_allocate(n * n + n, sizeof *work, &work);

    if (status)
        return status;
    double *value = work + n * n;
    status = matrix(base, EM_MAP_VELOCITY, work);
    status = status ? status : em_eigen(n, work, n, value);
    *smallest = value[0];
    *largest = value[n - 1];
    return status;
}

const em_mass_ops em_mass_dense = {
    .struct_size = sizeof(dense_mass),
    .name = "dense",
    .doc = "all covariances",
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
