/* What the adaptation engine shows to a visitor: no more than there is, and saving changes nothing.
 */
#include "adaptation/adaptation.h"
#include "par/world.h"
#include "run/config/config.h"
#include "support/everywhere.h"
#include "support/on_grid.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { N_CHAIN = 1000, DIM = 3, WARMUP = 100 };

typedef struct engine {
    em_config *config;
    em_grid *grid;
    em_adapt *adapt;
} engine;

/* One M-step in each iteration: that of 1000 chains, which have more than 100 samples in one. */
static engine open_engine(const char *share)
{
    engine e = {.config = NULL};
    char text[256];

    snprintf(text, sizeof text,
             "model: {name: gaussian}\nsampler: {name: nuts}\n"
             "mass: {estimator: momentum, structure: dense, s_count: 100, share: %s}\n",
             share);
    assert_everywhere(em_config_parse("test.yaml", text, 0, NULL, &e.config) == EM_OK, "a config");
    assert_everywhere(em_grid_create(N_CHAIN, 1, &e.grid) == EM_OK, "a grid");
    assert_everywhere(em_adapt_create(&e.config->mass, e.config->sampler, e.config->sampler_options,
                                      e.grid, DIM, WARMUP, 1, &e.adapt) == EM_OK,
                      "an engine");
    return e;
}

static void close_engine(engine *e)
{
    em_adapt_destroy(&e->adapt);
    em_grid_destroy(&e->grid);
    em_config_destroy(&e->config);
}

/* What a visitor saw. */
typedef struct seen {
    int64_t n_record; /* numbers in the records of M-steps */
    double n_m_step;  /* what to put in place of their number; NaN: leave it */
} seen;

static em_status look(void *context, const char *name, int64_t n, double *x)
{
    seen *s = context;

    if (strcmp(name, "m_steps") == 0)
        s->n_record = n;
    if (strcmp(name, "adaptation") == 0 && !isnan(s->n_m_step))
        x[n - 1] = s->n_m_step;
    return EM_OK;
}

static em_status visit(engine *e, bool restores, double n_m_step, seen *s)
{
    const em_visitor visitor = {s, restores, look, look};

    *s = (seen){-1, n_m_step};
    return em_adapt_visit(e->adapt, 0, &visitor);
}

START_TEST(only_records_that_are_there)
{
    engine e = open_engine("all");
    seen s;

    assert_everywhere(visit(&e, false, NAN, &s) == EM_OK && s.n_record == 0, "none at first");
    assert_everywhere(visit(&e, true, 3, &s) == EM_OK, "three restored");
    assert_everywhere(s.n_record == 3 * (int64_t)(sizeof(em_m_step) / sizeof(double)), "are three");
    assert_everywhere(em_adapt_learned(e.adapt).n_m_step == 3, "and are known");
    close_engine(&e);
}
END_TEST

START_TEST(no_more_records_than_can_be)
{
    engine e = open_engine("all");
    seen s;

    assert_everywhere(visit(&e, true, WARMUP + 1, &s) == EM_EDATA, "one in each iteration");
    assert_everywhere(visit(&e, true, -1, &s) == EM_EDATA, "not fewer than none");
    close_engine(&e);
}
END_TEST

START_TEST(saving_makes_no_mass)
{
    static const char *const shares[] = {"all", "none"};
    seen s;

    for (int i = 0; i < 2; i++) {
        engine e = open_engine(shares[i]);
        const int64_t n = em_grid_n_local_chain(e.grid);
        const em_mass *first = em_adapt_learned(e.adapt).mass[0],
                      *last = em_adapt_learned(e.adapt).mass[n - 1];
        assert_everywhere(visit(&e, false, NAN, &s) == EM_OK, "saved");
        assert_everywhere(em_adapt_learned(e.adapt).mass[0] == first, "the same mass");
        assert_everywhere(em_adapt_learned(e.adapt).mass[n - 1] == last, "of every chain");
        assert_everywhere(visit(&e, true, NAN, &s) == EM_OK, "restored");
        assert_everywhere(em_adapt_learned(e.adapt).mass[0] != first,
                          "a mass of the restored numbers");
        close_engine(&e);
    }
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tests = tcase_create("adapt");

    tcase_add_test(tests, only_records_that_are_there);
    tcase_add_test(tests, no_more_records_than_can_be);
    tcase_add_test(tests, saving_makes_no_mass);
    return run_case_on_ranks(tests, argc, argv);
}
