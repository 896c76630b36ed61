/* The library for other languages (emass/host.h): a density that is put together call by call, its
 * rejections and outputs, and errors that ranks agree on. */
#include "emass/emass.h"
#include "support/everywhere.h"
#include "support/tap.h"

#include <stdio.h>
#include <string.h>

static int rank;
static int64_t n_call; /* of the density, on this rank */

/* sigma ~ exponential(1), x ~ normal(0, 1) where x[0] is at most 2: no value beyond. */
static em_status density(const void *state, const double *theta, double *log_p, double *gradient)
{
    const double *x = theta + 1;

    n_call++;
    if (x[0] > *(const double *)state)
        return em_fail(EM_NONFINITE, "x[0] is too large");
    *log_p = -theta[0] - (x[0] * x[0] + x[1] * x[1]) / 2;
    gradient[0] = -1;
    gradient[1] = -x[0];
    gradient[2] = -x[1];
    return EM_OK;
}

static em_status outputs(const void *state, const double *theta, double *out)
{
    (void)state;
    out[0] = theta[1] + theta[2];
    return EM_OK;
}

static const double limit = 2, y[] = {1.5, -2};

static em_density *density_of(void)
{
    const int64_t shape[] = {2};
    const char *const axis[] = {"place"}, *const label[] = {"left", "right"};
    em_density *made = NULL;
    em_status status = em_density_create("host", 0, 7, &made);

    if (!status)
        status = em_density_compute(made, density, NULL, outputs, &limit);
    if (!status)
        status = em_density_label_axis(made, "place", 2, label);
    if (!status)
        status = em_density_add_parameter(made, "sigma", 0, NULL, NULL, EM_LOWER, 0, 0);
    if (!status)
        status = em_density_add_parameter(made, "x", 1, shape, axis, EM_FREE, 0, 0);
    if (!status)
        status = em_density_add_output(made, "sum", 0, NULL, NULL, EM_POSTERIOR, EM_STORE_REAL);
    if (!status)
        status = em_density_add_data(made, "observed_data", "y", 1, shape, axis, y);
    assert_everywhere(status == EM_OK, "a density");
    assert_everywhere(em_density_add_data(made, "posterior", "y", 0, NULL, NULL, y) == EM_EUSAGE &&
                          strstr(em_error_text(), "found group posterior"),
                      "data of another group");
    return made;
}

static const char config[] = "model: {name: host}\nrun: {chains: 8, warmup: 200, draws: 200}\n";

static void tell(void *to, const em_report *report)
{
    char line[128];
    int64_t count[9];
    double level[2];
    const char *text[4];

    em_host_report(report, count, level, text);
    em_host_describe(report, sizeof line, line);
    ck_assert(strstr(line, count[0] > count[2] ? "sampling " : "warmup ") && strlen(line) < 128);
    *(int64_t *)to = count[0];
}

START_TEST(a_density_by_calls)
{
    em_density *made = density_of();
    em_context *context = NULL;
    em_run *run = NULL;
    int64_t count[9], told = 0;
    double level[2];
    const char *text[4];
    em_status status = em_host_start(); /* runs already: nothing */

    if (!status)
        status = em_host_context(-1, NULL, NULL, &context);
    if (!status)
        status = em_context_add_density(context, made);
    if (!status)
        status = em_host_run(context, config, "config", EM_RUN_NO_FILE, tell, &told, &run);
    if (!status)
        status = em_run_advance(run, INT64_MAX);
    assert_everywhere(status == EM_OK && em_host_rank(context) == rank, "a run");
    em_host_report(em_run_report(run), count, level, text);
    assert_everywhere(told == 400 && count[0] == 400 && count[1] == 400 && count[2] == 200,
                      "counts");
    assert_everywhere(count[6] == 0, "all numbers are checked at the end");
    assert_everywhere(count[7] > 0 && count[8] > count[7] &&
                          (!text[3][0] || strcmp(text[3], "x[0] is too large") == 0),
                      "failed evaluations are counted, with the first one's words");
    char note[1024];
    assert_everywhere(em_host_note(em_run_report(run), 0, sizeof note, note) &&
                          strstr(note, "evaluations failed (") && strstr(note, "were rejections") &&
                          !em_host_note(em_run_report(run), 1, sizeof note, note),
                      "which is a note");
    assert_everywhere(strstr(text[0], "converged") && level[0] < 1.1, "a verdict");
    assert_everywhere(count[4] == 0 && !text[1][0], "the density is zero nowhere");
    em_run_destroy(&run);
    em_context_destroy(&context);
    em_density_destroy(&made);
}
END_TEST

