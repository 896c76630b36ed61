/* What becomes of a table: the response, and the design of the others, standardised and distributed
 * over shards. */
#include "base/fault.h"
#include "data/design/design.h"
#include "data/table/column_moments.h"
#include "support/one_table.h"
#include "support/tap.h"

/* ---- the response ---- */

START_TEST(test_response)
{
    static const struct {
        const char *response;
        double first, left[2];
    } cases[] = {
        {NULL, 3, {1, 2}}, {"a", 1, {2, 3}}, {"b", 2, {1, 3}}, {"3", 3, {1, 2}}, {"2", 2, {1, 3}}};
    em_table_options options = options_of(table_path);
    em_table *table = read_text("a,b,y\n1,2,3\n4,5,6\n");
    char response[4];

    if (cases[_i].response)
        options.response = strcpy(response, cases[_i].response);
    ck_assert_int_eq(em_table_take_response(table, &options), EM_OK);
    ck_assert_int_eq(table->n_column, 2);
    ck_assert_double_eq(table->response[0], cases[_i].first);
    ck_assert_double_eq(table->response[1], cases[_i].first + 3);
    for (int j = 0; j < 2; j++) {
        ck_assert_double_eq(table->value[j], cases[_i].left[j]);
        ck_assert_double_eq(table->value[2 + j], cases[_i].left[j] + 3);
    }
    em_table_destroy(&table);
}
END_TEST

START_TEST(test_missing_response)
{
    static const char *const absent[] = {"no response column", "a, ..., y"},
                             *const columns[] = {"found 2 features", "columns: 7"},
                             *const labelled[] = {"LIBSVM"};
    static const char *const wrong[] = {"income", "0", "4", "-1", "2x", ""};
    em_table_options options = options_of(table_path);
    em_table *table = read_text("a,b,y\n1,2,3\n");
    char response[16];

    options.response = response;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        strcpy(response, wrong[i]);
        ck_assert_int_eq(em_table_take_response(table, &options), EM_EDATA);
        check_message(absent, 2);
    }
    options.response = NULL;
    options.columns = 7;
    ck_assert_int_eq(em_table_take_response(table, &options), EM_EDATA);
    check_message(columns, 2);
    em_table_destroy(&table);

    table = read_text("1 1:2\n");
    options.response = strcpy(response, "1");
    ck_assert_int_eq(em_table_take_response(table, &options), EM_EDATA);
    check_message(labelled, 1);
    em_table_destroy(&table);
}
END_TEST

static em_status binary(const char *text, double positive, em_table **table)
{
    const em_table_options options = options_of(table_path);

    *table = read_text(text);
    ck_assert_int_eq(em_table_take_response(*table, &options), EM_OK);
    return em_table_binary_response(*table, positive);
}

