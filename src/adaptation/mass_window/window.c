#include "adaptation/mass_window/window.h"

#include "base/memory.h"
#include "math/finite.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

int64_t em_window_span(int64_t dim)
{
    const int64_t fit = (INT64_C(1) << 23) / dim;

    return fit > 200 ? 200 : fit < 20 ? 20 : fit;
}

em_status em_window_create(em_owner *owner, int64_t chains_per_pool, int64_t n_chain, int64_t dim,
                           int64_t longest, int64_t most, em_window *out)
{
    *out = (em_window){.dim = dim,
                       .n_chain = n_chain,
                       .skip = (chains_per_pool + most - 1) / most,
                       .n_slot = em_most(em_least(most / chains_per_pool, longest), 1),
                       .every = 1};
    const em_status status = em_own_all(owner, EM_ARRAY(out->iteration, out->n_slot),
                                        EM_ARRAY(out->row, n_chain * out->n_slot * 2 * dim));
    for (int64_t i = 0; !status && i < out->n_slot; i++)
        out->iteration[i] = -1;
    return status;
}

/* The number of multiples of `every` in from .. to - 1. */
static int64_t count_of(int64_t from, int64_t to, int64_t every)
{
    return (to + every - 1) / every - (from + every - 1) / every;
}

/* The interval `every` is a power of two, so that this window can use what an earlier, shorter one
 * has kept. */
void em_window_aim(em_window *window, int64_t from, int64_t to)
{
    int64_t every = (int64_t)window->every;

    while (window->n_slot > 0 && count_of(from, to, every) > window->n_slot)
        every *= 2;
    window->from = (double)from;
    window->every = (double)every;
}

static bool is_wanted(const em_window *window, double iteration)
{
    return iteration >= window->from && fmod(iteration, window->every) == 0;
}

static double *row_of(const em_window *window, int64_t chain, int64_t slot)
{
    return window->row + (chain * window->n_slot + slot) * 2 * window->dim;
}

void em_window_take(em_window *window, const em_block *block, int64_t iteration)
{
    const size_t bytes = (size_t)window->dim * sizeof(double);
    int64_t slot = 0;

    if (window->n_slot == 0 || !is_wanted(window, (double)iteration))
        return;
    while (slot < window->n_slot - 1 && is_wanted(window, window->iteration[slot]))
        slot++;
    window->iteration[slot] = (double)iteration;
    for (int64_t c = 0; c < window->n_chain; c++) {
        double *row = row_of(window, c, slot);
        memcpy(row, block->theta + c * block->stride, bytes);
        memcpy(row + window->dim, block->gradient + c * block->stride, bytes);
        if (!em_all_finite(window->dim, row + window->dim))
            row[0] = NAN;
    }
}

void em_window_forget(em_window *window, int64_t chain, double before)
{
    for (int64_t slot = 0; slot < window->n_slot; slot++)
        if (window->iteration[slot] < before)
            row_of(window, chain, slot)[0] = NAN;
}

const double *em_window_sample(const em_window *window, const em_grid *grid, int64_t chain,
                               int64_t slot)
{
    const double *row = row_of(window, chain - em_grid_first_chain(grid), slot);

    return chain % window->skip == 0 && is_wanted(window, window->iteration[slot]) && !isnan(row[0])
               ? row
               : NULL;
}

/* Slots, and the range of columns of their rows that is gathered at a time. */
typedef struct slots {
    const int64_t *slot;
    int64_t n, first, count;
} slots;

/* Gathers the columns of these slots from all chains into out [n_chain][n][count]. */
static em_status gather_columns(const em_window *window, const em_grid *grid, const slots *of,
                                double *local, double *out)
{
    double *to = local;

    for (int64_t c = 0; c < window->n_chain; c++)
        for (int64_t k = 0; k < of->n; k++, to += of->count)
            memcpy(to, row_of(window, c, of->slot[k]) + of->first,
                   (size_t)of->count * sizeof *local);
    return em_grid_gather_chains(grid, of->n * of->count, local, out);
}

/* Adds the rows of these slots to the samples, one slot after the other. Columns are gathered in
 * batches to limit the memory. */
