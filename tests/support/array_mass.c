#include "support/array_mass.h"

#include <check.h>
#include <string.h>

em_status mass_of_array(em_structure structure, int64_t dim, const double *inverse, em_mass **out)
{
    const em_mass_form form = em_mass_plain_form(structure, dim);

    return em_mass_of(&form, inverse, out);
}

const em_estimator_ops *find_estimator(const char *name)
{
    for (int i = 0; em_estimators[i]; i++)
        if (strcmp(em_estimators[i]->name, name) == 0)
            return em_estimators[i];
    ck_abort_msg("no estimator %s", name);
    return NULL;
}
