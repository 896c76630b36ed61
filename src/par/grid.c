#include "par/grid.h"

#include "base/memory.h"
#include "math/binned.h"
#include "math/exact.h"
#include "par/mpi_world.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct em_grid {
    MPI_Comm world, shards, peers;
    MPI_Comm lent;                      /* a duplicate of `shards`; MPI_COMM_NULL: not asked for */
    MPI_Datatype eight_sums, exact_sum; /* bins, digits, and how they are added */
    MPI_Op merge, add;
    int64_t n_chain, first_chain, n_local_chain;
    int n_group, group, n_shard, shard;
    int *counts; /* [2 n_shard] room for counts, and where they begin */
    /* Work space of em_grid_sum_chains, which grows as needed. */
    int64_t capacity;
    em_exact_sum *sums;
};

int64_t em_partition_first(int64_t n_item, int64_t n_part, int64_t part)
{
    const int64_t each = n_item / n_part, longer = n_item % n_part;
    return part * each + (part < longer ? part : longer);
}

int64_t em_partition_of(int64_t n_item, int64_t n_part, int64_t item)
{
    const int64_t each = n_item / n_part, in_longer = n_item % n_part * (each + 1);
    return item < in_longer ? item / (each + 1) : n_item % n_part + (item - in_longer) / each;
}

static em_status check_layout(int64_t n_chain, int64_t n_shard, int64_t n_rank, bool may_idle)
{
    if (n_rank % n_shard != 0)
        return em_fail(EM_ECONFIG,
                       "number of ranks: found %lld, expected a multiple of %lld, which is "
                       "run.shards or run.ranks_per_chain (--ranks N starts N ranks)",
                       (long long)n_rank, (long long)n_shard);
    if (!may_idle && n_rank / n_shard > n_chain)
        return em_fail(EM_ECONFIG,
                       "number of ranks: found %lld for %lld chains, expected at most %lld, or "
                       "more chains: a %s without a chain would have no work",
                       (long long)n_rank, (long long)n_chain, (long long)(n_chain * n_shard),
                       n_shard > 1 ? "group of ranks" : "rank");
    return EM_OK;
}

/* MPI may pass unaligned copies, but vector loops need aligned ones. */
static void merge_eights(void *from, void *into, int *count, MPI_Datatype *type)
{
    enum { SIZE = EM_BINNED_FOLDS * 8 };
    _Alignas(64) double a[SIZE], b[SIZE];

    (void)type;
    for (int i = 0; i < *count; i++) {
        memcpy(a, (const char *)from + (size_t)i * sizeof a, sizeof a);
        memcpy(b, (const char *)into + (size_t)i * sizeof b, sizeof b);
        em_binned_merge(8, a, b);
        memcpy((char *)into + (size_t)i * sizeof b, b, sizeof b);
    }
}

static void add_exact(void *from, void *into, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        em_exact_add((const em_exact_sum *)from + i, (em_exact_sum *)into + i);
}

/* Without shards each rank is a group and all ranks are its peers. No communicator is then needed,
 * so that nothing can fail. */
static void make_communicators(em_grid *grid)
{
    MPI_Comm_dup(em_world_ranks(), &grid->world);
    grid->lent = MPI_COMM_NULL;
    grid->shards = MPI_COMM_SELF;
    grid->peers = grid->world;
    if (grid->n_shard == 1)
        return;
    MPI_Comm_split(grid->world, grid->group, grid->shard, &grid->shards);
    MPI_Comm_split(grid->world, grid->shard, grid->group, &grid->peers);
}

