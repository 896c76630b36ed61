/* Truth values and dates as tables write them. */
#include "base/memory.h"
#include "data/table/date_text.h"
#include "data/table/truth.h"
#include "support/one_table.h"
#include "support/tap.h"

START_TEST(test_words)
{
    static const struct {
        const char *text;
        int truth, named;
    } cases[] = {{"True", 1, 1},  {"TRUE", 1, 1},   {"true", 1, 1},    {"False", 0, 0},
                 {"FALSE", 0, 0}, {"false", 0, 0},  {"1", -1, 1},      {"0", -1, 0},
                 {"T", -1, -1},   {"tRue", -1, -1}, {"True ", -1, -1}, {"", -1, -1},
                 {"yes", -1, -1}, {"01", -1, -1}};

    ck_assert_int_eq(em_truth_of(cases[_i].text), cases[_i].truth);
    ck_assert_int_eq(em_truth_named(cases[_i].text), cases[_i].named);
}
END_TEST

/* Where numbers are needed: every spelling, and no other text. */
START_TEST(test_numbers)
{
    static const char *const other[] = {":2:", "found 'yes' for column a, expected a number"};
    em_table *table = read_text("a,b,y\nTrue,false,1\nFALSE,TRUE,2\n1,0,3\n");
    const em_table_options options = options_of(table_path);
    const double expected[] = {1, 0, 1, 0, 1, 2, 1, 0, 3};

    for (int i = 0; i < 9; i++)
        ck_assert_double_eq(table->value[i], expected[i]);
    em_table_destroy(&table);
    write_text("a,y\nyes,1\n");
    ck_assert_int_eq(em_table_read(&options, &table), EM_EDATA);
    check_message(other, 2);
}
END_TEST

/* Values as the levels of a factor, which has another spelling; other factors stay. */
START_TEST(test_match)
{
    em_levels text = {0};
    char name[] = "a", *names[] = {name};
    double value[] = {0, 0, 1, 0, 2, 0};
    em_table table = {.n_column = 1, .n_row = 6, .name = names, .text = &text, .value = value};
    int64_t code[4];
    static const char *const word[] = {"FALSE", "TRUE", "True", "no"};

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(em_levels_add(&text, word[i], &code[i]), EM_OK);
    value[0] = em_level_value(code[2]);
    value[5] = em_level_value(code[3]);
    const double same[] = {em_level_value(code[0]), em_level_value(code[3])},
                 twice[] = {em_level_value(code[1]), em_level_value(code[2])},
                 truths[] = {em_level_value(code[1]), em_level_value(code[0])};
    em_truth_match(&table, 0, 2, same);
    em_truth_match(&table, 0, 2, twice);
    ck_assert_double_eq(value[1], 0);
    ck_assert_int_eq(em_level_code(value[0]), code[2]);
    em_truth_match(&table, 0, 2, truths);
    ck_assert_int_eq(em_level_code(value[0]), code[1]);
    ck_assert_int_eq(em_level_code(value[1]), code[0]);
    ck_assert_int_eq(em_level_code(value[2]), code[1]);
    ck_assert_double_eq(value[4], 2);
    ck_assert_int_eq(em_level_code(value[5]), code[3]);
    em_levels_release(&text);
}
END_TEST

static const char *const dates[] = {"2020-01-31",
                                    "2020/1/31",
                                    "2020-01-31 12:00:00",
                                    "2020-01-31T12:00:00.000000",
                                    "1/31/2020",
                                    "31/01/20",
                                    "31.1.2020",
                                    "31-01-2020",
                                    "2020-01-31 12:00",
                                    "-1 days +23:59:58.5",
                                    "1 day, 2:03:04",
                                    "0 days 00:00:01",
                                    "P3DT12H",
                                    "PT0.5S"};
static const char *const clocks[] = {"12:30:00", "12:30:00.25", "12:30:00+01:00", "3 days",
                                     "1 day"};
static const char *const no_dates[] = {
    "",      "2020-01", "2020Q1", "20-01-31",  "2020-01-31b", "2020-01/31",    "2020-1",
    "1.2.3", "10.1.15", "12:30",  "12:30:00h", "days",        "3 daysof",      "3 days old",
    "P",     "PT",      "P1",     "P12",       "P1D",         "PTH",           "Pain",
    "p1",    "P3DT",    "PT3D",   "(0, 1]",    "1-2-3",       "2020-01-31-02", "10.0.0.1"};

START_TEST(test_dates)
{
    ck_assert_msg(em_date_text_of(dates[_i]) == EM_DATE_TEXT, "%s", dates[_i]);
}
END_TEST

START_TEST(test_clocks)
{
    ck_assert_msg(em_date_text_of(clocks[_i]) == EM_CLOCK_TEXT, "%s", clocks[_i]);
}
END_TEST

START_TEST(test_no_dates)
{
    ck_assert_msg(em_date_text_of(no_dates[_i]) == EM_NO_DATE, "%s", no_dates[_i]);
}
END_TEST

int main(void)
{
    TCase *words = tcase_create("truth");

    tcase_add_checked_fixture(words, make_folder, close_test_folder);
    tcase_add_loop_test(words, test_words, 0, 14);
    tcase_add_test(words, test_numbers);
    tcase_add_test(words, test_match);
    tcase_add_loop_test(words, test_dates, 0, (int)(sizeof dates / sizeof *dates));
    tcase_add_loop_test(words, test_clocks, 0, (int)(sizeof clocks / sizeof *clocks));
    tcase_add_loop_test(words, test_no_dates, 0, (int)(sizeof no_dates / sizeof *no_dates));
    return run_case(words, CK_FORK_GETENV);
}
