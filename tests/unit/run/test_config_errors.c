/* Errors of configs, each with its exact line, and hostile input. */
#include "base/fault.h"
#include "base/memory.h"
#include "base/text/nearest.h"
#include "support/parse_config.h"

#include <stdlib.h>

/* ---- errors ---- */

#define TOP SHORTEST_CONFIG "run:\n"
static const struct {
    const char *text, *message;
} errors[] = {
    /* keys */
    {"model: {name: gaussian}\nsampler:\n  name: hmc\n\n  # a comment\n\n  stepsize: 1\n",
     "heart.yaml:7: unknown key sampler.stepsize; did you mean step_size?"},
    {"model: {name: gaussian}\nsamplr: {name: hmc}\n",
     "heart.yaml:2: unknown key samplr; did you mean sampler?"},
    {"model: {name: gaussian}\nsampler: {nam: hmc}\n",
     "heart.yaml:2: unknown key sampler.nam; did you mean name?"},
    {SHORTEST_CONFIG "chains: 3\n", "heart.yaml:3: unknown key chains; did you mean run.chains?"},
    {SHORTEST_CONFIG "stop:\n  draws: 3\n",
     "heart.yaml:4: unknown key stop.draws; did you mean run.draws?"},
    {"model: {name: gaussian, file: x}\n",
     "heart.yaml:1: unknown key model.file; did you mean output.file? "
     "(see emass list models gaussian)"},
    {"model: {name: gaussian, extraordinary: 3}\n",
     "heart.yaml:1: unknown key model.extraordinary (see emass list models gaussian)"},
    {TOP "  shrads: 3\n", "heart.yaml:4: unknown key run.shrads; did you mean shards?"},
    {TOP "  extraordinary: 3\n", "heart.yaml:4: unknown key run.extraordinary (see emass list)"},
    {SHORTEST_CONFIG "weather: fine\n",
     "heart.yaml:3: unknown key weather, expected model, sampler, "
     "mass, run, stop, output or temper"},
    {SHORTEST_CONFIG "mass:\n  kappa:\n    k1: 3\n",
     "heart.yaml:5: unknown key mass.kappa.k1; did you mean kappa.k0?"},
    {TOP "  seed: 1\n  chains: 2\n  seed: 2\n",
     "heart.yaml:6: duplicate key run.seed, first given at heart.yaml:4"},
    {SHORTEST_CONFIG "mass: {kappa: {k0: 1}, kappa.k0: 2}\n",
     "heart.yaml:3: duplicate key mass.kappa.k0, first given at heart.yaml:3"},
    {"model:\n  name: gaussian\n  prior_scale: 3\nsampler: {name: hmc}\n",
     "heart.yaml:3: model.prior_scale is not an option of gaussian, but of linear"},
    {TOP "  [a]: 2\n", "heart.yaml:4: found a key that is not a name"},
    {TOP "  '': 2\n", "heart.yaml:4: found a key that is not a name"},
    /* names */
    {"model: {name: gausian}\nsampler: {name: hmc}\n",
     "heart.yaml:1: unknown model 'gausian'; did you mean gaussian?"},
    {"model: {name: gamma, data: a.csv}\n",
     "heart.yaml:1: unknown model 'gamma'; regressions are linear, logistic, poisson and "
     "negative_binomial, and others need a Stan program (name: stan), as brms makes it, or a model "
     "of Bambi"},
    {"model: {name: linear, family: gamma, data: a.csv}\n",
     "heart.yaml:1: unknown key model.family; the family is the name of the model: linear, "
     "logistic, "
     "poisson or negative_binomial, or, in a Stan program, stan"},
    {"model: {name: gaussian}\nsampler:\n  name: metropolis\n",
     "heart.yaml:3: unknown sampler 'metropolis' (see emass list samplers)"},
    {"model:\n  name: [gaussian]\nsampler: {name: hmc}\n",
     "heart.yaml:2: model.name: expected a name (see emass list models)"},
    {"\nmodel: {}\nsampler: {name: hmc}\n",
     "heart.yaml:2: model.name is missing (see emass list models)"},
    {"model: {name: gaussian}\nsampler: {friction: 1}\n",
     "heart.yaml:2: sampler.friction is not an option of hmc, but of sghmc"},
    {"model: {name: gaussian}\nsampler: {nmae: sgld}\n",
     "heart.yaml:2: unknown key sampler.nmae; did you mean name?"},
    {"model: {name: gaussian}\nsampler: {name: }\n",
     "heart.yaml:2: sampler.name: expected a name (see emass list samplers)"},
    {SHORTEST_CONFIG "mass: {from_positions: true}\n",
     "heart.yaml:3: mass.from_positions: found true without mass.from, expected the file that has "
     "the positions"},
    {SHORTEST_CONFIG "output:\n  file: ''\n", "heart.yaml:4: output.file: found '', expected text"},
    {SHORTEST_CONFIG "mass: {from: ''}\n", "heart.yaml:3: mass.from: found '', expected a path"},
    {TOP "  seed: 9007199254740993\n",
     "heart.yaml:4: run.seed: found '9007199254740993', expected an integer from 0 to "
     "9007199254740992"},
    {"model:\n  name: linear\nsampler: {name: hmc}\n", "heart.yaml:1: model.data is missing"},
    /* values */
    {TOP "  chains: ten\n",
     "heart.yaml:4: run.chains: found 'ten', expected an integer from 1 to 1000000"},
    {TOP "  chains: 0\n",
     "heart.yaml:4: run.chains: found '0', expected an integer from 1 to 1000000"},
    {TOP "  chains: [1, 2]\n",
     "heart.yaml:4: run.chains: found a list, expected an integer from 1 to 1000000"},
    {TOP "  chains:\n",
     "heart.yaml:4: run.chains: found nothing, expected an integer from 1 to 1000000"},
    {TOP "  chains: {a: 1}\n", "heart.yaml:4: run.chains: found a mapping, expected a value"},
    {TOP "  chains:\n    ten\n",
     "heart.yaml:5: run.chains: found 'ten', expected an integer from 1 to 1000000"},
    {"model: {name: logistic, prior_scale: 1e999}\nsampler: {name: hmc}\n",
     "heart.yaml:1: model.prior_scale: found '1e999', expected a number from 1e-300 to 1e+300, or "
     "none"},
    {TOP "  init_radius: .nan\n",
     "heart.yaml:4: run.init_radius: found '.nan', expected a number from 0 to 1000000"},
    {TOP "  init_radius: .inf\n",
     "heart.yaml:4: run.init_radius: found '.inf', expected a number from 0 to 1000000"},
    {TOP "  init_radius: 1e999\n",
     "heart.yaml:4: run.init_radius: found '1e999', expected a number from 0 to 1000000"},
    {SHORTEST_CONFIG "mass: {estimator: fihser}\n",
     "heart.yaml:3: mass.estimator: found 'fihser', expected one of none, momentum, fisher, "
     "variance, gradient, noise; did you mean fisher?"},
    {SHORTEST_CONFIG "output:\n  save_warmup: yes\n",
     "heart.yaml:4: output.save_warmup: found 'yes', expected true or false"},
    {SHORTEST_CONFIG "output:\n  variables:\n    - mu\n    - [tau]\n",
     "heart.yaml:6: found a list, mapping or alias in a list, expected text or numbers"},
    {SHORTEST_CONFIG "stop: {max_time: soon}\n",
     "heart.yaml:3: stop.max_time: found 'soon', expected a duration (90, 90s, 10m, 3h, 1d or "
     "01:30:00) of at least 0 seconds, or none"},
    {"model: {name: eight_schools, sigma: [1, -2]}\nsampler: {name: hmc}\n",
     "heart.yaml:1: model.sigma: found '-2', expected a list of numbers from 1e-300 to 1e+300"},
    {SHORTEST_CONFIG "output: {file: \"a\\nb\"}\n",
     "heart.yaml:3: found a line break or control character in 'a\\nb', expected one line of text"},
    {SHORTEST_CONFIG "run: 3\n",
     "heart.yaml:3: run: found a value, expected a mapping of options, such as {chains: ...}"},
    /* together */
    {TOP "  warmup: 0\n",
     "heart.yaml:4: run.warmup is 0, but sampler.step_size is adapted in warmup: expected a number "
     "for it, or more warmup"},
    {TOP "  thin: 1000000\n  draws: 1000000000\n",
     "heart.yaml:5: run.warmup + run.draws x run.thin is 1000000000001000 iterations, expected "
     "less than 2^40"},
    {TOP "  thin: 1000000\nstop:\n  max_draws: 1000000000\n",
     "heart.yaml:6: run.warmup + stop.max_draws x run.thin is 1000000000001000 iterations, "
     "expected less than 2^40"},
    {TOP "  draws: 100\nstop:\n  max_draws: 200\n",
     "heart.yaml:6: stop.max_draws: found together with run.draws: 100, expected run.draws: auto"},
    {TOP "  draws: 100\nstop: {max_gradients: 1}\n",
     "heart.yaml:5: stop.max_gradients: found together with run.draws: 100, expected run.draws: "
     "auto"},
    {"model: {name: gaussian}\nsampler: {name: adam}\nrun: {draws: auto}\n",
     "heart.yaml:3: run.draws: found auto, expected a number: adam is an optimiser, and R-hat does "
     "not apply to its draws"},
    {"model: {name: gaussian}\nstop: {max_gradients: 9}\ntemper: {}\n",
     "heart.yaml:2: stop.max_gradients: found with temper, expected stop.max_draws or "
     "stop.end_after: gradients of copies are not counted"},
    {"model: {name: gaussian}\nstop: {max_gradients: 9}\ntemper: auto\n",
     "heart.yaml:2: stop.max_gradients: found with temper, expected stop.max_draws or "
     "stop.end_after: gradients of copies are not counted"},
    {SHORTEST_CONFIG "temper: aut\n", "heart.yaml:3: temper.when: found 'aut', expected one of "
                                      "always, auto, never; did you mean auto?"},
    {SHORTEST_CONFIG "temper: {when: often}\n",
     "heart.yaml:3: temper.when: found 'often', expected one of always, auto, never"},
    {SHORTEST_CONFIG "temper: [auto]\n",
     "heart.yaml:3: temper: found a value, expected a mapping of options, such as {when: ...}"},
    {SHORTEST_CONFIG "temper: auto\nrun: {warmup: 31}\n",
     "heart.yaml:4: run.warmup: found 31 with temper: auto, expected auto or at least 32: modes "
     "are "
     "found from the draws of warmup"},
    /* YAML */
    {"", "heart.yaml:1: found nothing, expected YAML"},
    {"# nothing\n", "heart.yaml:2: found nothing, expected YAML"},
    {"hello\n", "heart.yaml:1: expected a mapping, lines of the form key: value"},
    {"- a\n", "heart.yaml:1: expected a mapping, lines of the form key: value"},
    {SHORTEST_CONFIG "---\nrun: {}\n", "heart.yaml:3: found a second document, expected one"},
    {TOP "\tseed: 1\n", "heart.yaml:4: found a tab before the first word, expected spaces"},
    {TOP "  seed: 1\n chains: 2\n",
     "heart.yaml:5: not YAML: did not find expected key, while parsing a block mapping from line "
     "1 on"},
    {SHORTEST_CONFIG "run: {seed: 1\n",
     "heart.yaml:4: not YAML: did not find expected ',' or '}', while parsing a flow mapping from "
     "line 3 on"},
    {TOP "  seed: '1\n",
     "heart.yaml:5: not YAML: found unexpected end of stream, while scanning a quoted scalar from "
     "line 4 on"},
    {TOP "  seed: &s 1\n  thin: *s\n",
     "heart.yaml:5: found the alias *s, expected the value itself"},
    {TOP "  seed: \xff\n", "heart.yaml:4: not YAML: invalid leading UTF-8 octet"},
    {TOP "  seed: \x01\n", "heart.yaml:4: not YAML: control characters are not allowed"},
    {SHORTEST_CONFIG "a: {a: {a: {a: {a: {a: {a: {a: {a: 1}}}}}}}}\n",
     "heart.yaml:3: nested more than 8 levels deep"},
};

