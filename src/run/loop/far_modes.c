#include "run/loop/far_modes.h"

#include "adaptation/starts/ascent.h"
#include "base/memory.h"
#include "math/rng.h"
#include "par/world.h"
#include "run/loop/run_kernel.h"

#include <math.h>

/* Distances of points from the chains, in standard deviations. */
static const double nearest = 3;

enum { MOST_EVALUATED = 6 }; /* gradients that choose a point */

/* The numbers of these points begin above those of starts. */
static const uint64_t first_attempt = UINT64_C(1) << 32;

/* The largest distance, and the smallest and the largest number of points of all chains from which
 * ascents start. Far away, a solver of differential equations may take minutes for a gradient. */
typedef struct search_reach {
    double farthest;
    int least, most;
} search_reach;
static const search_reach of_solver = {50, 16, 24}, of_others = {1000, 30, 44};

/* Beyond the smallest number, ascents may take this share of the gradients of warmup. */
static const double share_of_warmup = 0.1;

/* Probes: their largest distance from a known mode, in its standard deviations, and the gradients
 * of all chains that they may take beyond those of the ascents. */
static const double farthest_probe = 30, probe_gradients = 256;

/* The distribution of the points. */
typedef struct search_law {
    const em_engine *engine;
    double *scale; /* [stride] variances of the posterior, about */
    double farthest;
    bool evaluates;        /* gradients choose points */
    uint64_t *drawn;       /* [n_chain] points so far */
    double *gradients;     /* [n_chain] evaluated by the search */
    double *by, *gradient; /* [stride] of a point */
} search_law;

/* Number n of a van der Corput sequence, which fills (0, 1) evenly: the digits of n in this base,
 * mirrored at the point. */
static double even(uint64_t n, uint64_t base)
{
    double digit = 1, sum = 0;

    for (; n > 0; n /= base)
        sum += (digit /= (double)base) * (double)(n % base);
    return sum;
}

/* Draws the displacement of a point from the chain, in standard deviations. */
static void draw_displacement(search_law *at, int64_t number, uint64_t attempt, double *by)
{
    const em_block *block = at->engine->block;
    const int64_t dim = block->dim, c = number - block->chain[0];
    const uint64_t n_chain = (uint64_t)em_grid_n_chain(at->engine->grid);
    const uint64_t n = 1 + (uint64_t)number + n_chain * at->drawn[c]++;
    const em_stream stream = {(uint64_t)at->engine->config->run.seed, (uint64_t)number,
                              first_attempt + attempt, EM_RNG_INIT};
    const double far = nearest * pow(at->farthest / nearest, even(n, 2)), kind = even(n, 3);
    const double sign = em_uniform(&stream, (uint64_t)dim) < 0.5 ? -1 : 1;
    const int64_t only = (int64_t)((double)dim * em_uniform(&stream, (uint64_t)dim + 1));

    em_uniforms(&stream, 0, dim, by);
    for (int64_t i = 0; i < dim; i++) {
        by[i] = 2 * by[i] - 1;
        if (kind >= 0.5)
            by[i] = kind < 0.75 || i == only ? sign : 0;
        by[i] *= far;
    }
}

/* Sets to 0 the displacements of parameters whose derivative is larger than any that a normal law
 * would have there, as that of a log scale is: no ascent leads from e^300 to a mode. Returns their
 * number. */
static int64_t leave_out(const search_law *at, double share, const double *gradient, double *by)
{
    const double most = 1e4; /* of a normal law with correlations of 0.99995 */
    int64_t n = 0;

    for (int64_t i = 0; i < at->engine->block->dim; i++)
        if (by[i] != 0 &&
            fabs(gradient[i]) * sqrt(at->scale[i]) > most * (1 + share * fabs(by[i]))) {
            by[i] = 0;
            n++;
        }
    return n;
}

/* The position displaced from that of the chain by a share of the displacement. */
static void displace(const search_law *at, const double *chain, double share, double *theta)
{
    for (int64_t i = 0; i < at->engine->block->dim; i++)
        theta[i] = chain[i] + share * at->by[i] * sqrt(at->scale[i]);
}

