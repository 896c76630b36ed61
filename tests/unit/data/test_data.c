/* Reading tables: every format, every kind of bad input, and the real data sets. */
#include "base/fault.h"
#include "data/reader/lines.h"
#include "support/one_table.h"
#include "support/tap.h"

#include <hdf5.h>
#include <locale.h>
#include <sys/stat.h>
#include <time.h>
#include <zlib.h>

/* ---- what is understood ---- */

typedef struct sample {
    const char *text;
    const char *first_name;
    int64_t first_line;
} sample;

/* Each is the table 1 2.5 -3e2 / 4 5 6. */
static const sample samples[] = {
    {"1,2.5,-3e2\n4,5,6\n", "x1", 1},
    {"1,2.5,-3e2\n4,5,6", "x1", 1},
    {"1,2.5,-3e2\r\n4,5,6\r\n", "x1", 1},
    {"\xEF\xBB\xBF"
     "1,2.5,-3e2\n4,5,6\n",
     "x1", 1},
    {"\n  \n1,2.5,-3e2\n\n4,5,6\n\n", "x1", 3},
    {" 1 , 2.5 ,-3e2\n\"4\", \"5\" ,6\n", "x1", 1},
    {"1;2.5;-3e2\n4;5;6\n", "x1", 1},
    {"1\t2.5\t-3e2\n4\t 5 \t6\n", "x1", 1},
    {"1 2.5 -3e2\n4 5 6\n", "x1", 1},
    {"  1   2.5 -3e2  \n4 \"5\"\t6\n", "x1", 1},
    {"age,dose,y\n1,2.5,-3e2\n4,5,6\n", "age", 2},
    {"\"age, in \"\"years\"\"\",dose,y\n1,2.5,-3e2\n4,5,6\n", "age, in \"years\"", 2},
    {"age dose y\n1 2.5 -3e2\n4 5 6\n", "age", 2},
};

START_TEST(test_delimited)
{
    static const double value[] = {1, 2.5, -300, 4, 5, 6};
    const sample *s = &samples[_i];
    em_table *table = read_text(s->text);

    ck_assert_int_eq(table->n_row, 2);
    ck_assert_int_eq(table->n_column, 3);
    ck_assert_str_eq(table->name[0], s->first_name);
    ck_assert_int_eq(table->total, 2);
    ck_assert_int_eq(em_table_line(table, 0), s->first_line);
    ck_assert_int_eq(table->n_value, 6);
    ck_assert_ptr_null(table->column);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq(table->value[i], value[i]);
    em_table_destroy(&table);
}
END_TEST

START_TEST(test_header_by_option)
{
    em_table_options options = options_of(table_path);
    em_table *table;

    write_text("2019,2020\n1,2\n");
    options.header = EM_HEADER_YES;
    table = read_table(&options);
    ck_assert_int_eq(table->n_row, 1);
    ck_assert_str_eq(table->name[1], "2020");
    em_table_destroy(&table);
    options.header = EM_HEADER_AUTO;
    table = read_table(&options);
    ck_assert_int_eq(table->n_row, 2);
    em_table_destroy(&table);
}
END_TEST

/* First lines that may be names, and rows that look like them. */
static const struct {
    const char *text;
    bool unclear;
} first_lines[] = {
    {"2020,2021\n1.5,2.5\n2.5,3\n", true}, /* nothing occurs again in its column */
    {"2021,2020\n1,2\n2,3\n", true},       /* in falling order */
    {"5,9,7\n1,2,3\n2,3,4\n", false},      /* neither rising nor falling */
    {"0,1,2\n0,1,5\n0,1,6\n", true},       /* counts up */
    {"5,2\n1,2\n5,3\n", false},            /* 5 and 2 occur again */
    {"0,1\n1,0\n0,1\n", false},            /* two numbers do not count up */
    {"2020,2021\n", false},                /* one line, which cannot be names */
    {"1,1\n2,3\n3,5\n", false},            /* one name for two columns */
    {"20,-21\n1,2\n2,3\n", false},         /* a sign */
    {"20,21.5\n1,2\n2,3\n", false},        /* decimals */
    {"-1 1:2 2:3\n1 1:4\n", false},        /* LIBSVM */
};

