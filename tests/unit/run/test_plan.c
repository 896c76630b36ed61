/* The plan of a run: what is watched, however many chains, draws and numbers there are. */
#include "run/config/run_plan.h"
#include "support/tap.h"

#include <stdio.h>

static em_status plan_of(int64_t chains, int64_t draws, int64_t width, em_plan *plan)
{
    char text[256];
    em_config *config = NULL;

    snprintf(text, sizeof text,
             "model: {name: gaussian}\nsampler: {name: hmc}\nrun: {chains: %lld, draws: %lld}\n",
             (long long)chains, (long long)draws);
    ck_assert_msg(em_config_parse("test.yaml", text, 0, NULL, &config) == EM_OK, "%s",
                  em_error_text());
    const em_status status = em_plan_create(config, (em_width){width, width, width}, plan);
    em_config_destroy(&config);
    return status;
}

START_TEST(usual_runs_are_watched_as_a_whole)
{
    em_plan plan;

    ck_assert_int_eq(plan_of(8, 1000, 10000, &plan), EM_OK);
    ck_assert_int_eq(plan.monitored.width, 10000);
    ck_assert_int_eq(plan.monitored.every, 1);
    ck_assert_int_eq(plan.monitored.n_row, 1000);
    ck_assert_int_eq(plan_of(1, 1, 1, &plan), EM_OK);
    ck_assert_int_eq(plan.monitored.n_row, 1);
    ck_assert_int_eq(plan.monitored.width, 1);
}
END_TEST

START_TEST(the_memory_of_all_chains_is_bounded)
{
    static const int64_t sizes[] = {1, 7, 15, 16, 17, 1000, 4097, 100000, 1000000};
    enum { N = sizeof sizes / sizeof *sizes };

    for (int chains = 0; chains < N; chains++)
        for (int draws = 0; draws < N; draws++)
            for (int width = 0; width < N - 1; width++) {
                em_plan plan;
                ck_assert_int_eq(plan_of(sizes[chains], sizes[draws], sizes[width], &plan), EM_OK);
                const em_monitored *monitored = &plan.monitored;
                ck_assert_int_ge(monitored->width, 1);
                ck_assert_int_le(monitored->width, sizes[width]);
                ck_assert_int_ge(monitored->n_row, sizes[draws] < 16 ? sizes[draws] : 16);
                ck_assert_int_le(monitored->n_row * monitored->every, sizes[draws]);
                ck_assert_int_le(sizes[chains] * monitored->n_row * monitored->width * 8,
                                 INT64_C(1) << 30);
            }
}
END_TEST

static em_plan until_done_of(int64_t width, const char *run, const char *stop)
{
    char text[256];
    em_config *config = NULL;
    em_plan plan;

    snprintf(text, sizeof text,
             "model: {name: gaussian}\nsampler: {name: hmc, step_size: 0.1}\nrun: {warmup: 0%s}\n"
             "stop: {check_every: 200%s}\n",
             run, stop);
    ck_assert_msg(em_config_parse("test.yaml", text, 0, NULL, &config) == EM_OK, "%s",
                  em_error_text());
    ck_assert_int_eq(em_plan_create(config, (em_width){width, 1, 1, 1}, &plan), EM_OK);
    em_config_destroy(&config);
    return plan;
}

/* So wide that a file may spare 32 draws of 4 chains, and fewer of more chains. */
static em_plan until_done(const char *run, const char *stop)
{
    return until_done_of(1000, run, stop);
}

/* The stops of a run that nothing ends early, and its room at each. */
START_TEST(room_grows_and_then_draws_are_thinned)
{
    em_plan plan = until_done(", chains: 8, thin: 3", ", max_draws: 9000");
    int64_t done = 0, n_thinned = 0;

    ck_assert_int_eq(plan.n_draw, 800);
    while (done < plan.total) {
        const int64_t thin = plan.thin;
        done = em_plan_next_stop(&plan, done);
        ck_assert_int_le(em_plan_stored(&plan, done), plan.n_draw);
        if (done == 2400) {
            ck_assert(em_plan_resize(&plan, done, false));
            ck_assert_int_eq(plan.n_draw, 1000);
        } else if (done < plan.total) {
            em_plan_resize(&plan, done, false);
            ck_assert_int_eq(plan.n_draw, done < 2400 ? 800 : 1000);
        }
        ck_assert(plan.thin == thin || (plan.thin == 2 * thin && done == 1000 * thin));
        n_thinned += plan.thin != thin;
    }
    ck_assert_int_eq(n_thinned, 4);
    ck_assert_int_eq(done, 27000);
    em_plan_resize(&plan, done, false);
    ck_assert_int_eq(plan.n_draw, 562);
    ck_assert_int_eq(plan.thin, 48);
}
END_TEST

START_TEST(room_is_that_of_the_draws_where_a_run_ends)
{
    em_plan plan = until_done("", "");

    ck_assert_int_eq(plan.n_draw, 1000); /* 4 chains end with 1000 draws each, or with fewer */
    ck_assert(!em_plan_resize(&plan, 1000, true));
    ck_assert(!em_plan_resize(&plan, 600, true));
    ck_assert(em_plan_resize(&plan, 599, true));
    ck_assert_int_eq(plan.n_draw, 599);
    plan = until_done(", chains: 20", ", consecutive: 1");
    ck_assert_int_eq(plan.n_draw, 400);
    ck_assert(em_plan_resize(&plan, 400, false));
    ck_assert(!em_plan_resize(&plan, 600, true));
    ck_assert(em_plan_resize(&plan, 599, true));
    ck_assert_int_eq(plan.n_draw, 599);
    plan = until_done(", draws: 300", "");
    ck_assert(!em_plan_resize(&plan, 100, true));
    ck_assert_int_eq(plan.n_draw, 300);
}
END_TEST

