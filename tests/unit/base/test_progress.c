/* Progress: the lines of a log, how often they come, and the bar of a terminal. */
#include "base/system/progress.h"
#include "support/tap.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The clock of the program, in milliseconds. Tests advance it, so that none of them waits for it,
 * and none depends on the load of the machine. */
static _Atomic int clock_ms = 1000;

int clock_gettime(clockid_t clock, struct timespec *out)
{
    const int ms = clock_ms;

    (void)clock;
    *out = (struct timespec){ms / 1000, ms % 1000 * 1000000};
    return 0;
}

/* Returns soon, as it may; the caller looks at the clock again. */
int pthread_cond_timedwait(pthread_cond_t *wake, pthread_mutex_t *lock, const struct timespec *end)
{
    const struct timespec pause = {0, 1000000};

    (void)wake;
    (void)end;
    pthread_mutex_unlock(lock);
    nanosleep(&pause, NULL);
    pthread_mutex_lock(lock);
    return ETIMEDOUT;
}

static const em_progress_record halfway = {.iteration = 400,
                                           .total = 1000,
                                           .phase = "sampling",
                                           .r_hat = 1.008,
                                           .ess = 512,
                                           .divergences = 0,
                                           .draws_per_second = 32000,
                                           .seconds_left = 12};

/* Tells some records; what was printed is valid until the next call. */
static const char *tell(em_progress_mode mode, int n, const em_progress_record *record)
{
    static char text[1024];
    FILE *stream = fmemopen(memset(text, 0, sizeof text), sizeof text, "w");
    em_progress *progress;

    ck_assert_int_eq(em_progress_create(mode, stream, NULL, &progress), EM_OK);
    for (int i = 0; i < n; i++)
        em_progress_tell(progress, &record[i]);
    em_progress_destroy(&progress);
    ck_assert_ptr_null(progress);
    fclose(stream);
    return text;
}

static int count(const char *text, char wanted)
{
    int n = 0;

    for (; *text; text++)
        n += *text == wanted;
    return n;
}

static void check_line(const em_progress_record *record, const char *expected)
{
    static const char date[] = "^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} ";
    const char *text = tell(EM_PROGRESS_AUTO, 1, record); /* a stream in memory is no terminal */
    regex_t pattern;

    ck_assert_int_eq(regcomp(&pattern, date, REG_EXTENDED | REG_NOSUB), 0);
    ck_assert_msg(regexec(&pattern, text, 0, NULL, 0) == 0, "%s", text);
    ck_assert_str_eq(text + strlen("2026-11-20 06:30:00 "), expected);
    regfree(&pattern);
}

START_TEST(log_says_it_all)
{
    em_progress_record record = halfway;

    check_line(&record, "sampling 400/1000  R-hat 1.008  ESS 512  32000 draws/s  "
                        "left 12 s\n");
    record.seconds_left = 59.5;
    check_line(&record, "sampling 400/1000  R-hat 1.008  ESS 512  32000 draws/s  "
                        "left 1 min 00 s\n");
    record.seconds_left = 3 * 3600 + 25 * 60;
    check_line(&record, "sampling 400/1000  R-hat 1.008  ESS 512  32000 draws/s  "
                        "left 3 h 25 min\n");
    record.at_most = true; /* warmup may end earlier */
    check_line(&record, "sampling 400/1000  R-hat 1.008  ESS 512  32000 draws/s  "
                        "left at most 3 h 25 min\n");
}
END_TEST

START_TEST(log_leaves_out_what_is_not_known)
{
    em_progress_record record = {10, 1000, "warmup", NAN, NAN, 3, NAN, NAN};

    check_line(&record, "warmup 10/1000  divergences 3\n");
    record.draws_per_second = record.seconds_left = INFINITY;
    check_line(&record, "warmup 10/1000  divergences 3\n");
}
END_TEST

/* All within less than the five seconds between lines. */
START_TEST(log_has_first_and_last_only_when_fast)
{
    const em_progress_record record[] = {{1, 3, "warmup", NAN, NAN, 0, NAN, NAN},
                                         {2, 3, "sampling", NAN, NAN, 0, NAN, NAN},
                                         {3, 3, "sampling", NAN, NAN, 0, NAN, NAN}};
    const char *text = tell(EM_PROGRESS_LOG, 3, record);

    ck_assert_int_eq(count(text, '\n'), 2);
    ck_assert_ptr_nonnull(strstr(text, "warmup 1/3"));
    ck_assert_ptr_nonnull(strstr(text, "sampling 3/3"));
}
END_TEST

START_TEST(bounds_are_said_to_be_bounds)
{
    em_progress_record record = halfway;

    record.r_hat = 1.026;
    record.ess = 188;
    record.some_numbers = true;
    ck_assert_ptr_nonnull(
        strstr(tell(EM_PROGRESS_LOG, 1, &record), "  R-hat at least 1.026  ESS at most 188"));
}
END_TEST

