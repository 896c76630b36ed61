/*
 * What a run costs beyond its gradients, on thousands of simulated ranks: the engine as it is, a
 * Gaussian whose gradient takes as long as it is told to, and nobody who keeps the draws. Started
 * by scale.py under SimGrid's SMPI; prints one JSON line.
 *
 *     scale CHAINS DIM SECONDS-PER-GRADIENT [key.path=value]...
 */
#include "emass/emass.h"

#include <malloc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- simulated time */

static double cost, pending; /* seconds: of a gradient, and those not yet simulated */
static long long gradients;

void scale_spend(void)
{
    if (pending > 0)
        smpi_execute_benched(pending);
    pending = 0;
}

double scale_clock(void)
{
    scale_spend();
    return (MPI_Wtime)();
}

/* ---------------------------------------------------------------- what is sent */

typedef struct kind {
    const char *name;
    long long bytes, calls;
} kind;

static kind kinds[256];
static int n_kind;

/* Gradients of this rank before each call that all ranks make, in one order. */
static long long between[1 << 14];
static int n_between;

void scale_meet(const char *name, long long count, MPI_Datatype type, MPI_Comm ranks)
{
    static long long before;
    int size, all, size_here, k = 0;

    scale_spend();
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    MPI_Comm_size(ranks, &size_here);
    if (size_here == all && n_between < (int)(sizeof between / sizeof *between))
        between[n_between++] = gradients - before, before = gradients;
    MPI_Type_size(type, &size);
    while (k < n_kind && (kinds[k].bytes != count * size || strcmp(kinds[k].name, name) != 0))
        k++;
    if (k == n_kind && n_kind < (int)(sizeof kinds / sizeof *kinds))
        kinds[n_kind++] = (kind){name, count * size, 0};
    if (k < n_kind)
        kinds[k].calls++;
}

static MPI_Aint extent_of(MPI_Datatype type)
{
    MPI_Aint low, extent;

    MPI_Type_get_extent(type, &low, &extent);
    return extent;
}

int scale_transpose(const void *send, const int *count, const int *first, MPI_Datatype type,
                    void *receive, const int *receive_count, const int *receive_first,
                    MPI_Datatype receive_type, MPI_Comm ranks)
{
    const MPI_Aint step = extent_of(type), receive_step = extent_of(receive_type);
    MPI_Request *request;
    long long total = 0;
    int size, n = 0;

    MPI_Comm_size(ranks, &size);
    for (int i = 0; i < size; i++)
        total += count[i];
    scale_meet("transpose", total, type, ranks);
    request = malloc(2 * (size_t)size * sizeof *request);
    for (int i = 0; request && i < size; i++)
        if (receive_count[i] > 0)
            MPI_Irecv((char *)receive + receive_first[i] * receive_step, receive_count[i],
                      receive_type, i, 1, ranks, &request[n++]);
    for (int i = 0; request && i < size; i++)
        if (count[i] > 0)
            MPI_Isend((const char *)send + first[i] * step, count[i], type, i, 1, ranks,
                      &request[n++]);
    for (int i = 0; i < n; i++)
        MPI_Wait(&request[i], MPI_STATUS_IGNORE);
    free(request);
    return request ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static void print_kinds(void)
{
    printf("\"messages\": [");
    for (int k = 0; k < n_kind; k++)
        printf("%s{\"what\": \"%s\", \"bytes\": %lld, \"calls\": %lld}", k ? ", " : "",
               kinds[k].name, kinds[k].bytes, kinds[k].calls);
    printf("]");
}

/* ---------------------------------------------------------------- what memory is taken up */

/* The linker has allocations of this program go through these (--wrap); each rank has its own copy
 * of what is static. */
static size_t held, most_held;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes);
void __wrap_free(void *memory);

static void *count_in(void *memory)
{
    held += malloc_usable_size(memory);
    most_held = held > most_held ? held : most_held;
    return memory;
}

static void count_out(void *memory)
{
    const size_t bytes = malloc_usable_size(memory);

    held -= bytes < held ? bytes : held; /* libraries' own, given to us to free, were not counted */
}

