#include "sampler/stochastic/coordinate_block.h"

#include "math/finite.h"

#include <string.h>

/* The number of coordinate blocks in a row. */
static int64_t across(const em_coordinate_blocks *blocks)
{
    return (blocks->block->stride + blocks->columns - 1) / blocks->columns;
}

em_coordinate_blocks em_coordinate_blocks_of(const em_step_context *context, const em_block *block,
                                             bool whole)
{
    em_coordinate_blocks blocks = {context, block, block->n_chain, block->stride, 0, 1};

    if (!whole) {
        blocks.rows = block->stride > EM_MOST_COORDINATES ? 1 : EM_MOST_COORDINATES / block->stride;
        blocks.columns = em_least(block->stride, EM_MOST_COORDINATES);
        blocks.end = (block->n_chain + blocks.rows - 1) / blocks.rows * across(&blocks);
    }
    if (context->home)
        em_posterior_own_range(context->posterior, blocks.end, &blocks.next, &blocks.end);
    return blocks;
}

/* The index at which a coordinate block begins in a panel. */
static int64_t begin_of(const em_coordinate_blocks *blocks, int64_t number)
{
    const int64_t n = across(blocks), stride = blocks->block->stride;

    return em_least(number / n * blocks->rows * stride + number % n * blocks->columns,
                    blocks->block->n_chain * stride);
}

em_span em_coordinate_blocks_span(const em_coordinate_blocks *blocks)
{
    return (em_span){begin_of(blocks, blocks->next), begin_of(blocks, blocks->end)};
}

bool em_is_elementwise(const em_step_context *context, const em_block *block)
{
    for (int64_t c = 0; c < block->n_chain; c++)
        if (!context->mass[c]->scale[EM_MAP_VELOCITY])
            return false;
    return true;
}

void em_fetch_ahead(const em_step_context *context, int64_t n)
{
    em_ahead *ahead = context->ahead;

    if (!ahead)
        return;
    const int64_t first = ahead->done, end = first + n, last = em_least(end, ahead->size[1]);
    for (int i = 0; i < ahead->n_part; i++)
        for (int64_t k = first; k < em_least(end, ahead->size[i]); k += EM_LANES)
            __builtin_prefetch(ahead->part[i] + k, 0, 3);
    if (context->ranges && first < last)
        em_posterior_fetch_range(context->posterior, ahead->range + first, last - first);
    ahead->done = end;
}

/* Lists the memory to prefetch: first the momenta of the coordinate block that begins at index
 * `at`, which are used soon, and then positions of the next block with their data, with which its
 * gradient begins. */
static em_ahead ahead_of(const em_coordinate_blocks *blocks, const em_block *block, int64_t at,
                         bool extra)
{
    const int64_t all = block->n_chain * block->stride;
    const int64_t next = em_least(at + blocks->rows * blocks->columns, all);
    const int64_t end = em_least(next + blocks->rows * blocks->columns, all), n = end - next;
    em_ahead ahead = {{block->momentum + at, block->theta + next}, {next - at, n}, 2, 0, next};

    if (!blocks->context->ranges || blocks->context->ranges->kept) {
        ahead.size[ahead.n_part] = n;
        ahead.part[ahead.n_part++] = block->gradient + next;
    }
    if (extra) {
        ahead.size[ahead.n_part] = n;
        ahead.part[ahead.n_part++] = block->extra + next;
    }
    return ahead;
}

