#include "data/text/vocabulary.h"

#include "base/hash_table.h"
#include "base/memory.h"

#include <string.h>

enum { MOST_WORDS = 1 << 26 };

typedef struct word {
    int64_t text;                    /* where it begins in `text` */
    int64_t tokens, documents, last; /* last: the document that was counted last, + 1 */
} word;

struct em_vocabulary {
    em_hash_table hashes; /* of the words */
    word *word;
    char *text;
    int64_t n_word, word_capacity, text_used, text_capacity;
};

em_status em_vocabulary_create(em_vocabulary **out)
{
    return em_allocate(1, sizeof **out, out);
}

void em_vocabulary_destroy(em_vocabulary **out)
{
    em_vocabulary *v = *out;

    if (v) {
        em_hash_table_release(&v->hashes);
        em_release_all(&v->word, &v->text);
    }
    em_release(out);
}

int64_t em_vocabulary_size(const em_vocabulary *v)
{
    return v->n_word;
}

int64_t em_vocabulary_find(const em_vocabulary *v, const char *text, size_t length)
{
    return em_hash_find(&v->hashes, em_hash_of(text, length));
}

static em_status append(em_vocabulary *v, const char *text, size_t length)
{
    const int64_t end = v->text_used + (int64_t)length + 1;

    if (v->n_word == MOST_WORDS)
        return em_fail(EM_EDATA, "found %d or more different words, expected at most %d",
                       MOST_WORDS + 1, MOST_WORDS);
    em_status status = em_reserve(&v->word, &v->word_capacity, v->n_word, v->n_word + 1);
    status = status ? status : em_reserve(&v->text, &v->text_capacity, v->text_used, end);
    if (status)
        return status;
    memcpy(v->text + v->text_used, text, length);
    v->text[end - 1] = '\0';
    v->word[v->n_word++] = (word){.text = v->text_used};
    v->text_used = end;
    return EM_OK;
}

em_status em_vocabulary_add(em_vocabulary *v, const char *text, size_t length, int64_t *number)
{
    int64_t unused;
    number = number ? number : &unused;
    const em_status status = em_hash_add(&v->hashes, em_hash_of(text, length), number);

    return status || *number < v->n_word ? status : append(v, text, length);
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
