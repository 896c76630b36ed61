/* The config parser: valid configs, their defaults, values and overrides. Errors:
 * test_config_errors.c. */
#include "adaptation/mass_window/mass_options.h"
#include "base/memory.h"
#include "base/options/field.h"
#include "model/model_list.h"
#include "run/config/model_catalogue.h"
#include "support/parse_config.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static em_config *parse_with(const char *override)
{
    return parse_config("heart.yaml", SHORTEST_CONFIG, 1, &override);
}

START_TEST(reads_the_example_of_the_contract)
{
    em_config *c = parse_config("jobs/heart.yaml", example_config, 0, NULL);
    const em_sampler_options *sampler = c->sampler_options;

    ck_assert_str_eq(c->model->name, "logistic");
    ck_assert_str_eq(c->sampler->name, "hmc");
    ck_assert(isnan(sampler->step_size));
    ck_assert_int_eq(sampler->adapt_every, 1);
    ck_assert_int_eq(sampler->minibatch, 100);
    ck_assert_double_eq(sampler->target_accept, 0.8);
    ck_assert_int_eq(c->mass.structure, EM_STRUCTURE_DENSE);
    ck_assert_double_eq(c->mass.kappa_k0, 1);
    ck_assert_double_eq(c->mass.kappa_eta, 1);
    ck_assert_int_eq(c->run.chains, 8);
    ck_assert_double_eq(c->stop.r_hat, 1.01);
    ck_assert_double_eq(c->stop.max_time, 3 * 3600);
    ck_assert_str_eq(c->output.file, "heart.h5");
    ck_assert_int_eq(c->output.variables.count, 1);
    ck_assert_str_eq(c->output.variables.value[0], "beta");
    ck_assert_double_eq(c->output.checkpoint_every, 600);
    em_config_destroy(&c);
    ck_assert_ptr_null(c);
}
END_TEST

START_TEST(needs_no_sampler)
{
    static const char *const texts[] = {"model: {name: gaussian}\n",
                                        "model: {name: gaussian}\nsampler:\n",
                                        "sampler: {}\nmodel: {name: gaussian}\n",
                                        "model: {name: gaussian}\nsampler: {leapfrog_steps: 3}\n"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        em_config *c = parse_config("heart.yaml", texts[i], 0, NULL);
        ck_assert_str_eq(c->sampler->name, "hmc");
        ck_assert_ptr_nonnull(strstr(c->full, "\nsampler:\n  name: hmc\n"));
        em_config_destroy(&c);
    }
}
END_TEST

START_TEST(passes_over_a_byte_order_mark)
{
    em_config *c = parse_config("heart.yaml", "\xef\xbb\xbf" SHORTEST_CONFIG, 0, NULL);

    ck_assert_str_eq(c->model->name, "gaussian");
    em_config_destroy(&c);
    check_config_fails("\xef\xbb\xbf\nmodel: {name: gaussian}\nnum: 3\n", 0, NULL,
                       "heart.yaml:3: unknown key num; did you mean run?");
}
END_TEST

START_TEST(fills_in_the_defaults)
{
    em_config *c = parse_config("jobs/heart.yaml", SHORTEST_CONFIG, 0, NULL);

    ck_assert_int_eq(c->run.chains, 4);
    ck_assert_int_eq(c->run.shards, 1);
    ck_assert_int_eq(c->run.warmup, INT64_MIN);
    ck_assert(c->stop.until_done);
    ck_assert_int_eq(c->run.draws, c->stop.max_draws);
    ck_assert_int_eq(c->stop.max_draws, 5000);
    ck_assert_int_eq(c->run.thin, 1);
    ck_assert_int_eq(c->run.seed, 1);
    ck_assert_double_eq(c->run.init_radius, 2);
    ck_assert(isnan(c->stop.r_hat) && isnan(c->stop.ess) && isnan(c->stop.max_time));
    ck_assert_int_eq(c->stop.check_every, 200);
    ck_assert_int_eq(c->stop.consecutive, 2);
    ck_assert_str_eq(c->output.file, "heart.h5"); /* in the current folder, not in jobs/ */
    ck_assert(!c->output.save_warmup && !c->output.save_unconstrained);
    ck_assert_int_eq(c->output.variables.count, 0);
    ck_assert_int_eq(c->output.flush_every, 100);
    ck_assert_double_eq(c->output.checkpoint_every, 600);
    em_config_destroy(&c);
}
END_TEST

