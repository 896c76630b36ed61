#include "run/config/run_plan.h"

#include "adaptation/adaptation.h"
#include "base/memory.h"
#include "run/config/stop_rule.h"

#include <math.h>

/* The number of draws in a chunk at most. HDF5 takes time and memory for each chunk, so a chain of
 * usual length is one chunk. */
enum { LONG_CHUNK = 1 << 14 };

/* MOST_VALUES: with more draws of all chains than this, checking one number takes seconds, so only
 * every second, third, ... draw is monitored. At least LEAST_ROWS draws of each chain are, which is
 * enough for an ESS. */
enum { MOST_VALUES = 1 << 22, LEAST_ROWS = 16 };

static const int64_t watched_bytes = INT64_C(1) << 30;

static em_monitored plan_monitored(int64_t n_chain, int64_t n_draw, em_width width)
{
    const int64_t every = (n_chain * n_draw + MOST_VALUES - 1) / MOST_VALUES;
    em_monitored monitored = {.every = em_most(1, em_least(every, n_draw / LEAST_ROWS))};

    monitored.n_row = n_draw / monitored.every;
    monitored.width = em_least(
        width.watched, watched_bytes / (n_chain * monitored.n_row * (int64_t)sizeof(double)));
    monitored.n_parameter = em_least(width.parameters, monitored.width);
    return monitored;
}

/*
 * The largest number of stored draws of a chain. With draws: auto it is 1000, or more for few
 * chains and a high limit of ESS, because half of them, after thinning, must be enough for that
 * ESS.
 */
static int64_t most_capacity_of(const em_config *config)
{
    enum { USUAL_ROOM = 1000, ROOM_OF_ESS = 8 };
    const em_run_options *run = &config->run;
    const double ess = em_ess_limit(&config->stop, em_starts_of(run));
    const double wanted = fmin(1e9, ceil(ROOM_OF_ESS * ess / (double)run->chains));

    if (!config->stop.until_done)
        return run->draws;
    return em_least(run->draws, em_most(USUAL_ROOM, 2 * (((int64_t)wanted + 1) / 2)));
}

/* Checks that sizes in bytes fit the integers of HDF5 and of this program. */
static em_status check_size(const em_config *config, int64_t warmup, int64_t n_draw, int64_t width)
{
    const em_run_options *run = &config->run;
    const double bytes =
        (double)run->chains * ((double)n_draw + (double)warmup) * (double)width * sizeof(double);

    return bytes < 0x1p60 ? EM_OK
                          : em_fail(EM_ECONFIG,
                                    "%s: %lld chains x %lld draws of %lld numbers take %.3g "
                                    "bytes, expected less than 2^60",
                                    config->path, (long long)run->chains, (long long)n_draw,
                                    (long long)width, bytes);
}

/* How many draws to keep before writing. A write is collective and has a fixed cost, so that small
 * draws are written together, up to 8 MB for all chains. */
static int64_t plan_buffer(int64_t n_chain, int64_t flush_every, int64_t width)
{
    enum { MOST_DRAWS = 1000, MOST_WAITING = 1 << 20 };

    return em_most(flush_every, em_least(MOST_DRAWS, MOST_WAITING / (n_chain * width)));
}

int64_t em_plan_sampler_warmup(const em_config *config, int i)
{
    bool waits = config->run.warmup == INT64_MIN && config->kernel[i].ops->by_model;

    for (int k = 0; waits && k < config->n_kernel; k++)
        if (!config->kernel[k].ops->by_model)
            return 0;
    return config->run.warmup;
}

/* How many unused numbers of all chains a file may have: 1 MB. Rewriting the file takes longer than
 * writing them. */
enum { SPARE_NUMBERS = 1 << 17 };

/* The number of draws of a chain with which runs of draws: auto usually end: that of the first
 * check after LEAST_DRAWS of all chains (run/loop/convergence_check.c), or two more checks than
 * have to pass. */
static int64_t usual_end_of(const em_config *config)
{
    enum { LEAST_DRAWS = 4000 };
    const em_stop_options *stop = &config->stop;
    const int64_t each = (LEAST_DRAWS - 1) / config->run.chains + 1;
    const int64_t checks = (each - 1) / stop->check_every + 1;

    return em_most(2 * stop->consecutive, checks) * stop->check_every;
}