/*
 * A point displaced from the chain, in units of standard deviations. Half of the points are
 * displaced in a random direction, a quarter by the same amount in all dimensions with one random
 * sign, and the others in one dimension. The logarithm of the distance is uniform between the
 * smallest and the largest. Parameters in whose direction the density falls too fast stay where
 * they are. If there is no finite density at the point, they are found at shorter distances.
 */
static em_status point(void *of, int64_t number, uint64_t attempt, double *theta)
{
    search_law *at = of;
    const em_block *block = at->engine->block;
    const int64_t c = number - block->chain[0];
    const double *chain = block->theta + c * block->stride;
    double share = 1, log_density = NAN;

    draw_displacement(at, number, attempt, at->by);
    for (int n = 0; at->evaluates && n < MOST_EVALUATED; n++) {
        displace(at, chain, share, theta);
        const em_status status = em_evaluate_point(at->engine->posterior, number, block->dim, theta,
                                                   at->gradient, &log_density);
        if (status)
            return status;
        at->gradients[c]++;
        if (isnan(log_density))
            share /= 4;
        else if (leave_out(at, share, at->gradient, at->by) > 0)
            share = 1;
        else
            break;
    }
    displace(at, chain, 1, theta);
    return EM_OK;
}

/* About the variances [stride] of the parameters, from the mass. Collective. Errors: EM_EMEMORY. */
static em_status find_variances(const em_engine *engine, double *variance)
{
    const em_noncentring *map = em_kernels_map(engine);
    const em_status status = em_kernels_inverse_mass(engine, variance);

    if (!status && map)
        em_noncentring_tail_variances(map, variance);
    return status;
}

em_status em_search_far_modes(em_engine *engine)
{
    const em_block *block = engine->block;
    const search_reach *limits =
        engine->model->may_solve || engine->model->failures ? &of_solver : &of_others;
    search_law at = {
        .engine = engine, .farthest = limits->farthest, .evaluates = limits == &of_others};
    double all = 0;

    if (!engine->mode_search || engine->tempering || block->dim > EM_MODE_SEARCH_MOST_DIM)
        return EM_OK;
    em_status status = em_agree(
        em_allocate_all(EM_ARRAY(at.scale, block->stride), EM_ARRAY(at.by, block->stride),
                        EM_ARRAY(at.gradient, block->stride), EM_ARRAY(at.drawn, block->n_chain),
                        EM_ARRAY(at.gradients, block->n_chain)));
    status = status ? status : find_variances(engine, at.scale);
    if (!status)
        status = em_grid_sum_chains(engine->grid, 1,
                                    em_adapt_learned(engine->kernel[0].adapt).gradients, &all);
    const int64_t own =
        em_grid_n_chain(engine->grid); /* ascents from the positions of the chains */
    const em_search_plan plan = {.least = own + limits->least,
                                 .most = own + limits->most,
                                 .gradients = share_of_warmup * all,
                                 .farthest = farthest_probe,
                                 .probe_gradients = probe_gradients,
                                 .seed = (uint64_t)engine->config->run.seed};
    if (!status)
        status = em_mode_search_repeat(engine->mode_search, engine->posterior, &plan, point, &at,
                                       block, at.scale, at.gradients);
    if (!status)
        status = em_mode_search_outside(engine->mode_search, engine->posterior, block, at.scale,
                                        at.gradients);
    status = status ? status : em_grid_sum_chains(engine->grid, 1, at.gradients, &all);
    em_adapt_count_after_warmup(engine->kernel[0].adapt, all);
    em_release_all(&at.scale, &at.by, &at.gradient, &at.drawn, &at.gradients);
    return status;
}

em_status em_search_steep_points(em_engine *engine, em_mode_findings *found)
{
    const em_block *block = engine->block;
    EM_SCOPED double *scale = NULL;

    if (!em_mode_search_steep_points(engine->mode_search))
        return EM_OK;
    em_status status = em_agree(em_allocate(block->stride, sizeof *scale, &scale));
    status = status ? status : find_variances(engine, scale);
    return status ? status
                  : em_mode_search_from_steep(engine->mode_search, engine->posterior,
                                              em_kernels_map(engine), block, scale, found);
}