/* Every default of every table is a valid value, and groups of dotted names are in one place. */
static void check_table(const char *name, const em_field *table)
{
    for (const em_field *field = table; field && field->name; field++) {
        const char *dot = strchr(field->name, '.');

        ck_assert_msg(field->doc && *field->doc, "%s: %s has no doc", name, field->name);
        ck_assert_msg(em_field_find(table, field->name) == field, "%s: two %s", name, field->name);
        ck_assert_msg(!dot || !strchr(dot + 1, '.'), "%s: %s", name, field->name);
        ck_assert_msg(field->type != EM_FIELD_CHOICE || field->choices, "%s: %s", name,
                      field->name);
    }
}

static void check_variants(em_variant_list *variants, const char *config_format)
{
    em_variant variant;

    for (int i = 0; variants(i, &variant); i++) {
        char text[256];
        em_config *config = NULL;

        ck_assert(*variant.name && *variant.doc && *variant.source);
        check_table(variant.name, variant.fields);
        snprintf(text, sizeof text, config_format, variant.name);
        ck_assert_msg(em_config_parse("c.yaml", text, 0, NULL, &config) == EM_OK ||
                          strstr(em_error_text(), "is missing") ||
                          strstr(em_error_text(), "cannot adapt"),
                      "%s", em_error_text());
        em_config_destroy(&config);
    }
}

START_TEST(tables_are_sound)
{
    check_variants(em_model_variant, "model: {name: %s}\nsampler: {name: hmc}\n");
    check_variants(em_sampler_variant, "model: {name: gaussian}\nsampler: {name: %s}\n");
    check_table("mass", em_mass_fields);
    check_table("run", em_run_fields);
    check_table("stop", em_stop_fields);
    check_table("output", em_output_fields);
}
END_TEST

typedef struct named_like {
    em_reals layers;
    char *data;
} named_like;

/* A list that is data to one model is numbers to another, whose option has the same name: it is the
 * model of the config that is asked. */
START_TEST(a_list_is_what_its_model_says)
{
    static const em_field fields[] = {EM_REALS(named_like, layers, .doc = "numbers"),
                                      EM_TEXT(named_like, data, .fallback = "", .doc = "text"),
                                      {0}};
    static const em_model_ops ops = {.name = "named_like",
                                     .doc = "options that others have",
                                     .options_size = sizeof(named_like),
                                     .fields = fields};
    const em_model_ops *models[] = {&ops};
    const em_registry registry = {1, models};
    const em_registry *before = em_registry_enter(&registry);
    static const char *const set[] = {"model.name=named_like", "model.layers=[4, 5]"};
    char text[8000] = "model: {name: named_like, layers: [0";

    for (int i = 1; i < 1500; i++) /* more than there may be entries */
        snprintf(text + strlen(text), sizeof text - strlen(text), ",%d", i);
    strcat(text, "]}\n");
    em_config *c = parse_config("c.yaml", text, 0, NULL);
    ck_assert_int_eq(((const named_like *)c->model_options)->layers.count, 1500);
    em_config_destroy(&c);
    c = parse_config("c.yaml", "model: {name: network}\n", 2, set);
    ck_assert_int_eq(((const named_like *)c->model_options)->layers.count, 2);
    em_config_destroy(&c);
    check_config_fails("model: {name: named_like, data: {N: 3}, layers: [1]}\n", 0, NULL,
                       "heart.yaml:1: model.data: found a mapping, expected a value");
    check_config_fails(
        "model: {name: named_like, layers: [{dense: 3}]}\n", 0, NULL,
        "heart.yaml:1: found a list, mapping or alias in a list, expected text or numbers");
    em_registry_enter(before);
}
END_TEST

/* ---- the full config ---- */

static void check_full(const char *path, const char *text, int n_override,
                       const char *const *override)
{
    em_config *c = parse_config(path, text, n_override, override);
    em_config *again = parse_config(path, c->full, 0, NULL);

    ck_assert_str_eq(again->full, c->full);
    em_config_destroy(&c);
    em_config_destroy(&again);
}

