/* Compares data with the shapes that a Stan program declares, and checks that draws fit into
 * memory. */
#pragma once

#include "model/stan/stan_data.h"
#include "model/stan/stan_declared.h"

/*
 * Compares every array of numbers in `values` with its declaration in a block: how many axes it
 * has, and their lengths as far as they are sums, differences and products of numbers and of other
 * data. What only the program can know, and an array without elements, passes. `path` is what
 * messages name. Local. Errors: EM_EDATA.
 */
em_status em_stan_check_shapes(const char *path, const em_stan_declared *declared,
                               em_stan_block block, const em_stan_data *values,
                               const em_stan_data *data);

/*
 * Refuses a program whose draws, as far as the lengths of their arrays are known as above, take
 * more than `room` bytes already while it is made: to find that out by making it takes minutes.
 * `what` is what messages name. Local. Errors: EM_EMEMORY.
 */
em_status em_stan_check_room(const char *what, const em_stan_declared *declared,
                             const em_stan_data *data, double room);