static void begin_coordinates(const em_coordinate_blocks *blocks, em_coordinate_block *out)
{
    const em_step_context *context = blocks->context;
    const em_block *block = blocks->block;
    const int64_t chain = blocks->next / across(blocks) * blocks->rows;
    const int64_t first = blocks->next % across(blocks) * blocks->columns;
    const int64_t at = chain * block->stride + first;
    em_block *b = &out->block;

    out->chain = chain;
    out->at = at;
    out->context = *context;
    out->context.step_size = context->step_size + chain;
    out->context.mass = context->mass + chain;
    out->context.noise = context->noise ? context->noise + chain : NULL;
    out->context.thermostat_mass =
        context->thermostat_mass ? context->thermostat_mass + chain : NULL;
    *b = *block;
    b->first = first;
    b->n_chain = em_least(blocks->rows, block->n_chain - chain);
    b->chain = block->chain + chain;
    b->theta = block->theta + at;
    b->momentum = block->momentum + at;
    b->gradient = block->gradient + at;
    b->log_density = block->log_density + chain;
    const bool in_rows = block->n_extra == block->stride;
    b->extra = in_rows ? block->extra + at : block->extra + chain * block->n_extra;
    out->ahead = ahead_of(blocks, block, at, in_rows);
    out->context.ahead = &out->ahead;
    if (blocks->columns == block->stride)
        return;
    b->dim = em_least(blocks->columns, block->dim - first);
    b->stride = em_stride(b->dim);
    b->n_extra = in_rows ? b->stride : block->n_extra;
    out->head = em_mass_coordinates(context->mass[chain], first, b->dim);
    out->mass = &out->head;
    out->context.mass = &out->mass;
}

/* Computes the gradient of a coordinate range. It is written to its panel only if it is needed
 * later. */
static void make_range(const em_gradient_ranges *ranges, em_coordinate_block *coordinates)
{
    em_block *b = &coordinates->block;

    if (!ranges->kept && b->stride <= EM_MOST_COORDINATES)
        b->gradient = coordinates->slope;
    em_posterior_gradient_range(coordinates->context.posterior, b->first, b->dim, b->theta,
                                b->gradient);
    memset(b->gradient + b->dim, 0, (size_t)(b->stride - b->dim) * sizeof *b->gradient);
}

/* Whether a move publishes positions to other shards. If the kernel has a move before the gradient,
 * only that move does. */
static bool publishes(const em_gradient_ranges *ranges)
{
    return !ranges->due || !ranges->moves_before;
}

static void end_ranges(em_gradient_ranges *ranges)
{
    ranges->published = publishes(ranges);
    ranges->moves_before |= !ranges->due;
    ranges->due = false;
}

bool em_coordinate_block_next(em_coordinate_blocks *blocks, em_coordinate_block *out)
{
    em_gradient_ranges *ranges = blocks->context->ranges;

    if (blocks->next >= blocks->end) {
        if (ranges)
            end_ranges(ranges);
        return false;
    }
    begin_coordinates(blocks, out);
    blocks->next++;
    if (ranges && ranges->due)
        make_range(ranges, out);
    return true;
}

void em_coordinate_block_chain(const em_step_context *context, const em_block *block, int64_t chain,
                               em_coordinate_block *out)
{
    const em_coordinate_blocks row = {context, block, 1, block->stride, chain, chain + 1};

    begin_coordinates(&row, out);
    out->context.ahead = NULL;
    out->block.acceptance += chain;
    out->block.n_step += chain;
    for (int i = 0; i < EM_STAT_COUNT; i++)
        out->block.stat[i] += chain;
}

/* Prefetches the rest: everything, with the next momenta, if no normals were drawn. */
static void fetch_rest(const em_coordinate_block *coordinates)
{
    em_ahead *ahead = coordinates->context.ahead;

    if (ahead && ahead->done == 0) {
        ahead->part[0] += ahead->size[0];
        ahead->size[0] = ahead->size[1];
    }
    em_fetch_ahead(&coordinates->context, EM_MOST_COORDINATES);
}

void em_coordinate_block_end(const em_coordinate_block *coordinates, bool *finite)
{
    const em_block *block = &coordinates->block;

    fetch_rest(coordinates);
    if (coordinates->context.ranges && publishes(coordinates->context.ranges))
        em_posterior_publish(coordinates->context.posterior, block->first, block->dim,
                             block->theta);
    for (int64_t c = 0; c < block->n_chain; c++)
        finite[coordinates->chain + c] &=
            em_all_finite(block->dim, block->theta + c * block->stride);
}