START_TEST(full_config_parses_to_itself)
{
    static const char *const odd[] = {
        "output.file='it''s #1: a, [b] {c}.h5'", "output.variables=['null', a b, ~x, '', '- y']",
        "stop.max_time=1.5h", "run.init_radius=0.1234567890123456789", "output.file='~'"};

    check_full("jobs/heart.yaml", example_config, 0, NULL);
    check_full("heart.yaml", SHORTEST_CONFIG, 0, NULL);
    for (int i = 0; i < 5; i++)
        check_full("heart.yaml", SHORTEST_CONFIG, 1, &odd[i]);
    check_full("odd 'name'.of: a, config.yaml", SHORTEST_CONFIG, 0, NULL);
    check_full("\xc3\x9f.yaml",
               "model: {name: logistic, response: \"gr\xc3\xb6\xc3\x9f\x65\"}\n"
               "sampler: {name: hmc}\n",
               0, NULL);
}
END_TEST

START_TEST(full_config_has_a_fixed_order)
{
    em_config *c =
        parse_config("a.yaml", "sampler: {name: hmc}\nmodel: {name: gaussian}\n", 0, NULL);
    em_config *d = parse_config("a.yaml", SHORTEST_CONFIG, 0, NULL);

    ck_assert_str_eq(c->full, d->full);
    ck_assert_ptr_nonnull(strstr(c->full, "  kappa:\n    k0: 1\n    eta: auto\n"));
    ck_assert_ptr_nonnull(
        strstr(c->full, "stop:\n  r_hat: none\n  ess: none\n  check_every: 200\n"
                        "  consecutive: 2\n  max_draws: 5000\n"
                        "  max_gradients: none\n  end_after: none\n  separate_modes: true\n"
                        "  max_time: none\noutput:\n"
                        "  file: a.h5\n  save_warmup: false\n"
                        "  save_unconstrained: false\n  prior_draws: 0\n"
                        "  variables: []\n"
                        "  flush_every: 100\n  checkpoint_every: 10m\n"
                        "  keep_checkpoint: false\n"));
    em_config_destroy(&c);
    em_config_destroy(&d);
}
END_TEST

START_TEST(numbers_come_back_bit_for_bit)
{
    const em_field field = {.name = "x", .type = EM_FIELD_REAL};
    uint64_t state = 1;

    for (int i = 0; i < 20000; i++) {
        double x, y;
        char text[64] = "";
        FILE *out = fmemopen(text, sizeof text - 1, "w");

        state = state * 6364136223846793005u + 1442695040888963407u;
        memcpy(&x, &state, sizeof x);
        if (isfinite(x)) {
            char *element = text;
            const em_value value = {EM_VALUE_SCALAR, {1, &element}};
            em_field_write(&field, &x, out);
            fflush(out);
            ck_assert_int_eq(em_field_read(&field, &value, &y), EM_OK);
            ck_assert_msg(memcmp(&x, &y, sizeof x) == 0, "%a became %s", x, text);
        }
        fclose(out);
    }
}
END_TEST

/* ---- values ---- */

static void is_refused(const char *key, const char *value, const char *expected)
{
    char set[64];
    const char *override = set;
    em_config *config;

    snprintf(set, sizeof set, "%s=%s", key, value);
    ck_assert_msg(em_config_parse("a", SHORTEST_CONFIG, 1, &override, &config) == EM_ECONFIG, "%s",
                  set);
    ck_assert_ptr_nonnull(strstr(em_error_text(), expected));
}

START_TEST(reads_integers)
{
    static const struct {
        const char *set;
        int64_t seed;
    } good[] = {{"run.seed=0", 0},        {"run.seed=1e6", 1000000},
                {"run.seed=2.5e3", 2500}, {"run.seed='12'", 12},
                {"run.seed=007", 7},      {"run.seed=9007199254740992", 9007199254740992}};
    static const char *const bad[] = {
        "1_000", "1.5", "0x10", "1e-3", "-1", "1e300", "99999999999999999999", "9007199254740994",
        "",      "[1]", "1 2"};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        em_config *c = parse_with(good[i].set);
        ck_assert_int_eq(c->run.seed, good[i].seed);
        em_config_destroy(&c);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        is_refused("run.seed", bad[i], "an integer from 0 to 9007199254740992");
}
END_TEST

