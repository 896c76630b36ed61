#include "data/array.h"

#include "base/memory.h"

#include <string.h>

em_status em_array_reserve(void *array, int64_t *capacity, int64_t used, int64_t needed,
                           size_t size)
{
    int64_t larger = needed > 2 * *capacity ? needed : 2 * *capacity;
    void *old, *fresh;
    em_status status;

    if (needed <= *capacity)
        return EM_OK;
    status = em_allocate(larger, size, &fresh);
    if (status)
        return status;
    memcpy(&old, array, sizeof old);
    if (used > 0)
        memcpy(fresh, old, (size_t)used * size);
    em_release(&old);
    memcpy(array, &fresh, sizeof fresh);
    *capacity = larger;
    return EM_OK;
}