START_TEST(test_unclear_header)
{
    em_table_options options = options_of(table_path);
    em_table *table = NULL;
    em_status status;

    write_text(first_lines[_i].text);
    options.asks_header = true;
    status = em_table_read(&options, &table);
    ck_assert_int_eq(status, first_lines[_i].unclear ? EM_EDATA : EM_OK);
    ck_assert(!status || (strstr(em_error_text(), ":1:") && strstr(em_error_text(), "header")));
    em_table_destroy(&table);
    options.header = EM_HEADER_NO;
    table = read_table(&options);
    em_table_destroy(&table);
}
END_TEST

START_TEST(test_format_by_option)
{
    em_table_options options = options_of(table_path);
    em_table *table;

    write_text("1,5\n2,5\n");
    options.format = EM_TABLE_SEMICOLON;
    ck_assert_int_eq(em_table_read(&options, &table), EM_EDATA);
    options.format = EM_TABLE_COMMA;
    table = read_table(&options);
    ck_assert_int_eq(table->n_column, 2);
    em_table_destroy(&table);
}
END_TEST

START_TEST(test_libsvm)
{
    static const int32_t column[] = {0, 4, 1};
    em_table_options options = options_of(table_path);
    em_table *table = read_text("+1 1:0.5 5:-2\n-1\n-1 2:7 \n");

    ck_assert_int_eq(table->n_row, 3);
    ck_assert_int_eq(table->n_column, 5);
    ck_assert_int_eq(table->start[1], 2);
    ck_assert_int_eq(table->start[2], 2);
    ck_assert_int_eq(table->start[3], 3);
    ck_assert_double_eq(table->response[0], 1);
    ck_assert_double_eq(table->response[2], -1);
    for (int k = 0; k < 3; k++)
        ck_assert_int_eq(table->column[k], column[k]);
    ck_assert_double_eq(table->value[1], -2);
    em_table_destroy(&table);

    options.columns = 9;
    table = read_table(&options);
    ck_assert_int_eq(table->n_column, 9);
    em_table_destroy(&table);
}
END_TEST

/* Rows without an entry are sparse all the same: a dense table would have all columns. */
START_TEST(test_libsvm_without_entries)
{
    em_table_options options = options_of(table_path);
    em_table *table;

    options.format = EM_TABLE_LIBSVM;
    options.columns = 3;
    write_text("1\n0\n");
    table = read_table(&options);
    ck_assert_int_eq(table->n_row, 2);
    ck_assert_int_eq(table->n_column, 3);
    ck_assert_int_eq(table->start[2], 0);
    ck_assert_ptr_nonnull(table->column);
    em_table_destroy(&table);
}
END_TEST

/* The hash is of names and numbers, and which is where: compression and notation do not change it.
 */
START_TEST(test_gzip_and_hash)
{
    static const char text[] = "1,2\n3,4\n5,6\n";
    const em_table_options options = options_of(table_path);
    em_table *plain = read_text(text), *zipped, *other;

    write_gzip(table_path, text, strlen(text));
    zipped = read_table(&options);
    other = read_text("1,2\n3,4\n5,7\n");
    ck_assert_int_eq(zipped->n_row, 3);
    ck_assert(plain->hash == zipped->hash);
    ck_assert(plain->hash != other->hash);
    em_table_destroy(&other);
    other = read_text("3,4\n1,2\n5,6\n");
    ck_assert(plain->hash != other->hash);
    em_table_destroy(&other);
    other = read_text("x1,x2\n1,2.0\n3,4\n5,6\n");
    ck_assert(plain->hash == other->hash);
    em_table_destroy(&other);
    other = read_text("x1,y\n1,2\n3,4\n5,6\n");
    ck_assert(plain->hash != other->hash);
    em_table_destroy(&plain);
    em_table_destroy(&zipped);
    em_table_destroy(&other);
}
END_TEST

