/* The criteria and the structures of a mass: a new one needs its name here, and nowhere else. */
#include "mass/estimator.h"

#include <stddef.h>

/* The object of a criterion is em_estimator_NAME, that of a structure em_mass_NAME. */
#define ESTIMATORS(each)                                                                           \
    each(none) each(momentum) each(fisher) each(variance) each(gradient) each(noise)
#define STRUCTURES(each) each(diag) each(dense) each(block_diagonal) each(low_rank)

#define DECLARED(name)   extern const em_estimator_ops em_estimator_##name;
#define ESTIMATOR(name)  &em_estimator_##name,
#define STRUCTURE(name)  &em_mass_##name,
#define NAME(name)       #name,

ESTIMATORS(DECLARED)

/* No M-step: the mass stays as it starts. */
const em_estimator_ops em_estimator_none = {
    .name = "none",
    .doc = "keep the identity mass; only the step size adapts",
    .source = "-",
};

const em_estimator_ops *const em_estimators[] = {ESTIMATORS(ESTIMATOR) NULL};
const char *const em_estimator_names[] = {ESTIMATORS(NAME) NULL};
const em_mass_ops *const em_mass_structures[] = {STRUCTURES(STRUCTURE) NULL};
const char *const em_structure_names[] = {"auto", STRUCTURES(NAME) NULL};