void *__wrap_malloc(size_t bytes)
{
    return count_in(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return count_in(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    count_out(memory);
    return count_in(__real_realloc(memory, bytes));
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    const int status = __real_posix_memalign(memory, alignment, bytes);

    if (status == 0)
        count_in(*memory);
    return status;
}

void __wrap_free(void *memory)
{
    count_out(memory);
    __real_free(memory);
}

/* ---------------------------------------------------------------- the model */

static int64_t dim;

/* Standard deviations from 1 to 10. */
static em_status density(const void *state, const double *theta, double *log_p, double *gradient)
{
    (void)state;
    for (int64_t i = 0; i < dim; i++) {
        const double sd = 1 + 9 * (double)i / (double)dim;
        *log_p -= theta[i] * theta[i] / (2 * sd * sd);
        gradient[i] -= theta[i] / (sd * sd);
    }
    pending += cost;
    gradients++;
    return EM_OK;
}

/* Of this rank, if it has chains: when the first and the last draw after warmup were there. */
static double first_draw, last_draw;
static int64_t n_draw;

static em_status take(void *state, const em_stored_draw *draw)
{
    (void)state;
    last_draw = scale_clock();
    first_draw = draw->index == 0 ? last_draw : first_draw;
    n_draw = draw->index;
    return EM_OK;
}

/* ---------------------------------------------------------------- a run */

static em_status sample(const char *config, int n_override, const char *const *override,
                        em_report *report)
{
    const em_variable variable = {.name = "x", .n_axes = 1, .shape = {dim}};
    const em_model_ops model = {.name = "priced",
                                .dim = dim,
                                .n_parameter = 1,
                                .parameter = &variable,
                                .log_density_gradient = density};
    em_context *context = NULL;
    em_run *run = NULL;
    em_status status = em_context_create(MPI_COMM_WORLD, NULL, &context);

    if (!status)
        status = em_context_add_model(context, &model, NULL);
    if (!status)
        status = em_run_create(context,
                               &(em_run_request){.config = config,
                                                 .n_override = n_override,
                                                 .override = override,
                                                 .sink = {.take = take}},
                               &run);
    if (!status)
        status = em_run_advance(run, INT64_MAX);
    if (!status)
        *report = *em_run_report(run);
    em_run_destroy(&run);
    em_context_destroy(&context);
    return status;
}

/* Seconds in which ranks wait for the one that has most gradients to do before they meet. */
static double unequal(int ranks)
{
    static long long most[sizeof between / sizeof *between], all[sizeof between / sizeof *between];
    double sum = 0;

    (MPI_Allreduce)(between, most, n_between, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
    (MPI_Allreduce)(between, all, n_between, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int k = 0; k < n_between; k++)
        sum += cost * ((double)most[k] - (double)all[k] / ranks);
    return sum;
}

/* Means over ranks: of seconds, and of gradients times their price. */
static void print_result(const em_report *report, double from, double to, int ranks)
{
    const em_seconds *s = &report->seconds;
    const double own[] = {s->sampling, s->exchange, s->m_step, s->diagnostics,
                          (double)gradients * cost};
    const double own_scan = n_draw > 0 ? (last_draw - first_draw) / (double)n_draw : 0;
    enum { N = sizeof own / sizeof *own };
    const long long own_memory = (long long)most_held;
    const double waiting = unequal(ranks);
    long long memory;
    double all[N], scan;

    (MPI_Reduce)(own, all, N, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    (MPI_Reduce)(&own_scan, &scan, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    (MPI_Reduce)(&own_memory, &memory, 1, MPI_LONG_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0)
        return;
    printf("{\"ranks\": %d, \"chains\": %lld, \"dim\": %lld, \"gradient\": %g, \"start\": %.6f, "
           "\"total\": %.6f, \"sampling\": %.6f, \"exchange\": %.6f, \"m_step\": %.6f, "
           "\"diagnostics\": %.6f, \"scan\": %.9f, \"computing\": %.6f, \"unequal\": %.6f, "
           "\"memory_first\": %lld, \"memory_most\": %lld, \"warmup\": %lld, "
           "\"draws\": %lld, ",
           ranks, (long long)report->n_chain, (long long)dim, cost, to - from - s->total, s->total,
           all[0] / ranks, all[1] / ranks, all[2] / ranks, all[3] / ranks, scan, all[4] / ranks,
           waiting, own_memory, memory, (long long)report->warmup, (long long)report->n_draw);
    print_kinds();
    printf("}\n");
}

/* Looked up by SMPI, which loads a copy of this program for each rank. */
EM_API int main(int argc, char **argv)
{
    char config[128];
    em_report report;
    int ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 4) {
        fprintf(stderr, "usage: scale CHAINS DIM SECONDS [key.path=value]...\n");
        return EXIT_FAILURE;
    }
    dim = atoll(argv[2]);
    cost = atof(argv[3]);
    snprintf(config, sizeof config, "model: {name: priced}\nrun: {chains: %s}\n", argv[1]);
    const double from = scale_clock();
    const em_status status = sample(config, argc - 4, (const char *const *)argv + 4, &report);
    if (status)
        fprintf(stderr, "scale: %s\n", em_error_text());
    else
        print_result(&report, from, scale_clock(), ranks);
    MPI_Finalize();
    return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
