/*
 * A whole run on as many ranks as it is started on: a dense logistic regression like a9a in size.
 * The driver of the benches starts it on 1 and on 2 ranks.
 */
#include "bench.h"

#include "par/world.h"
#include "run/loop/driver.h"
#include "run/transaction/transaction.h"

#include <string.h>

static const char yaml[] = "model: {name: logistic, n: 20000, intercept: false}\n"
                           "sampler: {name: hmc}\n"
                           "run: {chains: 16, warmup: 400, draws: 400}\n"
                           "stop: {r_hat: 1.0001, ess: 1000000, check_every: 200}\n"
                           "output: {file: bench_mpi_run.h5}\n";

int main(int argc, char **argv)
{
    em_config *config = NULL;
    em_report report;
    char name[128];

    if (em_world_start(&argc, &argv))
        return EXIT_FAILURE;
    require(em_config_parse("bench.yaml", yaml, 0, NULL, &config));
    require(em_sample(config, &(em_engine_request){.mode = EM_RUN_OVERWRITE}, &report));
    if (em_world_rank() == 0) {
        const em_seconds *s = &report.seconds;
        snprintf(name, sizeof name, "sampling of 16 chains on %d ranks", em_world_size());
        const double rate = 16 * 800 / (s->total - s->writing),
                     alone = argc > 1 ? strtod(argv[1], NULL) : NAN;
        print_figure(name, rate, "iterations per second", rate / (em_world_size() * alone));
        snprintf(name, sizeof name, "share of exchange, M-steps and diagnostics on %d ranks",
                 em_world_size());
        print_figure(name, 100 * (s->exchange + s->m_step + s->diagnostics) / s->total, "%", NAN);
    }
    require(em_transaction_remove(config));
    em_config_destroy(&config);
    em_world_stop();
    return EXIT_SUCCESS;
}
