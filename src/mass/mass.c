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
    em_mass *mass = NULL;
    em_status status = em_allocate(1, sizeof *mass, &mass);

    *out = NULL;
    if (status)
        return status;
    mass->structure = structure;
    mass->dim = dim;
    mass->stride = em_stride(dim);
    const int64_t size = structure == EM_MASS_DENSE ? dim * mass->stride : mass->stride;
    status = em_allocate(size, sizeof(double), &mass->inverse);
    if (!status)
        status = em_allocate(size, sizeof(double), &mass->factor);
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
        mass->factor[i] = 1 / sqrt(inverse[i]);
    }
    return EM_OK;
}

/* W = L L^T, so M = L^-T L^-1 and p = L^-T z, that is factor[j][i] = (L^-1)[j][i]. */
static em_status set_dense(em_mass *mass, const double *inverse)
{
    const int64_t n = mass->dim, stride = mass->stride;
    em_status status;

    for (int64_t i = 0; i < n; i++) {
        memcpy(mass->inverse + i * stride, inverse + i * n, (size_t)n * sizeof *inverse);
        memcpy(mass->factor + i * stride, inverse + i * n, (size_t)n * sizeof *inverse);
    }
    status = em_cholesky(n, mass->factor, stride);
    return status ? status : em_invert_lower(n, mass->factor, stride);
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
        (*out)->inverse[at] = 1;
        (*out)->factor[at] = 1;
    }
    return status;
}

void em_mass_destroy(em_mass **mass)
{
    if (*mass) {
        em_release(&(*mass)->inverse);
        em_release(&(*mass)->factor);
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

/* out[c] = x[c] times W or F, for runs of chains that share one mass in one product. */
static void apply(const em_mass *const *mass, bool factor, int64_t n_chain, const double *x,
                  double *out)
{
    for (int64_t first = 0, last; first < n_chain; first = last) {
        const em_mass *m = mass[first];
        const double *matrix = factor ? m->factor : m->inverse;

        for (last = first + 1; last < n_chain && mass[last] == m;)
            last++;
        if (m->structure == EM_MASS_DENSE) {
            em_panel_product(last - first, m->dim, m->dim, x + first * m->stride, m->stride, matrix,
                             m->stride, out + first * m->stride, m->stride);
            continue;
        }
        for (int64_t c = first; c < last; c++)
            for (int64_t i = 0; i < m->stride; i++)
                out[c * m->stride + i] = matrix[i] * x[c * m->stride + i];
    }
}

void em_mass_momentum(const em_mass *const *mass, int64_t n_chain, const double *z,
                      double *momentum)
{
    apply(mass, true, n_chain, z, momentum);
}

void em_mass_velocity(const em_mass *const *mass, int64_t n_chain, const double *momentum,
                      double *velocity)
{
    apply(mass, false, n_chain, momentum, velocity);
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
