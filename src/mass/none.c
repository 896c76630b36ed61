/* No M-step: the mass stays as it starts. */
#include "mass/estimator.h"

#include <stddef.h>

const em_estimator_ops em_none = {
    .name = "none",
    .doc = "keep the identity mass; only the step size adapts",
    .source = "-",
};
