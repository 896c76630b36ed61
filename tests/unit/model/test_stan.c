/* What stands around a Stan program: its data as JSON, in files, configs and tables; the arrays
 * that flattened names make; declarations in its text. The programs themselves: tests/run/stan.sh.
 */
#include "base/memory.h"
#include "base/text/json.h"
#include "model/stan/stan_columns.h"
#include "model/stan/stan_model.h"
#include "model/stan/stan_shape.h"
#include "run/config/config.h"
#include "support/tap.h"
#include "support/test_files.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- arrays ---- */

START_TEST(names_become_arrays)
{
    em_stan_variables *v;

    ck_assert_int_eq(em_stan_variables_create("mu,L.1.1,L.2.1,L.1.2,L.2.2,L.1.3,L.2.3,z.1.real,z.1."
                                              "imag,z.2.real,z.2.imag,t.1:1,t.1:2.1,t.1:2.2",
                                              &v),
                     EM_OK);
    static const struct {
        const char *name;
        int n_axes;
        int64_t shape[2];
    } expected[] = {{"mu", 0, {0}},     {"L", 2, {2, 3}}, {"z.real", 1, {2}},
                    {"z.imag", 1, {2}}, {"t:1", 1, {1}},  {"t:2", 2, {1, 2}}};
    static const int64_t place[] = {0, 1, 4, 2, 5, 3, 6, 7, 9, 8, 10, 11, 12, 13};

    ck_assert_int_eq(v->n_variable, 6);
    for (int i = 0; i < 6; i++) {
        ck_assert_str_eq(v->variable[i].name, expected[i].name);
        ck_assert_int_eq(v->variable[i].n_axes, expected[i].n_axes);
        for (int k = 0; k < expected[i].n_axes; k++)
            ck_assert_int_eq(v->variable[i].shape[k], expected[i].shape[k]);
    }
    ck_assert_int_eq(v->n_element, 14);
    for (int i = 0; i < 14; i++)
        ck_assert_int_eq(v->place[i], place[i]);
    em_release_owner(&v);
}
END_TEST

static const char *const no_arrays[] = {"a.1,a.3", "a.1,a.1",         "a.1.1,a.2",
                                        "a.1,a",   "a.999999999,a.1", "a,,b",
                                        "a/b",     "a.1,a.2.",        "a.1.1.1.1.1.1.1.1.1"};

START_TEST(other_names_are_refused)
{
    em_stan_variables *v;

    ck_assert_int_eq(em_stan_variables_create(no_arrays[_i], &v), EM_EDATA);
    ck_assert_ptr_null(v);
}
END_TEST

/* What is no index belongs to the name. */
START_TEST(numbers_that_are_no_index)
{
    em_stan_variables *v;

    ck_assert_int_eq(em_stan_variables_create("a.0,b.99999999999999999999,c.1x", &v), EM_OK);
    ck_assert_int_eq(v->n_variable, 3);
    ck_assert_str_eq(v->variable[0].name, "a.0");
    ck_assert_int_eq(v->variable[1].n_axes, 0);
    ck_assert_str_eq(v->variable[2].name, "c.1x");
    em_release_owner(&v);
    ck_assert_int_eq(em_stan_variables_create("", &v), EM_OK);
    ck_assert_int_eq(v->n_variable, 0);
    em_release_owner(&v);
}
END_TEST

START_TEST(many_names_take_no_long_time)
{
    enum { N = 100000 };
    char *names = malloc(N * 16), *to = names;
    em_stan_variables *v;

    for (int i = 0; i < N; i++)
        to += sprintf(to, "%sx%d", i ? "," : "", i);
    ck_assert_int_eq(em_stan_variables_create(names, &v), EM_OK);
    ck_assert_int_eq(v->n_variable, N);
    ck_assert_str_eq(v->variable[N - 1].name, "x99999");
    em_release_owner(&v);
    free(names);
}
END_TEST

/* ---- JSON ---- */

