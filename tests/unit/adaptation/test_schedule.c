/* The schedule of warmup: doubling windows that fill it exactly. */
#include "adaptation/schedule/warmup_schedule.h"
#include "base/memory.h"
#include "support/tap.h"

static em_owner memory; /* of the schedules of a test */

static em_schedule make(int64_t warmup, int64_t s_count, int64_t n_chain)
{
    em_schedule schedule;

    ck_assert_int_eq(
        em_schedule_create(&memory, warmup, INT64_MIN, INT64_MIN, s_count, n_chain, &schedule),
        EM_OK);
    return schedule;
}

START_TEST(windows_double_and_fill)
{
    em_schedule s = make(1000, 100, 4);

    ck_assert_int_eq(s.first, 75);
    ck_assert_int_eq(s.last, 950);
    /* 25, 50, 100, 200 iterations, and the rest, in which no window of 400 and then one of 800 fit.
     */
    const int64_t expected[] = {100, 150, 250, 450, 950};
    ck_assert_int_eq(s.n_window, 5);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(s.window_end[i], expected[i]);
    ck_assert(em_schedule_window_ends(&s, 250) && !em_schedule_window_ends(&s, 251));
    ck_assert_int_eq(em_schedule_last_window(&s, 4), 2000);
    em_release_owned(&memory);
}
END_TEST

/* Four times the chains: the same pooled samples in a quarter of the iterations. */
START_TEST(more_chains_make_shorter_windows)
{
    em_schedule few = make(10000, 400, 4), many = make(10000, 400, 16);

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(few.window_end[i] - few.first, 4 * (many.window_end[i] - many.first));
    em_release_owned(&memory);
}
END_TEST

START_TEST(windows_end_in_order_within_warmup)
{
    for (int64_t warmup = 0; warmup < 400; warmup += 7)
        for (int64_t chains = 1; chains < 20; chains += 3) {
            em_schedule s = make(warmup, 100, chains);
            int64_t end = s.first;
            ck_assert(0 <= s.first && s.first <= s.last && s.last <= warmup);
            for (int64_t i = 0; i < s.n_window; i++) {
                ck_assert_int_gt(s.window_end[i], end);
                end = s.window_end[i];
            }
            ck_assert_int_eq(end, s.last);
            em_release_owned(&memory);
        }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("schedule");

    tcase_add_test(tests, windows_double_and_fill);
    tcase_add_test(tests, more_chains_make_shorter_windows);
    tcase_add_test(tests, windows_end_in_order_within_warmup);
    return run_case(tests, CK_FORK);
}
