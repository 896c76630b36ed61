/* The reported arrays of a Stan model, from the flattened names that its library returns. */
#pragma once

#include "base/memory.h"
#include "emass/model.h"

typedef struct em_stan_variables {
    em_owner memory; /* of its arrays */
    int64_t n_variable;
    em_variable *variable; /* [n_variable], in the order of the names */
    int64_t n_element;
    /* [n_element] the row-major index, among all variables, of each flattened element */
    int64_t *place;
    char *names; /* of the variables, one after the other */
} em_stan_variables;

/*
 * Arranges "mu,theta.1,theta.2,L.1.1,L.2.1": `theta.2` is an element of `theta`, whose shape is
 * given by its largest indices; elements may come in any order. Names whose elements fill no such
 * array (which no Stan model has) are scalars of their own. Local. Errors: EM_EDATA, an array of
 * more than EM_MAX_AXES axes; EM_EMEMORY.
 */
em_status em_stan_variables_create(const char *names, em_stan_variables **out);
