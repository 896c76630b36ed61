#include "adaptation/schedule/warmup_schedule.h"

#include <math.h>

/* Iterations of phases, at most, with warmup: auto. Updates are made in each of the first OFTEN. */
enum { MOST_INITIAL = 750, TRIAL = 50, MOST_TRIALS = 3, FIRST_WINDOW = 10, OFTEN = 50 };

static const double first_time = 2, longest_time = 10, longer = 1.7;

em_warmup_plan em_warmup_plan_create(int64_t warmup, const em_trajectory *drawn)
{
    const bool timed = drawn->kind == EM_TRAJECTORY_TIME, learned = timed && isnan(drawn->time);
    em_warmup_plan plan = {.given = warmup != INT64_MIN,
                           .learned = learned,
                           .searches_length =
                               learned && (warmup == INT64_MIN || warmup >= 6 * TRIAL),
                           .time = learned ? first_time : drawn->time};

    if (!plan.given) {
        plan.initial = MOST_INITIAL;
        plan.trial = TRIAL;
        /* And one more step-size phase, should NUTS replace trajectories of one length. */
        plan.warmup = MOST_INITIAL + TRIAL + (learned ? (MOST_TRIALS + 1) * TRIAL : 0);
        return plan;
    }
    /* Two trials of the trajectory length, where half of the iterations remain for the initial
     * phase. */
    plan.warmup = warmup;
    plan.trial = warmup < 3 * TRIAL ? warmup / 3 : TRIAL;
    plan.initial = warmup - plan.trial - (plan.searches_length ? 2 * TRIAL : 0);
    return plan;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t em_warmup_next_window(const em_warmup_plan *plan, int64_t n)
{
    const int64_t grown = n * 135 / 100 + (n * 135 % 100 > 0);
    const int64_t next = n < FIRST_WINDOW ? FIRST_WINDOW : grown > n + 1 ? grown : n + 1;

    /* The last window takes the iterations left over when they are less than half of it. */
    return plan->initial - next < (next - n) / 2 ? plan->initial : least(next, plan->initial);
}

int64_t em_warmup_window_begin(int64_t n)
{
    return n < 4 ? 0 : n / 2;
}

bool em_warmup_splits_window(const em_warmup_plan *plan, int64_t n)
{
    for (int64_t end = 0; end < plan->initial && em_warmup_window_begin(end) <= n;) {
        end = em_warmup_next_window(plan, end);
        if (end > n && em_warmup_window_begin(end) == n)
            return true;
    }
    return false;
}

int64_t em_warmup_tree_depth_cap(int64_t n)
{
    return n < OFTEN ? 6 : 0;
}

int64_t em_warmup_updates_often(const em_warmup_plan *plan)
{
    return least(OFTEN, plan->initial);
}

em_trajectory em_trajectory_of_time(double time, double jitter)
{
    return (em_trajectory){.kind = isinf(time) ? EM_TRAJECTORY_U_TURN : EM_TRAJECTORY_TIME,
                           .time = time,
                           .jitter = jitter};
}

bool em_warmup_longer_trajectory(const em_warmup_plan *plan, const em_trajectory *drawn,
                                 int64_t done, em_trajectory *out)
{
    *out = *drawn;
    out->time *= longer;
    out->jitter = 0.5;
    return plan->searches_length && out->time <= longest_time && done + plan->trial <= plan->warmup;
}
