/* Arrays that grow while what comes is not known. */
#ifndef EM_BASE_ARRAY_H
#define EM_BASE_ARRAY_H

#include "emass/status.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Makes *(T **)array, NULL to begin with, hold at least `needed` elements of `size` bytes, keeping
 * the first `used`; those of the first time are zero. The capacity at least doubles. Local. Errors:
 * EM_EMEMORY, the array is then as it was. Freed by em_release.
 */
em_status em_array_reserve(void *array, int64_t *capacity, int64_t used, int64_t needed,
                           size_t size);

#endif
