/* Computes coherence: how much more often the words of a topic occur together than they would by
 * chance. */
#include "base/memory.h"
#include "par/world.h"
#include "topics/command/topics_command.h"
#include "topics/topic_record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The position of a word among the most probable words of a topic. */
typedef struct topic_rank {
    int64_t topic, rank;
} topic_rank;

typedef struct co_occurrence {
    const em_topics *topics;
    int64_t *first;    /* [n_word + 1] places of word v: first[v] .. first[v + 1] */
    topic_rank *place; /* [n_topic * n_top] */
    int64_t
        *both; /* [n_topic][n_top][n_top] documents with two of the words; with one: both[i][i] */
    uint64_t *seen; /* [n_topic] the words of the topic that are in the document, a bit each */
    int64_t *found; /* [n_topic] topics of which any is */
} co_occurrence;

/* Those of several runs. */
typedef struct counting {
    int64_t n;
    co_occurrence *run; /* [n] */
} counting;

_Static_assert(EM_TOPICS_MOST_TOP <= 64, "a bit for each word of a topic");

/* Mean of log(p_ij / p_i p_j) / -log p_ij over pairs of the first `n_first` words; -1 for two that
 * occur in no document together; NaN of fewer than two words. */
static double npmi(const int64_t *count, int64_t n_first, long n_top, int64_t n_document)
{
    double sum = 0;
    int64_t n = 0;

    for (int64_t i = 1; i < n_first; i++)
        for (int64_t j = 0; j < i; j++) {
            const double both = (double)count[i * n_top + j] / (double)n_document;
            const double apart = (double)count[i * (n_top + 1)] * (double)count[j * (n_top + 1)] /
                                 pow((double)n_document, 2);
            n++;
            sum += both > 0 && both < 1 ? log(both / apart) / -log(both) : both > 0 ? 1 : -1;
        }
    return n > 0 ? sum / (double)n : NAN;
}

/* Counts the pairs of a topic's words that the document has, with i >= j. */
static void count_topic(const co_occurrence *m, int64_t k)
{
    const long n_top = m->topics->n_top;
    int64_t *both = m->both + k * n_top * n_top;

    for (uint64_t left = m->seen[k]; left; left &= left - 1) {
        const int j = __builtin_ctzll(left);
        for (uint64_t others = left; others; others &= others - 1)
            both[__builtin_ctzll(others) * n_top + j]++;
    }
    m->seen[k] = 0;
}

static void count_pairs(const co_occurrence *m, em_document of)
{
    int64_t n = 0;

    for (int64_t i = 0; i < of.n; i++)
        for (int64_t p = m->first[of.word[i]]; p < m->first[of.word[i] + 1]; p++) {
            const topic_rank at = m->place[p];
            if (m->seen[at.topic] == 0)
                m->found[n++] = at.topic;
            m->seen[at.topic] |= UINT64_C(1) << at.rank;
        }
    for (int64_t i = 0; i < n; i++)
        count_topic(m, m->found[i]);
}

static em_status count_document(void *to, int64_t d, em_document of)
{
    const counting *c = to;

    (void)d;
    for (int64_t i = 0; i < c->n; i++)
        count_pairs(&c->run[i], of);
    return EM_OK;
}

/* Lists the places of each word. */
static void list_positions(co_occurrence *m)
{
    const em_topics *t = m->topics;
    const int64_t n = t->n_topic * t->n_top;

    for (int64_t i = 0; i < n; i++)
        m->first[t->top[i] + 1]++;
    for (int64_t v = 0; v < t->n_word; v++)
        m->first[v + 1] += m->first[v];
    for (int64_t i = n - 1; i >= 0; i--) /* from the end of each list: first[v] becomes its start */
        m->place[--m->first[t->top[i] + 1]] = (topic_rank){i / t->n_top, i % t->n_top};
    for (int64_t v = 0; v < t->n_word; v++)
        m->first[v] = m->first[v + 1];
    m->first[t->n_word] = n;
}