START_TEST(numbers_of_json)
{
    static const struct {
        const char *text;
        size_t length;
        bool is_integer;
    } cases[] = {{"0", 1, true},
                 {"-12,", 3, true},
                 {"1.5e-3]", 6, false},
                 {"1E5", 3, false},
                 {"01", 0, true},
                 {".5", 0, true},
                 {"1.", 0, true},
                 {"1e", 0, true},
                 {"1e+", 0, true},
                 {"-", 0, true},
                 {"+1", 0, true},
                 {"-x", 0, true},
                 {"12345678901234567890", 20, true}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool is_integer;
        ck_assert_uint_eq(em_json_number(cases[i].text, &is_integer), cases[i].length);
        if (cases[i].length > 0)
            ck_assert_int_eq(is_integer, cases[i].is_integer);
    }
}
END_TEST

START_TEST(data_keep_their_numbers)
{
    em_stan_data *data;

    ck_assert_int_eq(
        em_stan_data_read("d.json",
                          "\xef\xbb\xbf {\"N\" : 3,\n\"y\": [ 0.1, -0, 1e-5 ], \"A\":[[1,2],[3,4],"
                          "[5,NaN]],\"e\":[],\"t\":[{\"1\":1,\"2\":[1,2]},{\"1\":1,\"2\":[3]}],"
                          "\"i\":[-Infinity,\"Inf\",\"+Infinity\"]}\n",
                          &data),
        EM_OK);
    ck_assert_str_eq(data->text,
                     "\"N\":3,\"y\":[0.1,-0,1e-5],\"A\":[[1,2],[3,4],[5,\"NaN\"]],\"e\":[],\"t\":[{"
                     "\"1\":1,\"2\":[1,2]},{\"1\":1,\"2\":[3]}],\"i\":[\"-Inf\",\"Inf\",\"Inf\"]");
    ck_assert_int_eq(data->count, 6);
    const em_stan_datum *a = em_stan_data_find(data, "A");
    ck_assert(a->n_axes == 2 && a->shape[0] == 3 && a->shape[1] == 2 && !a->is_integer);
    ck_assert(em_stan_data_find(data, "N")->is_integer &&
              !em_stan_data_find(data, "y")->is_integer);
    ck_assert(a->n_value == 6 && a->value[3] == 4 && isnan(a->value[5]));
    ck_assert(em_stan_data_find(data, "N")->value[0] == 3);
    ck_assert(em_stan_data_find(data, "i")->value[0] == -INFINITY);
    ck_assert_ptr_null(em_stan_data_find(data, "t")->value);
    ck_assert_int_eq(data->n_kept, 1 + 3 + 6 + 3);
    ck_assert(em_stan_data_find(data, "e")->n_axes == 1 && em_stan_data_find(data, "t")->is_tuple);
    ck_assert_ptr_null(em_stan_data_find(data, "n"));
    em_stan_data_destroy(&data);
}
END_TEST

/* Many numbers are read, but not kept; nor do they take the room of others. */
START_TEST(few_data_are_kept)
{
    enum { MANY = EM_STAN_MOST_KEPT + 10 };
    char *text = malloc(3 * MANY + 100), *to = text;
    em_stan_data *data;

    to += sprintf(to, "{\"a\": 1, \"b\": [");
    for (int i = 0; i < MANY; i++)
        to += sprintf(to, "%s%d", i ? "," : "", i % 10);
    sprintf(to, "], \"c\": [1, 2]}");
    ck_assert_int_eq(em_stan_data_read("d.json", text, &data), EM_OK);
    ck_assert_int_eq(em_stan_data_find(data, "b")->shape[0], MANY);
    ck_assert_ptr_null(em_stan_data_find(data, "b")->value);
    ck_assert_int_eq(em_stan_data_find(data, "c")->n_value, 2);
    ck_assert_int_eq(data->n_kept, 3);
    em_stan_data_destroy(&data);
    free(text);
}
END_TEST

