/*
 * Both halves of the ranks sample a density of this program's own, each another one, at the same
 * time; and then once more. The draws come to a function here.
 *
 *     mpicc halves.c $(pkg-config --cflags --libs emass) -o halves && mpirun -n 4 ./halves
 */
#include <emass/emass.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct normal {
    double mean, sd;
} normal;

/* Two independent numbers, normal(mean, sd): adds the log density and its gradient. */
static em_status density(const void *state, const double *theta, double *log_density,
                         double *gradient)
{
    const normal *of = state;

    for (int i = 0; i < 2; i++) {
        const double z = (theta[i] - of->mean) / of->sd;
        *log_density -= z * z / 2;
        gradient[i] -= z / of->sd;
    }
    return EM_OK;
}

static const em_variable place[] = {{.name = "place", .n_axes = 1, .shape = {2}}};

static const em_model_ops model = {.name = "two_normals",
                                   .dim = 2,
                                   .n_parameter = 1,
                                   .parameter = place,
                                   .log_density_gradient = density};

/* What is made of the draws: sums over all numbers of the chains that this rank has. */
typedef struct moments {
    MPI_Comm ranks;
    double n, sum, squares;
} moments;

static em_status take(void *state, const em_stored_draw *draw)
{
    moments *m = state;
    const double *posterior = draw->group[0];

    for (int i = 0; i < 2 && !draw->in_warmup; i++) {
        m->n++;
        m->sum += posterior[i];
        m->squares += posterior[i] * posterior[i];
    }
    return EM_OK;
}

/* All ranks of the half are here. */
static em_status finish(void *state, const em_report *report)
{
    moments *m = state;

    (void)report;
    MPI_Allreduce(MPI_IN_PLACE, &m->n, 3, MPI_DOUBLE, MPI_SUM, m->ranks);
    return EM_OK;
}

static em_status sample(em_context *context, MPI_Comm ranks, int half, int seed)
{
    char seed_is[32];
    const char *overrides[] = {seed_is};
    moments m = {.ranks = ranks};
    em_run *run = NULL;
    em_status status;
    int rank;

    MPI_Comm_rank(ranks, &rank);
    snprintf(seed_is, sizeof seed_is, "run.seed=%d", seed);
    status = em_run_create(context,
                           &(em_run_request){.config = "model: {name: two_normals}\n"
                                                       "run: {chains: 4, draws: 500}\n",
                                             .n_override = 1,
                                             .override = overrides,
                                             .sink = {.state = &m, .take = take, .finish = finish}},
                           &run);
    if (!status)
        status = em_run_advance(run, INT64_MAX);
    if (!status && rank == 0) {
        const em_report *report = em_run_report(run);
        const double mean = m.sum / m.n, sd = sqrt(m.squares / m.n - mean * mean);
        printf("half %d seed %d mean %.3f sd %.3f draws %.0f: %s\n", half, seed, mean, sd, m.n / 2,
               report->verdict);
    }
    em_run_destroy(&run);
    return status;
}

int main(int argc, char **argv)
{
    em_context *context = NULL;
    MPI_Comm ranks;
    int rank, size;
    em_status status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int half = 2 * rank / size;
    const normal of = {.mean = half ? 10 : 0, .sd = half ? 5 : 1};
    MPI_Comm_split(MPI_COMM_WORLD, half, rank, &ranks);

    status = em_context_create(ranks, NULL, &context);
    if (!status)
        status = em_context_add_model(context, &model, &of);
    for (int seed = 1; !status && seed <= 2; seed++)
        status = sample(context, ranks, half, seed);
    if (status)
        fprintf(stderr, "halves: %s\n", em_error_text());
    em_context_destroy(&context);
    MPI_Comm_free(&ranks);
    MPI_Finalize();
    return em_exit_status(status);
}
