/* A mass of one structure from the array of its W; and an estimator by its name. */
#ifndef TESTS_SUPPORT_ARRAY_MASS_H
#define TESTS_SUPPORT_ARRAY_MASS_H

#include "mass/estimator.h"
#include "mass/mass.h"

/* Errors: those of em_mass_of. */
em_status mass_of_array(em_structure structure, int64_t dim, const double *inverse, em_mass **out);

const em_estimator_ops *find_estimator(const char *name);

#endif
