/* Shared objects that a config names. */
#ifndef EM_BASE_SYSTEM_SHARED_OBJECT_H
#define EM_BASE_SYSTEM_SHARED_OBJECT_H

#include "emass/status.h"

#include <stdbool.h>

/* Loads the regular file at `path`, which a folder of the system never stands in for; it stays
 * loaded until the end of the process. Local. Errors: EM_ECONFIG, naming the path; EM_EMEMORY. */
em_status em_shared_object_load(const char *path, void **handle);

/* The address of a symbol, into whatever kind of pointer is at `to`; false, and NULL, where there
 * is none. Local. */
bool em_shared_object_find(void *handle, const char *name, void *to);

#endif