START_TEST(errors_name_the_line)
{
    check_config_fails(errors[_i].text, 0, NULL, errors[_i].message);
}
END_TEST

START_TEST(messages_leave_room_for_what_is_expected)
{
    char text[4096], key[2048];
    em_config *c;

    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = '\0';
    snprintf(text, sizeof text, SHORTEST_CONFIG "run: {chains: %s}\n", key);
    ck_assert_int_eq(em_config_parse("heart.yaml", text, 0, NULL, &c), EM_ECONFIG);
    ck_assert_ptr_nonnull(strstr(em_error_text(), "expected an integer from 1 to 1000000"));
    snprintf(text, sizeof text, SHORTEST_CONFIG "run: {? %s : 1}\n", key);
    ck_assert_int_eq(em_config_parse("heart.yaml", text, 0, NULL, &c), EM_ECONFIG);
    ck_assert_ptr_nonnull(strstr(em_error_text(), "unknown key run.kkk"));
    ck_assert_ptr_nonnull(strstr(em_error_text(), "see emass list"));
}
END_TEST

START_TEST(finds_the_nearest_name)
{
    static const char *const pairs[][2] = {
        {"HMC", "hmc"}, {"stepsize", "step_size"}, {"darws", "draws"},
        {"", NULL},     {"unrelated", NULL},       {"target_acceptance", "target_accept"}};
    static const char *const names[] = {"hmc", "draws", "step_size", "target_accept"};

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        em_nearest nearest = em_nearest_start(pairs[i][0]);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            em_nearest_offer(&nearest, names[k]);
        ck_assert_pstr_eq(nearest.name, pairs[i][1]);
    }
}
END_TEST

