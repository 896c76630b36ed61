#include "mass/mass.h"

#include "base/memory.h"
#include "math/linalg.h"
#include "math/panel.h"

#include <math.h>
#include <string.h>

int64_t em_mass_size(em_structure structure, int64_t dim)
{
    return structure == EM_MASS_DENSE ? dim * dim : dim;
}

static em_status mass_allocate(em_structure structure, int64_t dim, em_mass **out)
{
    const bool dense = structure == EM_MASS_DENSE;
    const int64_t stride = em_stride(dim), size = dense ? dim * stride : stride;
    em_mass *mass = NULL;
    em_status status = em_allocate(1, sizeof *mass, &mass);

    *out = NULL;
    if (status)
        return status;
    *mass = (em_mass){.structure = structure, .dim = dim, .stride = stride};
    double **const matrices[] = {&mass->inverse, &mass->factor, &mass->root,
                                 &mass->root_transposed};
    for (int i = 0; !status && i < (dense ? 4 : 3); i++)
        status = em_allocate(size, sizeof(double), matrices[i]);
    if (!status && dense)
        status = em_allocate(stride, sizeof(double), &mass->ones);
    for (int64_t i = 0; !status && dense && i < dim; i++)
        mass->ones[i] = 1;
    if (status)
        em_mass_destroy(&mass);
    *out = mass;
    return status;
}

/* Padding stays zero in both structures: padded elements of momenta and velocities are then zero.
 */
static em_status set_diag(em_mass *mass, const double *inverse)
{
    for (int64_t i = 0; i < mass->dim; i++) {
        if (!(inverse[i] > 0) || !isfinite(inverse[i]))
            return EM_NONFINITE;
        mass->inverse[i] = inverse[i];
        mass->root[i] = sqrt(inverse[i]);
        mass->factor[i] = 1 / mass->root[i];
    }
    return EM_OK;
}

/* With the Cholesky factor C of W = C C^T, M = C^-T C^-1, so that L = C^-T and p = L z is p_i =
 * sum_j z_j (C^-1)[j][i]. */
static em_status set_dense(em_mass *mass, const double *inverse)
{
    const int64_t n = mass->dim, stride = mass->stride;
    em_status status;

    for (int64_t i = 0; i < n; i++) {
        memcpy(mass->inverse + i * stride, inverse + i * n, (size_t)n * sizeof *inverse);
        memcpy(mass->root + i * stride, inverse + i * n, (size_t)n * sizeof *inverse);
    }
    status = em_cholesky(n, mass->root, stride);
    if (status)
        return status;
    memcpy(mass->factor, mass->root, (size_t)(n * stride) * sizeof *inverse);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            mass->root_transposed[j * stride + i] = mass->root[i * stride + j];
    return em_invert_lower(n, mass->factor, stride);
}

em_status em_mass_create(em_structure structure, int64_t dim, const double *inverse, em_mass **out)
{
    em_status status = mass_allocate(structure, dim, out);

    if (!status)
        status = structure == EM_MASS_DENSE ? set_dense(*out, inverse) : set_diag(*out, inverse);
    if (status)
        em_mass_destroy(out);
    return status;
}

em_status em_mass_identity(em_structure structure, int64_t dim, em_mass **out)
{
    em_status status = mass_allocate(structure, dim, out);

    for (int64_t i = 0; !status && i < dim; i++) {
        const int64_t at = structure == EM_MASS_DENSE ? i * (*out)->stride + i : i;
        (*out)->inverse[at] = (*out)->factor[at] = (*out)->root[at] = 1;
        if (structure == EM_MASS_DENSE)
            (*out)->root_transposed[at] = 1;
    }
    return status;
}

void em_mass_destroy(em_mass **mass)
{
    if (*mass) {
        em_release(&(*mass)->inverse);
        em_release(&(*mass)->factor);
        em_release(&(*mass)->root);
        em_release(&(*mass)->root_transposed);
        em_release(&(*mass)->ones);
    }
    em_release(mass);
}

void em_mass_inverse(const em_mass *mass, double *out)
{
    if (mass->structure == EM_MASS_DIAG) {
        memcpy(out, mass->inverse, (size_t)mass->dim * sizeof *out);
        return;
    }
    for (int64_t i = 0; i < mass->dim; i++)
        memcpy(out + i * mass->dim, mass->inverse + i * mass->stride,
               (size_t)mass->dim * sizeof *out);
}

static const double *matrix_of(const em_mass *mass, em_map map)
{
    switch (map) {
    case EM_MAP_VELOCITY:
        return mass->inverse;
    case EM_MAP_MOMENTUM:
        return mass->factor;
    case EM_MAP_WHITEN:
        return mass->root;
    default:
        return mass->structure == EM_MASS_DENSE ? mass->root_transposed : mass->root;
    }
}

/* Runs of chains that share one mass take one product. */
void em_mass_map(const em_mass *const *mass, em_map map, int64_t n_chain, const double *x,
                 double *panel)
{
    for (int64_t first = 0, last; first < n_chain; first = last) {
        const em_mass *m = mass[first];
        const int64_t row = first * m->stride;

        for (last = first + 1; last < n_chain && mass[last] == m;)
            last++;
        if (m->structure == EM_MASS_DENSE)
            em_panel_product(last - first, m->dim, m->dim, x + row, m->stride, matrix_of(m, map),
                             m->stride, panel + row, m->stride);
    }
}

em_product em_mass_product(const em_mass *mass, em_map map, const double *x, const double *panel)
{
    if (mass->structure == EM_MASS_DENSE)
        return (em_product){mass->ones, panel};
    return (em_product){matrix_of(mass, map), x};
}

static void apply(const em_mass *const *mass, em_map map, int64_t n_chain, const double *x,
                  double *out)
{
    em_mass_map(mass, map, n_chain, x, out);
    for (int64_t c = 0; c < n_chain; c++)
        if (mass[c]->structure == EM_MASS_DIAG) {
            const double *diagonal = matrix_of(mass[c], map);
            const int64_t stride = mass[c]->stride;
            for (int64_t i = 0; i < stride; i++)
                out[c * stride + i] = diagonal[i] * x[c * stride + i];
        }
}

void em_mass_momentum(const em_mass *const *mass, int64_t n_chain, const double *z,
                      double *momentum)
{
    apply(mass, EM_MAP_MOMENTUM, n_chain, z, momentum);
}

void em_mass_velocity(const em_mass *const *mass, int64_t n_chain, const double *momentum,
                      double *velocity)
{
    apply(mass, EM_MAP_VELOCITY, n_chain, momentum, velocity);
}

void em_kinetic_energy(int64_t n_chain, int64_t dim, int64_t stride, const double *momentum,
                       const double *velocity, double *kinetic)
{
    for (int64_t c = 0; c < n_chain; c++) {
        kinetic[c] = 0;
        for (int64_t i = 0; i < dim; i++)
            kinetic[c] += 0.5 * momentum[c * stride + i] * velocity[c * stride + i];
    }
}