static em_status create(int64_t n_chain, int64_t n_shard, bool may_idle, em_grid **out)
{
    em_grid *grid = NULL;
    em_status status = check_layout(n_chain, n_shard, em_world_size(), may_idle);

    *out = NULL;
    status = status ? status : em_allocate(1, sizeof *grid, &grid);
    status = status ? status : em_allocate(2 * n_shard, sizeof *grid->counts, &grid->counts);
    status = em_agree(status);
    if (status) {
        if (grid)
            em_release(&grid->counts);
        em_release(&grid);
        return status;
    }
    const int64_t rank = em_world_rank();
    grid->n_chain = n_chain;
    grid->n_shard = (int)n_shard;
    grid->n_group = em_world_size() / grid->n_shard;
    grid->group = (int)rank / grid->n_shard;
    grid->shard = (int)rank % grid->n_shard;
    grid->first_chain = em_partition_first(n_chain, grid->n_group, grid->group);
    grid->n_local_chain =
        em_partition_first(n_chain, grid->n_group, grid->group + 1) - grid->first_chain;
    make_communicators(grid);
    MPI_Type_contiguous((int)em_binned_size(8), MPI_DOUBLE, &grid->eight_sums);
    MPI_Type_commit(&grid->eight_sums);
    MPI_Op_create(merge_eights, 1, &grid->merge);
    MPI_Type_contiguous(sizeof(em_exact_sum) / sizeof(int64_t), MPI_INT64_T, &grid->exact_sum);
    MPI_Type_commit(&grid->exact_sum);
    MPI_Op_create(add_exact, 1, &grid->add);
    *out = grid;
    return EM_OK;
}

em_status em_grid_create(int64_t n_chain, int64_t n_shard, em_grid **out)
{
    return create(n_chain, n_shard, false, out);
}

em_status em_grid_create_any(int64_t n_chain, int64_t n_shard, em_grid **out)
{
    return create(n_chain, n_shard, true, out);
}

void em_grid_destroy(em_grid **grid)
{
    if (!*grid)
        return;
    if ((*grid)->lent != MPI_COMM_NULL)
        MPI_Comm_free(&(*grid)->lent);
    if ((*grid)->n_shard > 1) {
        MPI_Comm_free(&(*grid)->shards);
        MPI_Comm_free(&(*grid)->peers);
    }
    MPI_Comm_free(&(*grid)->world);
    MPI_Type_free(&(*grid)->eight_sums);
    MPI_Op_free(&(*grid)->merge);
    MPI_Type_free(&(*grid)->exact_sum);
    MPI_Op_free(&(*grid)->add);
    em_release_all(&(*grid)->sums, &(*grid)->counts, grid);
}

int64_t em_grid_n_chain(const em_grid *grid)
{
    return grid->n_chain;
}

int64_t em_grid_first_chain(const em_grid *grid)
{
    return grid->first_chain;
}

int64_t em_grid_n_local_chain(const em_grid *grid)
{
    return grid->n_local_chain;
}

int64_t em_grid_n_group(const em_grid *grid)
{
    return grid->n_group;
}

int64_t em_grid_group(const em_grid *grid)
{
    return grid->group;
}

int64_t em_grid_n_shard(const em_grid *grid)
{
    return grid->n_shard;
}

int64_t em_grid_shard(const em_grid *grid)
{
    return grid->shard;
}

MPI_Comm em_grid_world(const em_grid *grid)
{
    return grid->world;
}

MPI_Comm em_grid_shards(const em_grid *grid)
{
    return grid->shards;
}

MPI_Comm em_grid_peers(const em_grid *grid)
{
    return grid->peers;
}

const void *em_grid_lend_ranks(em_grid *grid)
{
    if (grid->lent == MPI_COMM_NULL)
        MPI_Comm_dup(grid->shards, &grid->lent);
    return &grid->lent;
}

/* Large arrays are sent in pieces: MPI counts in int and needs as much memory again. */
enum { PIECE = 1 << 20, SUMS_PIECE = 1 << 16 };

/* Reserves memory for n numbers. `n` is the same on all ranks, and so is whether errors are agreed.
 */
static em_status reserve(em_grid *grid, int64_t n)
{
    if (n <= grid->capacity)
        return EM_OK;
    em_release(&grid->sums);
    grid->capacity = 0;
    const em_status status = em_agree(em_allocate(n, sizeof *grid->sums, &grid->sums));
    if (!status)
        grid->capacity = n;
    return status;
}

