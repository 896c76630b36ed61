/* Compares data with the shapes that a Stan program declares, and checks that draws fit into
 * memory. */
#pragma once

#include "model/stan/stan_data.h"
#include "model/stan/stan_declared.h"

/*
 * Compares every array of numbers in `values` with its declaration in a block: the number of axes,
 * and their lengths if these are sums, differences and products of numbers and of other data. Other
 * lengths, and arrays without elements, are not checked. Messages name `path`. Local. Errors:
 * EM_EDATA.
 */
em_status em_stan_check_shapes(const char *path, const em_stan_declared *declared,
                               em_stan_block block, const em_stan_data *values,
                               const em_stan_data *data);

/* Refuses a program whose draws need more than `room` bytes, as far as the lengths of their arrays
 * are known as above. Without this check the failure would occur only after minutes, in the
 * construction of the model. Messages name `what`. Local. Errors: EM_EMEMORY. */
em_status em_stan_check_memory(const char *what, const em_stan_declared *declared,
                               const em_stan_data *data, double room);