static const struct {
    const char *text, *message;
} bad_data[] = {
    {"", "d.json:1: found the end of the file, expected JSON: {\"name\": value, ...}"},
    {"{\"N\": }", "d.json:1: found '}', expected a number, a list or NaN"},
    {"{\"N\":\n 1.}", "d.json:2: N: found '1.', expected a number, a list or NaN"},
    {"{\"N\": 0x1}", "d.json:1: N: found '0x1', expected a number, a list or NaN"},
    {"{\"N\": [1, \"a b\"]}",
     "d.json:1: N: found the text \"a b\", expected a number, a list or NaN"},
    {"{\"N\": true}", "d.json:1: N: found 'true', expected a number, a list or NaN"},
    {"{\"N\": [1 2]}", "d.json:1: found '2]}', expected a comma or the end of the list"},
    {"{\"N\": [1,2,]}", "d.json:1: found ']}', expected a number, a list or NaN"},
    {"{\"N\": [[1],[2,3]]}", "d.json:1: N: found a list of 2, expected 1 as before it"},
    {"{\"N\": 1", "d.json:1: found the end of the file, expected a comma or the end of the data"},
    {"{\"N\": 1, \"N\": 2}", "d.json:1: found N again, expected each variable once"},
    {"{\"__stanli\": 2}", "d.json:1: found '__stanli', expected the name of a variable"},
    {"{\"\": 2}", "d.json:1: found '', expected the name of a variable"},
    {"{\"N\": -1e400}", "d.json:1: found '-1e400}', expected a number that fits a double"},
    {"{N: 1}", "d.json:1: found 'N:', expected the name of a variable, in quotes"},
    {"{\"N\": 1}}", "d.json:1: found '}', expected nothing after the data"},
};

START_TEST(other_data_are_refused)
{
    em_stan_data *data;

    ck_assert_int_eq(em_stan_data_read("d.json", bad_data[_i].text, &data), EM_EDATA);
    ck_assert_ptr_null(data);
    ck_assert_str_eq(em_error_text(), bad_data[_i].message);
}
END_TEST

/* ---- declarations ---- */

START_TEST(declarations_are_found)
{
    static const char program[] =
        "#include helpers.stan\n"
        "functions { real f(data array[] real x) { int y = 1; return y; } }\n"
        "/* data { int no; } */ data { // int no;\n"
        "  int<lower=0, upper=(3 > 2 ? 5 : 1)>   N; array[N, 2] int y;\n"
        "  vector<lower=0>[N] a; tuple(int, array[3] real) t; }\n"
        "transformed data { int M = 2; print(\"data { int no; }\"); }\n"
        "parameters { real mu; }\n"
        "transformed parameters { cov_matrix[3] S = f(mu); }\n"
        "model { int no; }\n"
        "generated quantities { array[N] int k; real z; int p, q = 2;\n"
        "  for (i in 1:N) { int no; k[i] = 1; } p = 1; { int no; } }\n";
    static const struct {
        em_stan_block block;
        bool is_integer;
        const char *name, *text;
    } expected[] = {{EM_STAN_DATA, true, "N", "int<lower=0, upper=(3 > 2 ? 5 : 1)> N"},
                    {EM_STAN_DATA, true, "y", "array[N, 2] int y"},
                    {EM_STAN_DATA, false, "a", "vector<lower=0>[N] a"},
                    {EM_STAN_DATA, false, "t", "tuple(int, array[3] real) t"},
                    {EM_STAN_PARAMETERS, false, "mu", "real mu"},
                    {EM_STAN_TRANSFORMED, false, "S", "cov_matrix[3] S"},
                    {EM_STAN_GENERATED, true, "k", "array[N] int k"},
                    {EM_STAN_GENERATED, false, "z", "real z"},
                    {EM_STAN_GENERATED, true, "p", "int p"},
                    {EM_STAN_GENERATED, true, "q", "int q"}};
    em_stan_declared *d;

    ck_assert_int_eq(em_stan_declared_read(program, &d), EM_OK);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const em_stan_declaration *found =
            em_stan_declared_find(d, expected[i].block, expected[i].name);
        ck_assert_ptr_nonnull(found);
        ck_assert_int_eq(found->is_integer, expected[i].is_integer);
        ck_assert_str_eq(found->text, expected[i].text);
    }
    ck_assert_ptr_null(em_stan_declared_find(d, EM_STAN_DATA, "no"));
    ck_assert_ptr_null(em_stan_declared_find(d, EM_STAN_GENERATED, "no"));
    em_stan_declared_destroy(&d);
}
END_TEST

START_TEST(solvers_and_dropped_constants_are_noticed)
{
    static const struct {
        const char *program;
        bool may_solve, may_drop_constants;
    } of[] = {{"model { target += ode_rk45(f, y, 0, t)[1, 1]; }", true, false},
              {"model { target += integrate_1d(f, 0, 1, x, r, i); }", true, false},
              {"functions {\n#include f.stan\n}\nmodel { }", true, true},
              {"parameters { real x; }\nmodel { x ~ normal(0, 1); // no ode_rk45\n}", false, true}};

    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        em_stan_declared *d;
        ck_assert_int_eq(em_stan_declared_read(of[i].program, &d), EM_OK);
        ck_assert(d->may_solve == of[i].may_solve);
        ck_assert(d->may_drop_constants == of[i].may_drop_constants);
        em_stan_declared_destroy(&d);
    }
}
END_TEST