em_status em_grid_begin_sum(em_grid *grid, int64_t n)
{
    const em_status status = reserve(grid, n);

    if (!status)
        memset(grid->sums, 0, (size_t)n * sizeof *grid->sums);
    return status;
}

void em_grid_add_to_sum(em_grid *grid, int64_t n, const double *x)
{
    for (int64_t i = 0; i < n; i++) {
        const em_exact_sum term = em_exact_of(x[i]);
        em_exact_add(&term, &grid->sums[i]);
    }
}

void em_grid_end_sum(em_grid *grid, int64_t n, double *sum)
{
    for (int64_t i = 0; grid->n_group > 1 && i < n; i += SUMS_PIECE)
        MPI_Allreduce(MPI_IN_PLACE, grid->sums + i, (int)(n - i < SUMS_PIECE ? n - i : SUMS_PIECE),
                      grid->exact_sum, grid->add, grid->peers);
    for (int64_t i = 0; i < n; i++)
        sum[i] = em_exact_value(&grid->sums[i]);
    if (grid->capacity > SUMS_PIECE) {
        em_release(&grid->sums);
        grid->capacity = 0;
    }
}

/* Sums in pieces of columns, so that the work space is small. */
em_status em_grid_sum_chains(em_grid *grid, int64_t n, const double *x, double *sum)
{
    em_status status = EM_OK;

    for (int64_t first = 0; !status && first < n; first += SUMS_PIECE) {
        const int64_t n_column = n - first < SUMS_PIECE ? n - first : SUMS_PIECE;
        status = em_grid_begin_sum(grid, n_column);
        for (int64_t c = 0; !status && c < grid->n_local_chain; c++)
            em_grid_add_to_sum(grid, n_column, x + c * n + first);
        if (!status)
            em_grid_end_sum(grid, n_column, sum + first);
    }
    return status;
}

/* An MPI type for `count` of the n numbers of a row, with which MPI counts chains. */
static MPI_Datatype row_type(int64_t count, int64_t n)
{
    MPI_Datatype part, row;

    MPI_Type_contiguous((int)count, MPI_DOUBLE, &part);
    MPI_Type_create_resized(part, 0, (MPI_Aint)(n * (int64_t)sizeof(double)), &row);
    MPI_Type_commit(&row);
    MPI_Type_free(&part);
    return row;
}

em_status em_grid_gather_chains(const em_grid *grid, int64_t n, const double *x, double *out)
{
    EM_SCOPED int *count = NULL;
    em_status status = em_agree(em_allocate(2 * grid->n_group, sizeof *count, &count));

    for (int64_t group = 0; !status && group < grid->n_group; group++) {
        const int64_t first = em_partition_first(grid->n_chain, grid->n_group, group);
        const int64_t next = em_partition_first(grid->n_chain, grid->n_group, group + 1);
        count[group] = (int)(next - first);
        count[grid->n_group + group] = (int)first;
    }
    for (int64_t first = 0; !status && first < n; first += PIECE) {
        MPI_Datatype row = row_type(n - first < PIECE ? n - first : PIECE, n);
        MPI_Allgatherv(x + first, (int)grid->n_local_chain, row, out + first, count,
                       count + grid->n_group, row, grid->peers);
        MPI_Type_free(&row);
    }
    return status;
}

static int64_t first_row(const em_grid_items *items, int64_t group)
{
    return items->per_chain * em_partition_first(items->grid->n_chain, items->grid->n_group, group);
}

/* Begins a message for each group whose rows in the other grid overlap with those of this one. */
static void begin_moves(const em_grid_items *own, const em_grid_items *other, bool sends, int64_t n,
                        MPI_Datatype row, double *x, MPI_Request *request)
{
    const MPI_Comm peers = (sends ? own : other)->grid->peers;
    const int group = own->grid->group;
    const int64_t first = first_row(own, group), end = first_row(own, group + 1);

    for (int g = 0; g < own->grid->n_group; g++) {
        const int64_t a = first_row(other, g), b = first_row(other, g + 1);
        const int64_t from = a > first ? a : first, count = (b < end ? b : end) - from;
        if (count > 0 && sends)
            MPI_Isend(x + (from - first) * n, (int)count, row, g, 0, peers, request + g);
        else if (count > 0)
            MPI_Irecv(x + (from - first) * n, (int)count, row, g, 0, peers, request + g);
    }
}

