/* Masses of one structure, diagonal or dense. */
#include "mass/mass.h"

em_mass_form em_mass_plain_form(em_structure structure, int64_t dim)
{
    return (em_mass_form){.ops = structure == EM_MASS_DENSE ? &em_mass_dense : &em_mass_diag,
                          .dim = dim};
}

em_status em_mass_identity(em_structure structure, int64_t dim, em_mass **out)
{
    const em_mass_form form = em_mass_plain_form(structure, dim);

    return em_mass_identity_of(&form, out);
}
