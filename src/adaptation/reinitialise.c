/* Chains that cannot move take the position of another. */
#include "adaptation/adaptation_internal.h"
#include "base/memory.h"
#include "math/rng.h"
#include "par/world.h"

#include <string.h>

/* A row of all that a chain is. */
static void pack_chain(const em_block *block, int64_t c, double *row)
{
    memcpy(row, block->theta + c * block->stride, (size_t)block->dim * sizeof *row);
    memcpy(row + block->dim, block->gradient + c * block->stride, (size_t)block->dim * sizeof *row);
    row[2 * block->dim] = block->log_density[c];
}

static void unpack_chain(const double *row, em_block *block, int64_t c)
{
    memcpy(block->theta + c * block->stride, row, (size_t)block->dim * sizeof *row);
    memcpy(block->gradient + c * block->stride, row + block->dim, (size_t)block->dim * sizeof *row);
    block->log_density[c] = row[2 * block->dim];
}

/* Which chains are not flagged, into out[n_chain]; returns how many. */
static int64_t list_leaders(const em_adapt *adapt, int64_t *out)
{
    int64_t n = 0;

    for (int64_t c = 0; c < em_grid_n_chain(adapt->grid); c++)
        if (!adapt->course.flagged[c])
            out[n++] = c;
    return n;
}

/* One of them, for a chain that is flagged. */
static int64_t choose_leader(const em_adapt *adapt, int64_t n_leader, const int64_t *leader,
                             int64_t chain, int64_t done)
{
    const em_stream stream = {adapt->seed, (uint64_t)chain, (uint64_t)done, EM_RNG_RESCUE};

    return leader[em_uniform_below(&stream, 0, (uint64_t)n_leader)];
}

void em_forget_chain(em_adapt *adapt, int64_t c, int64_t done)
{
    memset(em_accumulators(adapt, c, 0), 0,
           (size_t)(adapt->n_segment * adapt->n_accumulator) * sizeof(double));
    em_window_forget(&adapt->window, c);
    adapt->course.since[c] = (double)done;
}

/* Chain `chain` goes on from where `row` says, and what it was before is forgotten. Local. */
static void follow(em_adapt *adapt, em_block *block, int64_t chain, const double *row, int64_t done)
{
    const int64_t c = chain - em_grid_first_chain(adapt->grid);

    if (c < 0 || c >= block->n_chain)
        return;
    unpack_chain(row, block, c);
    em_forget_chain(adapt, c, done);
}

/* Moves the chains marked in `lost` to where others stand. Collective. */
static em_status move_lost(em_adapt *adapt, em_block *block, int64_t done, const bool *lost)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid), width = 2 * block->dim + 1;
    double *local = NULL, *all = NULL;
    int64_t *leader = NULL;
    em_status status = em_allocate(block->n_chain * width, sizeof *local, &local);

    if (!status)
        status = em_allocate(n_chain * width, sizeof *all, &all);
    if (!status)
        status = em_allocate(n_chain, sizeof *leader, &leader);
    status = em_agree(status);
    for (int64_t c = 0; !status && c < block->n_chain; c++)
        pack_chain(block, c, local + c * width);
    if (!status)
        status = em_grid_gather_chains(adapt->grid, width, local, all);
    const int64_t n_leader = status ? 0 : list_leaders(adapt, leader);
    for (int64_t c = 0; !status && c < n_chain; c++)
        if (lost[c])
            follow(adapt, block, c, all + choose_leader(adapt, n_leader, leader, c, done) * width,
                   done);
    em_release(&local);
    em_release(&all);
    em_release(&leader);
    return status;
}

/* Chains that stand still at the smallest steps, while others move. Collective. */
static em_status find_lost(em_adapt *adapt, const em_log_density_window *stretch, bool *lost,
                           int64_t *n)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid);
    double *factor = NULL;
    em_status status = em_agree(em_allocate(n_chain, sizeof *factor, &factor));

    if (!status)
        status = em_grid_gather_chains(adapt->grid, 1, adapt->course.step_factor, factor);
    for (int64_t c = 0; !status && c < n_chain; c++) {
        lost[c] = adapt->course.flagged[c] && factor[c] <= EM_LEAST_STEP_FACTOR &&
                  em_stands_still(&stretch[c], adapt->dim);
        *n += lost[c];
    }
    em_release(&factor);
    return status;
}

em_status em_reinitialise_chains(em_adapt *adapt, em_block *block,
                                 const em_log_density_window *stretch, int64_t done)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid);
    em_warmup *course = &adapt->course;
    bool *lost = NULL;
    int64_t n = 0;
    em_status status;

    if (!adapt->options->rescue)
        return EM_OK;
    status = em_agree(em_allocate(n_chain, sizeof *lost, &lost));
    if (!status)
        status = find_lost(adapt, stretch, lost, &n);
    if (!status && n > 0) {
        status = move_lost(adapt, block, done, lost);
        course->n_rescued += n;
        course->last_rescue = done;
    }
    for (int64_t c = 0; !status && c < n_chain; c++)
        course->flagged[c] &= !lost[c];
    em_release(&lost);
    return status;
}
