#include "support/array_mass.h"

em_status mass_of_array(em_structure structure, int64_t dim, const double *inverse, em_mass **out)
{
    const em_mass_form form = {.ops = structure == EM_MASS_DENSE ? &em_mass_dense : &em_mass_diag,
                               .dim = dim};

    return em_mass_of(&form, inverse, out);
}
