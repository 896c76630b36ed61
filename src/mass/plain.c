/* The identity as a mass of one structure, diagonal or dense. */
#include "mass/mass.h"

em_status em_mass_identity(em_structure structure, int64_t dim, em_mass **out)
{
    const em_mass_form form = {.ops = structure == EM_MASS_DENSE ? &em_mass_dense : &em_mass_diag,
                               .dim = dim};

    return em_mass_identity_of(&form, out);
}
