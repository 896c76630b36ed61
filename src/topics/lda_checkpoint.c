/* Saves and restores the topics of the tokens of lda in a checkpoint: a byte each if there are at
 * most 256 topics, else two. */
#include "par/message.h"
#include "topics/lda_internal.h"

#include <inttypes.h>
#include <stdio.h>

static em_status copy_block(lda *self, bool restores, int64_t first, int64_t count)
{
    em_status status = EM_OK;

    for (int64_t c = 0; !status && count > 0 && c < self->n_chain; c++)
        status = em_tokens_copy(self->tokens, &self->chain[c].topic, restores, first, count,
                                self->ordered + c * count);
    return status;
}

/* Packs `count` topics as bytes at the beginning of `x`, and unpacks them. */
static void pack(int64_t count, uint16_t *x)
{
    uint8_t *byte = (uint8_t *)x;

    for (int64_t i = 0; i < count; i++)
        byte[i] = (uint8_t)x[i];
}

static void unpack(int64_t count, uint16_t *x)
{
    const uint8_t *byte = (const uint8_t *)x;

    for (int64_t i = count; i-- > 0;)
        x[i] = byte[i];
}

static em_status visit_block(lda *self, const em_visitor *visitor, int64_t piece)
{
    const em_tokens *tokens = self->tokens;
    const int64_t left = tokens->n_all - piece * PIECE_TOKENS;
    const int64_t total = left < PIECE_TOKENS ? left : PIECE_TOKENS;
    const bool packs = self->shape.n_topic <= UINT8_MAX + 1;
    int64_t first, count;
    char name[40];
    em_status status = EM_OK;

    em_tokens_own_part(tokens, piece * PIECE_TOKENS, total, &first, &count);
    const int64_t local = piece * PIECE_TOKENS + first - tokens->first_token;
    snprintf(name, sizeof name, piece ? "topics_%" PRId64 : "topics", piece);
    if (!visitor->restores)
        status = em_agree_first(copy_block(self, false, local, count), 0);
    if (packs && !visitor->restores)
        pack(self->n_chain * count, self->ordered);
    if (!status)
        status =
            visitor->sharded(visitor->context, name, packs ? EM_NUMBER_UINT8 : EM_NUMBER_UINT16,
                             total, first, count, self->ordered);
    if (packs && visitor->restores)
        unpack(self->n_chain * count, self->ordered);
    if (!status && visitor->restores)
        status = em_agree_first(copy_block(self, true, local, count), 0);
    return status;
}

em_status em_lda_visit_topics(lda *self, const em_visitor *visitor)
{
    em_status status = EM_OK;

    for (int64_t piece = 0; !status && piece * PIECE_TOKENS < self->tokens->n_all; piece++)
        status = visit_block(self, visitor, piece);
    for (int64_t c = 0; visitor->restores && c < self->n_chain; c++)
        self->chain[c].counted = false;
    return status;
}