START_TEST(test_labels)
{
    static const struct {
        const char *text;
        double positive, expected[3];
    } cases[] = {{"1,0\n1,1\n1,0\n", NAN, {0, 1, 0}},
                 {"1,-1\n1,1\n1,-1\n", NAN, {0, 1, 0}},
                 {"1,1\n1,2\n1,1\n", 2, {0, 1, 0}},
                 {"1,1\n1,2\n1,1\n", 1, {1, 0, 1}},
                 {"1,3\n1,2\n1,1\n", 2, {0, 1, 0}}};
    em_table *table;

    ck_assert_int_eq(binary(cases[_i].text, cases[_i].positive, &table), EM_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(table->response[i], cases[_i].expected[i]);
    em_table_destroy(&table);
}
END_TEST

START_TEST(test_bad_labels)
{
    static const struct {
        const char *text;
        double positive;
        const char *message[3];
    } cases[] = {
        {"1,0\n1,2\n", NAN, {":2:", "label 2 among labels 0, 2", "0 and 1"}},
        {"1,1\n1,2\n", NAN, {":2:", "label 2 among labels 1, 2", "positive"}},
        {"1,0\n1,1\n1,-1\n", NAN, {":1:", "0, 1, -1", "expected"}},
        {"1,1\n1,1\n", NAN, {":2:", "label 1 in all rows,", "expected 0 and 1"}},
        {"1,0\n1,0.5\n1,1\n", NAN, {":2:", "label 0.5", "expected"}},
        {"1,1\n1,2\n1,3\n1,4\n1,5\n1,6\n1,7\n", NAN, {":2:", "1, 2, 3, 4, 5, 6, ...", "e"}},
        {"1,1\n1,2\n", 3, {":1:", "labels 1, 2", "expected 3 (positive) and others"}},
        {"1,2\n1,2\n", 2, {":2:", "label 2 in all rows,", "expected 2 (positive) and others"}}};
    em_table *table;

    ck_assert_int_eq(binary(cases[_i].text, cases[_i].positive, &table), EM_EDATA);
    check_message(cases[_i].message, 3);
    em_table_destroy(&table);
}
END_TEST

/* ---- the design ---- */

static em_design *make_design(const em_table_options *options, int64_t shard, int64_t n_shard)
{
    em_table *table = read_table(options);
    em_design *design;

    ck_assert_int_eq(em_table_take_response(table, options), EM_OK);
    ck_assert_int_eq(em_design_create(table, options, NULL, shard, n_shard, &design), EM_OK);
    em_table_destroy(&table);
    return design;
}

/* Element (i, j), however the design is stored. */
static double element(const em_design *x, int64_t i, int64_t j)
{
    if (!x->sparse)
        return x->dense
            .tile[(i / EM_TILE_ROWS * x->n_column + j) * EM_TILE_ROWS + i % EM_TILE_ROWS];
    for (int64_t k = x->start[i]; k < x->start[i + 1]; k++)
        if (x->column[k] == j)
            return x->value[k];
    return 0;
}

static em_design *standardised(const char *text)
{
    em_table_options options = options_of(table_path);

    write_text(text);
    options.standardise = true;
    return make_design(&options, 0, 1);
}

/* Three values -1, 0, 1 around 5 have standard deviation 1 with divisor n - 1. */
START_TEST(test_standardise)
{
    static const char *const text[] = {"4,7,1\n5,7,2\n6,7,3\n", "1 1:4 2:7\n2 1:5 2:7\n3 1:6 2:7\n",
                                       "1 1:4 2:7\n2 1:5 2:7\n3 1:6 2:7 9:0\n"};
    em_design *x = standardised(text[_i]);

    ck_assert(!x->sparse);
    ck_assert_str_eq(x->name[0], "intercept");
    ck_assert_str_eq(x->name[1], "x1");
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq(element(x, i, 0), 1);
        ck_assert_double_eq_tol(element(x, i, 1), i - 1, 1e-15);
        ck_assert_double_eq_tol(element(x, i, 2), 0, 1e-14); /* constant: centred, not divided */
        ck_assert_double_eq(x->response[i], i + 1);
    }
    em_design_destroy(&x);
}
END_TEST

/* A sparse column has zeros too: mean 4/3, sd sqrt(((8/3)^2 + 2 (4/3)^2) / 2) = sqrt(16/3). */
START_TEST(test_standardise_sparse)
{
    em_design *x = standardised("1 1:1 7:4\n0 1:2\n1 1:2\n");

    ck_assert_double_eq_tol(element(x, 0, 7), (4 - 4. / 3) / sqrt(16. / 3), 1e-15);
    ck_assert_double_eq_tol(element(x, 1, 7), (0 - 4. / 3) / sqrt(16. / 3), 1e-15);
    em_design_destroy(&x);
}
END_TEST

/* What a large mean does to a naive sum of squares. */
START_TEST(test_standardise_far_from_zero)
{
    em_design *x = standardised("1000000004,1\n1000000005,2\n1000000006,1\n");

    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(element(x, i, 1), i - 1, 1e-6); /* eps 1e9 = 2e-7 in the mean */
    em_design_destroy(&x);
}
END_TEST

/* Which columns have one value alone, of LIBSVM the zeros that are not there among them. */
START_TEST(test_constant_columns)
{
    static const struct {
        const char *text;
        bool constant[2];
    } cases[] = {{"4,7,1\n5,6,2\n", {false, false}},
                 {"4,7,1\n5,7,2\n", {false, true}},
                 {"4,7,1\n4,7,2\n", {true, true}},
                 {"1 1:1 2:3\n0 1:1\n", {true, false}},
                 {"1 1:0 2:3\n0\n", {true, false}}};
    em_table *table = read_text(cases[_i].text);
    em_moments moments;

    ck_assert_int_eq(em_moments_find(table, false, &moments), EM_OK);
    for (int j = 0; j < 2; j++)
        ck_assert(em_moments_constant(table, &moments, j) == cases[_i].constant[j]);
    em_moments_release(&moments);
    em_table_destroy(&table);
}
END_TEST

