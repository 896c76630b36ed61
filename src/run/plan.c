#include "run/plan.h"

#include <math.h>

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

em_plan em_plan_create(const em_config *config, em_width width)
{
    const em_run_options *run = &config->run;

    return (em_plan){
        .warmup = run->warmup,
        .total = run->warmup + run->draws * run->thin,
        .thin = run->thin,
        .n_draw = run->draws,
        .n_warmup_draw = config->output.save_warmup ? run->warmup / run->thin : 0,
        .flush_every = config->output.flush_every,
        .check_every = config->stop.check_every,
        .has_stop_rule = !isnan(config->stop.r_hat) || !isnan(config->stop.ess),
        .width = width,
    };
}

/* The first multiple of `step` iterations from `origin` on that lies after `done`. */
static int64_t next_multiple(int64_t origin, int64_t step, int64_t done)
{
    return origin + ((done - origin) / step + 1) * step;
}

int64_t em_plan_next_stop(const em_plan *plan, int64_t done)
{
    if (done < plan->warmup)
        return least(plan->warmup, next_multiple(0, plan->flush_every * plan->thin, done));
    return least(plan->total,
                 least(next_multiple(plan->warmup, plan->flush_every * plan->thin, done),
                       next_multiple(plan->warmup, plan->check_every * plan->thin, done)));
}

int64_t em_plan_stored(const em_plan *plan, int64_t done)
{
    if (done <= plan->warmup)
        return plan->n_warmup_draw ? done / plan->thin : 0;
    return (done - plan->warmup) / plan->thin;
}

bool em_plan_checks(const em_plan *plan, int64_t done)
{
    const int64_t drawn = done - plan->warmup, every = plan->check_every * plan->thin;
    const int64_t times = drawn / every;

    if (drawn <= 0 || drawn % every != 0)
        return false;
    return plan->has_stop_rule || (times & (times - 1)) == 0;
}
