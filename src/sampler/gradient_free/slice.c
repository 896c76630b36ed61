/*
 * Slice sampling along pooled directions (Neal 2003, Figures 3 and 5; EQUATIONS 27): one line at a
 * time, with stepping out and shrinkage. With W = L^-T L^-1 the inverse mass, learned from the
 * draws of all chains, and u uniform on the unit sphere, the directions of an iteration are
 *
 *     d_k = L^-T (e_k - 2 u_k u),  k = 1 .. dim:
 *
 * an orthonormal basis where the target is whitened (a random Householder reflection), so that one
 * iteration moves a chain in every direction. For each direction
 *
 *     log y = log p(theta) + log U;  an interval of width w about 0, at a random place;
 *     its ends step out by w while p(theta + t d) > y there;
 *     t ~ uniform in the interval, which shrinks to t where p(theta + t d) <= y, until it is not.
 *
 * w is step_size, in standard deviations of the target. It needs no adaptation: an interval that is
 * ten times too wide takes three evaluations more.
 */
#include "math/linalg.h"
#include "math/rng.h"
#include "sampler/gradient_free/proposals.h"

#include <math.h>

/* Limits for one line. MOST_WIDTHS: the widths of its interval, one more than the steps out.
 * MOST_SHRINKS: the shrinks after which the chain does not move; an interval of 2^-100 of its width
 * contains no other number. UNIFORMS: the random numbers of a line. */
enum { MOST_WIDTHS = 64, MOST_SHRINKS = 100, UNIFORMS = 128 };

typedef struct slice_options {
    em_sampler_options common;
    int64_t directions; /* INT64_MIN: the dimension */
} slice_options;

static const em_field fields[] = {EM_SAMPLER_FIELDS_FROM("2.5", "0.8"),
                                  EM_INT(slice_options, directions, .minimum = 1, .maximum = 1e6,
                                         .fallback = "auto", .word = "auto",
                                         .doc = "number of lines in an iteration, with about five "
                                                "evaluations each; auto: the number of parameters"),
                                  {0}};

typedef struct slice_sampler {
    em_sampler base;
    int64_t directions;
    em_proposals proposals; /* one row */
} slice_sampler;

/* A chain on a line. */
typedef struct line {
    em_proposals *at;
    em_posterior *posterior;
    em_block *block;
    int64_t c;
    double level; /* log y */
    int64_t evaluations;
    em_status status;
} line;

static em_status slice_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    const int64_t given = ((const slice_options *)base->options)->directions;
    slice_sampler *s = (slice_sampler *)base;

    (void)n_chain;
    s->directions = given == INT64_MIN ? dim : given;
    return em_proposals_create(&base->memory, 1, dim, &s->proposals);
}

/* Sets direction number `number` since the beginning of the run. The `dim` directions of an
 * iteration are a basis. */
static void slice_direct(em_proposals *p, const em_step_context *context, int64_t chain, int64_t c,
                         int64_t number)
{
    em_step_context of_basis = *context;
    const int64_t k = number % p->dim;

    of_basis.iteration = number / p->dim;
    em_proposals_draw(p, &of_basis, chain, 0, 0);
    const double factor = -2 * p->z[k] / em_dot(p->dim, p->z, p->z);
    for (int64_t i = 0; i < p->dim; i++)
        p->z[i] = factor * p->z[i] + (i == k);
    em_mass_apply(context->mass + c, EM_MAP_UNWHITEN, 1, p->z, p->direction);
}

/* Whether t is in the slice: the density there is above the level. */
static bool slice_holds(line *l, double t)
{
    em_block *block = l->block;

    em_proposals_move(l->at, block->theta + l->c * block->stride, t, 0);
    if (!l->status)
        l->status = em_proposals_evaluate(l->at, l->posterior, 1, &block->chain[l->c]);
    l->evaluations++;
    return !l->status && isfinite(*l->at->log_density) && *l->at->log_density > l->level;
}

/* Moves an end of the interval out by steps of `width` until it is outside of the slice, but by at
 * most `most` steps. Returns the end. */
static double slice_step_out(line *l, double end, double width, int most)
{
    while (most-- > 0 && slice_holds(l, end))
        end += width;
    return end;
}

/* Moves a chain along direction `at->direction`; false: it has not moved. */
static bool slice_move(line *l, double width, const double *uniform)
{
    const int outward = (int)(MOST_WIDTHS * uniform[2]);
    const double first = -width * uniform[1];

    l->level = l->block->log_density[l->c] + log(uniform[0]);
    double left = slice_step_out(l, first, -width, outward);
    double right = slice_step_out(l, first + width, width, MOST_WIDTHS - 1 - outward);
    for (int k = 0; k < MOST_SHRINKS && !l->status; k++) {
        const double t = left + uniform[3 + k] * (right - left);
        if (slice_holds(l, t)) {
            em_proposals_accept(l->at, 0, l->block, l->c);
            return true;
        }
        *(t < 0 ? &left : &right) = t;
    }
    return false;
}

static em_status slice_chain(slice_sampler *s, const em_step_context *context, em_block *block,
                             int64_t c)
{
    const em_stream stream = em_chain_stream(context, block, c, EM_RNG_ACCEPT);
    line l = {.at = &s->proposals, .posterior = context->posterior, .block = block, .c = c};
    double uniform[UNIFORMS], n_moved = 0;

    for (int64_t k = 0; k < s->directions && !l.status; k++) {
        slice_direct(&s->proposals, context, block->chain[c], c,
                     context->iteration * s->directions + k);
        em_uniforms(&stream, (uint64_t)k * UNIFORMS, UNIFORMS, uniform);
        n_moved += slice_move(&l, context->step_size[c], uniform);
    }
    em_proposals_record(context, block, c, n_moved / (double)s->directions, (double)l.evaluations);
    return l.status;
}

static em_status slice_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    em_status status = EM_OK;

    for (int64_t c = 0; !status && c < block->n_chain; c++)
        status = slice_chain((slice_sampler *)base, context, block, c);
    return status;
}

const em_sampler_ops em_slice = {
    .name = "slice",
    .doc = "slice sampling along pooled directions: needs no gradient, and no step size",
    .source = "Neal 2003, Figures 3 and 5",
    .size = sizeof(slice_sampler),
    .options_size = sizeof(slice_options),
    .fields = fields,
    .stats = em_proposals_stats,
    .set_up = slice_set_up,
    .step = slice_step,
    .without_gradient = true,
};
