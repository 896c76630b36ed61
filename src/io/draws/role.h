/* What a variable is beside its numbers, as attributes of its dataset: a parameter or not, and from
 * where tables number its elements. */
#ifndef EM_IO_DRAWS_ROLE_H
#define EM_IO_DRAWS_ROLE_H

#include "emass/model.h"
#include "io/hdf5/hdf5.h"

/* Writes `role` where it is no parameter, and `index_base` where it is 1. Collective, not agreed,
 * as em_attribute_write. Errors: EM_EIO. */
em_status em_role_write(hid_t dataset, const em_variable *variable);

/* What the dataset says; a parameter, and 0, where it says nothing that is known. Local. */
void em_role_read(hid_t dataset, em_role *role, int64_t *index_base);

#endif
