#include "data/shard/redistribute_rows.h"

#include "base/memory.h"
#include "par/message.h"
#include "par/world.h"

#include <string.h>

enum { PIECE_NUMBERS = 1 << 17 }; /* 1 MiB */

/* The rows that a rank needs. */
typedef struct row_range {
    int64_t first, count;
} row_range;

typedef struct route {
    const em_table *table;
    row_range *wish; /* [em_world_size()] */
    int64_t step;    /* rows of a piece at most */
    bool frees;      /* own rows that no other rank needs are freed when they have been taken */
    em_outbox *outbox;
    /* Arrays for a block that comes from another rank. */
    int64_t *start;                         /* [step + 1] */
    double *response, *beside[EM_N_BESIDE]; /* [step] */
    double *value;
    int32_t *column;
    int64_t value_capacity, column_capacity;
} route;

/* Finds the rows *from .. *end - 1 that a run and a request have in common. */
static void common_rows(const em_row_run *run, const row_range *w, int64_t *from, int64_t *end)
{
    const int64_t run_end = run->row + run->count, wish_end = w->first + w->count;

    *from = run->row > w->first ? run->row : w->first;
    *end = run_end < wish_end ? run_end : wish_end;
}

static void send_block(const route *r, int rank, int64_t held, int64_t count)
{
    const em_table *t = r->table;
    const int64_t at = em_table_first_value(t, held),
                  n = em_table_first_value(t, held + count) - at;

    if (t->column)
        em_outbox_send(r->outbox, rank, (count + 1) * (int64_t)sizeof *t->start, t->start + held);
    if (t->column)
        em_outbox_send(r->outbox, rank, n * (int64_t)sizeof *t->column, t->column + at);
    em_outbox_send(r->outbox, rank, n * (int64_t)sizeof *t->value, t->value + at);
    if (t->response)
        em_outbox_send(r->outbox, rank, count * (int64_t)sizeof *t->response, t->response + held);
    for (int k = 0; k < EM_N_BESIDE; k++)
        if (t->beside[k])
            em_outbox_send(r->outbox, rank, count * (int64_t)sizeof *t->beside[k],
                           t->beside[k] + held);
}

/* Sends every block of this rank's runs that another rank requests. */
static void send_all(const route *r)
{
    int64_t from, end;

    for (int64_t i = 0; i < r->table->n_run; i++) {
        const em_row_run *run = &r->table->run[i];
        for (int rank = 0; run->rank == em_world_rank() && rank < em_world_size(); rank++) {
            common_rows(run, &r->wish[rank], &from, &end);
            for (int64_t row = from; rank != em_world_rank() && row < end; row += r->step)
                send_block(r, rank, run->held + row - run->row,
                           end - row < r->step ? end - row : r->step);
        }
    }
}

static em_row_block own_block(const em_table *t, int64_t held, int64_t count)
{
    const int64_t at = em_table_first_value(t, held);
    em_row_block piece = {.count = count,
                          .response = t->response ? t->response + held : NULL,
                          .value = t->value ? t->value + at : NULL,
                          .start = t->column ? t->start + held : NULL,
                          .column = t->column ? t->column + at : NULL};

    for (int k = 0; k < EM_N_BESIDE; k++)
        piece.beside[k] = t->beside[k] ? t->beside[k] + held : NULL;
    return piece;
}

/* Receives all data, even those for which there is no memory, so that the sender does not wait for
 * ever. */
static em_status receive_block(route *r, int rank, int64_t count, em_row_block *piece)
{
    const em_table *t = r->table;
    int64_t n = count * t->n_column;
    em_status status = EM_OK;

    if (t->column) {
        em_receive(rank, (count + 1) * (int64_t)sizeof *r->start, r->start);
        n = r->start[count] - r->start[0];
        status = em_reserve(&r->column, &r->column_capacity, 0, n);
        em_receive(rank, n * (int64_t)sizeof *r->column, status ? NULL : r->column);
    }
    status = status ? status : em_reserve(&r->value, &r->value_capacity, 0, n);
    em_receive(rank, n * (int64_t)sizeof *r->value, status ? NULL : r->value);
    if (t->response)
        em_receive(rank, count * (int64_t)sizeof *r->response, r->response);
    for (int k = 0; k < EM_N_BESIDE; k++)
        if (t->beside[k])
            em_receive(rank, count * (int64_t)sizeof *r->beside[k], r->beside[k]);
    *piece = (em_row_block){.count = count,
                            .response = t->response ? r->response : NULL,
                            .value = r->value,
                            .start = t->column ? r->start : NULL,
                            .column = t->column ? r->column : NULL};
    for (int k = 0; k < EM_N_BESIDE; k++)
        piece->beside[k] = t->beside[k] ? r->beside[k] : NULL;
    return status;
}

/* Frees the values of `count` own rows of a table, of which `held` is the first, unless another
 * rank needs some of them. */
static void free_taken(const route *r, const em_row_run *run, int64_t held, int64_t count)
{
    const em_table *t = r->table;
    const int64_t at = em_table_first_value(t, held),
                  n = em_table_first_value(t, held + count) - at;
    const em_row_run taken = {.row = run->row + held - run->held, .count = count};
    bool is_needed = false;

    for (int rank = 0; rank < em_world_size(); rank++) {
        int64_t from, end;
        common_rows(&taken, &r->wish[rank], &from, &end);
        is_needed = is_needed || (rank != em_world_rank() && from < end);
    }
    if (is_needed)
        return;
    em_release_pages(t->value, at, n, sizeof *t->value);
    em_release_pages(t->column, at, n, sizeof *t->column);
}

