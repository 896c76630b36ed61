#include "base/memory.h"

#include "base/available_memory.h"
#include "base/fault.h"

#include <malloc.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int64_t allocation_count;
static double allocated_bytes, rest_bytes;

/* Large arrays are in pages of 2 MB. A page of 4 kB costs more to get than to write, and the
 * processor does not prefetch beyond a page. An array in whole large pages takes at most a third
 * more than it needs. */
enum { LARGE_PAGE = 1 << 21, LARGE = LARGE_PAGE / 4 * 3 };

void em_return_freed_memory(void)
{
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 1 << 17);
#endif
}

static size_t whole_pages(size_t bytes)
{
    return bytes >= LARGE && bytes <= SIZE_MAX - LARGE_PAGE
               ? (bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE
               : bytes;
}

static void *get(size_t bytes)
{
    const bool large = bytes >= LARGE;
    void *memory = NULL;

    bytes = whole_pages(bytes);
    if (posix_memalign(&memory, large ? LARGE_PAGE : EM_ALIGNMENT, bytes) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (large)
        madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

/* Allocates `count` elements of `size` bytes without clearing them. *bytes: the padded size of the
 * allocation. */
static em_status allocate(int64_t count, size_t size, void **out, size_t *bytes)
{
    *out = NULL;
    *bytes = 0;
    if (count < 0 || __builtin_mul_overflow((size_t)count, size, bytes) ||
        *bytes > SIZE_MAX - EM_ALIGNMENT)
        return em_fail(EM_EMEMORY, "out of memory: %lld x %zu bytes is more than can be addressed",
                       (long long)count, size);
    *bytes = (*bytes + EM_ALIGNMENT) / EM_ALIGNMENT * EM_ALIGNMENT;
    *out = em_fault("allocate") ? NULL : get(*bytes);
    if (!*out)
        return em_fail(EM_EMEMORY, "out of memory: could not allocate %zu bytes", *bytes);
    allocation_count++;
    allocated_bytes += (double)whole_pages(*bytes);
    rest_bytes += (double)(whole_pages(*bytes) - *bytes);
    return EM_OK;
}

/* Checks that a large array fits into memory. Linux overcommits memory: it grants more than there
 * is and kills processes when they write to it. */
static em_status check_large(double bytes)
{
    const double large = 0x1p26, available = bytes < large ? large : em_memory_available();

    return bytes <= available
               ? EM_OK
               : em_fail(EM_EMEMORY,
                         "out of memory: an array takes %.3g GB, and %.3g GB are available",
                         bytes / 1e9, available / 1e9);
}

em_status em_allocate(int64_t count, size_t size, void *out)
{
    void *memory;
    size_t bytes;
    em_status status = allocate(count, size, &memory, &bytes);

    if (!status && (status = check_large((double)bytes)))
        em_release(&memory);
    if (!status)
        memset(memory, 0, bytes);
    memcpy(out, &memory, sizeof memory);
    return status;
}

em_status em_allocate_each(const em_new_array *all, size_t n)
{
    em_status status = EM_OK;

    for (size_t i = 0; !status && i < n; i++)
        status = em_allocate(all[i].count, all[i].size, all[i].array);
    return status;
}

struct em_owned {
    struct em_owned *next;
    void *memory;
};

em_status em_own(em_owner *owner, em_status status, void *pointer)
{
    struct em_owned *const one = status ? NULL : malloc(sizeof *one);

    if (status)
        return status;
    if (!one) {
        em_release(pointer);
        return em_fail(EM_EMEMORY, "out of memory: could not allocate %zu bytes", sizeof *one);
    }
    one->next = owner->first;
    memcpy(&one->memory, pointer, sizeof one->memory);
    owner->first = one;
    return EM_OK;
}

em_status em_own_each(em_owner *owner, const em_new_array *all, size_t n)
{
    em_status status = EM_OK;

    for (size_t i = 0; !status && i < n; i++)
        status = em_own(owner, em_allocate(all[i].count, all[i].size, all[i].array), all[i].array);
    return status;
}

void em_release_from(em_owner *owner, void *pointer)
{
    struct em_owned **at = &owner->first;
    void *memory;

    memcpy(&memory, pointer, sizeof memory);
    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    if (!memory || !*at)
        return;
    struct em_owned *const one = *at;
    *at = one->next;
    free(one);
    em_release(pointer);
}

void em_release_owned(em_owner *owner)
{
    while (owner->first) {
        struct em_owned *const one = owner->first;
        owner->first = one->next;
        free(one->memory);
        free(one);
    }
}

void em_release_owner(void *pointer)
{
    em_owner *owner;

    memcpy(&owner, pointer, sizeof owner);
    if (owner)
        em_release_owned(owner);
    em_release(pointer);
}

em_status em_allocate_doubles(int64_t count, double **out)
{
    void *memory;
    size_t bytes;
    const em_status status = allocate(count, sizeof **out, &memory, &bytes);

    *out = memory;
#ifdef EM_DEBUG
    for (int64_t i = 0; !status && i < count; i++)
        (*out)[i] = NAN;
#endif
    return status;
}

em_status em_renew_doubles(int64_t count, int64_t *capacity, double **out)
{
    if (count <= *capacity)
        return EM_OK;
    em_release(out);
    *capacity = 0;
    const em_status status = em_allocate_doubles(count, out);
    if (!status)
        *capacity = count;
    return status;
}

em_status em_reallocate(int64_t count, size_t size, void *pointer)
{
    void *memory, *larger = NULL;
    size_t bytes;

    memcpy(&memory, pointer, sizeof memory);
    if (count >= 0 && !__builtin_mul_overflow((size_t)count, size, &bytes) && !em_fault("allocate"))
        larger = realloc(memory, bytes ? bytes : 1);
    if (!larger)
        return em_fail(EM_EMEMORY, "out of memory: could not allocate %lld x %zu bytes",
                       (long long)count, size);
    allocation_count++;
    memcpy(pointer, &larger, sizeof larger);
    return EM_OK;
}

void em_release(void *pointer)
{
    void *memory;

    memcpy(&memory, pointer, sizeof memory);
    free(memory);
    memory = NULL;
    memcpy(pointer, &memory, sizeof memory);
}

void em_release_pages(void *array, int64_t first, int64_t n, size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)n * size;

    if (!array || bytes < page)
        return;
    char *const part = (char *)array + (size_t)first * size;
    const size_t before = (page - (uintptr_t)part % page) % page;
    if (bytes >= before + page)
        madvise(part + before, (bytes - before) / page * page, MADV_DONTNEED);
}

void em_release_each(void *const *pointer, size_t n)
{
    for (size_t i = 0; i < n; i++)
        em_release(pointer[i]);
}

void em_release_texts(int64_t n, char ***texts)
{
    for (int64_t i = 0; *texts && i < n; i++)
        em_release(&(*texts)[i]);
    em_release(texts);
}

em_status em_copy_text(const char *text, char **out)
{
    return em_format_text(out, "%s", text);
}

em_status em_format_text(char **out, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    const em_status status = em_allocate((int64_t)length + 1, 1, out);
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

double em_allocated_bytes(void)
{
    return allocated_bytes;
}

double em_allocated_rest(void)
{
    return rest_bytes;
}

double em_bytes_of_doubles(int64_t count)
{
    return (double)whole_pages((size_t)count * sizeof(double));
}

em_status em_array_reserve(void *array, int64_t *capacity, int64_t used, int64_t needed,
                           size_t size)
{
    const int64_t larger = needed > 2 * *capacity ? needed : 2 * *capacity;

    if (needed <= *capacity)
        return EM_OK;
    const em_status status = used == 0 && *capacity == 0 ? em_allocate(larger, size, array)
                                                         : em_reallocate(larger, size, array);
    if (!status)
        *capacity = larger;
    return status;
}

em_status em_append_copy(char ***list, int64_t *capacity, int64_t *n, const char *text)
{
    em_status status = em_array_reserve(list, capacity, *n, *n + 1, sizeof **list);

    status = status ? status : em_copy_text(text, &(*list)[*n]);
    *n += !status;
    return status;
}

int em_by_first_integer(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}
