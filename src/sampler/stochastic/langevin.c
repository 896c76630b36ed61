#include "sampler/stochastic/langevin.h"

#include "base/clones.h"
#include "base/memory.h"
#include "math/finite.h"

#include <math.h>
#include <string.h>

em_status em_langevin_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    em_langevin *s = (em_langevin *)base;
    const int64_t panel = n_chain * em_stride(dim);
    const int64_t n_extra = em_sampler_n_extra(base->ops, base->options, dim);
    em_status status =
        em_own_all(&base->memory, EM_ARRAY(s->finite, n_chain), EM_ARRAY(s->theta_before, panel),
                   EM_ARRAY(s->momentum_before, panel), EM_ARRAY(s->velocity, panel),
                   EM_ARRAY(s->noise, panel), EM_ARRAY(s->normals, panel),
                   EM_ARRAY(s->log_density_before, n_chain), EM_ARRAY(s->step_size, n_chain));

    s->options = base->options;
    status = status ? status : em_baths_create(&base->memory, n_chain, &s->baths);
    return status || n_extra == 0
               ? status
               : em_own_all(&base->memory, EM_ARRAY(s->extra_before, n_chain * n_extra));
}

void em_langevin_release(em_sampler *base)
{
    em_baths_destroy(&((em_langevin *)base)->baths);
}

double em_langevin_observations(const em_step_context *context)
{
    const int64_t total = em_posterior_model(context->posterior)->rows.total;

    return total > 0 ? (double)total : 1;
}

double em_langevin_noise_share(const em_sampler *sampler)
{
    const em_langevin *s = (const em_langevin *)sampler;

    return em_bath_share(s->baths.bath, s->baths.n_chain, 0.5, s->step_size);
}

void em_langevin_start(em_langevin *s, const em_step_context *context, const em_block *block,
                       int64_t chain)
{
    s->marked = s->began = s->looked = false;
    s->bath = s->baths.bath + chain;
    s->eps = s->step_size + chain;
    for (int64_t c = 0; c < block->n_chain; c++) {
        s->log_density_before[c] = block->log_density[c];
        s->eps[c] = context->step_size[c];
    }
}

static void langevin_mark(em_langevin *s, const em_block *block)
{
    memcpy(s->theta_before, block->theta,
           (size_t)(block->n_chain * block->stride) * sizeof(double));
}

void em_langevin_begin(em_langevin *s, const em_step_context *context, const em_block *block,
                       int64_t chain)
{
    em_langevin_start(s, context, block, chain);
    langevin_mark(s, block);
    memcpy(s->momentum_before, block->momentum,
           (size_t)(block->n_chain * block->stride) * sizeof(double));
    if (s->extra_before)
        memcpy(s->extra_before, block->extra,
               (size_t)(block->n_chain * block->n_extra) * sizeof(double));
    s->marked = s->began = true;
}

/* Moves a block of coordinates. The panels of earlier states in `own` begin at the coordinate
 * block; the other panels are work space. */
static void langevin_move_coordinates(const em_langevin *s, em_coordinate_block *coordinates,
                                      bool is_cut, int64_t k, em_langevin_part *part)
{
    em_langevin own = *s;
    em_bath bath, *cut = &bath;

    own.theta_before += coordinates->at;
    own.eps += coordinates->chain;
    own.bath += coordinates->chain;
    if (is_cut && own.bath[0]) {
        bath = em_bath_coordinates(own.bath[0], coordinates->block.first, coordinates->block.dim);
        own.bath = &cut;
    }
    if (!s->marked)
        langevin_mark(&own, &coordinates->block);
    part(&own, &coordinates->context, &coordinates->block, k);
    em_coordinate_block_end(coordinates, s->finite);
}

em_status em_langevin_in_turns(em_langevin *s, const em_step_context *context, em_block *block,
                               em_stochastic_iteration *take)
{
    const em_status status = s->baths.make ? em_baths_update(&s->baths, context, s) : EM_OK;
    const bool apart =
        em_is_elementwise(context, block) && em_bath_is_diag(s->baths.bath, block->n_chain);

    return status ? status
                  : em_stochastic_in_turns(s->options, &s->base, context, block, apart, take);
}

void em_langevin_move(em_langevin *s, const em_step_context *context, em_block *block, int64_t k,
                      em_langevin_part *part)
{
    const bool whole =
        !em_is_elementwise(context, block) || !em_bath_is_diag(s->bath, block->n_chain);
    em_coordinate_blocks blocks = em_coordinate_blocks_of(context, block, whole);
    em_coordinate_block coordinates;

    for (int64_t c = 0; c < block->n_chain; c++)
        s->finite[c] = true;
    while (em_coordinate_block_next(&blocks, &coordinates))
        langevin_move_coordinates(s, &coordinates, blocks.columns < block->stride, k, part);
    s->marked = s->looked = true;
}

