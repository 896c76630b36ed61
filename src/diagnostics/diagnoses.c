#include "diagnostics/diagnoses.h"

#include "base/memory.h"

struct em_diagnoses {
    em_hash_table hashes; /* of their draws */
    int64_t capacity;
    em_diagnosis *kept; /* [hashes.n] */
};

em_status em_diagnoses_create(em_diagnoses **out)
{
    return em_allocate(1, sizeof **out, out);
}

void em_diagnoses_clear(em_diagnoses *diagnoses)
{
    em_hash_table_release(&diagnoses->hashes);
    em_release(&diagnoses->kept);
    diagnoses->capacity = 0;
}

void em_diagnoses_destroy(em_diagnoses **diagnoses)
{
    if (*diagnoses)
        em_diagnoses_clear(*diagnoses);
    em_release(diagnoses);
}

const em_diagnosis *em_diagnoses_find(const em_diagnoses *diagnoses, em_hash hash)
{
    const int64_t at = em_hash_find(&diagnoses->hashes, hash);

    return at < 0 ? NULL : &diagnoses->kept[at];
}

em_status em_diagnoses_put(em_diagnoses *diagnoses, em_hash hash, const em_diagnosis *diagnosis)
{
    const int64_t n = diagnoses->hashes.n;
    int64_t at;
    em_status status = em_reserve(&diagnoses->kept, &diagnoses->capacity, n, n + 1);

    status = status ? status : em_hash_add(&diagnoses->hashes, hash, &at);
    if (!status)
        diagnoses->kept[at] = *diagnosis;
    return status;
}
