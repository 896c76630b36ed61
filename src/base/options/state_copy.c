#include "base/options/state_copy.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { CHAINS, SHARED, SHARDED };

static int64_t bytes_of(const em_state_copy *copy, const em_copied_array *array)
{
    static const int64_t each[] = {[EM_NUMBER_DOUBLE] = 8,
                                   [EM_NUMBER_INT64] = 8,
                                   [EM_NUMBER_INT32] = 4,
                                   [EM_NUMBER_UINT16] = 2,
                                   [EM_NUMBER_UINT8] = 1};
    const int64_t rows = array->way == SHARED ? 1 : copy->n_local_chain;

    return rows * array->count * each[array->kind];
}

/* Appends a copy of an array. A failure is kept: the calls of a visitor are Collective, and go on.
 */
static void append(em_state_copy *copy, em_copied_array array, const char *name, const void *x)
{
    const int64_t bytes = bytes_of(copy, &array), end = copy->n_byte + (bytes + 7) / 8 * 8;
    em_status status = copy->status;

    status = status ? status : em_reserve(&copy->array, &copy->capacity, copy->n, copy->n + 1);
    status = status ? status : em_reserve(&copy->bytes, &copy->byte_capacity, copy->n_byte, end);
    if (!status && strlen(name) >= sizeof array.name)
        status = em_fail(EM_EINTERNAL, "%s: the name of this part of the state is too long", name);
    copy->status = status;
    if (status)
        return;
    snprintf(array.name, sizeof array.name, "%s", name);
    array.at = copy->n_byte;
    if (bytes > 0)
        memcpy(copy->bytes + array.at, x, (size_t)bytes);
    copy->array[copy->n++] = array;
    copy->n_byte = end;
}

static em_status keep_chains(void *context, const char *name, int64_t n, double *x)
{
    append(context, (em_copied_array){.way = CHAINS, .count = n}, name, x);
    return EM_OK;
}

static em_status keep_shared(void *context, const char *name, int64_t n, double *x)
{
    append(context, (em_copied_array){.way = SHARED, .count = n}, name, x);
    return EM_OK;
}

static em_status keep_sharded(void *context, const char *name, em_number kind, int64_t total,
                              int64_t first, int64_t count, void *x)
{
    append(context,
           (em_copied_array){
               .way = SHARDED, .kind = kind, .total = total, .first = first, .count = count},
           name, x);
    return EM_OK;
}

em_visitor em_state_copy_begin(em_state_copy *copy, int64_t n_local_chain)
{
    copy->n = copy->n_byte = 0;
    copy->status = EM_OK;
    copy->n_local_chain = n_local_chain;
    return (em_visitor){copy, false, keep_chains, keep_shared, keep_sharded};
}

em_status em_state_copy_replay(const em_state_copy *copy, const em_visitor *visitor)
{
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < copy->n; i++) {
        const em_copied_array *a = &copy->array[i];
        void *x = copy->bytes + a->at;
        switch (a->way) {
        case CHAINS:
            status = visitor->chains(visitor->context, a->name, a->count, x);
            break;
        case SHARED:
            status = visitor->shared(visitor->context, a->name, a->count, x);
            break;
        default:
            status = visitor->sharded(visitor->context, a->name, a->kind, a->total, a->first,
                                      a->count, x);
        }
    }
    return status;
}

void em_state_copy_release(em_state_copy *copy)
{
    em_release_all(&copy->array, &copy->bytes);
}
