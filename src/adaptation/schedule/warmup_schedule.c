#include "adaptation/schedule/warmup_schedule.h"

#include "base/memory.h"

#include <math.h>

/* The largest numbers of iterations of the phases with warmup: auto. In the first OFTEN iterations
 * there is an update at each. */
enum {
    MOST_INITIAL = 750,
    TRIAL = 50,
    MOST_TRIALS = 3,
    MOST_AGAIN = EM_MOST_SHORTENINGS + 2,
    FIRST_WINDOW = 10,
    OFTEN = 50
};

static const double first_time = 2, longest_time = 10, longer = 1.7;

em_warmup_plan em_warmup_plan_create(int64_t warmup, const em_trajectory *drawn)
{
    const bool timed = drawn->kind == EM_TRAJECTORY_TIME, learned = timed && isnan(drawn->time);
    em_warmup_plan plan = {.given = warmup != INT64_MIN,
                           .learned = learned,
                           .multistage = drawn->multistage,
                           .searches_length =
                               learned && (warmup == INT64_MIN || warmup >= 6 * TRIAL),
                           .time = learned ? first_time : drawn->time};

    if (!plan.given) {
        plan.initial = MOST_INITIAL;
        plan.trial = TRIAL;
        /* There may be further step-size phases, for leapfrog, for shorter steps and for NUTS. */
        plan.warmup = MOST_INITIAL + TRIAL + (learned ? (MOST_TRIALS + MOST_AGAIN) * TRIAL : 0);
        return plan;
    }
    /* Two trials of the trajectory length, where half of the iterations remain for the initial
     * phase. */
    plan.warmup = warmup;
    plan.trial = warmup < 3 * TRIAL ? warmup / 3 : TRIAL;
    plan.initial = warmup - plan.trial - (plan.searches_length ? 2 * TRIAL : 0);
    return plan;
}

int64_t em_warmup_next_window(const em_warmup_plan *plan, int64_t n)
{
    const int64_t grown = n * 135 / 100 + (n * 135 % 100 > 0);
    const int64_t next = n < FIRST_WINDOW ? FIRST_WINDOW : grown > n + 1 ? grown : n + 1;

    /* The last window takes the iterations left over when they are less than half of it. */
    return plan->initial - next < (next - n) / 2 ? plan->initial : em_least(next, plan->initial);
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
    return em_least(OFTEN, plan->initial);
}

em_trajectory em_trajectory_of_time(double time, double jitter)
{
    return (em_trajectory){.kind = isinf(time) ? EM_TRAJECTORY_U_TURN : EM_TRAJECTORY_TIME,
                           .time = time,
                           .jitter = jitter};
}

bool em_trajectory_is_cut(const em_trajectory *drawn, double step_size)
{
    return drawn->kind == EM_TRAJECTORY_TIME &&
           ceil(drawn->time / step_size) > EM_MOST_STEPS_OF_TIME;
}

bool em_warmup_longer_trajectory(const em_warmup_plan *plan, const em_trajectory *drawn,
                                 int64_t done, em_trajectory *out)
{
    *out = *drawn;
    out->time *= longer;
    out->jitter = 0.5;
    return plan->searches_length && out->time <= longest_time && done + plan->trial <= plan->warmup;
}

/* ---------------------------------------------------------------- of windows */

/* Writes the ends of the windows up to `last` into `out`, and returns how many there are. `out`
 * NULL: only counts them. */
static int64_t lay_windows(const em_schedule *schedule, int64_t size, int64_t *out)
{
    int64_t count = 0;

    for (int64_t end = schedule->first; end < schedule->last; size *= 2) {
        end += size;
        if (end + 2 * size > schedule->last)
            end = schedule->last;
        if (out)
            out[count] = end;
        count++;
    }
    return count;
}

em_status em_schedule_create(em_owner *owner, int64_t warmup, int64_t init_buffer,
                             int64_t term_buffer, int64_t s_count, int64_t n_chain,
                             em_schedule *out)
{
    const int64_t size = (s_count + n_chain - 1) / n_chain;

    if (init_buffer == INT64_MIN)
        init_buffer = em_least(75, warmup * 15 / 100);
    if (term_buffer == INT64_MIN)
        term_buffer = em_least(50, warmup / 10);
    *out = (em_schedule){.warmup = warmup};
    out->first = em_least(init_buffer, warmup);
    out->last = warmup - em_least(term_buffer, warmup - out->first);
    out->n_window = lay_windows(out, size, NULL);
    const em_status status = em_own_all(owner, EM_ARRAY(out->window_end, out->n_window));
    if (!status)
        lay_windows(out, size, out->window_end);
    return status;
}

bool em_schedule_window_ends(const em_schedule *schedule, int64_t n)
{
    for (int64_t i = 0; i < schedule->n_window; i++)
        if (schedule->window_end[i] == n)
            return true;
    return false;
}

int64_t em_schedule_last_window(const em_schedule *schedule, int64_t n_chain)
{
    const int64_t n = schedule->n_window;

    if (n == 0)
        return 0;
    return n_chain *
           (schedule->window_end[n - 1] - (n > 1 ? schedule->window_end[n - 2] : schedule->first));
}