START_TEST(test_locale)
{
    em_table *table;

    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        setlocale(LC_ALL, "fr_FR.UTF-8"); /* else the locale is C, and this tests nothing new */
    table = read_text("1.5,2.5\n");
    setlocale(LC_ALL, "C");
    ck_assert_double_eq(table->value[0], 1.5);
    em_table_destroy(&table);
}
END_TEST

/* Whatever is written with few digits or many, the nearest double. */
START_TEST(test_numbers)
{
    static const char *const odd[] = {"0",
                                      "-0",
                                      "+7",
                                      ".5",
                                      "5.",
                                      "-.25",
                                      "007.50",
                                      "1e3",
                                      "-1E-5",
                                      "1e+2",
                                      "9007199254740993",
                                      "0.1000000000000000055511151231257827",
                                      "123456789012345678901234567890",
                                      "0.00000000000000000000000012345",
                                      "0.0000000000000000000012",
                                      "4.35",
                                      "2.675"};
    em_lines *lines;
    double value;

    ck_assert_int_eq(em_lines_open_blocks("numbers", &lines), EM_OK);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        ck_assert_int_eq(em_lines_token(lines, odd[i], &value), EM_TOKEN_NUMBER);
        ck_assert_msg(value == strtod(odd[i], NULL) && signbit(value) == (odd[i][0] == '-'), "%s",
                      odd[i]);
    }
    for (uint64_t i = 1; i < 200000; i++) {
        const uint64_t digits = i * UINT64_C(0x9E3779B97F4A7C15) >> (i % 60);
        char text[64];
        snprintf(text, sizeof text, "%s%llu", i % 3 ? "" : "-", (unsigned long long)digits);
        if (i % 2) {
            const size_t at = strlen(text) - i % strlen(text);
            memmove(text + at + 1, text + at, strlen(text) - at + 1);
            text[at] = '.';
        }
        if (em_lines_token(lines, text, &value) == EM_TOKEN_NUMBER)
            ck_assert_msg(value == strtod(text, NULL), "%s", text);
        else
            ck_assert_msg(strncmp(text, ".-", 2) == 0, "%s", text);
    }
    static const char *const none[] = {"",    "-",     "+",   ".",    "-.",
                                       "+-5", "1.2.3", "1-2", "0x10", "5e"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        ck_assert_int_eq(em_lines_token(lines, none[i], &value), EM_TOKEN_TEXT);
    em_lines_close(&lines);
}
END_TEST

/* A row of 200 000 columns is longer than any buffer to begin with. */
START_TEST(test_wide)
{
    enum { WIDE = 200000 };
    char *text = malloc(8 * WIDE), *at = text;
    em_table *table;

    for (int i = 0; i < 2 * WIDE; i++)
        at += sprintf(at, "%d%c", i % 10, i % WIDE == WIDE - 1 ? '\n' : ' ');
    table = read_text(text);
    ck_assert_int_eq(table->n_row, 2);
    ck_assert_int_eq(table->n_column, WIDE);
    for (int i = 0; i < 2 * WIDE; i++)
        ck_assert_double_eq(table->value[i], i % 10);
    em_table_destroy(&table);
    free(text);
}
END_TEST

/* ---- what is not ---- */

typedef struct fault_case {
    const char *text;
    const char *message[3]; /* each has to be in the message */
} fault_case;

