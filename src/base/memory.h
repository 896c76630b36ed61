/* Aligned memory, whose allocation is checked and can be made to fail by base/fault.h. */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EM_ALIGNMENT = 64, EM_LANES = 8 };

/* The length of a row of `n` doubles padded to whole 64-byte lines. Local. */
static inline int64_t em_stride(int64_t n)
{
    return (n + EM_LANES - 1) / EM_LANES * EM_LANES;
}

/* The smaller, and the larger, of two numbers. Local. */
static inline int64_t em_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t em_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* From now on, blocks of 128 kB or more go back to the system when they are freed. By default glibc
 * keeps freed ones of up to 32 MB, so that a process that makes several runs holds memory of all of
 * them. Local. */
void em_return_freed_memory(void);

/* Allocates `count` zeroed elements of `size` bytes, 64-byte aligned, into *(void **)out. `count` 0
 * gives a valid pointer. Local. Errors: EM_EMEMORY (also when count * size overflows, or a large
 * array is larger than the available memory), *out is then NULL. Freed by em_release. */
em_status em_allocate(int64_t count, size_t size, void *out);

/* Several arrays at once, zeroed: em_allocate_all(EM_ARRAY(a, 10), EM_ARRAY(b, n)). After a failure
 * the arrays after the failed one are not touched. Local. Errors: as em_allocate. */
#define EM_ARRAY(array, count)                                                                     \
    {                                                                                              \
        &(array), (count), sizeof *(array)                                                         \
    }
#define em_allocate_all(...)                                                                       \
    em_allocate_each((const em_new_array[]){__VA_ARGS__},                                          \
                     sizeof((const em_new_array[]){__VA_ARGS__}) / sizeof(em_new_array))
typedef struct em_new_array {
    void *array; /* where its address goes */
    int64_t count;
    size_t size;
} em_new_array;
em_status em_allocate_each(const em_new_array *all, size_t n);

/* Owns memory that is released together, such as all arrays of a structure and of the structures in
 * it. Zero before its first use; it must not be copied. em_own_all allocates, as em_allocate_all,
 * arrays that must not be resized. Local. Errors: as em_allocate. */
typedef struct em_owner {
    struct em_owned *first; /* NULL: it owns nothing */
} em_owner;
#define em_own_all(owner, ...)                                                                     \
    em_own_each(owner, (const em_new_array[]){__VA_ARGS__},                                        \
                sizeof((const em_new_array[]){__VA_ARGS__}) / sizeof(em_new_array))
em_status em_own_each(em_owner *owner, const em_new_array *all, size_t n);

/* Gives *(void **)pointer, which a function has allocated with this status, to the owner. Returns
 * the status. Local. Errors: EM_EMEMORY; the memory is then freed and the pointer NULL. */
em_status em_own(em_owner *owner, em_status status, void *pointer);

/* Frees *(void **)pointer, an array that the owner owns, and sets it to NULL; NULL-safe. It looks
 * through all that the owner owns. Local. */
void em_release_from(em_owner *owner, void *pointer);

/* Frees all that the owner owns. Pointers to it are not changed. Local. */
void em_release_owned(em_owner *owner);

/* Frees **(void **)pointer, a structure whose first member is an em_owner, with all that it owns,
 * and sets the pointer to NULL; NULL-safe. Local. */
void em_release_owner(void *pointer);

/* The memory that an array of `count` doubles takes: whole pages, if it is large. Local. */
double em_bytes_of_doubles(int64_t count);

/* Allocates doubles, as em_allocate, that the caller sets before use. A debug build fills them with
 * NaN; other builds leave them unset, so that the system provides pages only when they are written.
 * Local. */
em_status em_allocate_doubles(int64_t count, double **out);

/* Makes *out, work space that grows, hold at least `count` doubles; *capacity is how many it holds.
 * Old contents are lost when it grows. Local. Errors: EM_EMEMORY. */
em_status em_renew_doubles(int64_t count, int64_t *capacity, double **out);

/* Resizes *(void **)pointer, of em_allocate, to `count` elements of `size` bytes. New elements are
 * unset, and the alignment is that of malloc. Large arrays are remapped, not copied. Local. Errors:
 * EM_EMEMORY, the array is then unchanged. */
em_status em_reallocate(int64_t count, size_t size, void *pointer);

/* Frees *(void **)pointer and sets it to NULL; NULL-safe. Local. */
void em_release(void *pointer);

/* Begins the declaration of local pointers, which em_release frees where their scope ends:
 * EM_SCOPED double *work = NULL. EM_SCOPED_BY(f) instead calls f(&variable), for variables of other
 * types. The variable must have a value from the beginning. What a function returns is computed
 * before. */
#define EM_SCOPED_BY(function) __attribute__((cleanup(function), unused))
#define EM_SCOPED              EM_SCOPED_BY(em_release)

/* Gives the pages within elements first .. first + n - 1, of `size` bytes each, of an array back to
 * the system. Their contents are lost; the array is still to be freed. NULL-safe. Local. */
void em_release_pages(void *array, int64_t first, int64_t n, size_t size);

/* Frees each of the pointers as em_release does: em_release_all(&a, &b). Local. */
#define em_release_all(...)                                                                        \
    em_release_each((void *[]){__VA_ARGS__}, sizeof((void *[]){__VA_ARGS__}) / sizeof(void *))
void em_release_each(void *const *pointer, size_t n);

/* Frees the `n` texts of *texts (NULL-safe), then the array, and sets it to NULL. Local. */
void em_release_texts(int64_t n, char ***texts);

/* Copies a string. Local. Errors: EM_EMEMORY. Freed by em_release. */
em_status em_copy_text(const char *text, char **out);

/* Prints into a new string. Local. Errors: EM_EMEMORY. Freed by em_release. */
em_status em_format_text(char **out, const char *format, ...) EM_PRINTF(2, 3);

/* Number of allocations so far in this process: tests check that a step makes none. Local. */
int64_t em_allocation_count(void);

/* For qsort: orders structures by their first member, an int64_t. Local. */
int em_by_first_integer(const void *a, const void *b);

/* Arrays that grow while their final size is not known. */

/* Makes *(T **)array, NULL at first, hold at least `needed` elements of `size` bytes and keeps the
 * first `used`. The first allocation is zeroed. The capacity at least doubles. em_reserve: of the
 * size of the elements of the array. Local. Errors: EM_EMEMORY, the array is then unchanged. Freed
 * by em_release. */
#define em_reserve(array, capacity, used, needed)                                                  \
    em_array_reserve(array, capacity, used, needed, sizeof **(array))
em_status em_array_reserve(void *array, int64_t *capacity, int64_t used, int64_t needed,
                           size_t size);

/* Appends a copy of a text to *list, which grows as above. Local. Errors: EM_EMEMORY. Freed by
 * em_release_texts. */
em_status em_append_copy(char ***list, int64_t *capacity, int64_t *n, const char *text);