START_TEST(generated_quantities_are_taken_out)
{
    char *out;

    ck_assert_int_eq(em_stan_without_generated("parameters { real x; }\nmodel { }\n"
                                               "generated quantities {\n int k = 1; }\n",
                                               &out),
                     EM_OK);
    ck_assert_int_eq((int)strspn(out + 33, " \n"), (int)strlen(out + 33));
    ck_assert_int_eq(strncmp(out, "parameters { real x; }\nmodel { }\n", 33), 0);
    ck_assert_ptr_nonnull(strstr(out + 33, "\n "));
    em_release(&out);
    ck_assert_int_eq(em_stan_without_generated("model { } // generated quantities { }", &out),
                     EM_OK);
    ck_assert_ptr_null(out);
}
END_TEST

/* Whatever the text is, cut anywhere, reading stays inside (the sanitizers watch). */
START_TEST(cut_programs_are_read)
{
    static const char program[] =
        "data { array[2] int<lower=0>[3] y, z = 1; } generated quantities "
        "{ int k; for (;;) { } /* x */ \"a\" } // end";

    for (size_t from = 0; from < sizeof program; from++)
        for (size_t to = from; to < sizeof program; to += 1 + to % 3) {
            char *part = strndup(program + from, to - from), *out = NULL;
            em_stan_declared *d;
            ck_assert_int_eq(em_stan_declared_read(part, &d), EM_OK);
            ck_assert_int_eq(em_stan_without_generated(part, &out), EM_OK);
            em_stan_declared_destroy(&d);
            em_release(&out);
            free(part);
        }
}
END_TEST

/* ---- shapes ---- */

/* Data of x, and whether a program that declares x so takes them. */
static const struct {
    const char *declared, *x;
    bool fits;
} shapes[] = {{"vector[N] x", "[1, 2, 3]", true},
              {"vector<lower=0, upper=(3 > 2 ? 5 : 1)>[N] x", "[1, 2, 3]", true},
              {"vector[N] x", "[[1, 2, 3]]", false},
              {"vector[N] x", "[1, 2]", false},
              {"vector[N] x", "3", false},
              {"real x", "3", true},
              {"real x", "[3]", false},
              {"array[2, N] int x", "[[1, 2, 3], [4, 5, 6]]", true},
              {"array[N, 2] int x", "[[1, 2, 3], [4, 5, 6]]", false},
              {"array[2] vector[N] x", "[[1, 2, 3], [4, 5, 6]]", true},
              {"matrix[N - 1, 2 * N - 3 + 0] x", "[[1, 2, 3], [4, 5, 6]]", true},
              {"matrix[N - 1, 2 * N - 4] x", "[[1, 2, 3], [4, 5, 6]]", false},
              {"matrix[N * 2 - 4, N] x", "[[1, 2, 3], [4, 5, 6]]", true},
              {"matrix[(N - 1), max(N, 1)] x", "[[1, 2, 3], [4, 5, 6]]", true},
              {"matrix[(N - 1), 4] x", "[[1, 2, 3], [4, 5, 6]]", false},
              {"matrix[N / 2, 2 + M] x", "[[1, 2, 3], [4, 5, 6]]", true},
              {"array[K[1]] real x", "[1]", true},
              {"array[K[1]] real x", "1", false},
              {"cov_matrix[2] x", "[[1, 0], [0, 1]]", true},
              {"array[1] cov_matrix[2] x", "[[1, 0], [0, 1]]", false},
              {"cholesky_factor_cov[2] x", "[[1, 0], [0, 1]]", true},
              {"cholesky_factor_cov[2, 1] x", "[[1], [0]]", true},
              {"matrix[0, N] x", "[]", true},
              {"array[N] complex x", "[[1, 0], [0, 1], [1, 1]]", true},
              {"tuple(int, array[3] real) x", "[1, 2]", true},
              {"row_vector[ x", "[1]", true},
              {"array[", "[1]", true}};

