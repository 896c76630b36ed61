#include "mass/mass.h"

#include "base/clones.h"

#include <string.h>
#include <xxhash.h>

uint64_t em_version_of(int64_t n, const double *number)
{
    return XXH64(number, (size_t)n * sizeof *number, (uint64_t)n);
}

static em_status set_ones(em_mass *mass)
{
    const em_status status = em_own_all(&mass->memory, EM_ARRAY(mass->ones, mass->stride));

    for (int64_t i = 0; !status && i < mass->dim; i++)
        mass->ones[i] = 1;
    return status;
}

em_status em_mass_of(const em_mass_form *form, const double *number, em_mass **out)
{
    em_status status = em_allocate(1, form->ops->struct_size, out);

    if (status)
        return status;
    **out = (em_mass){.ops = form->ops,
                      .dim = form->dim,
                      .stride = em_stride(form->dim),
                      .version = em_version_of(form->ops->size(form), number)};
    status = form->ops->set_up(*out, form, number);
    if (!status && !(*out)->scale[EM_MAP_VELOCITY])
        status = set_ones(*out);
    if (status)
        em_mass_destroy(out);
    return status;
}

em_status em_mass_of_diagonal(const em_mass_form *form, const double *diagonal, em_mass **out)
{
    EM_SCOPED double *number = NULL;
    em_status status = em_allocate(form->ops->size(form), sizeof *number, &number);

    *out = NULL;
    if (!status) {
        form->ops->spread(form, diagonal, number);
        status = em_mass_of(form, number, out);
    }
    return status;
}

em_status em_mass_identity_of(const em_mass_form *form, em_mass **out)
{
    EM_SCOPED double *ones = NULL;
    em_status status = em_allocate(form->dim, sizeof *ones, &ones);

    *out = NULL;
    for (int64_t i = 0; !status && i < form->dim; i++)
        ones[i] = 1;
    return status ? status : em_mass_of_diagonal(form, ones, out);
}

void em_mass_destroy(em_mass **mass)
{
    if (!*mass)
        return;
    if ((*mass)->ops->release)
        (*mass)->ops->release(*mass);
    em_release_owned(&(*mass)->memory);
    em_release(mass);
}

em_status em_mass_matrix(const em_mass *mass, em_map map, em_structure structure, double *out)
{
    const int64_t n = mass->dim, step = structure == EM_MASS_DENSE ? n + 1 : 1;
    const double *diagonal = mass->scale[map];

    if (!diagonal)
        return mass->ops->matrix(mass, map, out);
    memset(out, 0, (size_t)em_mass_size(structure, n) * sizeof *out);
    for (int64_t i = 0; i < n; i++)
        out[i * step] = diagonal[i];
    return EM_OK;
}

/* The end of the run of chains from `first` on that share one mass. One product serves all of them.
 */
static int64_t run_end(const em_mass *const *mass, int64_t n_chain, int64_t first)
{
    int64_t last = first + 1;

    while (last < n_chain && mass[last] == mass[first])
        last++;
    return last;
}

void em_mass_map(const em_mass *const *mass, em_map map, int64_t n_chain, const double *x,
                 double *panel)
{
    for (int64_t first = 0, last; first < n_chain; first = last) {
        const em_mass *m = mass[first];
        const int64_t row = first * m->stride;

        last = run_end(mass, n_chain, first);
        if (!m->scale[map])
            m->ops->map(m, map, last - first, x + row, panel + row);
    }
}

em_product em_mass_product(const em_mass *mass, em_map map, const double *x, const double *panel)
{
    if (mass->scale[map])
        return (em_product){mass->scale[map], x};
    return (em_product){mass->ones, panel};
}

/* The mass of some coordinates. For a multiple of the identity all blocks of coordinates use the
 * first block of scales, which stays in the cache, except the last one, whose padding is 0. */
em_mass em_mass_coordinates(const em_mass *mass, int64_t first, int64_t count)
{
    const int64_t from = mass->is_multiple && first + count < mass->dim ? 0 : first;
    em_mass coordinates = {.ops = mass->ops, .dim = count, .stride = em_stride(count)};

    for (int i = 0; i < EM_N_MAP; i++)
        coordinates.scale[i] = mass->scale[i] + from;
    return coordinates;
}

EM_CLONES static void scale_rows(int64_t n, int64_t stride, const double *restrict scale,
                                 const double *restrict x, double *restrict out)
{
    for (int64_t c = 0; c < n; c++)
        for (int64_t i = 0; i < stride; i++)
            out[c * stride + i] = scale[i] * x[c * stride + i];
}

void em_scale_rows(int64_t n, int64_t stride, const double *scale, const double *x, double *out)
{
    scale_rows(n, stride, scale, x, out);
}

void em_mass_apply(const em_mass *const *mass, em_map map, int64_t n_chain, const double *x,
                   double *out)
{
    const int64_t stride = n_chain > 0 ? mass[0]->stride : 0;

    em_mass_map(mass, map, n_chain, x, out);
    for (int64_t c = 0; c < n_chain; c++)
        if (mass[c]->scale[map])
            scale_rows(1, stride, mass[c]->scale[map], x + c * stride, out + c * stride);
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