/* Draws a new momentum for one chain. */
static void langevin_refresh_chain(em_langevin *s, const em_step_context *context, em_block *block,
                                   int64_t c)
{
    em_coordinate_block coordinates;

    em_coordinate_block_chain(context, block, c, &coordinates);
    em_langevin_refresh(s, &coordinates.context, &coordinates.block);
}

static void langevin_put_back(em_langevin *s, const em_step_context *context, em_block *block,
                              int64_t c)
{
    const size_t bytes = (size_t)block->stride * sizeof(double);
    const int64_t row = c * block->stride;

    if (context->home)
        em_posterior_gather_partitioned(context->posterior, block->n_chain * block->stride,
                                        s->theta_before, s->theta_before);
    memcpy(block->theta + row, s->theta_before + row, bytes);
    block->log_density[c] = s->log_density_before[c];
    if (s->began) {
        memcpy(block->momentum + row, s->momentum_before + row, bytes);
        if (s->extra_before)
            memcpy(block->extra + c * block->n_extra, s->extra_before + c * block->n_extra,
                   (size_t)block->n_extra * sizeof(double));
    } else if (s->heats)
        langevin_refresh_chain(s, context, block, c);
}

void em_langevin_end(em_langevin *s, const em_step_context *context, em_block *block)
{
    const bool looked = s->looked && !context->home; /* at all of it */

    em_stochastic_gather(context, block);
    for (int64_t c = 0; c < block->n_chain; c++) {
        const bool is_finite =
            looked ? s->finite[c] : em_all_finite(block->dim, block->theta + c * block->stride);
        const bool diverging = !is_finite || !isfinite(block->log_density[c]);
        if (diverging && s->marked)
            langevin_put_back(s, context, block, c);
        em_stochastic_report(s->options, context, block, c, diverging);
    }
}

static em_status langevin_iterate(em_sampler *base, const em_step_context *context, em_block *block,
                                  int64_t chain)
{
    em_langevin *s = (em_langevin *)base;
    const int64_t n_step = s->options->leapfrog_steps;
    const bool has_noise = s->baths.make != NULL;
    em_status status = EM_OK;

    (has_noise ? em_langevin_start : em_langevin_begin)(s, context, block, chain);
    if (s->refreshes)
        em_langevin_refresh(s, context, block);
    for (int64_t k = 0; !status && k < n_step; k++) {
        if (k == 0 && s->before)
            em_langevin_move(s, context, block, k, s->before);
        if (has_noise)
            em_stochastic_expect_noise(s->options, context, block, k, s->normals);
        status = em_stochastic_gradient(s->options, context, block, k);
        em_set_moves_before(context, s->before && k == n_step - 1);
        em_langevin_move(s, context, block, k, s->after);
    }
    em_langevin_end(s, context, block);
    return status;
}

em_status em_langevin_step(em_sampler *sampler, const em_step_context *context, em_block *block)
{
    return em_langevin_in_turns((em_langevin *)sampler, context, block, langevin_iterate);
}

void em_langevin_refresh(em_langevin *s, const em_step_context *context, em_block *block)
{
    em_stochastic_normals(context, block, EM_RNG_MOMENTUM, context->iteration, s->normals);
    em_mass_momentum(context->mass, block->n_chain, s->normals, block->momentum);
}

EM_CLONES static void langevin_add(int64_t n, double eps, const double *restrict from,
                                   double *restrict to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += eps * from[i];
}

void em_langevin_add(const em_langevin *s, const em_block *block, double fraction,
                     const double *from, double *to)
{
    for (int64_t c = 0; c < block->n_chain; c++)
        langevin_add(block->stride, fraction * s->eps[c], from + c * block->stride,
                     to + c * block->stride);
}

EM_CLONES static void langevin_add_product(int64_t n, double eps, em_product v, double *restrict to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += eps * (v.scale[i] * v.value[i]);
}

void em_langevin_drift(em_langevin *s, const em_step_context *context, em_block *block,
                       double fraction)
{
    em_mass_map(context->mass, EM_MAP_VELOCITY, block->n_chain, block->momentum, s->velocity);
    for (int64_t c = 0, row = 0; c < block->n_chain; c++, row += block->stride) {
        const em_product v = em_mass_product(context->mass[c], EM_MAP_VELOCITY,
                                             block->momentum + row, s->velocity + row);
        langevin_add_product(block->stride, fraction * s->eps[c], v, block->theta + row);
    }
}
