#include "base/memory.h"

#include "base/fault.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t allocation_count;

em_status em_allocate(int64_t count, size_t size, void *out)
{
    void *memory = NULL;
    size_t bytes;

    memcpy(out, &memory, sizeof memory);
    if (count < 0 || __builtin_mul_overflow((size_t)count, size, &bytes) ||
        bytes > SIZE_MAX - EM_ALIGNMENT)
        return em_fail(EM_EMEMORY, "out of memory: %lld x %zu bytes is more than can be addressed",
                       (long long)count, size);
    bytes = (bytes + EM_ALIGNMENT) / EM_ALIGNMENT * EM_ALIGNMENT;
    memory = em_fault("allocate") ? NULL : aligned_alloc(EM_ALIGNMENT, bytes);
    if (!memory)
        return em_fail(EM_EMEMORY, "out of memory: could not allocate %zu bytes", bytes);
    memset(memory, 0, bytes);
    memcpy(out, &memory, sizeof memory);
    allocation_count++;
    return EM_OK;
}

em_status em_allocate_doubles(int64_t count, double **out)
{
    em_status status = em_allocate(count, sizeof **out, out);
#ifdef EM_DEBUG
    for (int64_t i = 0; !status && i < count; i++)
        (*out)[i] = NAN;
#endif
    return status;
}

void em_release(void *pointer)
{
    void *memory;

    memcpy(&memory, pointer, sizeof memory);
    free(memory);
    memory = NULL;
    memcpy(pointer, &memory, sizeof memory);
}

em_status em_copy_text(const char *text, char **out)
{
    return em_format_text(out, "%s", text);
}

em_status em_format_text(char **out, const char *format, ...)
{
    va_list arguments;
    em_status status;
    int length;

    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    status = em_allocate((int64_t)length + 1, 1, out);
    if (status)
        return status;
    va_start(arguments, format);
    vsnprintf(*out, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return EM_OK;
}

int64_t em_allocation_count(void)
{
    return allocation_count;
}

bool em_is_believable(double numbers, double stored_bytes)
{
    return numbers <= 0x1p20 + 0x1p12 * stored_bytes;
}
