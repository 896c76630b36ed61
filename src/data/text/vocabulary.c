#include "data/text/vocabulary.h"

#include "base/memory.h"

#include <string.h>
#include <xxhash.h>

enum { MOST_WORDS = 1 << 26, FIRST_SLOTS = 1 << 12 };

typedef struct word {
    int64_t text; /* where it begins in `text` */
    uint64_t hash;
    int32_t length;
    int64_t tokens, documents, last; /* last: the document that was counted last, + 1 */
} word;

/* An open hash table of the numbers of words. */
struct em_vocabulary {
    word *word;
    char *text;
    int32_t *slot; /* number + 1; 0: empty */
    int64_t n_word, word_capacity, text_used, text_capacity, n_slot;
};

em_status em_vocabulary_create(em_vocabulary **out)
{
    em_status status = em_allocate(1, sizeof **out, out);

    if (!status) {
        (*out)->n_slot = FIRST_SLOTS;
        status = em_allocate(FIRST_SLOTS, sizeof *(*out)->slot, &(*out)->slot);
    }
    if (status)
        em_vocabulary_destroy(out);
    return status;
}

void em_vocabulary_destroy(em_vocabulary **out)
{
    em_vocabulary *v = *out;

    if (v)
        em_release_all(&v->word, &v->text, &v->slot);
    em_release(out);
}

int64_t em_vocabulary_size(const em_vocabulary *v)
{
    return v->n_word;
}

/* The slot of a word, or the empty one where it belongs. */
static int64_t find_slot(const em_vocabulary *v, const char *text, size_t length, uint64_t hash)
{
    int64_t at = (int64_t)(hash & (uint64_t)(v->n_slot - 1));

    for (; v->slot[at]; at = (at + 1) & (v->n_slot - 1)) {
        const word *w = &v->word[v->slot[at] - 1];
        if (w->hash == hash && (size_t)w->length == length &&
            memcmp(v->text + w->text, text, length) == 0)
            break;
    }
    return at;
}

int64_t em_vocabulary_find(const em_vocabulary *v, const char *text, size_t length)
{
    return (int64_t)v->slot[find_slot(v, text, length, XXH3_64bits(text, length))] - 1;
}

static em_status grow(em_vocabulary *v)
{
    const int64_t n_slot = 2 * v->n_slot;
    int32_t *slot = NULL;
    em_status status = em_allocate(n_slot, sizeof *slot, &slot);

    if (status)
        return status;
    em_release(&v->slot);
    v->slot = slot;
    v->n_slot = n_slot;
    for (int64_t i = 0; i < v->n_word; i++) {
        int64_t at = (int64_t)(v->word[i].hash & (uint64_t)(n_slot - 1));
        while (slot[at])
            at = (at + 1) & (n_slot - 1);
        slot[at] = (int32_t)i + 1;
    }
    return EM_OK;
}

static em_status append(em_vocabulary *v, const char *text, size_t length, uint64_t hash)
{
    const int64_t end = v->text_used + (int64_t)length + 1;
    em_status status;

    if (v->n_word == MOST_WORDS)
        return em_fail(EM_EDATA, "found %d or more different words, expected at most %d",
                       MOST_WORDS + 1, MOST_WORDS);
    status =
        em_array_reserve(&v->word, &v->word_capacity, v->n_word, v->n_word + 1, sizeof *v->word);
    if (!status)
        status = em_array_reserve(&v->text, &v->text_capacity, v->text_used, end, 1);
    if (status)
        return status;
    memcpy(v->text + v->text_used, text, length);
    v->text[end - 1] = '\0';
    v->word[v->n_word++] = (word){.text = v->text_used, .hash = hash, .length = (int32_t)length};
    v->text_used = end;
    return EM_OK;
}

em_status em_vocabulary_add(em_vocabulary *v, const char *text, size_t length, int64_t *number)
{
    const uint64_t hash = XXH3_64bits(text, length);
    int64_t at = find_slot(v, text, length, hash);
    em_status status = EM_OK;

    if (!v->slot[at]) {
        if (2 * (v->n_word + 1) > v->n_slot) {
            status = grow(v);
            at = status ? at : find_slot(v, text, length, hash);
        }
        status = status ? status : append(v, text, length, hash);
        if (status)
            return status;
        v->slot[at] = (int32_t)v->n_word;
    }
    *number = v->slot[at] - 1;
    return EM_OK;
}

void em_vocabulary_count(em_vocabulary *v, int64_t number, int64_t document)
{
    word *w = &v->word[number];

    w->tokens++;
    w->documents += w->last != document + 1;
    w->last = document + 1;
}

const char *em_vocabulary_word(const em_vocabulary *v, int64_t number)
{
    return v->text + v->word[number].text;
}

em_word_count em_vocabulary_counts(const em_vocabulary *v, int64_t number)
{
    return (em_word_count){v->word[number].tokens, v->word[number].documents};
}