/* 1 MB of unused space stays: 600 draws of 4 chains of 54 numbers, not of 55. */
START_TEST(a_little_unused_space_stays)
{
    em_plan plan = until_done_of(1, "", "");

    ck_assert_int_eq(plan.n_draw, 1000);
    ck_assert(!em_plan_resize(&plan, 200, false));
    ck_assert(!em_plan_resize(&plan, 200, true));
    plan = until_done_of(54, "", "");
    ck_assert(!em_plan_resize(&plan, 400, true));
    plan = until_done_of(55, "", "");
    ck_assert(em_plan_resize(&plan, 400, true));
    ck_assert_int_eq(plan.n_draw, 400);
}
END_TEST

START_TEST(half_of_the_room_holds_the_ess_that_is_wanted)
{
    ck_assert_int_eq(until_done(", chains: 1", "").most_capacity, 3200);
    ck_assert_int_eq(until_done(", chains: 100", "").most_capacity, 1000);
    ck_assert_int_eq(until_done("", ", max_draws: 10000, ess: 3001").most_capacity, 6002);
    ck_assert_int_eq(until_done("", ", ess: 1e9").most_capacity, 5000);
    ck_assert_int_eq(until_done("", ", max_draws: 7").n_draw, 7);
}
END_TEST

static int64_t warmup_of(const char *samplers, const char *warmup, int i)
{
    char text[256];
    em_config *config = NULL;
    em_plan plan;

    snprintf(text, sizeof text,
             "model: {name: lda, data: x, topics: 2}\nsampler: %s\nrun: {warmup: %s}\n", samplers,
             warmup);
    ck_assert_msg(em_config_parse("test.yaml", text, 0, NULL, &config) == EM_OK, "%s",
                  em_error_text());
    ck_assert_int_eq(em_plan_create(config, (em_width){1, 1, 1}, &plan), EM_OK);
    const int64_t found = i < 0 ? plan.warmup : em_plan_sampler_warmup(config, i);
    em_config_destroy(&config);
    return found;
}

/* A sampler that learns nothing waits for the others, unless there are none, or a number is given.
 */
START_TEST(gibbs_waits_for_the_others)
{
    static const char list[] = "[{block: a, name: nuts}, {block: b, name: gibbs}]";

    ck_assert_int_eq(warmup_of(list, "auto", 0), INT64_MIN);
    ck_assert_int_eq(warmup_of(list, "auto", 1), 0);
    ck_assert_int_eq(warmup_of(list, "auto", -1), 800);
    ck_assert_int_eq(warmup_of(list, "70", 1), 70);
    ck_assert_int_eq(warmup_of("{name: gibbs}", "auto", -1), 1000);
}
END_TEST

/* Every hundredth draw is a chance to write: small ones wait for up to 1000, large ones do not. */
START_TEST(small_draws_are_written_together)
{
    em_plan plan;

    ck_assert_int_eq(plan_of(8, 4000, 20, &plan), EM_OK);
    ck_assert_int_eq(plan.buffer, 1000);
    ck_assert(!em_plan_must_write(&plan, 900));
    ck_assert(em_plan_must_write(&plan, 1000));
    ck_assert_int_eq(plan_of(8, 4000, 500, &plan), EM_OK);
    ck_assert_int_eq(plan.buffer, 262);
    ck_assert(!em_plan_must_write(&plan, 100));
    ck_assert(em_plan_must_write(&plan, 200)); /* the next hundred would not fit */
    ck_assert_int_eq(plan_of(1000, 4000, 100000, &plan), EM_OK);
    ck_assert_int_eq(plan.buffer, plan.flush_every);
    ck_assert(em_plan_must_write(&plan, plan.flush_every));
}
END_TEST

START_TEST(what_no_file_can_hold_is_refused)
{
    em_plan plan;

    ck_assert_int_eq(plan_of(1000000, 1000000000, 10, &plan), EM_OK);
    ck_assert_int_eq(plan_of(1000000, 1000000000, 1000, &plan), EM_ECONFIG);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("plan");

    tcase_add_test(tests, usual_runs_are_watched_as_a_whole);
    tcase_add_test(tests, the_memory_of_all_chains_is_bounded);
    tcase_add_test(tests, gibbs_waits_for_the_others);
    tcase_add_test(tests, small_draws_are_written_together);
    tcase_add_test(tests, room_grows_and_then_draws_are_thinned);
    tcase_add_test(tests, room_is_that_of_the_draws_where_a_run_ends);
    tcase_add_test(tests, a_little_unused_space_stays);
    tcase_add_test(tests, half_of_the_room_holds_the_ess_that_is_wanted);
    tcase_add_test(tests, what_no_file_can_hold_is_refused);
    tcase_set_timeout(tests, 100);
    return run_case(tests, CK_FORK);
}
