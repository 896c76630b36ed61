/*
 * Pieces of a block of chains, for kernels that move every number by itself. A piece fits into the
 * first-level cache, so that several loops over it are fast. A piece is whole rows of some chains
 * or columns of one chain; either way it is contiguous in a panel. All Local.
 */
#pragma once

#include "base/memory.h"
#include "sampler/kernel/sampler.h"

/* Numbers of a piece that is cut from a row, at most: a multiple of 16, as normals come; ten such
 * rows are what a first cache holds. */
enum { EM_MOST_OF_PIECE = 512 };

typedef struct em_coordinate_blocks {
    const em_step_context *context;
    const em_block *block;
    int64_t rows, columns; /* of a piece; a row that is cut has pieces of its own */
    int64_t next, end;     /* numbers of the next one, and of that after the last */
} em_coordinate_blocks;

/* Those that this shard moves: all, unless the context says that they are dealt. `whole`: all of
 * the block is one piece. */
em_coordinate_blocks em_coordinate_blocks_of(const em_step_context *context, const em_block *block,
                                             bool whole);

/* Which numbers of a panel are theirs. */
em_span em_coordinate_blocks_span(const em_coordinate_blocks *pieces);

/* Whether the masses of all chains work element by element. */
bool em_is_elementwise(const em_step_context *context, const em_block *block);

/* The piece as a block of its own, beside what it needs of the context: columns from `first` on of
 * the chains from `chain` on. It has theta, momentum, gradient and extra numbers, those of the
 * columns where a chain has as many as a row, else all; nothing else of what a block has is to be
 * touched. What begins at number `at` of a panel is the piece's. It points into itself: it is not
 * to be copied. */
typedef struct em_coordinate_block {
    em_block block;
    em_step_context context;
    int64_t chain, at;
    em_mass head; /* of a mass, for a row that is cut */
    const em_mass *mass;
    _Alignas(EM_ALIGNMENT) double slope[EM_MOST_OF_PIECE]; /* a gradient that is made for it */
} em_coordinate_block;

/* The next piece, with its gradient; false after the last. */
bool em_coordinate_block_next(em_coordinate_blocks *pieces, em_coordinate_block *out);

/* One chain as a piece, which has its statistics too. */
void em_coordinate_block_chain(const em_step_context *context, const em_block *block, int64_t chain,
                               em_coordinate_block *out);

/* After its move: takes those chains of the piece out of `finite` [all chains] that have a position
 * which is not. */
void em_coordinate_block_end(const em_coordinate_block *piece, bool *finite);
