/* Saves and restores the topics of the tokens of lda in a checkpoint. */
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

static em_status visit_block(lda *self, const em_visitor *visitor, int64_t piece)
{
    const em_tokens *tokens = self->tokens;
    const int64_t left = tokens->n_all - piece * PIECE_TOKENS;
    const int64_t total = left < PIECE_TOKENS ? left : PIECE_TOKENS;
    int64_t first, count;
    char name[40];
    em_status status = EM_OK;

    em_tokens_own_part(tokens, piece * PIECE_TOKENS, total, &first, &count);
    const int64_t local = piece * PIECE_TOKENS + first - tokens->first_token;
    snprintf(name, sizeof name, piece ? "topics_%" PRId64 : "topics", piece);
    if (!visitor->restores)
        status = em_agree_first(copy_block(self, false, local, count), 0);
    if (!status)
        status = visitor->sharded(visitor->context, name, EM_NUMBER_UINT16, total, first, count,
                                  self->ordered);
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
