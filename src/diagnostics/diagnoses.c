#include "diagnostics/diagnoses.h"

#include "base/memory.h"

#include <xxhash.h>

/* A diagnosis and the key of its draws. */
typedef struct kept_diagnosis {
    em_draws_key key;
    em_diagnosis diagnosis;
} kept_diagnosis;

struct em_diagnoses {
    int64_t n, room;
    kept_diagnosis *kept; /* [room] in the order in which they came */
    int64_t n_slot;       /* a power of two, at least twice n; 0: none yet */
    int64_t *slot;        /* [n_slot] 1 + the index of one of them; 0: empty */
};

enum { FIRST_SLOTS = 64 };

em_draws_key em_draws_key_of(int64_t n, const double *draws)
{
    const XXH128_hash_t hash = XXH3_128bits(draws, (size_t)n * sizeof *draws);

    return (em_draws_key){hash.low64, hash.high64};
}

em_status em_diagnoses_create(em_diagnoses **out)
{
    return em_allocate(1, sizeof **out, out);
}

void em_diagnoses_clear(em_diagnoses *diagnoses)
{
    em_release_all(&diagnoses->kept, &diagnoses->slot);
    diagnoses->n = diagnoses->room = diagnoses->n_slot = 0;
}

void em_diagnoses_destroy(em_diagnoses **diagnoses)
{
    if (*diagnoses)
        em_diagnoses_clear(*diagnoses);
    em_release(diagnoses);
}

/* The slot of a key, or the empty one where it would be. */
static int64_t *slot_of(const em_diagnoses *d, em_draws_key key)
{
    for (uint64_t i = key.low;; i++) {
        int64_t *slot = &d->slot[i & (uint64_t)(d->n_slot - 1)];
        if (*slot == 0)
            return slot;
        const em_draws_key other = d->kept[*slot - 1].key;
        if (other.low == key.low && other.high == key.high)
            return slot;
    }
}

const em_diagnosis *em_diagnoses_find(const em_diagnoses *diagnoses, em_draws_key key)
{
    const int64_t at = diagnoses->n > 0 ? *slot_of(diagnoses, key) : 0;

    return at > 0 ? &diagnoses->kept[at - 1].diagnosis : NULL;
}

/* Makes room for one more, with the slots at most half full. */
static em_status reserve(em_diagnoses *d)
{
    const int64_t n_slot = d->n_slot > 0 ? 2 * d->n_slot : FIRST_SLOTS;
    int64_t *slot = NULL;
    em_status status = em_array_reserve(&d->kept, &d->room, d->n, d->n + 1, sizeof *d->kept);

    if (status || 2 * (d->n + 1) <= d->n_slot)
        return status;
    status = em_allocate(n_slot, sizeof *slot, &slot);
    if (status)
        return status;
    em_release(&d->slot);
    d->slot = slot;
    d->n_slot = n_slot;
    for (int64_t i = 0; i < d->n; i++)
        *slot_of(d, d->kept[i].key) = i + 1;
    return EM_OK;
}

em_status em_diagnoses_put(em_diagnoses *diagnoses, em_draws_key key, const em_diagnosis *diagnosis)
{
    em_status status = reserve(diagnoses);

    if (status)
        return status;
    int64_t *slot = slot_of(diagnoses, key);
    if (*slot == 0)
        *slot = ++diagnoses->n;
    diagnoses->kept[*slot - 1] = (kept_diagnosis){key, *diagnosis};
    return EM_OK;
}
