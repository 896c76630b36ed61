#include "base/hash_table.h"

#include "base/memory.h"

#include <xxhash.h>

enum { FIRST_SLOTS = 64 }; /* n_slot is a power of two, at least twice n */

em_hash em_hash_of(const void *data, size_t bytes)
{
    const XXH128_hash_t hash = XXH3_128bits(data, bytes);

    return (em_hash){hash.low64, hash.high64};
}

/* The slot of a hash, or the free one where it would be. */
static int64_t *slot_of(const em_hash_table *t, em_hash hash)
{
    for (uint64_t i = hash.low;; i++) {
        int64_t *slot = &t->slot[i & (uint64_t)(t->n_slot - 1)];
        if (*slot == 0 ||
            (t->hash[*slot - 1].low == hash.low && t->hash[*slot - 1].high == hash.high))
            return slot;
    }
}

int64_t em_hash_find(const em_hash_table *table, em_hash hash)
{
    return table->n > 0 ? *slot_of(table, hash) - 1 : -1;
}

static em_status grow(em_hash_table *t)
{
    const int64_t n_slot = t->n_slot > 0 ? 2 * t->n_slot : FIRST_SLOTS;
    int64_t *slot = NULL;
    em_status status = em_allocate(n_slot, sizeof *slot, &slot);

    if (status)
        return status;
    em_release(&t->slot);
    t->slot = slot;
    t->n_slot = n_slot;
    for (int64_t i = 0; i < t->n; i++)
        *slot_of(t, t->hash[i]) = i + 1;
    return EM_OK;
}

em_status em_hash_add(em_hash_table *table, em_hash hash, int64_t *number)
{
    em_status status = 2 * (table->n + 1) > table->n_slot ? grow(table) : EM_OK;

    status = status ? status : em_reserve(&table->hash, &table->capacity, table->n, table->n + 1);
    if (status)
        return status;
    int64_t *slot = slot_of(table, hash);
    if (*slot == 0) {
        table->hash[table->n] = hash;
        *slot = ++table->n;
    }
    *number = *slot - 1;
    return EM_OK;
}

void em_hash_table_release(em_hash_table *table)
{
    em_release_all(&table->hash, &table->slot);
    *table = (em_hash_table){0};
}