START_TEST(reads_durations)
{
    static const struct {
        const char *set;
        double seconds;
    } good[] = {{"stop.max_time=90", 90},           {"stop.max_time=90s", 90},
                {"stop.max_time=10m", 600},         {"stop.max_time=1.5h", 5400},
                {"stop.max_time=1d", 86400},        {"stop.max_time=01:30:00", 5400},
                {"stop.max_time=100:00:01", 360001}};
    static const char *const bad[] = {"10 m", "1:30", "01:60:00", "01:00:60", "-1s",  "3w",
                                      "1hh",  "h",    "1:2:3:4",  "inf",      "1e400"};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        em_config *c = parse_with(good[i].set);
        ck_assert_double_eq(c->stop.max_time, good[i].seconds);
        em_config_destroy(&c);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        is_refused("stop.max_time", bad[i], "expected a duration");
}
END_TEST

static const char *data_of(em_config *config)
{
    const em_field *field = em_field_find(config->model->fields, "data");
    return *(char **)((char *)config->model_options + field->offset);
}

/* Parses a config in a folder of its own that has the file. */
static em_config *parse_beside_data(const char *config, const char *file, const char *written)
{
    char folder[] = "/tmp/emass-config-XXXXXX", text[256], command[256];
    em_config *c;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(command, sizeof command, "cd %s && mkdir -p jobs/data && : >%s", folder, file);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(chdir(folder), 0);
    snprintf(text, sizeof text, "model: {name: logistic, data: '%s'}\n", written);
    c = parse_config(config, text, 0, NULL);
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(system(command), 0);
    return c;
}

START_TEST(places_paths)
{
    static const struct {
        const char *config, *written, *path;
    } cases[] = {{"heart.yaml", "a.csv", "a.csv"},
                 {"jobs/heart.yaml", "a.csv", "jobs/a.csv"},
                 {"/x/jobs/heart.yaml", "../a.h5:/group/x", "/x/jobs/../a.h5:/group/x"},
                 {"jobs/heart.yaml", "/a.csv", "/a.csv"},
                 {"jobs/heart.yaml", "${EM_HERE}/${EM_HERE}.csv", "/here//here.csv"},
                 {"jobs/heart.yaml", "$a}{.csv", "jobs/$a}{.csv"}};

    setenv("EM_HERE", "/here", 1);
    unsetenv("EMASS_DATA");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        em_config *c;

        snprintf(text, sizeof text, "model: {name: logistic, data: '%s'}\nsampler: {name: hmc}\n",
                 cases[i].written);
        c = parse_config(cases[i].config, text, 0, NULL);
        ck_assert_str_eq(data_of(c), cases[i].path);
        ck_assert_ptr_nonnull(strstr(c->full, cases[i].written));
        em_config_destroy(&c);
    }
    em_config *c = parse_beside_data("jobs/heart.yaml", "jobs/data/a.csv", "${EMASS_DATA}/a.csv");
    ck_assert_str_eq(data_of(c), "jobs/data/a.csv");
    em_config_destroy(&c);
    c = parse_beside_data("jobs/heart.yaml", "jobs/data/a.h5", "${EMASS_DATA}/a.h5:/x");
    ck_assert_str_eq(data_of(c), "jobs/data/a.h5:/x");
    em_config_destroy(&c);
    check_config_fails(
        "model: {name: linear, data: '${EMASS_DATA}/x.csv'}\n", 0, NULL,
        "heart.yaml:1: model.data: found nothing at data/x.csv, expected a file there, "
        "or the environment variable EMASS_DATA, which is not set, to name the folder of "
        "the data");
    setenv("EMASS_DATA", "/data", 1);
    c = parse_config("jobs/a.yaml",
                     "model: {name: logistic, data: '${EMASS_DATA}/a'}\n"
                     "sampler: {name: hmc}\n",
                     0, NULL);
    ck_assert_str_eq(data_of(c), "/data/a");
    em_config_destroy(&c);
    setenv("EM_SCRATCH", "/scratch/me", 1);
    c = parse_config("jobs/a.yaml",
                     "model: {name: eight_schools}\noutput: {file: '${EM_SCRATCH}/a.h5'}\n", 0,
                     NULL);
    ck_assert_str_eq(c->output.file, "/scratch/me/a.h5");
    em_config_destroy(&c);
    unsetenv("EM_NOWHERE");
    check_config_fails("model: {name: eight_schools}\noutput: {file: '${EM_NOWHERE}/a.h5'}\n", 0,
                       NULL,
                       "heart.yaml:2: output.file: the environment variable EM_NOWHERE is not set");
    c = parse_config("a${b}.yaml", "model: {name: eight_schools}\n", 0, NULL);
    ck_assert_str_eq(c->output.file, "a${b}.h5");
    em_config_destroy(&c);
    check_config_fails("model:\n  name: logistic\n  data: ${EM_NOWHERE}/x\nsampler: {name: hmc}\n",
                       0, NULL,
                       "heart.yaml:3: model.data: the environment variable EM_NOWHERE is not set");
    check_config_fails("model:\n  name: logistic\n  data: ${EM_HERE\nsampler: {name: hmc}\n", 0,
                       NULL, "heart.yaml:3: model.data: found '${EM_HERE', expected ${NAME}");
}
END_TEST

