/*
 * What a checkpoint costs at dimension 1e5 with 8 chains: the longest one of a run, forced to the
 * disk, as a share of the ten seconds between two.
 */
#include "bench.h"

#include "par/world.h"
#include "run/loop/driver.h"
#include "run/transaction/transaction.h"

static const char yaml[] = "model: {name: gaussian, dim: 100000, condition: 10}\n"
                           "sampler: {name: hmc, leapfrog_steps: 5}\n"
                           "run: {chains: 8, warmup: 100, draws: 5}\n"
                           "mass: {structure: diag}\n"
                           "output: {file: bench_mpi_checkpoint.h5, keep_checkpoint: true}\n";

int main(int argc, char **argv)
{
    em_config *config = NULL;
    em_report report;

    if (em_world_start(&argc, &argv))
        return EXIT_FAILURE;
    require(em_config_parse("bench.yaml", yaml, 0, NULL, &config));
    require(em_sample(config, &(em_engine_request){.mode = EM_RUN_OVERWRITE}, &report));
    if (em_world_rank() == 0) {
        char name[128];
        snprintf(name, sizeof name,
                 "checkpoint of 8 chains of dimension 1e5 on %d ranks (ratio: of 10 s)",
                 em_world_size());
        print_figure(name, report.seconds.checkpoint, "s", report.seconds.checkpoint / 10);
        snprintf(name, sizeof name, "HMC step of dimension 1e5 on %d ranks", em_world_size());
        print_figure(name, report.seconds.sampling / (105.0 * 5 * 8 / em_world_size()) * 1e3,
                     "ms per leapfrog step and chain", NAN);
    }
    require(em_transaction_remove(config));
    em_config_destroy(&config);
    em_world_stop();
    return EXIT_SUCCESS;
}
