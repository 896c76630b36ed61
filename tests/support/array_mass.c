#include "support/array_mass.h"

em_status mass_of_array(em_structure structure, int64_t dim, const double *inverse, em_mass **out)
{
    const em_mass_form form = em_mass_plain_form(structure, dim);

    return em_mass_of(&form, inverse, out);
}