START_TEST(shapes_are_compared)
{
    char program[256], json[256];
    em_stan_declared *declared;
    em_stan_data *data;

    snprintf(program, sizeof program, "data { int N; array[2] int K; %s; }", shapes[_i].declared);
    snprintf(json, sizeof json, "{\"N\": 3, \"K\": [1, 2], \"x\": %s}", shapes[_i].x);
    ck_assert_int_eq(em_stan_declared_read(program, &declared), EM_OK);
    ck_assert_int_eq(em_stan_data_read("d.json", json, &data), EM_OK);
    ck_assert_int_eq(em_stan_check_shapes("d.json", declared, EM_STAN_DATA, data, data),
                     shapes[_i].fits ? EM_OK : EM_EDATA);
    em_stan_declared_destroy(&declared);
    em_stan_data_destroy(&data);
}
END_TEST

/* ---- columns of tables, and data in configs ---- */

static void set_up(void)
{
    enter_test_folder();
    write_file("t.csv", "age,sex\n50,0\n60.1,1\n-1e-300,0\n");
    write_file("u.csv", "w\n1\n2\n");
    write_file("v.csv", "day,\"a, b\",note,w\n2026-01-01,1,x,7\n2026-01-02,2,NA,8\n");
}

static const struct {
    const char *json, *expected;
} columns[] = {
    {"{\"N\": \"rows\", \"y\": \"t.csv:age\"}", "{\"N\": 3, \"y\": [50, 60.1, -1e-300]}"},
    {"{\"X\": [\"t.csv:sex\", \"t.csv:age\"]}", "{\"X\": [[0, 50], [1, 60.1], [0, -1e-300]]}"},
    {"{\"X\": [\"t.csv:sex\"]}", "{\"X\": [[0], [1], [0]]}"},
    {"{\"w\": \"v.csv:w\", \"a\": [\"v.csv:a, b\", \"v.csv:w\"]}", /* others are no numbers */
     "{\"w\": [7, 8], \"a\": [[1, 7], [2, 8]]}"},
    {"{\"rows\": 2, \"a\": [1, \"NaN\"]}", "{\"rows\": 2, \"a\": [1, \"NaN\"]}"},
};

START_TEST(columns_are_filled_in)
{
    char *out;

    ck_assert_int_eq(em_stan_columns_fill_in(columns[_i].json, &out), EM_OK);
    ck_assert_str_eq(out, columns[_i].expected);
    em_release(&out);
}
END_TEST

static const struct {
    const char *json, *message;
} bad_columns[] = {
    {"{\"y\": \"t.csv:weight\"}", "t.csv: found no column weight"},
    {"{\"y\": \"v.csv:note\"}", "v.csv:2: found 'x' for column note, expected a number"},
    {"{\"N\": \"rows\"}",
     "model.data: found rows, but no column of a table, expected at least one"},
    {"{\"N\": \"rows\", \"a\": \"t.csv:age\", \"b\": \"u.csv:w\"}",
     "model.data: found rows, but t.csv has 3 rows and u.csv 2: expected tables with equal numbers "
     "of rows"},
    {"{\"X\": [\"t.csv:age\", \"u.csv:w\"]}", "u.csv has 2 rows, expected 3 as in t.csv"},
};

START_TEST(other_columns_are_refused)
{
    char *out = NULL;

    ck_assert_int_lt(em_stan_columns_fill_in(bad_columns[_i].json, &out), 0);
    ck_assert_str_eq(em_error_text(), bad_columns[_i].message);
    em_release(&out);
}
END_TEST