static em_status gather_slots(const em_window *window, const em_grid *grid, const bool *outlying,
                              slots of, int64_t batch, double *work, em_samples *out)
{
    const int64_t n_chain = em_grid_n_chain(grid), width = 2 * window->dim;
    double *all = work + window->n_chain * of.n * batch;
    int64_t n = 0;
    em_status status = EM_OK;

    for (of.first = 0; !status && of.first < width; of.first += batch) {
        of.count = width - of.first < batch ? width - of.first : batch;
        status = gather_columns(window, grid, &of, work, all);
        n = 0;
        for (int64_t k = 0; !status && k < of.n; k++)
            for (int64_t c = 0; c < n_chain; c += window->skip)
                if (!outlying || !outlying[c])
                    memcpy(out->row + (out->n + n++) * width + of.first,
                           all + (c * of.n + k) * of.count, (size_t)of.count * sizeof *all);
    }
    out->n += n;
    return status;
}

/* Drops the samples whose first number is NaN, which marks those left out. */
static void drop_left_out(int64_t width, em_samples *samples)
{
    int64_t kept = 0;

    for (int64_t i = 0; i < samples->n; i++) {
        if (isnan(samples->row[i * width]))
            continue;
        if (kept < i)
            memcpy(samples->row + kept * width, samples->row + i * width,
                   (size_t)width * sizeof(double));
        kept++;
    }
    samples->n = kept;
}

/* Lists the slots whose iterations are to be used, and returns how many there are. */
static int64_t list_wanted(const em_window *window, int64_t *slot)
{
    int64_t n = 0;

    for (int64_t i = 0; i < window->n_slot; i++)
        if (is_wanted(window, window->iteration[i]))
            slot[n++] = i;
    return n;
}

/* Gathers at a time as many slots as fit into 8 MB for all chains. The arrays are as large as the
 * window so far needs, because most windows of warmup are short. */
em_status em_window_gather(const em_window *window, const em_grid *grid, const bool *outlying,
                           em_samples *out)
{
    const int64_t n_chain = em_grid_n_chain(grid), width = 2 * window->dim;
    const int64_t fit = (1 << 20) / n_chain + 1, batch = fit < width ? fit : width;
    const int64_t used = (n_chain + window->skip - 1) / window->skip;
    EM_SCOPED double *work = NULL;
    EM_SCOPED int64_t *slot = NULL;
    em_status status = em_agree(em_allocate(window->n_slot, sizeof *slot, &slot));

    *out = (em_samples){0, NULL};
    const int64_t n = status ? 0 : list_wanted(window, slot), together = em_least(fit / batch, n);
    if (!status)
        status = em_allocate_doubles((window->n_chain + n_chain) * together * batch, &work);
    status = status ? status : em_allocate_doubles(n * used * width, &out->row);
    status = em_agree(status);
    for (int64_t i = 0; !status && i < n; i += together) {
        const slots of = {.slot = slot + i, .n = n - i < together ? n - i : together};
        status = gather_slots(window, grid, outlying, of, batch, work, out);
    }
    if (!status)
        drop_left_out(width, out);
    return status;
}

em_status em_window_of_chain(const em_window *window, int64_t chain, em_samples *out)
{
    const int64_t width = 2 * window->dim;

    *out = (em_samples){0, NULL};
    const em_status status = em_allocate_doubles(window->n_slot * width, &out->row);
    for (int64_t slot = 0; !status && slot < window->n_slot; slot++)
        if (is_wanted(window, window->iteration[slot]))
            memcpy(out->row + out->n++ * width, row_of(window, chain, slot),
                   (size_t)width * sizeof(double));
    if (!status)
        drop_left_out(width, out);
    return status;
}

em_status em_window_visit(em_window *window, const em_visitor *visitor)
{
    double aim[2] = {window->from, window->every};

    if (window->n_slot == 0)
        return EM_OK;
    em_status status = visitor->shared(visitor->context, "window_aim", 2, aim);
    if (!status)
        status = visitor->shared(visitor->context, "window_iterations", window->n_slot,
                                 window->iteration);
    if (!status)
        status = visitor->chains(visitor->context, "window", window->n_slot * 2 * window->dim,
                                 window->row);
    if (!status && !(aim[1] >= 1))
        return em_fail(
            EM_EDATA, "a checkpoint has a window of every %g-th draw, expected at least 1", aim[1]);
    window->from = aim[0];
    window->every = aim[1];
    return status;
}
