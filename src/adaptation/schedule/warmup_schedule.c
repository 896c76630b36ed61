#include "adaptation/schedule/warmup_schedule.h"

#include <math.h>

/* Iterations that warmup takes at most, by stages, where nobody says how long it is to be. */
enum { MOST_ARRIVE = 750, TUNE = 50, MOST_CLIMBS = 3, FIRST_WINDOW = 10, SHALLOW = 50 };

static const double first_time = 2, longest_time = 10, longer = 1.7;

em_warmup_plan em_warmup_plan_create(int64_t warmup, const em_trajectory *drawn)
{
    const bool timed = drawn->kind == EM_TRAJECTORY_TIME, learned = timed && isnan(drawn->time);
    em_warmup_plan plan = {.given = warmup != INT64_MIN,
                           .learned = learned,
                           .climbs = learned && (warmup == INT64_MIN || warmup >= 6 * TUNE),
                           .time = learned ? first_time : drawn->time};

    if (!plan.given) {
        plan.arrive = MOST_ARRIVE;
        plan.tune = TUNE;
        /* And once more, should trajectories of a time not fit. */
        plan.warmup = MOST_ARRIVE + TUNE + (learned ? (MOST_CLIMBS + 1) * TUNE : 0);
        return plan;
    }
    /* Room for two climbs where that leaves half of the iterations to arrive. */
    plan.warmup = warmup;
    plan.tune = warmup < 3 * TUNE ? warmup / 3 : TUNE;
    plan.arrive = warmup - plan.tune - (plan.climbs ? 2 * TUNE : 0);
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

    /* The last one takes what would be left when that is less than half of it. */
    return plan->arrive - next < (next - n) / 2 ? plan->arrive : least(next, plan->arrive);
}

int64_t em_warmup_window_begin(int64_t n)
{
    return n < 4 ? 0 : n / 2;
}

bool em_warmup_splits_window(const em_warmup_plan *plan, int64_t n)
{
    for (int64_t end = 0; end < plan->arrive && em_warmup_window_begin(end) <= n;) {
        end = em_warmup_next_window(plan, end);
        if (end > n && em_warmup_window_begin(end) == n)
            return true;
    }
    return false;
}

int64_t em_warmup_tree_depth_cap(int64_t n)
{
    return n < SHALLOW ? 6 : 0;
}

int64_t em_warmup_updates_often(const em_warmup_plan *plan)
{
    return least(SHALLOW, plan->arrive);
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
    return plan->climbs && out->time <= longest_time && done + plan->tune <= plan->warmup;
}
