/* The library within another program: what it draws, what it leaves alone, what an error is. */
#include "emass/emass.h"
#include "support/everywhere.h"
#include "support/tap.h"

#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static int rank, size;

/* ---- a model and a sink ---- */

static em_status density(const void *state, const double *theta, double *log_p, double *gradient)
{
    const double *sd = state;

    *log_p -= theta[0] * theta[0] / (2 * *sd * *sd);
    gradient[0] -= theta[0] / (*sd * *sd);
    return EM_OK;
}

static const em_model_ops mine = {.name = "mine", .dim = 1, .log_density_gradient = density};
static const double sd = 3;

/* Draws in the order of chains and iterations, so that sums have the same bits however they come.
 */
typedef struct count {
    int64_t first_chain, n_taken, n_begun, n_flushed, fail_at;
    double sum[8]; /* of each chain of this rank */
    double sum_of_all;
    bool finished;
} count;

static em_status begin(void *state, const em_layout *layout)
{
    count *t = state;

    t->n_begun++;
    t->first_chain = layout->first_chain;
    if (strcmp(layout->group[0].name, "posterior") != 0 || layout->group[0].width != 1)
        return em_fail(EM_EINTERNAL, "another layout than expected");
    return EM_OK;
}

static em_status take(void *state, const em_stored_draw *draw)
{
    count *t = state;

    t->n_taken++;
    if (t->fail_at && t->n_taken == t->fail_at)
        return em_fail(EM_EIO, "a full disk");
    if (!draw->in_warmup)
        t->sum[draw->chain - t->first_chain] += draw->group[0][0];
    return EM_OK;
}

static em_status flush(void *state)
{
    ((count *)state)->n_flushed++;
    return EM_OK;
}

static em_status visit(void *state, const em_visitor *visitor)
{
    return visitor->chains(visitor->context, "sum", 1, ((count *)state)->sum);
}

static em_status finish(void *state, const em_report *report)
{
    count *t = state;

    t->finished = report->n_draw > 0;
    return EM_OK;
}

static em_run_request request_of(count *t)
{
    return (em_run_request){.config = "model: {name: mine}\n"
                                      "run: {chains: 8, warmup: 150, draws: 120, seed: 5}\n",
                            .sink = {t, begin, take, flush, visit, finish}};
}

static em_context *context_of(MPI_Comm ranks)
{
    em_context *context = NULL;
    em_status status = em_context_create(ranks, NULL, &context);

    if (!status)
        status = em_context_add_model(context, &mine, &sd);
    assert_everywhere(status == EM_OK, "a context");
    return context;
}

/* All of a run in steps, and what the chains of this rank came to. */
static em_status run_in_steps(em_context *context, int64_t step, count *t)
{
    const em_run_request request = request_of(t);
    em_run *run = NULL;
    em_status status = em_run_create(context, &request, &run);

    while (!status && !em_run_report(run)->finished)
        status = em_run_advance(run, step);
    em_run_destroy(&run);
    return status;
}

static bool same(const count *a, const count *b)
{
    return memcmp(a->sum, b->sum, sizeof a->sum) == 0;
}

/* ---- tests ---- */

START_TEST(steps_change_nothing)
{
    em_context *context = context_of(MPI_COMM_WORLD);
    count whole = {0}, stepped = {0};

    assert_everywhere(run_in_steps(context, INT64_MAX, &whole) == EM_OK, "a whole run");
    assert_everywhere(run_in_steps(context, 7, &stepped) == EM_OK, "a run in steps");
    assert_everywhere(same(&whole, &stepped), "the same draws");
    assert_everywhere(whole.finished && whole.n_begun == 1 && whole.n_flushed > 0, "sink called");
    assert_everywhere(whole.n_taken % 120 == 0 && whole.n_taken > 0, "all draws, none of warmup");
    em_context_destroy(&context);
}
END_TEST

/* Each rank alone has a run between the steps of one that all have together. */
START_TEST(contexts_take_turns)
{
    em_context *all = context_of(MPI_COMM_WORLD), *own = context_of(MPI_COMM_SELF);
    count alone = {0}, amid = {0}, together = {0}, meanwhile = {0};
    em_run *run = NULL;
    em_run_request request;
    em_status status = EM_OK;

    assert_everywhere(run_in_steps(all, INT64_MAX, &together) == EM_OK, "all together");
    assert_everywhere(run_in_steps(own, INT64_MAX, &alone) == EM_OK, "each alone");
    request = request_of(&amid);
    assert_everywhere(em_run_create(all, &request, &run) == EM_OK, "created");
    for (int i = 0; !status && !em_run_report(run)->finished; i++) {
        status = em_run_advance(run, 100);
        if (!status && i == rank % 2)
            status = run_in_steps(own, 50, &meanwhile);
    }
    assert_everywhere(status == EM_OK, "in turns");
    assert_everywhere(same(&together, &amid) && same(&alone, &meanwhile), "the same draws");
    em_run_destroy(&run);
    em_context_destroy(&own);
    em_context_destroy(&all);
}
END_TEST

