/*
 * Tables that all ranks read together: whatever a file holds, and however many ranks there are,
 * what they say of it is what one rank says that reads it alone, bit for bit and word for word.
 */
#include "base/fault.h"
#include "base/memory.h"
#include "data/design/design.h"
#include "data/shard/redistribute_rows.h"
#include "data/table/column_moments.h"
#include "par/world.h"
#include "support/everywhere.h"
#include "support/on_grid.h"

#include <assert.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static char path[64];

static void begin(void)
{
    snprintf(path, sizeof path, "/tmp/emass-table-%d", (int)getpid());
    em_broadcast(path, sizeof path);
}

static void end(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (em_world_rank() == 0)
        unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void write_file(const char *text, size_t length, bool packed)
{
    if (em_world_rank() == 0) {
        gzFile file = gzopen(path, packed ? "wb" : "wbT");
        if (length > 0)
            gzwrite(file, text, (unsigned)length);
        gzclose(file);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static em_table_options options_of(int format)
{
    return (em_table_options){
        .data = path, .format = format, .columns = INT64_MIN, .intercept = true};
}

/* The status and the message of all ranks together, and of this one alone: equal. */
static em_status read_both(const em_table_options *options, em_table **together, em_table **alone,
                           const char *what)
{
    char text[2][512] = {"", ""};
    em_status status[2];
    em_world *world;

    status[0] = em_table_read(options, together);
    if (status[0])
        snprintf(text[0], sizeof text[0], "%s", em_error_text());
    world = em_world_enter(NULL);
    status[1] = em_table_read(options, alone);
    if (status[1])
        snprintf(text[1], sizeof text[1], "%s", em_error_text());
    em_world_enter(world);
    if (strcmp(text[0], text[1]) != 0)
        printf("# together: %s\n# alone:    %s\n", text[0], text[1]);
    assert_everywhere(status[0] == status[1] && strcmp(text[0], text[1]) == 0, what);
    return status[0];
}

/* ---- what is wrong with a file ---- */

typedef struct hostile {
    const char *what, *text;
    size_t length;       /* 0: of the text */
    const char *message; /* "": none */
} hostile;

static const hostile cases[] = {
    {"an empty file", "", 0, ":1: found an empty file"},
    {"blank lines", "\n \n\n", 0, ":1: found an empty file"},
    {"a header alone", "a,b\n", 0, ":1: found only a header"},
    {"a header without an end", "a,b", 0, ":1: found only a header"},
    {"a header after blank lines", "\n\na,b\n\n", 0, ":3: found only a header"},
    {"one number", "1", 0, ""},
    {"fewer rows than ranks", "1,2\n3,4\n", 0, ""},
    {"no newline at the end", "1,2\n3,4\n5,6\n7,8", 0, ""},
    {"CRLF", "a,b\r\n1,2\r\n3,4\r\n5,6\r\n", 0, ""},
    {"a mark of UTF-8",
     "\xEF\xBB\xBF"
     "1,2\n3,4\n5,6\n7,8\n",
     0, ""},
    {"a mark in the middle",
     "1,2\n3,4\n\xEF\xBB\xBF"
     "5,6\n7,8\n",
     0, ":3: found"},
    {"NUL", "1,2\n3,4\n5,\0\n7,8\n", 16, ":3: found a binary file"},
    {"NUL in the last line", "1,2\n3,4\n5,6\n7,\0", 15, ":4: found a binary file"},
    {"a line longer than a range of bytes",
     "1,2\n3,444444444444444444444444444444444444444444444444444444444444444444444444444444444\n"
     "5,6\n",
     0, ""},
    {"a bad line longer than a range of bytes",
     "1,2\n3,44444444444444444444444444444444444444444x44444444444444444444444444444444444444\n"
     "5,y\n",
     0, ":2: found '4444"},
    {"blank lines between", "1,2\n\n\n3,4\n\n5,6\n\n\n\n7,x\n", 0, ":10: found 'x'"},
    {"two bad lines", "1,2\n3,x\n5,6\n7,8\n9,10\n11,y\n", 0, ":2: found 'x'"},
    {"ragged and text", "1,2\n3,4\n5,6\n7\n9,10\n11,y\n", 0, ":4: found 1 columns"},
    {"blank lines at the end", "1,2\n3,4\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n", 0, ""},
};

START_TEST(test_hostile)
{
    const hostile *h = &cases[_i];
    em_table_options options = options_of(EM_TABLE_AUTO);

    for (int packed = 0; packed < 2; packed++) {
        em_table *together, *alone;
        em_status status;
        begin();
        write_file(h->text, h->length ? h->length : strlen(h->text), packed);
        status = read_both(&options, &together, &alone, h->what);
        assert_everywhere((status == EM_OK) == (*h->message == '\0'), h->what);
        assert_everywhere(!status || strstr(em_error_text(), h->message), h->what);
        assert_everywhere(status || together->hash == alone->hash, h->what);
        em_table_destroy(&together);
        em_table_destroy(&alone);
        end();
    }
}
END_TEST

/* Rows enough for every rank, and blocks enough of what is packed. */
enum { ROWS = 2000, WIDTH = 48 };

/* `bad`: a line that is wrong, from 1; 0: none. */
static size_t make_rows(char *text, int format, int bad)
{
    char *at = text;

    for (int i = 1; i <= ROWS; i++) {
        const double x = sin(i), y = 1e-3 * i * i;
        if (format == EM_TABLE_LIBSVM)
            at += sprintf(at, "%d %d:%.6f 7:%s\n", i % 2, 1 + i % 5, x, i == bad ? "bad" : "0.5");
        else
            at += sprintf(at, "%.6f,%.3f,%s\n", x, y, i == bad ? "bad" : i % 2 ? "1" : "0");
    }
    return (size_t)(at - text);
}

START_TEST(test_first_bad_line)
{
    static char text[ROWS * WIDTH];
    const int format = _i % 2 ? EM_TABLE_LIBSVM : EM_TABLE_COMMA;
    const em_table_options options = options_of(format);
    char place[32];

    begin();
    for (int bad = 1; bad <= ROWS; bad += ROWS / 9) {
        em_table *together, *alone;
        write_file(text, make_rows(text, format, bad), _i / 2);
        assert_everywhere(read_both(&options, &together, &alone, "a bad line") == EM_EDATA, "bad");
        snprintf(place, sizeof place, ":%d: found 'bad'", bad);
        assert_everywhere(strstr(em_error_text(), place) != NULL, place);
    }
    end();
}
END_TEST

START_TEST(test_truncated)
{
    static char text[ROWS * WIDTH];
    const em_table_options options = options_of(EM_TABLE_COMMA);
    em_table *together, *alone;

    begin();
    write_file(text, make_rows(text, EM_TABLE_COMMA, 0), true);
    if (em_world_rank() == 0)
        assert(truncate(path, 9000) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    assert_everywhere(read_both(&options, &together, &alone, "truncated") == EM_EDATA, "truncated");
    assert_everywhere(strstr(em_error_text(), "truncated or damaged") != NULL, "said");
    end();
}
END_TEST

/* ---- what is right ---- */

static bool same_doubles(int64_t n, const double *a, const double *b)
{
    return n == 0 || memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

static void same_moments(const em_table *together, const em_table *alone)
{
    em_moments one, all;
    em_world *world;
    bool same;

    assert_everywhere(em_moments_find(together, true, &all) == EM_OK, "moments");
    world = em_world_enter(NULL);
    same = em_moments_find(alone, true, &one) == EM_OK;
    em_world_enter(world);
    for (int64_t j = 0; same && j < alone->n_column; j++)
        same = one.count[j] == all.count[j] && one.smallest[j] == all.smallest[j] &&
               one.largest[j] == all.largest[j] && one.mean[j] == all.mean[j] &&
               one.sd[j] == all.sd[j] && one.sd[j] >= 0;
    assert_everywhere(same, "the same moments");
    em_moments_release(&one);
    em_moments_release(&all);
}

static bool same_design(const em_design *a, const em_design *b)
{
    const int64_t n = a->sparse ? a->start[a->n_row] : a->dense.n_tile * a->n_column * EM_TILE_ROWS;

    return a->n_row == b->n_row && a->sparse == b->sparse && a->hash == b->hash &&
           same_doubles(a->n_row, a->response, b->response) &&
           same_doubles(n, a->sparse ? a->value : a->dense.tile,
                        b->sparse ? b->value : b->dense.tile) &&
           (!a->sparse || memcmp(a->column, b->column, (size_t)n * sizeof *a->column) == 0);
}

/* As `shards` shards, each held by as many ranks as there are. */
static void same_shards(em_table *together, em_table *alone, const em_table_options *options,
                        int shards)
{
    const int shard = em_world_rank() % shards;
    em_design *ours, *own = NULL;
    em_world *world;
    bool same;

    assert_everywhere(em_design_create(together, options, NULL, shard, shards, &ours) == EM_OK,
                      "sharded");
    em_design_scale(ours, 0.5);
    assert_everywhere(em_design_store_rows(ours) == EM_OK, "rows stored");
    world = em_world_enter(NULL);
    same = em_design_create(alone, options, NULL, shard, shards, &own) == EM_OK;
    if (same)
        em_design_scale(own, 0.5);
    same = same && em_design_store_rows(own) == EM_OK;
    em_world_enter(world);
    same = same && same_design(ours, own) && ours->row_stride == own->row_stride;
    same = same && (ours->sparse ||
                    same_doubles((ours->n_row + 1) * ours->row_stride, ours->row, own->row));
    assert_everywhere(same, "the same shard");
    em_design_destroy(&ours);
    em_design_destroy(&own);
}

START_TEST(test_the_same_as_alone)
{
    static char text[ROWS * WIDTH];
    const int format = _i % 2 ? EM_TABLE_LIBSVM : EM_TABLE_COMMA;
    em_table_options options = options_of(format);
    em_table *together, *alone;
    em_world *world;
    bool right;

    begin();
    write_file(text, make_rows(text, format, 0), _i / 2 % 2);
    options.standardise = _i >= 4;
    assert_everywhere(read_both(&options, &together, &alone, "rows") == EM_OK, "read");
    assert_everywhere(together->hash == alone->hash && together->total == ROWS &&
                          together->total_entries == alone->total_entries,
                      "the same of the whole");
    assert_everywhere(em_world_size() == 1 || together->n_row < ROWS, "each reads a part");
    right = em_table_take_response(together, &options) == EM_OK &&
            em_table_binary_response(together, NAN) == EM_OK;
    assert_everywhere(right, "response");
    world = em_world_enter(NULL);
    right = em_table_take_response(alone, &options) == EM_OK &&
            em_table_binary_response(alone, NAN) == EM_OK;
    em_world_enter(world);
    assert_everywhere(right, "only the response");
    same_moments(together, alone);
    for (int shards = 1; shards <= em_world_size(); shards++)
        same_shards(together, alone, &options, shards);
    assert_everywhere(em_table_hold(together, 0, ROWS) == EM_OK, "all rows on all ranks");
    assert_everywhere(together->n_row == ROWS && together->n_value == alone->n_value &&
                          same_doubles(alone->n_value, together->value, alone->value) &&
                          same_doubles(ROWS, together->response, alone->response),
                      "the same rows");
    em_table_destroy(&together);
    em_table_destroy(&alone);
    end();
}
END_TEST

/* A label that is wrong is named by its own line, whoever read it. */
START_TEST(test_labels)
{
    const em_table_options options = options_of(EM_TABLE_COMMA);
    char text[64 * 8] = "";
    em_table *table;

    begin();
    for (int i = 0; i < 64; i++)
        strcat(text, i == 41 || i == 60 ? "1,3\n" : i % 2 ? "1,1\n" : "1,0\n");
    write_file(text, strlen(text), false);
    assert_everywhere(em_table_read(&options, &table) == EM_OK, "read");
    assert_everywhere(em_table_take_response(table, &options) == EM_OK, "response");
    assert_everywhere(em_table_binary_response(table, NAN) == EM_EDATA, "refused");
    assert_everywhere(
        strstr(em_error_text(), ":42: found label 3 among labels 0, 1, 3, expected") != NULL,
        "named");
    em_table_destroy(&table);
    end();
}
END_TEST

/* Much data, which the ranks of a node share, and the same without memory that can be shared. */
START_TEST(test_shared)
{
    enum { MANY = 20000 };
    const em_table_options options = options_of(EM_TABLE_COMMA);
    char *text = malloc(MANY * 32), *at = text;
    em_table *together, *alone;

    begin();
    for (int i = 0; i < MANY; i++)
        at += sprintf(at, "%d,%.4f,%d\n", i, cos(i), i % 2);
    write_file(text, (size_t)(at - text), false);
    setenv("EMASS_FAULT", _i ? "data-shared:0:1" : "", 1);
    em_fault_start(em_world_rank());
    assert_everywhere(read_both(&options, &together, &alone, "rows") == EM_OK, "read");
    assert_everywhere(em_table_take_response(together, &options) == EM_OK, "response");
    em_world *world = em_world_enter(NULL);
    ck_assert_int_eq(em_table_take_response(alone, &options), EM_OK);
    em_world_enter(world);
    same_shards(together, alone, &options, 1);
    same_shards(together, alone, &options, em_world_size());
    unsetenv("EMASS_FAULT");
    em_table_destroy(&together);
    em_table_destroy(&alone);
    free(text);
    end();
}
END_TEST

/* Copies of one file, and of two. */
START_TEST(test_copies)
{
    em_table_options options = options_of(EM_TABLE_COMMA);
    const bool last = em_world_rank() == em_world_size() - 1;
    char own[sizeof path + 16], expected[96];
    em_table *table;
    em_status status;

    begin();
    snprintf(own, sizeof own, "%s-%d", path, em_world_rank());
    FILE *file = fopen(own, "w");
    fprintf(file, "1,2\n3,4\n5,%d\n", _i && last ? 7 : 6);
    fclose(file);
    options.data = own;
    status = em_table_read(&options, &table);
    if (_i && em_world_size() > 1) {
        snprintf(expected, sizeof expected,
                 "found a file that differs from that of rank 0 (rank %d)", em_world_size() - 1);
        assert_everywhere(status == EM_EDATA && strstr(em_error_text(), expected), expected);
    } else {
        assert_everywhere(status == EM_OK, "the same file");
    }
    em_table_destroy(&table);
    unlink(own);
}
END_TEST

/* A rank that finds bad data waits for one that reads longer than its patience. */
START_TEST(test_slow_reader)
{
    const em_table_options options = options_of(EM_TABLE_COMMA);
    em_table *table;

    if (em_world_size() != 2)
        return;
    begin();
    write_file("1,x\n3,4\n5,6\n7,8\n", 16, false);
    setenv("EMASS_FAULT", "data-slow:1", 1);
    em_fault_start(em_world_rank());
    assert_everywhere(em_table_read(&options, &table) == EM_EDATA, "refused by both");
    assert_everywhere(strstr(em_error_text(), ":1: found 'x'") != NULL, "and named");
    unsetenv("EMASS_FAULT");
    end();
}
END_TEST

/* Whichever allocation fails, on whichever rank, all ranks come back. */
START_TEST(test_memory_faults)
{
    const em_table_options options = options_of(EM_TABLE_LIBSVM);
    em_status status = EM_EMEMORY;
    int n = 0;

    begin();
    write_file("1 1:2\n0 2:3\n1 1:4\n0 2:5\n", 24, _i);
    while (status == EM_EMEMORY && n++ < 200) {
        em_design *design = NULL;
        em_table *table;
        char site[32];
        snprintf(site, sizeof site, "allocate:%d:%d", em_world_size() - 1, n);
        setenv("EMASS_FAULT", site, 1);
        em_fault_start(em_world_rank());
        status = em_table_read(&options, &table);
        if (!status)
            status = em_table_take_response(table, &options);
        if (!status)
            status = em_table_binary_response(table, NAN);
        if (!status)
            status = em_design_create(table, &options, NULL, 0, 1, &design);
        em_table_destroy(&table);
        em_design_destroy(&design);
    }
    unsetenv("EMASS_FAULT");
    em_fault_start(em_world_rank());
    assert_everywhere(status == EM_OK && n > 10, "all ranks");
    end();
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tests = tcase_create("table");

    tcase_add_loop_test(tests, test_hostile, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(tests, test_first_bad_line, 0, 4);
    tcase_add_test(tests, test_truncated);
    tcase_add_loop_test(tests, test_the_same_as_alone, 0, 8);
    tcase_add_test(tests, test_labels);
    tcase_add_loop_test(tests, test_shared, 0, 2);
    tcase_add_loop_test(tests, test_copies, 0, 2);
    tcase_add_test(tests, test_slow_reader);
    tcase_add_loop_test(tests, test_memory_faults, 0, 2);
    return run_case_on_ranks(tests, argc, argv);
}
