/* Numbers that depend on the data of all shards. They are sums over parts, each of which is on one
 * shard, added in order. So they have the same bits on any number of shards. */
#include "base/memory.h"
#include "network/network.h"

#include <math.h>
#include <string.h>

/* Each number is not 0 on one shard only, so its bits, taken as an integer, are the sum. */
em_status em_network_gather(const em_network *self, em_status own, int64_t n, double *x)
{
    return em_network_sum(self, own, n, (int64_t *)x);
}

/* ---------------------------------------------------------------- moments of the inputs */

enum { COLUMNS = 64 }; /* at a time */

typedef struct columns {
    int64_t first, count;
    double *part; /* [n_part][COLUMNS] sums */
} columns;

/* sum[count] over all rows of the differences from `centre`, or of their squares. */
static em_status sum_columns(const em_network *self, const columns *c, const double *centre,
                             bool squares, double *sum)
{
    const em_examples *e = self->train;
    const int64_t n_part = em_network_n_part(&e->rows);

    memset(c->part, 0, (size_t)(n_part * COLUMNS) * sizeof *c->part);
    for (int64_t i = 0; i < e->rows.count; i++) {
        double *part = c->part + (e->rows.first + i) / e->rows.part * COLUMNS;
        for (int64_t j = 0; j < c->count; j++) {
            const double delta = e->value[i * e->n_column + e->column[c->first + j]] - centre[j];
            part[j] += squares ? delta * delta : delta;
        }
    }
    em_status status = em_network_gather(self, EM_OK, n_part * COLUMNS, c->part);
    memset(sum, 0, COLUMNS * sizeof *sum);
    for (int64_t p = 0; !status && p < n_part; p++)
        for (int64_t j = 0; j < c->count; j++)
            sum[j] += c->part[p * COLUMNS + j];
    return status;
}

/* Finds centre and scale of the columns. Values are first reduced by that of the first observation,
 * so that all of them are 0 if a column is constant. */
static em_status find_of_columns(em_network *self, const columns *c)
{
    const em_examples *e = self->train;
    const double n = (double)e->rows.total;
    double *centre = self->centre + c->first, *factor = self->factor + c->first, sum[COLUMNS];

    for (int64_t j = 0; j < c->count; j++)
        centre[j] = e->rows.first == 0 && e->rows.count > 0 ? e->value[e->column[c->first + j]] : 0;
    em_status status = em_network_gather(self, EM_OK, c->count, centre);
    status = status ? status : sum_columns(self, c, centre, false, sum);
    for (int64_t j = 0; !status && j < c->count; j++)
        centre[j] += sum[j] / n;
    status = status ? status : sum_columns(self, c, centre, true, sum);
    for (int64_t j = 0; !status && j < c->count; j++)
        factor[j] = sum[j] > 0 ? sqrt((n - 1) / sum[j]) : 1;
    return status;
}

em_status em_network_find_moments(em_network *self)
{
    const int64_t n_part = em_network_n_part(&self->train->rows);
    columns c = {.part = NULL};
    em_status status =
        em_network_gather(self, em_allocate(n_part * COLUMNS, sizeof *c.part, &c.part), 0, NULL);

    for (; !status && c.first < self->train->n_input; c.first += COLUMNS) {
        const int64_t left = self->train->n_input - c.first;
        c.count = left < COLUMNS ? left : COLUMNS;
        status = find_of_columns(self, &c);
    }
    em_release(&c.part);
    return status;
}