em_status em_plan_create(const em_config *config, em_width width, em_plan *plan)
{
    const em_run_options *run = &config->run;
    const em_stop_options *stop = &config->stop;
    const int64_t room = most_capacity_of(config);
    const int64_t spare = SPARE_NUMBERS / (run->chains * width.all);
    const int64_t usual_end = usual_end_of(config);
    const int64_t first_capacity =
        stop->until_done ? em_least(room, em_most(spare, usual_end)) : room;
    int64_t warmup = 0, ladders = 0;

    if (run->superchains > 0 && run->chains % run->superchains != 0)
        return em_fail(EM_ECONFIG,
                       "%s: run.superchains: found %lld, expected a divisor of the %lld chains",
                       config->path, (long long)run->superchains, (long long)run->chains);
    for (int i = 0; i < config->n_kernel; i++)
        warmup = em_most(warmup, em_adapt_most_warmup(config->kernel[i].mass, config->kernel[i].ops,
                                                      config->kernel[i].options,
                                                      em_plan_sampler_warmup(config, i)));
    if (config->temper.on && config->temper.when == EM_TEMPER_ALWAYS)
        warmup = em_tempering_most_warmup(run->warmup);
    else if (config->temper.on)
        ladders = em_tempering_most_warmup(run->warmup);
    *plan = (em_plan){
        .warmup = warmup,
        .total = warmup + run->draws * run->thin,
        .first_thin = run->thin,
        .thin = run->thin,
        .n_draw = first_capacity,
        .most_draws = run->draws,
        .first_capacity = first_capacity,
        .most_capacity = room,
        .spare = spare,
        .until_done = stop->until_done,
        .n_warmup_draw = config->output.save_warmup ? (warmup + ladders) / run->thin : 0,
        .flush_every = config->output.flush_every,
        .buffer = plan_buffer(run->chains, config->output.flush_every, width.all),
        .chunk = em_most(config->output.flush_every, LONG_CHUNK),
        .check_every = stop->check_every,
        .has_stop_rule = em_has_stop_rule(stop),
        .width = width,
        .monitored = plan_monitored(run->chains, room, width),
    };
    plan->monitored.visits = config->temper.on;
    return check_size(config, warmup + ladders, room, width.all);
}

void em_plan_end_warmup(em_plan *plan, int64_t done)
{
    plan->total -= plan->warmup - done;
    plan->warmup = done;
}

/* The first multiple of `step` iterations, counted from `origin`, that lies after `done`. */
static int64_t next_multiple(int64_t origin, int64_t step, int64_t done)
{
    return origin + ((done - origin) / step + 1) * step;
}

int64_t em_plan_next_stop(const em_plan *plan, int64_t done)
{
    if (done < plan->warmup)
        return em_least(plan->warmup, next_multiple(0, plan->flush_every * plan->first_thin, done));
    return em_least(
        plan->total,
        em_least(plan->warmup + plan->n_draw * plan->thin,
                 em_least(next_multiple(plan->warmup, plan->flush_every * plan->thin, done),
                          next_multiple(plan->warmup, plan->check_every * plan->thin, done))));
}

/* A file that is filled at least to this share at the end of a run is not rewritten. Neither is one
 * with little unused space (SPARE_NUMBERS). */
static const double enough_filled = 0.6;

bool em_plan_resize(em_plan *plan, int64_t done, bool ended)
{
    const int64_t thin = plan->thin, n_draw = plan->n_draw;
    const bool is_over = ended || done == plan->total;
    int64_t stored = em_plan_stored_draws(plan, done).sampling;

    if (!plan->until_done)
        return false;
    for (; !is_over && stored >= plan->most_capacity; stored = em_plan_stored(plan, done))
        plan->thin *= 2;
    const bool is_short =
        plan->thin == plan->first_thin &&
        (is_over ? stored <= plan->first_capacity : stored < plan->first_capacity);
    plan->n_draw = is_short ? plan->first_capacity : plan->most_capacity;
    if (is_over && (double)stored < enough_filled * (double)plan->n_draw &&
        plan->n_draw - stored > plan->spare)
        plan->n_draw = stored;
    return plan->n_draw != n_draw || plan->thin != thin;
}

int64_t em_plan_stored(const em_plan *plan, int64_t done)
{
    if (done <= plan->warmup)
        return plan->n_warmup_draw ? done / plan->first_thin : 0;
    return (done - plan->warmup) / plan->thin;
}

em_stored_draws em_plan_stored_draws(const em_plan *plan, int64_t done)
{
    return (em_stored_draws){em_plan_stored(plan, em_least(done, plan->warmup)),
                             done > plan->warmup ? em_plan_stored(plan, done) : 0};
}

bool em_plan_checks(const em_plan *plan, int64_t done)
{
    const int64_t drawn = done - plan->warmup, every = plan->check_every * plan->thin;
    const int64_t times = drawn / every;

    if (drawn <= 0 || drawn % every != 0)
        return false;
    return plan->has_stop_rule || (times & (times - 1)) == 0;
}
