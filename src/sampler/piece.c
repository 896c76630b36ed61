#include "sampler/piece.h"

#include "base/memory.h"

/* A multiple of 16, as normals come; ten such rows are what a first cache holds. */
enum { MOST = 512 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

em_pieces em_pieces_of(const em_block *block, bool whole)
{
    if (whole)
        return (em_pieces){block->n_chain, block->stride};
    if (block->stride > MOST)
        return (em_pieces){1, MOST};
    return (em_pieces){MOST / block->stride, block->stride};
}

bool em_is_elementwise(const em_step_context *context, const em_block *block)
{
    for (int64_t c = 0; c < block->n_chain; c++)
        if (!context->mass[c]->scale[EM_MAP_VELOCITY])
            return false;
    return true;
}

void em_piece_at(const em_pieces *pieces, const em_step_context *context, const em_block *block,
                 int64_t chain, int64_t first, em_piece *out)
{
    const int64_t at = chain * block->stride + first;
    em_block *b = &out->block;

    out->chain = chain;
    out->at = at;
    out->context = *context;
    out->context.step_size = context->step_size + chain;
    out->context.mass = context->mass + chain;
    *b = *block;
    b->first = first;
    b->n_chain = least(pieces->rows, block->n_chain - chain);
    b->chain = block->chain + chain;
    b->theta = block->theta + at;
    b->momentum = block->momentum + at;
    b->gradient = block->gradient + at;
    b->log_density = block->log_density + chain;
    const bool in_rows = block->n_extra == block->stride;
    b->extra = in_rows ? block->extra + at : block->extra + chain * block->n_extra;
    if (pieces->columns == block->stride)
        return;
    b->dim = least(pieces->columns, block->dim - first);
    b->stride = em_stride(b->dim);
    b->n_extra = in_rows ? b->stride : block->n_extra;
    out->head = em_mass_piece(context->mass[chain], first, b->dim);
    out->mass = &out->head;
    out->context.mass = &out->mass;
}