static em_status take_all(route *r, em_take *take, void *to)
{
    const row_range *mine = &r->wish[em_world_rank()];
    em_status status = EM_OK;
    int64_t from, end;

    for (int64_t i = 0; i < r->table->n_run; i++) {
        const em_row_run *run = &r->table->run[i];
        common_rows(run, mine, &from, &end);
        for (int64_t row = from; row < end; row += r->step) {
            const int64_t count = end - row < r->step ? end - row : r->step;
            em_row_block piece;
            em_status received = EM_OK;
            if (run->rank == em_world_rank())
                piece = own_block(r->table, run->held + row - run->row, count);
            else
                received = receive_block(r, (int)run->rank, count, &piece);
            piece.row = row - mine->first;
            status = status ? status : received ? received : take(to, &piece);
            if (r->frees && run->rank == em_world_rank())
                free_taken(r, run, run->held + row - run->row, count);
        }
    }
    return status;
}

static em_status prepare(int64_t first, int64_t count, route *r)
{
    const em_table *t = r->table;
    const int64_t per_row = t->total > 0 ? t->total_entries / t->total + 1 : 1;
    const row_range mine = {first, count};
    int64_t n;
    em_status status = em_world_gather(1, sizeof mine, &mine, &n, &r->wish);

    r->step = per_row < PIECE_NUMBERS ? PIECE_NUMBERS / per_row : 1;
    if (status)
        return status;
    status = em_allocate(r->step + 1, sizeof *r->start, &r->start);
    status = status ? status : em_allocate_doubles(r->step, &r->response);
    for (int k = 0; !status && k < EM_N_BESIDE; k++)
        if (t->beside[k])
            status = em_allocate_doubles(r->step, &r->beside[k]);
    status = status ? status : em_outbox_create(&r->outbox);
    if (!status) {
        send_all(r);
        status = em_outbox_open(r->outbox);
    }
    return em_agree_first(status, 0);
}

static em_status redistribute(const em_table *table, bool frees, int64_t first, int64_t count,
                              em_take *take, void *to)
{
    route r = {.table = table, .frees = frees};
    em_status status = prepare(first, count, &r);

    if (!status) {
        send_all(&r);
        status = take_all(&r, take, to);
    }
    em_outbox_finish(&r.outbox);
    em_release_all(&r.wish, &r.start, &r.response);
    for (int k = 0; k < EM_N_BESIDE; k++)
        em_release(&r.beside[k]);
    em_release_all(&r.value, &r.column);
    return em_agree_first(status, 0);
}

em_status em_redistribute_rows(const em_table *table, int64_t first, int64_t count, em_take *take,
                               void *to)
{
    return redistribute(table, false, first, count, take, to);
}

/* ---------------------------------------------------------------- replacing the read rows */

/* Appends a block to the rows of a new table. */
static em_status append(void *untyped, const em_row_block *piece)
{
    em_table *t = untyped;
    const int64_t n =
        piece->start ? piece->start[piece->count] - piece->start[0] : piece->count * t->n_column;
    em_status status = em_reserve(&t->value, &t->value_capacity, t->n_value, t->n_value + n);

    if (!status && piece->start)
        status = em_reserve(&t->column, &t->column_capacity, t->n_value, t->n_value + n);
    if (status)
        return status;
    if (n > 0)
        memcpy(t->value + t->n_value, piece->value, (size_t)n * sizeof *piece->value);
    if (piece->start && n > 0)
        memcpy(t->column + t->n_value, piece->column, (size_t)n * sizeof *piece->column);
    for (int64_t i = 0; piece->start && i < piece->count; i++)
        t->start[piece->row + i + 1] = t->n_value + piece->start[i + 1] - piece->start[0];
    if (piece->response)
        memcpy(t->response + piece->row, piece->response,
               (size_t)piece->count * sizeof *piece->response);
    t->n_value += n;
    t->n_row += piece->count;
    return EM_OK;
}

static void release_rows(em_table *t)
{
    em_release_all(&t->value, &t->column, &t->start, &t->response);
}

/* Reserves memory for rows, as far as their number determines it. */
static em_status reserve_rows(const em_table *table, int64_t count, em_table *held)
{
    em_status status = EM_OK;

    if (table->column)
        status = em_reserve(&held->start, &held->start_capacity, 0, count + 1);
    if (!status && table->column)
        status = em_reserve(&held->column, &held->column_capacity, 0, 1);
    if (!status && !table->column)
        status = em_reserve(&held->value, &held->value_capacity, 0, count * table->n_column);
    if (!status && table->response)
        status = em_reserve(&held->response, &held->response_capacity, 0, count);
    return em_agree_first(status, 0);
}

em_status em_table_hold(em_table *table, int64_t first, int64_t count)
{
    em_table held = {.n_column = table->n_column};
    em_status status = reserve_rows(table, count, &held);

    status = status ? status : redistribute(table, true, first, count, append, &held);
    if (status) {
        release_rows(&held);
        return status;
    }
    release_rows(table);
    table->n_row = held.n_row;
    table->n_value = held.n_value;
    table->value = held.value;
    table->column = held.column;
    table->start = held.start;
    table->response = held.response;
    table->value_capacity = held.value_capacity;
    table->column_capacity = held.column_capacity;
    table->start_capacity = held.start_capacity;
    table->response_capacity = held.response_capacity;
    return EM_OK;
}
