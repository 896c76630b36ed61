#include "par/shard_reduction.h"

#include "base/clones.h"
#include "base/memory.h"
#include "par/mapped.h"
#include "par/mpi_world.h"
#include "par/shard_memory.h"

#include <stdatomic.h>
#include <string.h>

/* LEAST_SHARED: a sum of fewer numbers is as fast by messages. */
enum { LEAST_SHARED = 1 << 14, LINE = 64, LINE_DOUBLES = LINE / sizeof(double) };

/* The number of times that a shard has reached the barrier, on a separate cache line. */
typedef struct shard_barrier {
    _Alignas(LINE) _Atomic int64_t rounds;
} shard_barrier;

/* A reduction in shared memory. The memory has the numbers of each shard, the panel, half a panel
 * and a line, and the counters of the barrier. */
struct em_shard_reduction {
    const em_grid *grid;
    int64_t room, bytes;    /* doubles of a shard; bytes of all */
    void *half;             /* panel */
    double *shared;         /* NULL: there is no such memory, */
    double *private;        /* but this */
    shard_barrier *barrier; /* [n_shard] */
};

em_status em_shard_reduction_create(const em_grid *grid, int64_t n, em_shard_reduction **out)
{
    const int64_t n_shard = em_grid_n_shard(grid);
    em_status status = em_allocate(1, sizeof **out, out);
    em_shard_reduction *a = *out;
    double failed = status < 0;

    em_grid_sum_shards(grid, 1, &failed);
    if (failed != 0) {
        em_release(out);
        return em_grid_share_failure(grid, status);
    }
    a->grid = grid;
    a->room = em_stride(n);
    const int64_t panels = (n_shard + 1) * a->room;
    const int64_t doubles = panels + em_stride(a->room / 2) + LINE_DOUBLES;
    a->bytes = doubles * (int64_t)sizeof(double) + n_shard * (int64_t)sizeof(shard_barrier);
    if (a->room >= LEAST_SHARED)
        a->shared = em_shard_memory(grid, a->bytes);
    if (a->shared) {
        a->half = a->shared + panels;
        a->barrier = (shard_barrier *)(a->shared + doubles);
    } else
        status = em_allocate(a->room, sizeof(double), &a->private);
    failed = status < 0;
    em_grid_sum_shards(grid, 1, &failed);
    if (failed != 0) {
        em_shard_reduction_destroy(out);
        return em_grid_share_failure(grid, status);
    }
    return EM_OK;
}

void em_shard_reduction_destroy(em_shard_reduction **reduction)
{
    if (*reduction) {
        em_mapped_release((*reduction)->shared, (*reduction)->bytes);
        em_release(&(*reduction)->private);
    }
    em_release(reduction);
}

double *em_shard_reduction_own(const em_shard_reduction *a)
{
    return a->shared ? a->shared + em_grid_shard(a->grid) * a->room : a->private;
}

double *em_shard_reduction_panel(const em_shard_reduction *a)
{
    return a->shared ? a->shared + em_grid_n_shard(a->grid) * a->room : NULL;
}

double *em_shard_reduction_all(const em_shard_reduction *a, int64_t *room)
{
    *room = a->room;
    return a->shared;
}

void *em_shard_reduction_half_panel(const em_shard_reduction *a)
{
    return a->half;
}

/* Waits a moment. A rank that has nothing to do polls MPI, which yields the processor as it does in
 * a reduction. */
static void pass_time(const em_shard_reduction *a, const em_meanwhile *meanwhile)
{
    int there;

    if (!meanwhile || !meanwhile->work(meanwhile->context))
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, em_grid_shards(a->grid), &there, MPI_STATUS_IGNORE);
}

void em_shard_reduction_wait(const em_shard_reduction *a, const em_meanwhile *meanwhile)
{
    shard_barrier *mine = &a->barrier[em_grid_shard(a->grid)];
    const int64_t now = atomic_load_explicit(&mine->rounds, memory_order_relaxed) + 1;

    atomic_store_explicit(&mine->rounds, now, memory_order_release);
    for (int64_t s = 0; s < em_grid_n_shard(a->grid); s++)
        while (atomic_load_explicit(&a->barrier[s].rounds, memory_order_acquire) < now)
            pass_time(a, meanwhile);
}

/* Adds a chunk of x [n_shard][room] that fits into the first-level cache. */
enum { CHUNK = 512 };
EM_CLONES static void add_chunk(int64_t n, int64_t n_shard, int64_t room, const double *restrict x,
                                double *restrict sum)
{
    memcpy(sum, x, (size_t)n * sizeof *sum);
    for (int64_t s = 1; s < n_shard; s++)
        for (int64_t i = 0; i < n; i++)
            sum[i] += x[s * room + i];
}

static void add_in_place(int64_t n, int64_t n_shard, int64_t room, double *x)
{
    _Alignas(LINE) double sum[CHUNK];

    add_chunk(n, n_shard, room, x, sum);
    for (int64_t s = 0; s < n_shard; s++)
        memcpy(x + s * room, sum, (size_t)n * sizeof *sum);
}

void em_shard_reduction_sum(em_shard_reduction *a, int64_t n)
{
    const int64_t n_shard = em_grid_n_shard(a->grid), shard = em_grid_shard(a->grid);
    const int64_t lines = (n + LINE_DOUBLES - 1) / LINE_DOUBLES;
    const int64_t end = em_partition_first(lines, n_shard, shard + 1) * LINE_DOUBLES;

    if (!a->shared) {
        em_grid_sum_shards(a->grid, n, a->private);
        return;
    }
    em_shard_reduction_wait(a, NULL);
    for (int64_t i = em_partition_first(lines, n_shard, shard) * LINE_DOUBLES; i < end; i += CHUNK)
        add_in_place(end - i < CHUNK ? end - i : CHUNK, n_shard, a->room, a->shared + i);
    em_shard_reduction_wait(a, NULL);
}

void em_shard_reduction_add(const em_shard_reduction *a, int64_t first, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i += CHUNK)
        add_chunk(n - i < CHUNK ? n - i : CHUNK, em_grid_n_shard(a->grid), a->room,
                  a->shared + first + i, out + i);
}