em_status em_grid_move_items(em_grid_items from, em_grid_items to, int64_t n, const double *x,
                             double *out)
{
    const int n_group = from.grid->n_group;
    EM_SCOPED MPI_Request *request = NULL;
    const em_status status = em_agree(em_allocate(2 * n_group, sizeof *request, &request));

    for (int i = 0; !status && i < 2 * n_group; i++)
        request[i] = MPI_REQUEST_NULL;
    if (status)
        return status;
    MPI_Datatype row = row_type(n, n);
    begin_moves(&to, &from, false, n, row, out, request);
    begin_moves(&from, &to, true, n, row, (double *)x, request + n_group);
    MPI_Waitall(2 * n_group, request, MPI_STATUSES_IGNORE);
    MPI_Type_free(&row);
    return EM_OK;
}

void em_grid_maximum(const em_grid *grid, int64_t n, double *x)
{
    for (int64_t i = 0; i < n; i++)
        if (isnan(x[i]))
            x[i] = -INFINITY;
    for (int64_t i = 0; i < n; i += PIECE)
        MPI_Allreduce(MPI_IN_PLACE, x + i, n - i < PIECE ? (int)(n - i) : PIECE, MPI_DOUBLE,
                      MPI_MAX, grid->world);
}

void em_grid_sum_keys(const em_grid *grid, int64_t n, uint64_t *x)
{
    for (int64_t i = 0; i < n; i += PIECE)
        MPI_Allreduce(MPI_IN_PLACE, x + i, n - i < PIECE ? (int)(n - i) : PIECE, MPI_UINT64_T,
                      MPI_SUM, grid->world);
}

void em_grid_sum_binned(const em_grid *grid, int64_t n, double *bins)
{
    const int64_t most = INT64_C(8) * INT_MAX;

    for (int64_t i = 0; grid->n_shard > 1 && i < n; i += most) {
        const int64_t count = n - i < most ? n - i : most;
        MPI_Allreduce(MPI_IN_PLACE, bins + em_binned_size(i), (int)(count / 8), grid->eight_sums,
                      grid->merge, grid->shards);
    }
}

void em_grid_sum_shards(const em_grid *grid, int64_t n, double *x)
{
    for (int64_t i = 0; grid->n_shard > 1 && i < n; i += INT_MAX)
        MPI_Allreduce(MPI_IN_PLACE, x + i, (int)(n - i < INT_MAX ? n - i : INT_MAX), MPI_DOUBLE,
                      MPI_SUM, grid->shards);
}

void em_grid_sum_integers(const em_grid *grid, int64_t n, int64_t *x)
{
    for (int64_t i = 0; grid->n_shard > 1 && i < n; i += INT_MAX)
        MPI_Allreduce(MPI_IN_PLACE, x + i, (int)(n - i < INT_MAX ? n - i : INT_MAX), MPI_INT64_T,
                      MPI_SUM, grid->shards);
}

void em_grid_exchange_lengths(const em_grid *grid, const int64_t *bytes, int64_t *taken)
{
    MPI_Alltoall(bytes, 1, MPI_INT64_T, taken, 1, MPI_INT64_T, grid->shards);
    taken[grid->shard] = 0;
}

static const void *chunk_of(const void *data, int64_t done, int64_t bytes, int *count)
{
    const int64_t left = bytes > done ? bytes - done : 0;

    *count = (int)(left < INT_MAX ? left : INT_MAX);
    return (const char *)data + (left > 0 ? done : 0);
}