START_TEST(bar_is_one_line_of_the_terminal)
{
    em_progress_record record[2] = {halfway, halfway};
    const char *text, *second;

    record[0].phase =
        "sampling of a phase whose name is so long that nothing else fits in the line";
    record[1].iteration = 1000;
    record[1].r_hat = record[1].ess = NAN;
    text = tell(EM_PROGRESS_BAR, 2, record);
    second = strrchr(text, '\r');
    ck_assert_int_eq(count(text, '\r'), 2);
    ck_assert_int_eq(count(text, '\n'), 1);
    ck_assert_int_eq(second - text, 80); /* \r and 79 columns: 80 where no terminal says */
    ck_assert_int_eq(strlen(second), 81);
    ck_assert_ptr_nonnull(strstr(second, "sampling 1000/1000  [====="));
    ck_assert_ptr_nonnull(strstr(second, "=]  32000 draws/s\n"));
}
END_TEST

START_TEST(bar_grows)
{
    em_progress_record record = {250, 1000, "warmup", NAN, NAN, 0, NAN, NAN};
    const char *text = tell(EM_PROGRESS_BAR, 1, &record);
    const int inside = (int)(strchr(text, ']') - strchr(text, '[')) - 1;

    ck_assert_int_eq(count(text, '='), inside / 4);
    ck_assert_int_eq(count(text, '>'), 1);
}
END_TEST

/* What stands in `text` within a minute, while nothing is told. */
static bool comes(const char *text, const char *wanted)
{
    const struct timespec pause = {0, 1000000};

    for (int i = 0; i < 60000 && !strstr(text, wanted); i++)
        nanosleep(&pause, NULL);
    return strstr(text, wanted) != NULL;
}

/* A person sees that something happens, and for how long nothing has. */
START_TEST(silence_is_broken)
{
    static char text[4096];
    FILE *stream = fmemopen(memset(text, 0, sizeof text), sizeof text, "w");
    em_progress *progress;

    ck_assert_int_eq(em_progress_create(EM_PROGRESS_BAR, stream, "starting", &progress), EM_OK);
    ck_assert_str_eq(text, "");
    clock_ms += 500;
    ck_assert(comes(text, "\rstarting (0 s)"));
    em_progress_tell(progress, &halfway);
    ck_assert(comes(text, "\rsampling 400/1000  ["));
    clock_ms += 2000;
    ck_assert(comes(text, "\rsampling 400/1000 (2 s ago)"));
    em_progress_give_way(progress);
    fflush(stream);
    ck_assert_int_eq(text[strlen(text) - 1], '\r');
    em_progress_destroy(&progress);
    fclose(stream);
}
END_TEST

/* What a run does behind its last iteration is no more of it. */
START_TEST(end_is_told_once)
{
    static char text[4096];
    FILE *stream = fmemopen(memset(text, 0, sizeof text), sizeof text, "w");
    em_progress_record last = halfway;
    em_progress *progress;

    last.iteration = last.total;
    ck_assert_int_eq(em_progress_create(EM_PROGRESS_LOG, stream, "starting", &progress), EM_OK);
    em_progress_tell(progress, &last);
    clock_ms += 5000;
    ck_assert(comes(text, " finishing (5 s)  R-hat 1.008"));
    ck_assert_ptr_eq(strstr(strstr(text, "sampling") + 1, "sampling"), NULL);
    em_progress_destroy(&progress);
    fclose(stream);
}
END_TEST

/* An iteration of an hour has a dozen lines of a log, not 720. */
START_TEST(log_repeats_less_and_less)
{
    double age = 0;
    int n = 0;

    for (; age < 3600; n++)
        age += em_progress_pause(EM_PROGRESS_LOG, age);
    ck_assert_double_eq(em_progress_pause(EM_PROGRESS_LOG, 0), 5);
    ck_assert_double_eq(em_progress_pause(EM_PROGRESS_LOG, 40), 40);
    ck_assert_int_le(n, 13);
    ck_assert_double_eq(em_progress_pause(EM_PROGRESS_BAR, 40), 2);
}
END_TEST

START_TEST(none_is_silent)
{
    const char *text = tell(EM_PROGRESS_NONE, 1, &halfway);

    ck_assert_str_eq(text, "");
    em_progress_tell(NULL, &halfway);
}
END_TEST

START_TEST(modes_have_names)
{
    em_progress_mode mode;

    ck_assert_int_eq(em_progress_mode_of("auto", &mode), EM_OK);
    ck_assert_int_eq(mode, EM_PROGRESS_AUTO);
    ck_assert_int_eq(em_progress_mode_of("none", &mode), EM_OK);
    ck_assert_int_eq(mode, EM_PROGRESS_NONE);
    ck_assert_int_eq(em_progress_mode_of("lgo", &mode), EM_EUSAGE);
    ck_assert_str_eq(em_error_text(), "--progress: found 'lgo', expected auto, bar, log or none; "
                                      "did you mean log?");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("progress");

    tcase_add_test(tests, log_says_it_all);
    tcase_add_test(tests, log_leaves_out_what_is_not_known);
    tcase_add_test(tests, log_has_first_and_last_only_when_fast);
    tcase_add_test(tests, bounds_are_said_to_be_bounds);
    tcase_add_test(tests, bar_is_one_line_of_the_terminal);
    tcase_add_test(tests, bar_grows);
    tcase_add_test(tests, silence_is_broken);
    tcase_add_test(tests, end_is_told_once);
    tcase_add_test(tests, log_repeats_less_and_less);
    tcase_add_test(tests, none_is_silent);
    tcase_add_test(tests, modes_have_names);
    return run_case(tests, CK_FORK_GETENV);
}