/* Also those of the mode search, on ranks without a ladder. */
START_TEST(a_report_counts_all_evaluations)
{
    static const char tempered[] =
        "model: {name: host}\ntemper: {rungs: 3}\nrun: {chains: 1, warmup: 20, draws: 20}\n";
    em_density *made = density_of();
    em_context *context = NULL;
    em_run *run = NULL;
    em_status status = em_host_context(-1, NULL, NULL, &context);

    if (!status)
        status = em_context_add_density(context, made);
    n_call = 0;
    if (!status)
        status = em_host_run(context, tempered, "config", EM_RUN_NO_FILE, NULL, NULL, &run);
    if (!status)
        status = em_run_advance(run, INT64_MAX);
    assert_everywhere(status == EM_OK, "a tempered run");
    assert_everywhere(n_call > 1000 && em_run_report(run)->evaluations == n_call, "all calls");
    em_run_destroy(&run);
    em_context_destroy(&context);
    em_density_destroy(&made);
}
END_TEST

START_TEST(ranks_agree_on_a_failure)
{
    em_context *context = NULL;
    em_status status = em_host_context(MPI_Comm_c2f(MPI_COMM_WORLD), NULL, NULL, &context);

    assert_everywhere(status == EM_OK && em_host_agree(context, EM_OK) == EM_OK, "fine everywhere");
    const em_status mine = rank == 0 ? em_fail(EM_EDATA, "no frame") : EM_OK;
    status = em_host_agree(context, mine);
    assert_everywhere(status == EM_EDATA && strstr(em_error_text(), "no frame"),
                      "the failure of rank 0");
    em_context_destroy(&context);
}
END_TEST

START_TEST(what_is_refused)
{
    const int64_t shape[] = {0};
    em_density *made = NULL;
    em_context *context = NULL;

    assert_everywhere(em_density_create("host", -1, 0, &made) == EM_EUSAGE, "a dimension below 0");
    assert_everywhere(em_density_create("host", 0, 0, &made) == EM_OK, "a density");
    assert_everywhere(em_density_compute(made, NULL, NULL, NULL, NULL) == EM_EUSAGE, "no function");
    assert_everywhere(em_density_add_parameter(made, "x", 1, shape, NULL, EM_FREE, 0, 0) ==
                              EM_EUSAGE &&
                          strstr(em_error_text(), "of length 0"),
                      "an empty axis");
    assert_everywhere(em_density_add_parameter(made, "x", 0, NULL, NULL, 99, 0, 0) == EM_EUSAGE,
                      "no such constraint");
    assert_everywhere(em_density_name(made, 0, "x") == EM_EUSAGE, "a name of no number");
    assert_everywhere(em_host_context(-1, NULL, NULL, &context) == EM_OK &&
                          em_context_add_density(context, made) == EM_EUSAGE,
                      "a density without a function");
    em_context_destroy(&context);
    em_density_destroy(&made);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("host");
    int failed;

    if (em_host_start())
        return EXIT_FAILURE;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    tcase_add_test(tests, a_density_by_calls);
    tcase_add_test(tests, a_report_counts_all_evaluations);
    tcase_add_test(tests, ranks_agree_on_a_failure);
    tcase_add_test(tests, what_is_refused);
    failed = run_case(tests, CK_NOFORK);
    em_host_stop();
    return failed;
}
