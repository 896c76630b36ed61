/* Shared objects that a config names. */
#pragma once

#include "emass/status.h"

#include <stdbool.h>

/* Loads the regular file at `path`, never one of the same name in a system folder; it stays loaded
 * until the process ends. Local. Errors: EM_ECONFIG, naming the path; EM_EMEMORY. */
em_status em_shared_object_load(const char *path, void **handle);

/* Stores the address of a symbol in the pointer at `to`; NULL and false if it is not found.
 * Local. */
bool em_shared_object_find(void *handle, const char *name, void *to);
