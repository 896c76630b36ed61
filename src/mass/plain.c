/* Masses of one structure, diagonal or dense. */
#include "mass/mass.h"

static em_mass_form form_of(em_structure structure, int64_t dim)
{
    return (em_mass_form){.ops = structure == EM_MASS_DENSE ? &em_mass_dense : &em_mass_diag,
                          .dim = dim};
}

em_status em_mass_create(em_structure structure, int64_t dim, const double *inverse, em_mass **out)
{
    const em_mass_form form = form_of(structure, dim);

    return em_mass_of(&form, inverse, out);
}

em_status em_mass_identity(em_structure structure, int64_t dim, em_mass **out)
{
    const em_mass_form form = form_of(structure, dim);

    return em_mass_identity_of(&form, out);
}