START_TEST(configs_hold_data)
{
    static const char text[] = "model:\n"
                               "  name: stan\n"
                               "  program: p.stan\n"
                               "  data:\n"
                               "    N: rows\n"
                               "    y: \"${HERE}/t.csv:age\"\n"
                               "    X: [[1, 2.50], [0x10, 'a: b']]\n"
                               "    t.csv: t.csv:age\n"
                               "sampler: {name: hmc}\n";
    static const char written[] =
        "data: {\"N\": \"rows\", \"y\": \"${HERE}/t.csv:age\", \"X\": [[1, 2.50], [\"0x10\", "
        "\"a: b\"]], \"t.csv\": \"t.csv:age\"}\n";
    em_config *config, *again;
    const em_stan_options *options;

    setenv("HERE", "/here", 1);
    ck_assert_msg(em_config_parse("f/c.yaml", text, 0, NULL, &config) == EM_OK, "%s",
                  em_error_text());
    options = config->model_options;
    ck_assert_str_eq(options->program, "f/p.stan");
    ck_assert_str_eq(options->data,
                     "{\"N\": \"rows\", \"y\": \"/here/t.csv:age\", \"X\": [[1, 2.50], [\"0x10\", "
                     "\"f/a: b\"]], \"t.csv\": \"f/t.csv:age\"}");
    ck_assert_ptr_nonnull(strstr(config->full, written));
    ck_assert_int_eq(em_config_parse("f/c.yaml", config->full, 0, NULL, &again), EM_OK);
    ck_assert_str_eq(again->full, config->full);
    em_config_destroy(&config);
    em_config_destroy(&again);
}
END_TEST

START_TEST(paths_of_data_are_paths)
{
    static const char *const override[] = {"model.data=d.json"};
    em_config *config;

    ck_assert_int_eq(em_config_parse("f/c.yaml",
                                     "model: {name: stan, program: p, data: {N: 1}}\n"
                                     "sampler: {name: hmc}\n",
                                     1, override, &config),
                     EM_OK);
    ck_assert_str_eq(((const em_stan_options *)config->model_options)->data, "f/d.json");
    em_config_destroy(&config);
}
END_TEST

static const struct {
    const char *data, *message;
} bad_configs[] = {
    {"[1, 2]", "c.yaml:1: model.data: found a list, expected a path or a mapping"},
    {"{a: *b}", "c.yaml:1: found an alias, expected the value itself"},
    {"{? [1] : 2}", "c.yaml:1: found a key that is not a name"},
    {"{a: [[[[[[[[[[[1]]]]]]]]]]]}", "c.yaml:1: nested more than 8 levels deep"},
    {"{y: \"${NOWHERE}/t:a\"}",
     "c.yaml:1: model.data: the environment variable NOWHERE is not set"},
};

START_TEST(other_data_in_configs_are_refused)
{
    char text[512];
    em_config *config;

    snprintf(text, sizeof text, "model: {name: stan, program: p, data: %s}\nsampler: {name: hmc}\n",
             bad_configs[_i].data);
    ck_assert_int_eq(em_config_parse("c.yaml", text, 0, NULL, &config), EM_ECONFIG);
    ck_assert_str_eq(em_error_text(), bad_configs[_i].message);
}
END_TEST

#define N(cases) (int)(sizeof(cases) / sizeof *(cases))

int main(void)
{
    Suite *suite = suite_create("stan");
    TCase *texts = tcase_create("texts"), *files = tcase_create("files");

    tcase_set_timeout(texts, 60);
    tcase_add_test(texts, names_become_arrays);
    tcase_add_loop_test(texts, other_names_are_refused, 0, N(no_arrays));
    tcase_add_test(texts, numbers_that_are_no_index);
    tcase_add_test(texts, many_names_take_no_long_time);
    tcase_add_test(texts, numbers_of_json);
    tcase_add_test(texts, data_keep_their_numbers);
    tcase_add_test(texts, few_data_are_kept);
    tcase_add_loop_test(texts, other_data_are_refused, 0, N(bad_data));
    tcase_add_test(texts, declarations_are_found);
    tcase_add_test(texts, solvers_and_dropped_constants_are_noticed);
    tcase_add_test(texts, generated_quantities_are_taken_out);
    tcase_add_test(texts, cut_programs_are_read);
    tcase_add_loop_test(texts, shapes_are_compared, 0, (int)(sizeof shapes / sizeof *shapes));
    tcase_add_test(texts, configs_hold_data);
    tcase_add_test(texts, paths_of_data_are_paths);
    tcase_add_loop_test(texts, other_data_in_configs_are_refused, 0, N(bad_configs));
    tcase_add_checked_fixture(files, set_up, leave_test_folder);
    tcase_set_timeout(files, 60);
    tcase_add_loop_test(files, columns_are_filled_in, 0, N(columns));
    tcase_add_loop_test(files, other_columns_are_refused, 0, N(bad_columns));
    suite_add_tcase(suite, texts);
    suite_add_tcase(suite, files);
    return run_suite(suite, CK_FORK);
}