/* In step d of the exchange each shard sends to the d-th shard after it. */
void em_grid_exchange(const em_grid *grid, const int64_t *bytes, const void *const *out,
                      const int64_t *taken, void *in)
{
    const int n = grid->n_shard;

    for (int d = 1; d < n; d++) {
        const int to = (grid->shard + d) % n, from = (grid->shard + n - d) % n;
        int64_t before = 0;
        for (int s = 0; s < from; s++)
            before += taken[s];
        for (int64_t done = 0; done < bytes[to] || done < taken[from]; done += INT_MAX) {
            int sent, received;
            const void *piece = chunk_of(out[to], done, bytes[to], &sent);
            void *place = (void *)chunk_of((char *)in + before, done, taken[from], &received);
            MPI_Sendrecv(piece, sent, MPI_BYTE, sent > 0 ? to : MPI_PROC_NULL, 0, place, received,
                         MPI_BYTE, received > 0 ? from : MPI_PROC_NULL, 0, grid->shards,
                         MPI_STATUS_IGNORE);
        }
    }
}

void em_grid_gather_shards(const em_grid *grid, int64_t n, int64_t size, void *x)
{
    int *count = grid->counts, *first = grid->counts + grid->n_shard;
    MPI_Datatype item;

    if (grid->n_shard == 1)
        return;
    for (int s = 0; s < grid->n_shard; s++) {
        first[s] = (int)em_partition_first(n, grid->n_shard, s);
        count[s] = (int)em_partition_first(n, grid->n_shard, s + 1) - first[s];
    }
    MPI_Type_contiguous((int)size, MPI_BYTE, &item);
    MPI_Type_commit(&item);
    MPI_Allgatherv(MPI_IN_PLACE, 0, item, x, count, first, item, grid->shards);
    MPI_Type_free(&item);
}

void em_grid_copy_first_shard(const em_grid *grid, int64_t n, uint64_t *x)
{
    MPI_Bcast(x, (int)n, MPI_UINT64_T, 0, grid->shards);
}

em_status em_grid_share_failure(const em_grid *grid, em_status status)
{
    char text[2048];
    int failing = status < 0 ? grid->shard : INT_MAX;

    if (grid->n_shard == 1)
        return status;
    MPI_Allreduce(MPI_IN_PLACE, &failing, 1, MPI_INT, MPI_MIN, grid->shards);
    if (failing == INT_MAX)
        return EM_OK;
    snprintf(text, sizeof text, "rank %d: %s", em_world_rank(), em_error_text());
    return em_world_share_failure(grid->shards, failing, status, text);
}

/* The numbers of rows of one chain that are sent to, and received from, each peer. */
typedef struct em_parcel {
    int64_t n_row, n_column, n_part;
    int64_t first, own; /* items of this rank */
    int *send_count, *send_first, *receive_count, *receive_first;
    double *send, *receive;
} em_parcel;

static int64_t first_item(const em_grid *grid, const em_parcel *p, int64_t group)
{
    return em_partition_first(p->n_column * p->n_part, grid->n_group, group);
}

typedef struct chains {
    int64_t first, end;
} chains;

/* The chains of an item that a peer has. */
static chains chains_of(const em_grid *grid, const em_parcel *p, int64_t peer, int64_t item)
{
    const int64_t part = item % p->n_part;
    const int64_t a = em_partition_first(grid->n_chain, grid->n_group, peer);
    const int64_t b = em_partition_first(grid->n_chain, grid->n_group, peer + 1);
    const int64_t from = em_partition_first(grid->n_chain, p->n_part, part);
    const int64_t to = em_partition_first(grid->n_chain, p->n_part, part + 1);
    const chains c = {a > from ? a : from, b < to ? b : to};

    return (chains){c.first, c.end > c.first ? c.end : c.first};
}

/* The number of rows in `n` items from `item` on, each with all chains, or in one item. */
static int64_t rows_of(const em_grid *grid, const em_parcel *p, int64_t peer, int64_t item,
                       int64_t n)
{
    const chains c = chains_of(grid, p, peer, item);

    return n * (c.end - c.first);
}

