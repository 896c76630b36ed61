#include "sampler/thermostat/thermostat.h"

#include "base/clones.h"
#include "math/finite.h"
#include "sampler/stochastic/coordinate_block.h"

#include <string.h>

const char *const em_thermostat_integrators[] = {"euler", "splitting", NULL};

const em_stat em_thermostat_stats[] = {EM_STAT_LP,        EM_STAT_STEP_SIZE,  EM_STAT_N_STEPS,
                                       EM_STAT_DIVERGING, EM_STAT_THERMOSTAT, EM_STAT_COUNT};

em_status em_thermostat_set_up(em_sampler *sampler, int64_t n_chain, int64_t dim)
{
    em_thermostat *self = (em_thermostat *)sampler;
    const int64_t panel = n_chain * em_stride(dim);

    self->options = sampler->options;
    return em_own_all(&sampler->memory, EM_ARRAY(self->start, panel), EM_ARRAY(self->work, panel),
                      EM_ARRAY(self->normals, panel), EM_ARRAY(self->start_density, n_chain),
                      EM_ARRAY(self->product, n_chain), EM_ARRAY(self->finite, n_chain));
}

/* p ~ N(0, M) */
static void thermostat_draw_momentum(em_thermostat *self, const em_step_context *context,
                                     em_block *block, int64_t c)
{
    const int64_t row = c * block->stride;
    const em_stream stream = em_chain_stream(context, block, c, EM_RNG_MOMENTUM);

    em_normals(&stream, block->dim, self->normals + row);
    em_mass_momentum(context->mass + c, 1, self->normals + row, block->momentum + row);
}

int64_t em_thermostat_n_extra(const void *options, int64_t dim)
{
    (void)options, (void)dim;
    return 1;
}

em_status em_thermostat_refresh(em_sampler *sampler, const em_step_context *context,
                                em_block *block)
{
    em_thermostat *self = (em_thermostat *)sampler;

    for (int64_t c = 0; c < block->n_chain; c++) {
        thermostat_draw_momentum(self, context, block, c);
        if (context->iteration == 0)
            self->draw(self, context, block, c);
    }
    return EM_OK;
}

void em_thermostat_start(em_thermostat *self, const em_block *block)
{
    self->marked = self->looked = false;
    memcpy(self->start_density, block->log_density, (size_t)block->n_chain * sizeof(double));
}

static void thermostat_mark(em_thermostat *self, const em_block *block)
{
    memcpy(self->start, block->theta, (size_t)(block->n_chain * block->stride) * sizeof(double));
}

void em_thermostat_begin(em_thermostat *self, const em_block *block)
{
    em_thermostat_start(self, block);
    thermostat_mark(self, block);
    self->marked = true;
}

/* Moves a block of coordinates. The start in `own` begins at the coordinate block; the work and the
 * normals are work space. */
static void thermostat_move_coordinates(const em_thermostat *self, em_coordinate_block *coordinates,
                                        int64_t k, em_thermostat_part *part)
{
    em_thermostat own = *self;

    own.start += coordinates->at;
    own.product += coordinates->chain;
    if (!self->marked)
        thermostat_mark(&own, &coordinates->block);
    part(&own, &coordinates->context, &coordinates->block, k);
    em_coordinate_block_end(coordinates, self->finite);
}

void em_thermostat_move(em_thermostat *self, const em_step_context *context, em_block *block,
                        int64_t k, em_thermostat_part *part)
{
    em_coordinate_blocks blocks =
        em_coordinate_blocks_of(context, block, !em_is_elementwise(context, block));
    em_coordinate_block coordinates;

    for (int64_t c = 0; c < block->n_chain; c++) {
        self->finite[c] = true;
        self->product[c] = 0;
    }
    while (em_coordinate_block_next(&blocks, &coordinates))
        thermostat_move_coordinates(self, &coordinates, k, part);
    self->marked = self->looked = true;
}

/* theta <- theta + h v. Returns p . v, summed in eight lanes. */
EM_CLONES static double thermostat_drift(int64_t n, double h, em_product v, const double *p,
                                         double *restrict theta)
{
    double sum[EM_LANES] = {0};

    for (int64_t i = 0; i < n; i += EM_LANES)
        for (int64_t l = 0; l < EM_LANES; l++) {
            const double velocity = v.scale[i + l] * v.value[i + l];
            theta[i + l] += h * velocity;
            sum[l] += p[i + l] * velocity;
        }
    return em_add_lanes(sum);
}

void em_thermostat_add_drift(em_thermostat *self, const em_step_context *context, em_block *block,
                             double fraction)
{
    const int64_t n = block->stride;

    em_mass_map(context->mass, EM_MAP_VELOCITY, block->n_chain, block->momentum, self->work);
    for (int64_t c = 0; c < block->n_chain; c++) {
        const double *p = block->momentum + c * n;
        const em_product v =
            em_mass_product(context->mass[c], EM_MAP_VELOCITY, p, self->work + c * n);
        self->product[c] +=
            thermostat_drift(n, fraction * context->step_size[c], v, p, block->theta + c * n);
    }
}

const double *em_thermostat_drift(em_thermostat *self, const em_step_context *context,
                                  em_block *block, double fraction)
{
    memset(self->product, 0, (size_t)block->n_chain * sizeof *self->product);
    em_thermostat_add_drift(self, context, block, fraction);
    return self->product;
}

EM_CLONES static void thermostat_kick(int64_t n, double damp, double damp_after, double eps,
                                      double scale, const double *g, em_product noise,
                                      double *restrict p)
{
    for (int64_t i = 0; i < n; i++)
        p[i] = damp_after * (damp * p[i] + eps * g[i] + scale * noise.scale[i] * noise.value[i]);
}

void em_thermostat_kick(int64_t n, double eps, double a, double before, double after,
                        const double *g, em_product noise, double *p)
{
    thermostat_kick(n, exp(-before * eps / 2), exp(-after * eps / 2), eps, sqrt(2 * a * eps), g,
                    noise, p);
}

/* A larger p^T W p / D is a divergence. In equilibrium it is 1. Before that, it contains the excess
 * energy of the start, which may be of the order of N. */
static const double hottest = 1e8;

void em_thermostat_end(em_thermostat *self, const em_step_context *context, em_block *block)
{
    const bool looked = self->looked && !context->home; /* at all of it */

    em_stochastic_gather(context, block);
    if (context->home)
        em_posterior_sum_partitioned(context->posterior, block->n_chain, self->product);
    for (int64_t c = 0; c < block->n_chain; c++) {
        const int64_t row = c * block->stride;
        const bool is_finite =
            looked ? self->finite[c] &&
                         em_all_finite(block->n_extra, block->extra + c * block->n_extra)
                   : em_chain_is_finite(block, c);
        const bool diverging = !is_finite || !(self->product[c] < hottest * (double)block->dim);
        if (diverging && context->home)
            em_posterior_gather_partitioned(context->posterior, block->n_chain * block->stride,
                                            self->start, self->start);
        if (diverging) {
            memcpy(block->theta + row, self->start + row,
                   (size_t)block->stride * sizeof *block->theta);
            block->log_density[c] = self->start_density[c];
            thermostat_draw_momentum(self, context, block, c);
            self->draw(self, context, block, c);
        }
        em_stochastic_report(self->options, context, block, c, diverging);
        block->stat[EM_STAT_THERMOSTAT][c] = self->friction(block, c);
    }
}
