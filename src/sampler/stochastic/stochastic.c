#include "sampler/stochastic/stochastic.h"

#include "math/finite.h"
#include "math/special.h"
#include "sampler/stochastic/coordinate_block.h"

#include <math.h>
#include <string.h>

const em_stat em_stochastic_stats[] = {EM_STAT_LP, EM_STAT_STEP_SIZE, EM_STAT_N_STEPS,
                                       EM_STAT_DIVERGING, EM_STAT_COUNT};

const char *const em_minibatch_orders[] = {"drawn", "epoch", NULL};

int64_t em_stochastic_extra_row(const void *options, int64_t dim)
{
    (void)options;
    return em_stride(dim);
}

em_status em_stochastic_check(const em_stochastic_options *options, const char **name)
{
    const em_reals *at = &options->halve_at;

    *name = "minibatch_order";
    if (options->minibatch_order == EM_MINIBATCH_EPOCH && options->common.minibatch == INT64_MIN)
        return em_fail(EM_ECONFIG,
                       "found epoch without minibatch, expected sampler.minibatch as well");
    if (options->minibatch_order == EM_MINIBATCH_EPOCH && options->common.replacement)
        return em_fail(EM_ECONFIG, "found epoch with replacement: true, expected drawn");
    *name = "halve_at";
    for (int64_t i = 1; i < at->count; i++)
        if (!(at->value[i - 1] < at->value[i]))
            return em_fail(EM_ECONFIG, "found %g after %g, expected epochs that increase",
                           at->value[i], at->value[i - 1]);
    return EM_OK;
}

double em_stochastic_step_scale(const em_stochastic_options *options, int64_t n_row,
                                int64_t iteration)
{
    const em_reals *at = &options->halve_at;
    const int64_t size = options->common.minibatch;
    const int64_t batches =
        size == INT64_MIN || n_row <= size ? 1 : em_minibatches_of_epoch(n_row, size);
    const double steps = (double)iteration * (double)options->leapfrog_steps;
    int halved = 0;

    while (halved < at->count && steps >= at->value[halved] * (double)batches)
        halved++;
    return ldexp(pow(1 + (double)iteration / options->decay_scale, -options->decay_power), -halved);
}

static em_minibatch stochastic_minibatch(const em_stochastic_options *options)
{
    return (em_minibatch){
        .size = options->common.minibatch == INT64_MIN ? INT64_MAX : options->common.minibatch,
        .replacement = options->common.replacement,
        .by_epoch = options->minibatch_order == EM_MINIBATCH_EPOCH};
}

em_status em_stochastic_evaluate(const em_stochastic_options *options,
                                 const em_step_context *context, int64_t per_iteration, int64_t k,
                                 em_query query)
{
    const em_minibatch minibatch = stochastic_minibatch(options);
    em_gradient_ranges *ranges = context->ranges;

    query.wanted = ranges && k < per_iteration - 1 ? EM_WANT_GRADIENT : EM_WANT_BOTH;
    query.seed = context->seed;
    query.evaluation = context->iteration * per_iteration + k;
    if (ranges) {
        ranges->due = true;
        ranges->kept = k == per_iteration - 1;
        return em_posterior_estimate_ranges(context->posterior, &minibatch, &query,
                                            ranges->published);
    }
    return em_posterior_estimate(context->posterior, &minibatch, &query);
}

static void draw_normals(bool single, const em_stream *stream, int64_t first, int64_t n, double *z)
{
    (single ? em_single_normals_from : em_normals_from)(stream, first, n, z);
}

/* The function em_meanwhile.work of em_early_normals. It draws some normals while the rank would
 * wait. */
static bool draw_early(void *context)
{
    em_early_normals *early = context;
    const int64_t first = early->next, n = em_least(early->end - first, EM_MOST_COORDINATES);

    if (n <= 0)
        return false;
    draw_normals(early->single, &early->stream, first, n, early->z + first);
    early->next += n;
    return true;
}

/* Moves all chains at once. Each shard moves a range of chains or, of a single chain, a range of
 * the gradient. */
static em_status stochastic_take_partitioned(em_sampler *sampler, const em_step_context *context,
                                             em_block *block, em_stochastic_iteration *take)
{
    em_gradient_ranges ranges = {.due = false};
    em_early_normals early = {.end = 0};
    const em_meanwhile meanwhile = {draw_early, &early};
    em_step_context own = *context;

    if (em_posterior_partitions_gradient(context->posterior, block->n_chain))
        own.ranges = &ranges;
    own.home = block->theta;
    const em_coordinate_blocks blocks = em_coordinate_blocks_of(&own, block, false);
    early.own = em_coordinate_blocks_span(&blocks);
    own.early = block->n_chain == 1 ? &early : NULL;
    block->theta =
        em_posterior_begin_partitioned(context->posterior, early.own, own.home, &meanwhile);
    em_status status = take(sampler, &own, block, 0);
    block->theta = own.home;
    em_posterior_end_partitioned(context->posterior);
    return status;
}

