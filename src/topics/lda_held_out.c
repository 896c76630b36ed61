#include "topics/lda_held_out.h"
#include "topics/lda_tokens.h"

#include "base/memory.h"
#include "math/rng.h"
#include "par/message.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SCORED = 5 };

static bool is_scored(int64_t document, int64_t token)
{
    const em_stream stream = {.iteration = (uint64_t)document, .purpose = EM_RNG_DATA};

    return em_uniform_below(&stream, (uint64_t)token, SCORED) == 0;
}

static void add_fold(em_held_out *h, int64_t d, int32_t word, int32_t count)
{
    const int64_t at = h->fold_start[d + 1]++;

    h->fold_word[at] = word;
    h->fold_count[at] = (float)count;
}

static void add_score(em_held_out *h, int64_t d, int32_t word, int32_t count)
{
    const int64_t at = h->score_start[d + 1]++;

    h->score_word[at] = word;
    h->score_count[at] = (float)count;
    h->n_token += count;
}

/* Splits document d into the part that is folded in and the part that is scored. Returns how many
 * different words are folded in. */
static int64_t split(em_held_out *h, const em_corpus *corpus, const em_corpus *given, int64_t d)
{
    int64_t token = 0;

    h->fold_start[d + 1] = h->fold_start[d];
    h->score_start[d + 1] = h->score_start[d];
    for (int64_t k = corpus->start[d]; k < corpus->start[d + 1]; k++) {
        const int32_t count = corpus->count[k];
        int32_t scored = 0;
        for (int32_t j = 0; !given && j < count; j++)
            scored += is_scored(corpus->first_document + d, token++);
        if (scored < count)
            add_fold(h, d, corpus->word[k], count - scored);
        if (scored > 0)
            add_score(h, d, corpus->word[k], scored);
    }
    for (int64_t k = given ? given->start[d] : 0; given && k < given->start[d + 1]; k++)
        add_score(h, d, given->word[k], given->count[k]);
    return h->fold_start[d + 1] - h->fold_start[d];
}

em_status em_held_out_create(em_owner *owner, const em_corpus *corpus, const em_corpus *scored,
                             const em_lda_shape *shape, int64_t shard, int64_t n_shard,
                             em_held_out **out)
{
    const int64_t n = corpus->n_local, n_entry = corpus->start[n];
    const int64_t n_score = scored ? scored->start[n] : n_entry;
    int64_t widest = 0;
    em_status status = em_own_all(owner, EM_ARRAY(*out, 1));

    if (status)
        return status;
    em_held_out *h = *out;
    h->n_document = n;
    h->is_first = shard == 0;
    status = em_own_all(owner, EM_ARRAY(h->fold_start, n + 1), EM_ARRAY(h->score_start, n + 1),
                        EM_ARRAY(h->fold_word, n_entry), EM_ARRAY(h->score_word, n_score),
                        EM_ARRAY(h->fold_count, n_entry), EM_ARRAY(h->score_count, n_score),
                        EM_ARRAY(h->mixture, EM_FOLD_IN_ROOM * shape->stride));
    for (int64_t d = 0; !status && d < n; d++) {
        const int64_t words = split(h, corpus, scored, d);
        widest = words > widest ? words : widest;
    }
    if (!status) {
        h->n_score = h->score_start[n];
        h->first = n * shard / n_shard;
        h->end = n * (shard + 1) / n_shard;
        h->first_score = h->score_start[h->first];
        h->n_own = h->score_start[h->end] - h->first_score;
        status = em_own_all(owner, EM_ARRAY(h->rows, widest * shape->stride));
    }
    return status;
}

em_status em_held_out_with_gibbs(em_owner *owner, em_held_out *h, const em_lda_shape *shape)
{
    int64_t most = 0;

    for (int64_t d = h->first; d < h->end; d++) {
        int64_t n = 0;
        for (int64_t i = h->fold_start[d]; i < h->fold_start[d + 1]; i++)
            n += (int64_t)h->fold_count[i];
        most = n > most ? n : most;
    }
    return em_fold_in_create(owner, shape->n_topic, most, &h->gibbs);
}

