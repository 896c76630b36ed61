/*
 * A coordinate block is a part of a block of chains: all rows of some chains, or some columns of
 * one chain. It is contiguous in a panel and fits into the first-level cache, so several loops over
 * it are fast. Kernels that move every coordinate by itself work on one coordinate block after
 * another. All Local.
 */
#pragma once

#include "base/memory.h"
#include "sampler/kernel/sampler.h"

/* The largest size of a coordinate block. It is a multiple of 16, because normals are drawn 16 at a
 * time. A first-level cache holds ten such rows. */
enum { EM_MOST_COORDINATES = 512 };

typedef struct em_coordinate_blocks {
    const em_step_context *context;
    const em_block *block;
    /* size of a coordinate block; columns < stride: a row has several blocks */
    int64_t rows, columns;
    int64_t next, end; /* number of the next coordinate block, and of the one after the last */
} em_coordinate_blocks;

/* The coordinate blocks that this shard moves: all, unless the context divides them among the
 * shards. `whole`: the whole block is one coordinate block. */
em_coordinate_blocks em_coordinate_blocks_of(const em_step_context *context, const em_block *block,
                                             bool whole);

/* The range of a panel that they cover. */
em_span em_coordinate_blocks_span(const em_coordinate_blocks *blocks);

/* Whether the masses of all chains work element by element. */
bool em_is_elementwise(const em_step_context *context, const em_block *block);

/* A coordinate block as an em_block of its own, with the context that its kernel needs. It begins
 * at column `first` of chain `chain`, which is number `at` of a panel. Its theta, momentum and
 * gradient are those of its columns. So are the extra numbers if a chain has as many as columns;
 * otherwise all of them are present. No other field of the em_block may be used. The struct points
 * into itself: do not copy it. */
typedef struct em_coordinate_block {
    em_block block;
    em_step_context context;
    int64_t chain, at;
    em_mass head; /* part of a mass, for a row with several blocks */
    const em_mass *mass;
    em_ahead ahead;
    _Alignas(EM_ALIGNMENT) double slope[EM_MOST_COORDINATES]; /* a gradient computed for this block
                                                                 alone */
} em_coordinate_block;

/* Fetches into the cache up to n more of the numbers that the next coordinate block needs. */
void em_fetch_ahead(const em_step_context *context, int64_t n);

/* Declares, before the moves that follow a gradient, whether the kernel moves again before the next
 * gradient. If it does, these moves do not publish positions. A kernel without such moves need not
 * call this; nor one that makes them before each gradient. Local. */
static inline void em_set_moves_before(const em_step_context *context, bool moves_before)
{
    if (context->ranges)
        context->ranges->moves_before = moves_before;
}

/* The next coordinate block, with its gradient; false after the last. */
bool em_coordinate_block_next(em_coordinate_blocks *blocks, em_coordinate_block *out);

/* A whole chain as one coordinate block, including its statistics. */
void em_coordinate_block_chain(const em_step_context *context, const em_block *block, int64_t chain,
                               em_coordinate_block *out);

/* To be called after its move. Sets finite[c] = false for each chain c whose position is not
 * finite. */
void em_coordinate_block_end(const em_coordinate_block *coordinates, bool *finite);