static const fault_case bad[] = {
    {"", {":1:", "empty", "expected"}},
    {"\n\n", {":1:", "empty", "expected"}},
    {"a,b\n", {":1:", "only a header", "expected"}},
    {"1,2\n3\n", {":2:", "found 1 columns", "expected 2"}},
    {"1,2\n3,4,5\n", {":2:", "found 3 columns", "expected 2"}},
    {"a,b\n1,2,3\n", {":2:", "found 3 columns", "expected 2"}},
    {"1,2\n\n3,four\n", {":3:", "found 'four' for column 2", "expected a number"}},
    {"age,y\n1,2\nold,3\n", {":3:", "found 'old' for column age", "expected a number"}},
    {"1,2\n3,\n", {":2:", "found nothing for column 2", "expected a number"}},
    {"1,2\n,4\n", {":2:", "found nothing for column 1", "expected a number"}},
    {"1,2\nnan,4\n", {":2:", "found 'nan'", "expected a finite number"}},
    {"1,2\n3,-Inf\n", {":2:", "found '-Inf'", "expected a finite number"}},
    {"1,2\n3,1e999\n", {":2:", "found '1e999'", "expected a finite number"}},
    {"1,2\n3,0x10\n", {":2:", "found '0x10'", "expected a number"}},
    {"1,2\n3,4.5.6\n", {":2:", "found '4.5.6'", "expected a number"}},
    {"1,2\n3,4abc\n", {":2:", "found '4abc'", "expected a number"}},
    {"1,2\n3,\"4\n", {":2:", "is not closed on its line", "expected"}},
    {"1,2\n3,\"4\"5\n", {":2:", "stray quote", "expected"}},
    {"a;b\tc,d;e\n1;2.5\t3\n", {":2:", "found '1;2.5'", "expected a number"}},
    {"1 1:1\n1 0:1\n", {":2:", "index '0'", "from 1"}},
    {"1 1:1\n1 -1:1\n", {":2:", "index '-1'", "from 1"}},
    {"1 1:1\n1 3:1 2:1\n", {":2:", "index 2 after 3", "ascending"}},
    {"1 1:1\n1 3:1 3:1\n", {":2:", "index 3 after 3", "ascending"}},
    {"1 1:1\n1 99999999999999999999:1\n", {":2:", "index '99999999999999999999'", "from 1"}},
    {"1 1:1\n1 3000000000:1\n", {":2:", "index '3000000000'", "from 1"}},
    {"1 1:1\n1 1000001:1\n", {":2:", "index '1000001'", "to 1000000 (columns)"}},
    {"1 1:1\n1 x:1\n", {":2:", "index 'x'", "from 1"}},
    {"1 1:1\n1 2\n", {":2:", "found '2'", "index:value"}},
    {"1 1:1\n1 2:\n", {":2:", "found nothing", "expected a number"}},
    {"1 1:1\n1 2:inf\n", {":2:", "found 'inf'", "finite"}},
    {"1 1:1\nx 2:1\n", {":2:", "found 'x' for the label", "expected a number"}},
};

START_TEST(test_bad_input)
{
    const em_table_options options = options_of(table_path);
    em_table *table;

    write_text(bad[_i].text);
    ck_assert_int_eq(em_table_read(&options, &table), EM_EDATA);
    ck_assert_ptr_null(table);
    check_message(bad[_i].message, 3);
}
END_TEST

static void check_unreadable(const char *what)
{
    const em_table_options options = options_of(table_path);
    const char *const expected[] = {what, "expected"};
    em_table *table;

    ck_assert_int_eq(em_table_read(&options, &table), EM_EDATA);
    check_message(expected, 2);
}

START_TEST(test_unreadable_file)
{
    check_unreadable("No such file");
    mkdir(table_path, 0700);
    check_unreadable("found a folder");
    rmdir(table_path);
    write_bytes(table_path, "1,2\n\0\1\2\n", 9);
    check_unreadable(":2: found a binary file");
}
END_TEST

START_TEST(test_truncated_gzip)
{
    struct stat info;

    static const char packed[] = "1,2\n3,4\n5,6\n7,8\n9,1\n";
    write_gzip(table_path, packed, strlen(packed));
    stat(table_path, &info);
    ck_assert_int_eq(truncate(table_path, info.st_size - 6), 0);
    check_unreadable("truncated");
}
END_TEST

