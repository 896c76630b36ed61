/*
 * Reinitialises outlying chains (option mass.rescue, off by default). A chain is reinitialised when
 * its log density is outlying at the end of a window, its draws do not move, and its step size has
 * shrunk to the smallest allowed factor. It takes the position of a chain drawn at random from
 * those that are not outlying.
 */
#include "adaptation/adaptation_internal.h"
#include "base/memory.h"
#include "math/rng.h"
#include "par/world.h"

#include <string.h>

/* Copies the state of a chain into a row: position, gradient, log density. */
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

/* Lists the chains that are not outlying in out[n_chain]; returns how many. */
static int64_t list_sources(const em_adapt *adapt, int64_t *out)
{
    int64_t n = 0;

    for (int64_t c = 0; c < adapt->n_chain; c++)
        if (!adapt->outlying[c])
            out[n++] = c;
    return n;
}

/* Sets the state of chain `chain` from `row`, where it is on this rank, and drops its samples so
 * far, because they were not drawn from the target. Local. */
static void copy_chain(em_adapt *adapt, em_block *block, int64_t chain, const double *row,
                       int64_t done)
{
    const int64_t c = chain - adapt->first_chain;

    if (c < 0 || c >= block->n_chain)
        return;
    unpack_chain(row, block, c);
    memset(em_accumulators(adapt, c, 0), 0,
           (size_t)(adapt->n_segment * adapt->n_accumulator) * sizeof(double));
    em_window_forget(&adapt->window, c, (double)done);
    adapt->initial->since[c] = (double)done;
}

/* Gives each chain marked in `stuck` the state of another one, drawn at random. Collective. */
static em_status move_stuck(em_adapt *adapt, em_block *block, int64_t done, const bool *stuck)
{
    const int64_t n_chain = adapt->n_chain, width = 2 * block->dim + 1;
    EM_SCOPED double *local = NULL, *all = NULL;
    EM_SCOPED int64_t *source = NULL;
    em_status status =
        em_agree(em_allocate_all(EM_ARRAY(local, block->n_chain * width),
                                 EM_ARRAY(all, n_chain * width), EM_ARRAY(source, n_chain)));

    for (int64_t c = 0; !status && c < block->n_chain; c++)
        pack_chain(block, c, local + c * width);
    status = status ? status : em_grid_gather_chains(adapt->grid, width, local, all);
    const int64_t n_source = status ? 0 : list_sources(adapt, source);
    for (int64_t c = 0; !status && c < n_chain; c++) {
        const em_stream stream = {adapt->seed, (uint64_t)c, (uint64_t)done, EM_RNG_REINITIALISE};
        if (stuck[c])
            copy_chain(adapt, block, c,
                       all + source[em_uniform_below(&stream, 0, (uint64_t)n_source)] * width,
                       done);
    }
    return status;
}

/* Marks the outlying chains that do not move even at the smallest step factor. Collective. */
static em_status find_stuck(em_adapt *adapt, const em_log_density_window *window, bool *stuck,
                            int64_t *n)
{
    EM_SCOPED double *factor = NULL;
    em_status status = em_agree(em_allocate(adapt->n_chain, sizeof *factor, &factor));

    status = status ? status : em_grid_gather_chains(adapt->grid, 1, adapt->step_factor, factor);
    for (int64_t c = 0; !status && c < adapt->n_chain; c++) {
        stuck[c] = adapt->outlying[c] && factor[c] <= EM_LEAST_STEP_FACTOR &&
                   em_stands_still(&window[c], adapt->dim);
        *n += stuck[c];
    }
    return status;
}

em_status em_reinitialise_chains(em_adapt *adapt, em_block *block,
                                 const em_log_density_window *window, int64_t done)
{
    EM_SCOPED bool *stuck = NULL;
    int64_t n = 0;

    if (!adapt->options->rescue)
        return EM_OK;
    em_status status = em_agree(em_allocate(adapt->n_chain, sizeof *stuck, &stuck));
    status = status ? status : find_stuck(adapt, window, stuck, &n);
    if (!status && n > 0) {
        status = move_stuck(adapt, block, done, stuck);
        adapt->initial->n_reinitialised += n;
        adapt->initial->last_reinitialised = done;
    }
    for (int64_t c = 0; !status && c < adapt->n_chain; c++)
        adapt->outlying[c] &= !stuck[c];
    return status;
}