static em_status parcel_create(const em_grid *grid, em_parcel *p)
{
    int *counts = NULL;
    em_status status = EM_OK;

    p->first = first_item(grid, p, grid->group);
    p->own = first_item(grid, p, grid->group + 1) - p->first;
    const int64_t in_part =
        p->n_part > 1 ? (grid->n_chain + p->n_part - 1) / p->n_part : grid->n_chain;
    if (p->n_row > INT_MAX || p->n_column > INT_MAX / grid->n_chain)
        status = em_fail(EM_EINTERNAL, "a transpose of %lld x %lld x %lld is more than MPI takes",
                         (long long)grid->n_chain, (long long)p->n_row, (long long)p->n_column);
    status = status ? status : em_allocate(4 * grid->n_group, sizeof *counts, &counts);
    if (!status)
        status = em_allocate_all(EM_ARRAY(p->send, grid->n_local_chain * p->n_row * p->n_column),
                                 EM_ARRAY(p->receive, p->own * p->n_row * in_part));
    p->send_count = counts;
    if (status)
        return status;
    p->send_first = counts + grid->n_group;
    p->receive_count = counts + 2 * grid->n_group;
    p->receive_first = counts + 3 * grid->n_group;
    for (int64_t peer = 0, sent = 0, received = 0; peer < grid->n_group; peer++) {
        const int64_t item = first_item(grid, p, peer), n = first_item(grid, p, peer + 1) - item;
        p->send_first[peer] = (int)sent;
        p->receive_first[peer] = (int)received;
        sent += p->send_count[peer] = (int)rows_of(grid, p, grid->group, item, n);
        received += p->receive_count[peer] = (int)rows_of(grid, p, peer, p->first, p->own);
    }
    return EM_OK;
}

/* Packs the rows to send. Items ascend with the peers, so the parcels are in order. */
static void pack(const em_grid *grid, const em_parcel *p, const double *local)
{
    double *next = p->send;

    for (int64_t item = 0; item < p->n_column * p->n_part; item++) {
        const chains c = chains_of(grid, p, grid->group, item);
        const int64_t column = item / p->n_part; /* local may be NULL where there are no chains */
        for (int64_t i = (c.first - grid->first_chain) * p->n_row,
                     end = (c.end - grid->first_chain) * p->n_row;
             i < end; i++)
            *next++ = local[i * p->n_column + column];
    }
}

static void unpack(const em_grid *grid, const em_parcel *p, double *column)
{
    const double *from = p->receive;

    for (int64_t peer = 0; peer < grid->n_group && p->own > 0; peer++) {
        const chains c = chains_of(grid, p, peer, p->first);
        const int64_t part = p->first % p->n_part, row_block = (c.end - c.first) * p->n_row;
        const int64_t before = em_partition_first(grid->n_chain, p->n_part, part);
        const int64_t size = em_partition_first(grid->n_chain, p->n_part, part + 1) - before;
        for (int64_t k = 0; k < p->own && row_block > 0; k++, from += row_block)
            memcpy(column + (k * size + c.first - before) * p->n_row, from,
                   (size_t)row_block * sizeof *column);
    }
}

em_status em_grid_transpose(const em_grid *grid, int64_t n_row, int64_t n_column, int64_t n_part,
                            const double *local, double *column)
{
    em_parcel parcel = {.n_row = n_row, .n_column = n_column, .n_part = n_part};
    em_status status = em_agree(parcel_create(grid, &parcel));

    if (!status) {
        pack(grid, &parcel, local);
        MPI_Datatype row = row_type(n_row, n_row);
        MPI_Alltoallv(parcel.send, parcel.send_count, parcel.send_first, row, parcel.receive,
                      parcel.receive_count, parcel.receive_first, row, grid->peers);
        MPI_Type_free(&row);
        unpack(grid, &parcel, column);
    }
    em_release_all(&parcel.send_count, &parcel.send, &parcel.receive);
    return status;
}

double em_clock(void)
{
    return MPI_Wtime();
}
