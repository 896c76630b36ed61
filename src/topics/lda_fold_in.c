#include "topics/lda_fold_in.h"

#include "math/simd/tokens.h"

#include <string.h>

struct em_fold_in {
    int64_t n_topic, stride, most;
    uint16_t *topic, *drawn; /* [most] of the tokens, word by word */
    uint32_t *bits;          /* [most] random */
    uint64_t *item;
    float *tokens, *alpha, *room;
    double *sum; /* [n_topic] */
};

em_status em_fold_in_create(em_owner *owner, int64_t n_topic, int64_t most, em_fold_in **out)
{
    const int64_t stride = em_topic_stride(n_topic), items = (most + 31) / 32 * 8;
    const em_status status = em_own_all(owner, EM_ARRAY(*out, 1));

    if (status)
        return status;
    em_fold_in *f = *out;
    *f = (em_fold_in){.n_topic = n_topic, .stride = stride, .most = most};
    return em_own_all(owner, EM_ARRAY(f->topic, most), EM_ARRAY(f->drawn, most),
                      EM_ARRAY(f->bits, 4 * items), EM_ARRAY(f->item, items),
                      EM_ARRAY(f->tokens, stride), EM_ARRAY(f->alpha, stride),
                      EM_ARRAY(f->room, em_token_workspace(n_topic)), EM_ARRAY(f->sum, n_topic));
}

em_stream em_fold_in_stream(uint64_t seed, int64_t chain, int64_t iteration)
{
    return (em_stream){.seed = seed,
                       .chain = (uint64_t)chain,
                       .iteration = (uint64_t)iteration,
                       .purpose = EM_RNG_FOLD_IN};
}

static void draw_bits(em_fold_in *f, const em_stream *stream, int64_t number, int64_t n,
                      int64_t sweep)
{
    const int64_t items = (n + 31) / 32 * 8;

    for (int64_t i = 0; i < items; i++)
        f->item[i] = (uint64_t)number << 24 | (uint64_t)(sweep * items + i);
    em_item_bits(stream, items, f->item, f->bits);
}

static void sweep(em_fold_in *f, const em_folded *document)
{
    em_token_entry entry;
    int64_t slot = 0;
    em_token_run run = {.n = 1,
                        .entry = &entry,
                        .bits = f->bits,
                        .topic = f->topic,
                        .drawn = f->drawn,
                        .n_topic = f->n_topic,
                        .stride = f->stride,
                        .alpha = f->alpha,
                        .tokens = f->tokens,
                        .room = f->room};

    for (int64_t i = 0; i < document->n; i++) {
        run.phi = document->phi + i * f->stride;
        for (int64_t left = (int64_t)document->count[i]; left > 0; left -= entry.count) {
            entry = em_next_entry(left, slot, 0);
            em_token_kernels_best()->dense(&run);
            slot += entry.count;
        }
    }
}

void em_fold_in_gibbs(em_fold_in *f, const em_stream *stream, const em_folded *document,
                      const double *alpha, float *mixture)
{
    const int64_t kept = EM_FOLD_IN_SWEEPS / 2;
    double all = 0;
    int64_t n = 0;

    for (int64_t i = 0; i < document->n; i++)
        n += (int64_t)document->count[i];
    for (int64_t i = 0; i < n; i++)
        f->topic[i] = (uint16_t)f->n_topic;
    for (int64_t k = 0; k < f->n_topic; k++) {
        all += alpha[k];
        f->alpha[k] = (float)alpha[k];
    }
    memset(f->tokens, 0, (size_t)f->stride * sizeof *f->tokens);
    memset(f->sum, 0, (size_t)f->n_topic * sizeof *f->sum);
    for (int64_t s = 0; s < EM_FOLD_IN_SWEEPS; s++) {
        draw_bits(f, stream, document->number, n, s);
        sweep(f, document);
        for (int64_t k = 0; s >= EM_FOLD_IN_SWEEPS - kept && k < f->n_topic; k++)
            f->sum[k] += (double)f->tokens[k];
    }
    for (int64_t k = 0; k < f->n_topic; k++)
        mixture[k] = (float)((alpha[k] + f->sum[k] / (double)kept) / (all + (double)n));
}

void em_fold_in_em(int64_t n_topic, const em_folded *document, const double *alpha, float *mixture)
{
    const int64_t stride = em_topic_stride(n_topic);
    float *own = mixture + 2 * stride;

    for (int64_t k = 0; k < stride; k++)
        own[k] = k < n_topic ? (float)alpha[k] : 0;
    em_token_kernels_best()->fold_in(document->n, document->phi, document->count, n_topic, stride,
                                     own, EM_FOLD_IN_STEPS, mixture);
}