/* All shards together are the whole; shares are whole tiles, but for the end. */
START_TEST(test_shards)
{
    static const char *const seven[] = {"1,1,0\n2,4,0\n3,9,1\n4,16,1\n5,25,1\n6,36,1\n7,49,0\n",
                                        "0 1:1\n0 9:4\n1 2:9\n1 3:16\n1 4:25\n1 4:36\n0 1:49\n"};
    enum { TIMES = 30, ROWS = 7 * TIMES };
    char text[TIMES * 64] = "";
    const em_table_options options = options_of(table_path);
    em_design *whole, *part;
    int64_t row = 0;

    for (int i = 0; i < TIMES; i++)
        strcat(text, seven[_i]);
    write_text(text);
    whole = make_design(&options, 0, 1);
    ck_assert_int_eq(whole->n_row, ROWS);
    ck_assert(whole->sparse == (_i == 1));
    for (int64_t shard = 0; shard < 9; shard++) {
        part = make_design(&options, shard, 9);
        ck_assert_int_eq(part->rows.first, row);
        ck_assert(part->n_row % EM_TILE_ROWS == 0 || row + part->n_row == ROWS);
        ck_assert_int_eq(part->n_column, whole->n_column);
        for (int64_t i = 0; i < part->n_row; i++, row++)
            for (int64_t j = 0; j < whole->n_column; j++)
                ck_assert_double_eq(element(part, i, j), element(whole, row, j));
        em_design_destroy(&part);
    }
    ck_assert_int_eq(row, ROWS);
    em_design_destroy(&whole);
}
END_TEST

START_TEST(test_no_column_left)
{
    em_table_options options = options_of(table_path);
    em_table *table = read_text("1\n0\n");
    em_design *design;

    options.intercept = false;
    ck_assert_int_eq(em_table_take_response(table, &options), EM_OK);
    ck_assert_int_eq(em_design_create(table, &options, NULL, 0, 1, &design), EM_EDATA);
    em_table_destroy(&table);
}
END_TEST

/* Whichever allocation fails, nothing leaks (the sanitised build sees to that). */
START_TEST(test_memory_faults)
{
    const em_table_options options = options_of(table_path);
    em_status status = EM_EMEMORY;
    em_table *table;
    char site[32];
    int n = 0;

    write_text("a,b\n1,2\n3,4\n");
    while (status == EM_EMEMORY && n++ < 100) {
        em_design *design = NULL;
        snprintf(site, sizeof site, "allocate:0:%d", n);
        setenv("EMASS_FAULT", site, 1);
        em_fault_start(0);
        status = em_table_read(&options, &table);
        if (!status)
            status = em_table_take_response(table, &options);
        if (!status)
            status = em_design_create(table, &options, NULL, 0, 1, &design);
        em_table_destroy(&table);
        em_design_destroy(&design);
    }
    ck_assert_int_eq(status, EM_OK);
    ck_assert_int_gt(n, 10);
}
END_TEST

int main(void)
{
    TCase *design = tcase_create("design");

    tcase_add_checked_fixture(design, make_folder, close_test_folder);
    tcase_add_loop_test(design, test_response, 0, 5);
    tcase_add_test(design, test_missing_response);
    tcase_add_loop_test(design, test_labels, 0, 5);
    tcase_add_loop_test(design, test_bad_labels, 0, 8);
    tcase_add_loop_test(design, test_standardise, 0, 3);
    tcase_add_test(design, test_standardise_sparse);
    tcase_add_test(design, test_standardise_far_from_zero);
    tcase_add_loop_test(design, test_constant_columns, 0, 5);
    tcase_add_loop_test(design, test_shards, 0, 2);
    tcase_add_test(design, test_no_column_left);
    tcase_add_test(design, test_memory_faults);
    return run_case(design, CK_FORK_GETENV);
}
