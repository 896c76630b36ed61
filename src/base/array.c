#include "base/array.h"

#include "base/memory.h"

em_status em_array_reserve(void *array, int64_t *capacity, int64_t used, int64_t needed,
                           size_t size)
{
    const int64_t larger = needed > 2 * *capacity ? needed : 2 * *capacity;
    em_status status;

    if (needed <= *capacity)
        return EM_OK;
    status = used == 0 && *capacity == 0 ? em_allocate(larger, size, array)
                                         : em_reallocate(larger, size, array);
    if (!status)
        *capacity = larger;
    return status;
}