START_TEST(an_error_is_a_status)
{
    em_context *context = context_of(MPI_COMM_WORLD);
    count t = {.fail_at = rank == size - 1 ? 30 : 0}, good = {0};
    em_run *run = NULL;
    const char *bad[] = {"model: {name: mime}\n", "model: {name: mine, sd: 3}\n", "{", "",
                         "model: {name: logistic, data: nowhere.csv}\n"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const em_status status = em_run_create(context, &(em_run_request){.config = bad[i]}, &run);
        assert_everywhere(em_exit_status(status) == 2 && !run && em_error_text()[0], bad[i]);
    }
    assert_everywhere(em_run_create(context, &(em_run_request){0}, &run) == EM_EUSAGE, "no text");
    assert_everywhere(run_in_steps(context, 10, &t) == EM_EIO, "one rank's sink fails");
    assert_everywhere(strstr(em_error_text(), "a full disk") != NULL, "all know why");
    assert_everywhere(run_in_steps(context, 10, &good) == EM_OK, "and go on");
    assert_everywhere(em_context_add_model(context, &mine, &sd) == EM_EUSAGE, "a model twice");
    assert_everywhere(em_context_add_model(context, &(em_model_ops){.name = "none"}, NULL) ==
                          EM_ECONFIG,
                      "a model of nothing");
    em_context_destroy(&context);
}
END_TEST

START_TEST(an_interruption_is_passed)
{
    em_context *context = context_of(MPI_COMM_WORLD);
    count calm = {0}, stopped = {0};
    const em_run_request request = request_of(&stopped);
    em_run *run = NULL;

    assert_everywhere(run_in_steps(context, INT64_MAX, &calm) == EM_OK, "undisturbed");
    assert_everywhere(em_run_create(context, &request, &run) == EM_OK, "created");
    if (rank == size - 1)
        em_context_interrupt(context);
    assert_everywhere(em_run_advance(run, INT64_MAX) == EM_ESTOPPED, "stopped, all of them");
    assert_everywhere(em_run_save(run) == EM_EUSAGE, "without a file nothing is saved");
    assert_everywhere(em_run_advance(run, INT64_MAX) == EM_OK, "and gone on");
    assert_everywhere(same(&calm, &stopped), "the same draws");
    em_run_destroy(&run);
    em_context_destroy(&context);
}
END_TEST

/* What a sink has made of the draws goes with the checkpoint. */
START_TEST(a_sink_is_resumed)
{
    em_context *context = context_of(MPI_COMM_WORLD);
    count whole = {0}, first = {0}, second = {0};
    char output[96], name[64];
    long process = (long)getpid();

    MPI_Bcast(&process, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "/tmp/emass-library-%ld.h5", process);
    snprintf(output, sizeof output, "output.file=%s", name);
    const char *overrides[] = {output};
    em_run_request request = request_of(&first);
    em_run *run = NULL;
    em_status status;

    assert_everywhere(run_in_steps(context, INT64_MAX, &whole) == EM_OK, "at once");
    request.n_override = 1;
    request.override = overrides;
    request.mode = EM_RUN_NEW;
    status = em_run_create(context, &request, &run);
    assert_everywhere(status || (strstr(em_run_config(run), "seed: 5") &&
                                 strstr(em_run_config(run), "init_radius: 2")),
                      "the config with what is given and with defaults");
    if (!status)
        status = em_run_advance(run, em_run_report(run)->total - 50);
    if (!status)
        status = em_run_save(run);
    em_run_destroy(&run);
    assert_everywhere(status == EM_OK, "saved");
    request.sink.state = &second;
    request.mode = EM_RUN_RESUME;
    status = em_run_create(context, &request, &run);
    if (!status)
        status = em_run_advance(run, INT64_MAX);
    assert_everywhere(status == EM_OK && em_run_report(run)->finished, "gone on");
    assert_everywhere(em_run_save(run) == EM_EUSAGE, "a finished run is not saved again");
    assert_everywhere(second.n_taken < whole.n_taken, "not from the beginning");
    assert_everywhere(same(&whole, &second), "the same draws");
    em_run_destroy(&run);
    request.mode = EM_RUN_NEW;
    assert_everywhere(em_run_create(context, &request, &run) == EM_EUSAGE, "the file is there");
    if (rank == 0) {
        char checkpoint[96];
        unlink(name);
        snprintf(checkpoint, sizeof checkpoint, "%s.checkpoint", name);
        unlink(checkpoint);
        strcat(checkpoint, ".previous");
        unlink(checkpoint);
    }
    em_context_destroy(&context);
}
END_TEST

static size_t environment_size(void)
{
    size_t bytes = 0;

    for (char **variable = environ; *variable; variable++)
        bytes += strlen(*variable) + 1;
    return bytes;
}

START_TEST(the_host_stays_as_it_is)
{
    em_context *context = context_of(MPI_COMM_WORLD);
    struct sigaction before[32], after;
    const size_t environment = environment_size();
    const locale_t locale = uselocale((locale_t)0);
    bool handlers = true;
    count t = {0};

    for (int i = 1; i < 32; i++)
        sigaction(i, NULL, &before[i]);
    assert_everywhere(run_in_steps(context, 100, &t) == EM_OK, "a run");
    for (int i = 1; i < 32; i++)
        handlers &= sigaction(i, NULL, &after) != 0 || after.sa_handler == before[i].sa_handler;
    assert_everywhere(handlers, "signals are handled as before");
    assert_everywhere(environment_size() == environment, "so is the environment");
    assert_everywhere(uselocale((locale_t)0) == locale, "so is the locale");
    em_context_destroy(&context);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tests = tcase_create("library");
    int failed;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    tcase_add_test(tests, steps_change_nothing);
    tcase_add_test(tests, contexts_take_turns);
    tcase_add_test(tests, an_error_is_a_status);
    tcase_add_test(tests, an_interruption_is_passed);
    tcase_add_test(tests, a_sink_is_resumed);
    tcase_add_test(tests, the_host_stays_as_it_is);
    failed = run_case(tests, CK_NOFORK);
    MPI_Finalize();
    return failed;
}
