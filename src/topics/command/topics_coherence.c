/* Coherence: how much more often the words of a topic occur together than apart. */
#include "base/memory.h"
#include "par/world.h"
#include "topics/command/topics_page.h"
#include "topics/lda_held_out.h"
#include <math.h>

/* Documents with each of the words of a topic, and with each two. */
typedef struct pairs {
    int64_t single[EM_TOPICS_MOST_TOP], both[EM_TOPICS_MOST_TOP][EM_TOPICS_MOST_TOP];
} pairs;

/* Mean of log(p_ij / p_i p_j) / -log p_ij over pairs of words; -1 for two that occur in no document
 * together; NaN of one word alone. */
static double npmi(const pairs *of, long n_top, int64_t n_document)
{
    double sum = 0;
    int64_t n = 0;

    for (long i = 1; i < n_top; i++)
        for (long j = 0; j < i; j++) {
            const double both = (double)of->both[i][j] / (double)n_document;
            const double apart =
                (double)of->single[i] * (double)of->single[j] / pow((double)n_document, 2);
            n++;
            sum += both > 0 && both < 1 ? log(both / apart) / -log(both) : both > 0 ? 1 : -1;
        }
    return n > 0 ? sum / (double)n : NAN;
}

typedef struct co_occurrence {
    const em_topics *topics;
    pairs *of;     /* [n_topic] */
    int64_t *seen; /* [n_word] the last document that has it, from 1 */
} co_occurrence;

static em_status count_document(void *to, int64_t d, em_document of)
{
    const co_occurrence *m = to;
    const em_topics *t = m->topics;

    for (int64_t i = 0; i < of.n; i++)
        m->seen[of.word[i]] = d + 1;
    for (int64_t k = 0; k < t->n_topic; k++)
        for (long i = 0; i < t->n_top; i++) {
            if (m->seen[t->top[k * t->n_top + i]] != d + 1)
                continue;
            m->of[k].single[i]++;
            for (long j = 0; j < i; j++)
                m->of[k].both[i][j] += m->seen[t->top[k * t->n_top + j]] == d + 1;
        }
    return EM_OK;
}

static em_status measure_coherence(em_topics *t, em_corpus *corpus)
{
    co_occurrence m = {.topics = t};
    em_status status = em_allocate_all(EM_ARRAY(m.of, t->n_topic), EM_ARRAY(m.seen, t->n_word),
                                       EM_ARRAY(t->coherence, t->n_topic));

    if (!status)
        status = em_corpus_each(corpus, count_document, &m);
    for (int64_t k = 0; !status && k < t->n_topic; k++)
        t->coherence[k] = npmi(&m.of[k], t->n_top, corpus->n_document);
    em_release_all(&m.of, &m.seen);
    return status;
}

/* The corpus that the run was of, as the config in the file names it. */
static em_status read_own_corpus(const em_topics *t, em_corpus **out)
{
    const void *options = NULL;
    const em_status status = t->host->options(t->host->context, t->path, t->folder, &options);

    return status ? status : em_corpus_read(options, t->n_word, 0, 0, 1, out);
}

/* What is missing without the corpus is no failure. */
em_status em_topics_find_coherence(em_topics *t)
{
    em_corpus *corpus = NULL;
    em_status status = read_own_corpus(t, &corpus);

    if (status == EM_EDATA || status == EM_ECONFIG) {
        em_say("note: coherence needs the corpus of the run: %s (--folder DIR: where relative "
               "paths start)",
               em_error_text());
        return EM_OK;
    }
    if (!status)
        status = measure_coherence(t, corpus);
    em_corpus_destroy(&corpus);
    return status;
}