/* 80 MB of one digit, which compress to 80 kB. */
START_TEST(test_endless_line)
{
    static char piece[1 << 20];
    gzFile file = gzopen(table_path, "wb");

    memset(piece, '1', sizeof piece);
    for (int i = 0; i < 80; i++)
        gzwrite(file, piece, sizeof piece);
    gzclose(file);
    check_unreadable(":1: found a line of more than");
}
END_TEST

START_TEST(test_injected_fault)
{
    const em_table_options options = options_of(table_path);
    em_table *table = read_text("1,2\n");

    em_table_destroy(&table);
    setenv("EMASS_FAULT", "data:0", 1);
    em_fault_start(0);
    ck_assert_int_eq(em_table_read(&options, &table), EM_EDATA);
    ck_assert_int_eq(em_table_read(&options, &table), EM_OK);
    em_table_destroy(&table);
}
END_TEST

/* ---- HDF5 ---- */

static void write_hdf5(int rank, const hsize_t *shape, hid_t type, const void *value)
{
    hid_t file = H5Fcreate(table_path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(rank, shape, NULL);
    hid_t set = H5Dcreate2(group, "x", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

    H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value);
    H5Dclose(set);
    H5Sclose(space);
    H5Gclose(group);
    H5Fclose(file);
}

static em_status read_hdf5(const char *dataset, em_table **table)
{
    static char name[300];
    em_table_options options;

    snprintf(name, sizeof name, "%s:%s", table_path, dataset);
    options = options_of(name);
    return em_table_read(&options, table);
}

START_TEST(test_hdf5)
{
    const hsize_t shape[] = {2, 3};
    double real[] = {1, 2, 3, 4, 5, 0.5};
    const int integer[] = {7, 8, 9, 10, 11, 12};
    em_table *table;

    write_hdf5(2, shape, H5T_NATIVE_DOUBLE, real);
    ck_assert_int_eq(read_hdf5("/g/x", &table), EM_OK);
    ck_assert_int_eq(table->n_row, 2);
    ck_assert_int_eq(table->n_column, 3);
    ck_assert_double_eq(table->value[5], 0.5);
    ck_assert_str_eq(table->name[2], "x3");
    em_table_destroy(&table);

    write_hdf5(1, shape, H5T_NATIVE_INT, integer);
    ck_assert_int_eq(read_hdf5("/g/x", &table), EM_OK);
    ck_assert_int_eq(table->n_row, 2);
    ck_assert_int_eq(table->n_column, 1);
    ck_assert_double_eq(table->value[1], 8);
    em_table_destroy(&table);
}
END_TEST

START_TEST(test_bad_hdf5)
{
    static const char *const none[] = {"no dataset"}, *const file[] = {"expected an HDF5 file"},
                             *const missing[] = {"No such file"},
                             *const row[] = {":2:", "nan", "column 1"},
                             *const group[] = {"without"}, *const deep[] = {"3 dimensions"},
                             *const empty[] = {"empty"};
    const hsize_t shape[] = {2, 3}, cube[] = {1, 2, 3}, nothing[] = {0, 3};
    const double real[] = {1, 2, 3, NAN, 5, 0.5};
    em_table *table;

    ck_assert_int_eq(read_hdf5("/g/x", &table), EM_EDATA);
    check_message(missing, 1);
    write_text("1,2\n");
    ck_assert_int_eq(read_hdf5("/g/x", &table), EM_EDATA);
    check_message(file, 1);
    write_hdf5(2, shape, H5T_NATIVE_DOUBLE, real);
    ck_assert_int_eq(read_hdf5("/g/y", &table), EM_EDATA);
    check_message(none, 1);
    ck_assert_int_eq(read_hdf5("/g", &table), EM_EDATA);
    check_message(group, 1);
    ck_assert_int_eq(read_hdf5("/g/x", &table), EM_EDATA);
    check_message(row, 3);
    write_hdf5(3, cube, H5T_NATIVE_DOUBLE, real);
    ck_assert_int_eq(read_hdf5("/g/x", &table), EM_EDATA);
    check_message(deep, 1);
    write_hdf5(2, nothing, H5T_NATIVE_DOUBLE, real);
    ck_assert_int_eq(read_hdf5("/g/x", &table), EM_EDATA);
    check_message(empty, 1);
}
END_TEST

/* ---- real data ---- */

typedef struct data_set {
    const char *file;
    double positive;
    int64_t columns, n_row, n_column, n_positive, n_entry;
} data_set;

/* The numbers are those of the data folder's README. */
static const data_set data_sets[] = {
    {"heart/heart.dat", 2, INT64_MIN, 270, 13, 120, 270 * 13},
    {"australian/australian.dat", NAN, INT64_MIN, 690, 14, 307, 690 * 14},
    {"australian/australian.libsvm", NAN, INT64_MIN, 690, 14, 307, -1},
    {"a9a/a9a.gz", NAN, 123, 32561, 123, 7841, 451592},
    {"a9a/a9a.t.gz", NAN, 123, 16281, 123, 3846, 225731},
};

START_TEST(test_data_set)
{
    const data_set *d = &data_sets[_i];
    em_table_options options;
    struct timespec before, after;
    double positives = 0, seconds;
    char name[512];
    em_table *table;

    if (!getenv("EMASS_DATA"))
        return;
    snprintf(name, sizeof name, "%s/%s", getenv("EMASS_DATA"), d->file);
    options = options_of(name);
    options.columns = d->columns;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    table = read_table(&options);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    ck_assert_int_eq(em_table_take_response(table, &options), EM_OK);
    ck_assert_int_eq(em_table_binary_response(table, d->positive), EM_OK);
    ck_assert_int_eq(table->n_row, d->n_row);
    ck_assert_int_eq(table->n_column, d->n_column);
    if (d->n_entry >= 0)
        ck_assert_int_eq(table->n_value, d->n_entry);
    for (int64_t i = 0; i < table->n_row; i++)
        positives += table->response[i];
    ck_assert_double_eq(positives, (double)d->n_positive);
    em_table_destroy(&table);
    seconds =
        (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec);
    printf("%s: %.3f s\n", d->file, seconds);
#ifndef EM_DEBUG
    ck_assert_double_lt(seconds, 0.3);
#endif
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static Suite *data_suite(void)
{
    Suite *suite = suite_create("data");
    TCase *reading = tcase_create("reading"),
          *real = tcase_create(getenv("EMASS_DATA") ? "data sets"
                                                    : "data sets # SKIP EMASS_DATA is not set");

    tcase_add_checked_fixture(reading, make_folder, close_test_folder);
    tcase_set_timeout(reading, 60);
    tcase_add_loop_test(reading, test_delimited, 0, COUNT(samples));
    tcase_add_test(reading, test_header_by_option);
    tcase_add_loop_test(reading, test_unclear_header, 0, COUNT(first_lines));
    tcase_add_test(reading, test_format_by_option);
    tcase_add_test(reading, test_libsvm);
    tcase_add_test(reading, test_libsvm_without_entries);
    tcase_add_test(reading, test_gzip_and_hash);
    tcase_add_test(reading, test_locale);
    tcase_add_test(reading, test_numbers);
    tcase_add_test(reading, test_wide);
    tcase_add_loop_test(reading, test_bad_input, 0, COUNT(bad));
    tcase_add_test(reading, test_unreadable_file);
    tcase_add_test(reading, test_truncated_gzip);
    tcase_add_test(reading, test_endless_line);
    tcase_add_test(reading, test_injected_fault);
    tcase_add_test(reading, test_hdf5);
    tcase_add_test(reading, test_bad_hdf5);
    suite_add_tcase(suite, reading);

    tcase_set_timeout(real, 60);
    tcase_add_loop_test(real, test_data_set, 0, COUNT(data_sets));
    suite_add_tcase(suite, real);
    return suite;
}

int main(void)
{
    return run_suite(data_suite(), CK_FORK_GETENV);
}