static em_status start_counting(const em_topics *t, em_owner *memory, co_occurrence *m)
{
    const int64_t n = t->n_topic;
    const em_status status = em_own_all(
        memory, EM_ARRAY(m->both, n * t->n_top * t->n_top), EM_ARRAY(m->first, t->n_word + 1),
        EM_ARRAY(m->place, n * t->n_top), EM_ARRAY(m->seen, n), EM_ARRAY(m->found, n));

    m->topics = t;
    if (!status)
        list_positions(m);
    return status;
}

static em_status take_coherence(em_topics *t, const co_occurrence *m, int64_t n_document)
{
    const int64_t square = t->n_top * t->n_top;
    const em_status status = em_allocate(t->n_topic, sizeof *t->coherence, &t->coherence);

    for (int64_t k = 0; !status && k < t->n_topic; k++)
        t->coherence[k] = npmi(m->both + k * square, t->n_preferred[k], t->n_top, n_document);
    return status;
}

/* The corpus may not be that of the run any more. */
static em_status check_words(const em_topics *t, const em_corpus *corpus)
{
    if (corpus->n_word != t->n_word)
        return em_fail(EM_EDATA, "%s: found a corpus of %lld words, expected %lld as in %s",
                       corpus->path, (long long)corpus->n_word, (long long)t->n_word, t->path);
    return em_topics_are_named(t) ? em_corpus_check_names(corpus, t->word, t->path) : EM_OK;
}

/* Compares the hash of the data, which includes that of the test documents. Without these it cannot
 * be known. */
static em_status check_documents(const em_topics *t, const em_corpus *corpus,
                                 const em_topic_options *options)
{
    const char *const hash = t->data ? strchr(t->data, ':') : NULL;
    uint64_t test;

    if (!hash || em_topic_test_hash(options, t->n_word, &test) ||
        strtoull(hash + 1, NULL, 16) == (corpus->hash ^ test))
        return EM_OK;
    return em_fail(EM_EDATA,
                   "%s: found other documents, or other test documents, than those of %s "
                   "(by their hash), expected the same",
                   corpus->path, t->path);
}

/* Passes through the corpus once for all runs. */
static em_status measure_coherence(const em_topic_options *options, int64_t n, em_topics *const *t)
{
    counting c = {.n = n};
    EM_SCOPED_BY(em_release_owned) em_owner memory = {NULL};
    EM_SCOPED_BY(em_corpus_destroy) em_corpus *corpus = NULL;
    em_status status = em_own_all(&memory, EM_ARRAY(c.run, n));

    for (int64_t i = 0; !status && i < n; i++)
        status = start_counting(t[i], &memory, &c.run[i]);
    if (!status)
        status = em_corpus_open(&options->corpus, t[0]->n_word, count_document, &c, &corpus);
    for (int64_t i = 0; !status && i < n; i++)
        status = check_words(t[i], corpus);
    status = status ? status : check_documents(t[0], corpus, options);
    for (int64_t i = 0; !status && i < n; i++)
        status = take_coherence(t[i], &c.run[i], corpus->n_document);
    return status;
}

bool em_topic_is_junk(const em_topics *t, int64_t k)
{
    return t->coherence && t->coherence[k] <= EM_JUNK_NPMI;
}

/* A missing corpus is no failure. */
em_status em_topics_find_coherence(int64_t n, em_topics *const *t)
{
    const void *of_model = NULL;
    em_status status = EM_EDATA;

    for (int64_t i = 0; i < n && (status == EM_EDATA || status == EM_ECONFIG); i++) {
        status = t[i]->host->options(t[i]->host->context, t[i]->path, t[i]->folder, &of_model);
        status = status ? status : measure_coherence(of_model, n - i, t + i);
        if (status == EM_EDATA || status == EM_ECONFIG)
            em_say("note: coherence needs the corpus of the run: %s (--folder DIR sets the folder "
                   "of relative paths)",
                   em_error_text());
    }
    return status == EM_EDATA || status == EM_ECONFIG ? EM_OK : status;
}
