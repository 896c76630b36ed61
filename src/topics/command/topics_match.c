/* Matches the topics of several chains, and averages them. */
#include "base/memory.h"
#include "math/assignment.h"
#include "math/linalg.h"
#include "topics/command/topics_command.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 64 }; /* topics that are read at a time */

/* ---------------------------------------------------------------- overlaps of topics */

static void take_roots(int64_t n, const float *p, float *root)
{
    for (int64_t i = 0; i < n; i++)
        root[i] = sqrtf(p[i]);
}

em_status em_topic_overlaps(const em_topics *t, float *overlap)
{
    const int64_t size = t->n_topic * t->n_word;
    EM_SCOPED float *root = NULL;
    em_status status = em_allocate(size, sizeof *root, &root);

    if (!status) {
        take_roots(size, t->mean, root);
        em_multiply_rows(t->n_topic, t->n_word, t->n_topic, root, root, overlap, t->n_topic);
    }
    return status;
}

/* ---------------------------------------------------------------- chains */

/* Work space for matching the topics of two chains. */
typedef struct matching {
    em_reader *reader;
    int64_t phi;     /* its number in the reader */
    float *root;     /* [n_topic][n_word] of the first chain */
    float *block;    /* [BLOCK][n_word] topics of another one */
    float *overlap;  /* [n_topic][n_topic] */
    double *cost;    /* likewise */
    int64_t *column; /* [n_topic] */
} matching;

static em_status start(const em_topics *t, matching *m)
{
    const int64_t n = t->n_topic, size = n * t->n_word;
    em_status status = em_allocate_all(
        EM_ARRAY(m->root, size), EM_ARRAY(m->block, BLOCK * t->n_word), EM_ARRAY(m->overlap, n * n),
        EM_ARRAY(m->cost, n * n), EM_ARRAY(m->column, n));

    if (!status)
        take_roots(size, t->mean, m->root);
    return status;
}

static em_status match_chain(const em_topics *t, int64_t c, matching *m)
{
    const int64_t n = t->n_topic;
    em_status status = EM_OK;

    for (int64_t first = 0; !status && first < n; first += BLOCK) {
        const int64_t block = n - first < BLOCK ? n - first : BLOCK;
        status =
            em_reader_floats(m->reader, m->phi, c, first * t->n_word, block * t->n_word, m->block);
        if (!status) {
            take_roots(block * t->n_word, m->block, m->block);
            em_multiply_rows(n, t->n_word, block, m->root, m->block, m->overlap + first, n);
        }
    }
    for (int64_t i = 0; !status && i < n * n; i++)
        m->cost[i] = -m->overlap[i];
    return status ? status : em_assign(n, m->cost, m->column);
}

/* Matches the topics of chain c with those of the first chain, and adds each to its match if they
 * overlap enough. */
static em_status add_chain(em_topics *t, int64_t c, matching *m)
{
    const int64_t n = t->n_topic;
    em_status status = match_chain(t, c, m);

    for (int64_t a = 0; !status && a < n; a++) {
        const int64_t b = m->column[a];
        float *mean = t->mean + a * t->n_word;
        if (m->overlap[a * n + b] < EM_LEAST_OVERLAP)
            continue;
        status = em_reader_floats(m->reader, m->phi, c, b * t->n_word, t->n_word, m->block);
        for (int64_t v = 0; !status && v < t->n_word; v++)
            mean[v] += m->block[v];
        t->n_found[a]++;
        t->mean_share[a] += t->share[c * n + b];
    }
    return status;
}

static em_status add_chains(em_topics *t, em_reader *reader, int64_t phi)
{
    matching m = {.reader = reader, .phi = phi};
    em_status status = start(t, &m);

    for (int64_t c = 1; !status && c < t->n_chain; c++)
        status = add_chain(t, c, &m);
    em_release_all(&m.root, &m.block, &m.overlap, &m.cost, &m.column);
    return status;
}

em_status em_topics_match_chains(em_topics *t, em_reader *reader, int64_t phi)
{
    em_status status =
        em_allocate_all(EM_ARRAY(t->mean_share, t->n_topic), EM_ARRAY(t->n_found, t->n_topic));

    for (int64_t k = 0; !status && k < t->n_topic; k++) {
        t->mean_share[k] = t->share[k];
        t->n_found[k] = 1;
    }
    if (!status && t->n_chain > 1)
        status = add_chains(t, reader, phi);
    for (int64_t k = 0; !status && k < t->n_topic; k++) {
        t->mean_share[k] /= (double)t->n_found[k];
        for (int64_t v = 0; v < t->n_word; v++)
            t->mean[k * t->n_word + v] /= (float)t->n_found[k];
    }
    return status;
}