/* ---- overrides ---- */

START_TEST(overrides_replace_and_add)
{
    static const char *const set[] = {
        "run.chains=2", "mass.kappa={k0: 3}",    "run.chains=16", "output.variables=[mu, tau]",
        "stop.ess=100", "model.prior_scale=1e2", "output.file="};
    em_config *c = parse_config("heart.yaml", example_config, 7, set);

    ck_assert_int_eq(c->run.chains, 16);
    ck_assert_double_eq(c->mass.kappa_k0, 3);
    ck_assert_double_eq(c->mass.kappa_eta, 1);
    ck_assert_int_eq(c->output.variables.count, 2);
    ck_assert_str_eq(c->output.variables.value[1], "tau");
    ck_assert_double_eq(c->stop.ess, 100);
    ck_assert_str_eq(c->output.file, "heart.h5");
    ck_assert_ptr_nonnull(strstr(c->full, "prior_scale: 100\n"));
    em_config_destroy(&c);
}
END_TEST

START_TEST(overrides_fail_by_name)
{
    static const struct {
        const char *set, *message;
    } cases[] = {
        {"sampler.step_size=ten",
         "--set sampler.step_size=ten: sampler.step_size: found 'ten', expected a number from "
         "1e-300 to 1e+300, or adapt"},
        {"sampler.stepsize=1",
         "--set sampler.stepsize=1: unknown key sampler.stepsize; did you mean step_size?"},
        {"run.chains", "--set run.chains: expected key.path=value"},
        {"=3", "--set =3: expected key.path=value"},
        {"run=3", "--set run=3: run: found a value, expected a mapping of options, such as "
                  "{chains: ...}"},
        {"mass.kappa=3", "--set mass.kappa=3: mass.kappa: found a value, expected a mapping of "
                         "options, such as {k0: ...}"},
        {"run.seed=[1, 2", "--set run.seed=[1, 2: not YAML: did not find expected ',' or ']'"},
        {"run.seed=# 3", "--set run.seed=# 3: found nothing, expected YAML"},
        {"run.seed=1\n---\n2", "--set run.seed=1\\n---\\n2: found a second document, expected one"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_config_fails(SHORTEST_CONFIG, 1, &cases[i].set, cases[i].message);
}
END_TEST

int main(void)
{
    TCase *valid = tcase_create("config");

    tcase_add_test(valid, reads_the_example_of_the_contract);
    tcase_add_test(valid, fills_in_the_defaults);
    tcase_add_test(valid, needs_no_sampler);
    tcase_add_test(valid, passes_over_a_byte_order_mark);
    tcase_add_test(valid, tables_are_sound);
    tcase_add_test(valid, a_list_is_what_its_model_says);
    tcase_add_test(valid, full_config_parses_to_itself);
    tcase_add_test(valid, full_config_has_a_fixed_order);
    tcase_add_test(valid, numbers_come_back_bit_for_bit);
    tcase_add_test(valid, reads_integers);
    tcase_add_test(valid, reads_durations);
    tcase_add_test(valid, places_paths);
    tcase_add_test(valid, overrides_replace_and_add);
    tcase_add_test(valid, overrides_fail_by_name);
    return run_case(valid, CK_FORK_GETENV);
}