/* ---- hostile input ---- */

/* Whatever the text, the parser returns, and a config it accepts is a whole one. */
static void check_survives(const char *text)
{
    em_config *c;
    em_status status = em_config_parse("heart.yaml", text, 0, NULL, &c);

    ck_assert(status == EM_OK || status == EM_ECONFIG);
    ck_assert(status == EM_OK || *em_error_text());
    ck_assert(!strpbrk(em_error_text(), "\n\r\t"));
    if (!status) {
        em_config *again;
        ck_assert_msg(em_config_parse("heart.yaml", c->full, 0, NULL, &again) == EM_OK, "%s\n%s",
                      em_error_text(), c->full);
        ck_assert_str_eq(again->full, c->full);
        em_config_destroy(&again);
    }
    em_config_destroy(&c);
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

START_TEST(survives_mutations)
{
    static const char tokens[] = "{}[]:,-#&*!|>'\"%@`?~ \n\t.0e\xc3\xe2\x80\xff\\";
    const size_t length = strlen(example_config);
    uint64_t state = (uint64_t)_i + 1;
    char *text;

    setenv("EMASS_DATA", "/data", 1);
    ck_assert_int_eq(em_allocate((int64_t)length + 1, 1, &text), EM_OK);
    for (int round = 0; round < 400; round++) {
        const uint32_t n_mutation = 1 + next_random(&state) % 8;

        memcpy(text, example_config, length + 1);
        for (uint32_t m = 0; m < n_mutation; m++) {
            const size_t at = next_random(&state) % length;
            const uint32_t kind = next_random(&state) % 4;

            if (kind == 0)
                text[at] = (char)(1 + next_random(&state) % 255);
            else if (kind == 1)
                text[at] = tokens[next_random(&state) % (sizeof tokens - 1)];
            else if (kind == 2)
                text[at] = '\0'; /* a shorter text */
            else if (text[at])
                memmove(text + at, text + at + 1, strlen(text + at)); /* a byte less */
        }
        check_survives(text);
    }
    em_release(&text);
}
END_TEST

/* A megabyte of brackets takes libyaml minutes, if one lets it. */
START_TEST(survives_deep_nesting)
{
    static const char *const patterns[] = {"[",   "{",    "- ",   "? ",  "a: {",
                                           "[a,", "{a: ", "\"",   "a\n", "a: b\n",
                                           "*a ", "&a [", "!!a ", "a.",  "'"};
    const char *pattern = patterns[_i];
    enum { BYTES = 1 << 20 };
    char *text;

    ck_assert_int_eq(em_allocate(BYTES + 1, 1, &text), EM_OK);
    for (size_t i = 0; i < BYTES; i++)
        text[i] = pattern[i % strlen(pattern)];
    check_survives(text);
    memcpy(text, "run: ", 5);
    check_survives(text);
    em_release(&text);
}
END_TEST

/* Every allocation in turn fails, until none is left to. */
START_TEST(survives_lack_of_memory)
{
    static const char *const set = "output.variables=[mu, tau]";
    em_status status = EM_EMEMORY;
    int n = 0;

    while (status) {
        em_config *c;
        char fault[32];

        snprintf(fault, sizeof fault, "allocate:0:%d", ++n);
        setenv("EMASS_FAULT", fault, 1);
        em_fault_start(0);
        status = em_config_parse("jobs/heart.yaml", example_config, 1, &set, &c);
        ck_assert(status == EM_OK || status == EM_EMEMORY);
        em_config_destroy(&c);
    }
    ck_assert_int_gt(n, 100);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config_errors");
    TCase *invalid = tcase_create("invalid"), *hostile = tcase_create("hostile");

    tcase_add_loop_test(invalid, errors_name_the_line, 0, sizeof errors / sizeof *errors);
    tcase_add_test(invalid, messages_leave_room_for_what_is_expected);
    tcase_add_test(invalid, finds_the_nearest_name);
    tcase_add_loop_test(hostile, survives_mutations, 0, 8);
    tcase_add_loop_test(hostile, survives_deep_nesting, 0, 15);
    tcase_add_test(hostile, survives_lack_of_memory);
    tcase_set_timeout(hostile, 20);
    suite_add_tcase(suite, invalid);
    suite_add_tcase(suite, hostile);
    return run_suite(suite, CK_FORK_GETENV);
}