/* Folds in document d, whose mixture is then in h->mixture. Returns the sum of the mixture. */
static double fold_in(const em_held_out *h, const em_lda_shape *shape,
                      const em_held_out_parameters *parameters, int64_t d)
{
    const int64_t first = h->fold_start[d], n = h->fold_start[d + 1] - first;
    const em_folded document = {
        .number = d, .n = n, .count = h->fold_count + first, .phi = h->rows};
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < shape->n_topic; k++)
            h->rows[i * shape->stride + k] =
                em_topic_floored(parameters->phi[h->fold_word[first + i] * shape->stride + k]);
    if (parameters->stream)
        em_fold_in_gibbs(h->gibbs, parameters->stream, &document, parameters->alpha, h->mixture);
    else
        em_fold_in_em(shape->n_topic, &document, parameters->alpha, h->mixture);
    for (int64_t k = 0; k < shape->n_topic; k++)
        sum += h->mixture[k];
    return sum;
}

int64_t em_held_out_score(const em_held_out *h, const em_lda_shape *shape,
                          const em_held_out_parameters *parameters, int64_t n, double *average,
                          int64_t *averaged)
{
    int64_t sum = 0;

    *averaged = 0;
    for (int64_t d = h->first; d < h->end; d++) {
        const double total = fold_in(h, shape, parameters, d);
        for (int64_t i = h->score_start[d]; i < h->score_start[d + 1]; i++) {
            const float *row = parameters->phi + h->score_word[i] * shape->stride;
            double *mean = &average[i - h->first_score], p = 0;
            for (int64_t k = 0; k < shape->n_topic; k++)
                p += h->mixture[k] * em_topic_floored(row[k]);
            p /= total;
            *mean += (p - *mean) / (double)(n + 1);
            sum += em_topic_in_units(h->score_count[i] * log(p));
            *averaged += em_topic_in_units(h->score_count[i] * log(*mean));
        }
    }
    return sum;
}

void em_held_out_define(bool given, double alpha, char doc[EM_HELD_OUT_DOC_SIZE])
{
    char how[64];

    snprintf(how, sizeof how,
             isnan(alpha) ? "100 steps of EM with the model's alpha"
                          : "100 steps of EM with alpha %g",
             alpha);
    snprintf(doc, EM_HELD_OUT_DOC_SIZE,
             given ? "document completion: each test document is folded in by %s, and the tokens "
                     "given for it are scored"
                   : "document completion: a fifth of the tokens of each test document is "
                     "scored, the rest folded in by %s",
             how);
}

/* The unit of sums of probabilities over up to 2^15 chains. */
#define POOL_UNIT 0x1p-48

em_status em_held_out_pool(const em_held_out *h, int64_t n_chain, double *const *probability,
                           double *perplexity)
{
    EM_SCOPED int64_t *sum = NULL; /* [n_score] and how many chains, counted by first shards */
    double total = 0;
    em_status status = em_agree_first(em_allocate(h->n_score + 1, sizeof *sum, &sum), 0);

    if (status)
        return status;
    for (int64_t c = 0; c < n_chain; c++)
        for (int64_t i = 0; i < h->n_own; i++)
            sum[h->first_score + i] += (int64_t)(probability[c][i] / POOL_UNIT);
    sum[h->n_score] = h->is_first ? n_chain : 0;
    em_world_sum(h->n_score + 1, sum);
    for (int64_t i = 0; i < h->n_score; i++)
        total +=
            h->score_count[i] * log(fmax((double)sum[i], 1) * POOL_UNIT / (double)sum[h->n_score]);
    *perplexity = exp(-total / (double)h->n_token);
    return EM_OK;
}

double em_held_out_perplexity(const em_held_out *h, int64_t sum)
{
    return exp(-(double)sum * EM_TOPIC_UNIT / (double)h->n_token);
}
