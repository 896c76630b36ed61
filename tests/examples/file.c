/*
 * A run from a config within the program, a hundred iterations at a time, into a file that ArviZ
 * opens; started once more after an interruption, it goes on.
 *
 *     mpicc file.c $(pkg-config --cflags --libs emass) -o file && mpirun -n 2 ./file schools.h5
 */
#include <emass/emass.h>
#include <stdio.h>
#include <stdlib.h>

static const char config[] = "model: {name: eight_schools}\n"
                             "sampler: {name: nuts}\n"
                             "run: {chains: 4, warmup: 300, draws: 500, seed: 3}\n";

static void print(void *to, const char *text)
{
    fprintf(to, "file: %s\n", text);
}

static em_status sample(em_context *context, const char *path, int rank)
{
    char output[4096];
    const char *overrides[] = {output};
    em_run *run = NULL;
    em_status status;

    snprintf(output, sizeof output, "output.file=%s", path);
    status = em_run_create(
        context,
        &(em_run_request){
            .config = config, .n_override = 1, .override = overrides, .mode = EM_RUN_RESUME},
        &run);
    while (!status && !em_run_report(run)->finished) {
        status = em_run_advance(run, 100);
        const em_report *report = em_run_report(run);
        if (!status && rank == 0)
            printf("%lld of %lld iterations\n", (long long)report->done, (long long)report->total);
    }
    if (!status && rank == 0)
        printf("%s: %s\n", em_run_file(run),
               em_run_report(run)->was_finished ? "is complete" : em_run_report(run)->verdict);
    em_run_destroy(&run);
    return status;
}

int main(int argc, char **argv)
{
    const em_context_options options = {.message = print, .to = stderr};
    em_context *context = NULL;
    int rank;
    em_status status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    status = em_context_create(MPI_COMM_WORLD, &options, &context);
    if (!status)
        status = sample(context, argc > 1 ? argv[1] : "schools.h5", rank);
    if (status && rank == 0)
        fprintf(stderr, "file: %s\n", em_error_text());
    em_context_destroy(&context);
    MPI_Finalize();
    return em_exit_status(status);
}