void em_stochastic_gather(const em_step_context *context, em_block *block)
{
    const int64_t n = block->n_chain * block->stride;

    if (!context->home)
        return;
    em_posterior_gather_partitioned(context->posterior, n, block->theta, context->home);
    block->theta = context->home;
    em_posterior_gather_partitioned(context->posterior, n, block->momentum, block->momentum);
    em_posterior_gather_partitioned(context->posterior, n, block->gradient, block->gradient);
    if (block->n_extra == block->stride)
        em_posterior_gather_partitioned(context->posterior, n, block->extra, block->extra);
}

em_status em_stochastic_in_turns(const em_stochastic_options *options, em_sampler *sampler,
                                 const em_step_context *context, em_block *block,
                                 bool by_coordinates, em_stochastic_iteration *take)
{
    const em_minibatch minibatch = stochastic_minibatch(options);
    bool partitioned = false;
    em_status status = EM_OK;

    if (!em_posterior_estimates_alone(context->posterior, &minibatch)) {
        status = by_coordinates
                     ? em_posterior_may_partition(context->posterior, &minibatch, &partitioned)
                     : EM_OK;
        return status        ? status
               : partitioned ? stochastic_take_partitioned(sampler, context, block, take)
                             : take(sampler, context, block, 0);
    }
    const bool in_ranges = by_coordinates && em_posterior_has_ranges(context->posterior);
    for (int64_t c = 0; !status && c < block->n_chain; c++) {
        em_gradient_ranges ranges = {.due = false};
        em_coordinate_block one;
        em_coordinate_block_chain(context, block, c, &one);
        one.context.ranges = in_ranges ? &ranges : NULL;
        status = take(sampler, &one.context, &one.block, c);
    }
    return status;
}

static em_stream stream_of(const em_step_context *context, int64_t chain, em_purpose purpose,
                           int64_t number)
{
    return (em_stream){context->seed, (uint64_t)chain, (uint64_t)number, purpose};
}

void em_stochastic_expect_noise(const em_stochastic_options *options,
                                const em_step_context *context, const em_block *block, int64_t k,
                                double *z)
{
    em_early_normals *early = context->early;

    if (!early)
        return;
    early->next = early->own.first;
    early->end = em_least(early->own.end, block->dim);
    early->stream = stream_of(context, block->chain[0], EM_RNG_NOISE,
                              em_stochastic_step_number(options, context, k));
    early->single = em_posterior_model(context->posterior)->single;
    early->z = z;
}

/* The normals of a coordinate block, if all of them were drawn early; else NULL. */
static const double *normals_drawn(const em_step_context *context, const em_block *block,
                                   const em_stream *stream)
{
    const em_early_normals *early = context->early;

    return early && block->first >= early->own.first && block->first + block->dim <= early->next &&
                   early->stream.purpose == stream->purpose &&
                   early->stream.iteration == stream->iteration
               ? early->z + block->first
               : NULL;
}

void em_stochastic_normals(const em_step_context *context, const em_block *block,
                           em_purpose purpose, int64_t number, double *z)
{
    enum { AT_A_TIME = 128 }; /* between fetches */
    const bool single = em_posterior_model(context->posterior)->single;

    for (int64_t c = 0; c < block->n_chain; c++) {
        const em_stream stream = stream_of(context, block->chain[c], purpose, number);
        const double *drawn = normals_drawn(context, block, &stream);
        double *row = z + c * block->stride;
        for (int64_t i = 0; i < block->dim; i += AT_A_TIME) {
            const int64_t n = em_least(block->dim - i, AT_A_TIME);
            em_fetch_ahead(context, em_stride(n));
            if (!drawn)
                draw_normals(single, &stream, block->first + i, n, row + i);
            else if (drawn != row)
                memcpy(row + i, drawn + i, (size_t)n * sizeof *row);
        }
        memset(row + block->dim, 0, (size_t)(block->stride - block->dim) * sizeof *row);
    }
}

void em_stochastic_noise(const em_stochastic_options *options, const em_step_context *context,
                         const em_block *block, int64_t k, double *z)
{
    em_stochastic_normals(context, block, EM_RNG_NOISE,
                          em_stochastic_step_number(options, context, k), z);
}

double em_stochastic_normal(const em_step_context *context, const em_block *block, int64_t c,
                            uint64_t index)
{
    const em_stream stream = em_chain_stream(context, block, c, EM_RNG_THERMOSTAT);

    return em_normal_quantile(em_uniform(&stream, index));
}

bool em_chain_is_finite(const em_block *block, int64_t c)
{
    const int64_t row = c * block->stride;

    return em_all_finite(block->dim, block->theta + row) &&
           em_all_finite(block->dim, block->momentum + row) &&
           em_all_finite(block->dim, block->gradient + row) &&
           em_all_finite(block->n_extra, block->extra + c * block->n_extra);
}

void em_stochastic_report(const em_stochastic_options *options, const em_step_context *context,
                          em_block *block, int64_t c, bool diverging)
{
    em_block_record_steps(block, c, context->step_size[c], (double)options->leapfrog_steps);
    block->stat[EM_STAT_DIVERGING][c] = diverging;
}
