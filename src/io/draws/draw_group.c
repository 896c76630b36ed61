#include "io/draws/draw_group.h"

#include "base/memory.h"
#include "par/world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_CHUNK_BYTES = 1 << 24, /* HDF5's own limit is 4 GiB */
    DRAW_CHUNK = 1024,         /* of the draw coordinate */
    MOST_CHUNKS = 1 << 11,     /* written by a rank at a time: HDF5 takes a few KB for each */
    FILL_BYTES = 1 << 22       /* of them when filling */
};

typedef struct series {
    em_storage storage;
    int64_t size;      /* numbers per draw */
    size_t item_bytes; /* of one number in the file */
    em_dataset dataset;
    char *path; /* in the file */
} series;

struct em_draws {
    em_owner memory; /* of all but the buffer */
    const em_grid *grid;
    em_dimension *draw; /* its extent is n_draw, belongs to the group */
    char *draw_path;
    int64_t n_draw, n_kept;
    int64_t n_series, width;
    series *series;
    int64_t buffer_bytes;
    void *buffer; /* one series of one call of em_draws_put */
};

/* Chunks of equal length, so that the last one of a chain is about as full as the others. */
static int64_t draws_per_chunk(const series *chunked, int64_t n_draw, int64_t wanted)
{
    const int64_t draw_bytes = em_most(chunked->size * (int64_t)chunked->item_bytes, 1);
    const int64_t fit = em_most(MAX_CHUNK_BYTES / draw_bytes, 1);
    const int64_t most = wanted < fit ? wanted : fit;
    const int64_t n_chunk = em_most((n_draw + most - 1) / most, 1);

    return em_most((n_draw + n_chunk - 1) / n_chunk, 1);
}

/* Sets the extents and the chunks. A chunk has draws of one chain only, so that it belongs to one
 * rank. */
static void lay_out(em_draws *draws, const em_variable *variable, int64_t n_chunk_draw)
{
    series *out = &draws->series[draws->n_series++];
    em_dataset *dataset = &out->dataset;

    out->storage = variable->storage;
    out->size = em_variable_size(variable);
    draws->width += out->size;
    dataset->type = em_dataset_type(variable->storage);
    out->item_bytes = H5Tget_size(dataset->type);
    dataset->n_axes = 2 + variable->n_axes;
    dataset->extent[EM_CHAIN_AXIS] = (hsize_t)em_grid_n_chain(draws->grid);
    dataset->extent[EM_DRAW_AXIS] = (hsize_t)draws->n_draw;
    dataset->chunk[EM_CHAIN_AXIS] = 1;
    dataset->chunk[EM_DRAW_AXIS] = (hsize_t)draws_per_chunk(out, draws->n_draw, n_chunk_draw);
    for (int i = 0; i < variable->n_axes; i++) {
        dataset->extent[2 + i] = (hsize_t)variable->shape[i];
        dataset->chunk[2 + i] = (hsize_t)em_most(variable->shape[i], 1);
    }
}

/* Extends all series and the coordinate by space for the draws from `first` on, in the file of
 * `location`. Collective. */
static em_status reserve_draws(const em_draws *draws, int64_t first, hid_t location)
{
    const int64_t n = draws->n_draw - first;
    int64_t bytes = (n + DRAW_CHUNK) * (int64_t)sizeof(int64_t);

    for (int64_t i = 0; i < draws->n_series; i++) {
        em_dataset added = draws->series[i].dataset;

        added.extent[EM_DRAW_AXIS] = (hsize_t)n;
        bytes += em_dataset_bytes(&added);
    }
    return em_agree(em_h5_reserve(location, bytes));
}

static em_status add_series(em_draws *draws, em_group *group, em_dimension *chain,
                            const em_variable *variable, series *added)
{
    em_dimension *axis[EM_DATASET_AXES] = {chain, draws->draw};
    em_status status = em_group_axes(group, variable, axis + 2);

    if (!status)
        status = em_agree(em_own(&draws->memory,
                                 em_format_text(&added->path, "%s/%s", group->name, variable->name),
                                 &added->path));
    return status ? status : em_group_add(group, variable, &added->dataset, axis);
}

/* Chains of this rank and draws of each of them. */
typedef struct part {
    int64_t first_chain, n_chain; /* counted from the first of the rank; may reach past its last */
    int64_t first_draw, n_draw;
} part;

/* Writes a part of a series from its packed numbers. `site`: the name of the fault that tests
 * inject here. Collective. Errors: EM_EIO, agreed. */
static em_status put_part(const em_draws *draws, const series *put, part at, const void *value,
                          const char *site)
{
    const bool writes = em_grid_shard(draws->grid) == 0;
    const int64_t left = em_grid_n_local_chain(draws->grid) - at.first_chain;
    const int64_t n_chain = left < at.n_chain ? left : at.n_chain;
    const hsize_t start[EM_DATASET_AXES] = {
        (hsize_t)(em_grid_first_chain(draws->grid) + at.first_chain), (hsize_t)at.first_draw};
    hsize_t count[EM_DATASET_AXES];
    char what[64];

    memcpy(count, put->dataset.extent, sizeof count);
    count[EM_CHAIN_AXIS] = (hsize_t)n_chain;
    count[EM_DRAW_AXIS] = (hsize_t)at.n_draw;
    snprintf(what, sizeof what, "draws %lld..%lld", (long long)at.first_draw,
             (long long)(at.first_draw + at.n_draw - 1));
    const em_status status = em_dataset_write(
        &put->dataset, (em_slab){start, writes && n_chain > 0 ? count : NULL}, value, what);
    return em_agree(status ? status : em_h5_fault(site, put->dataset.id));
}

/* The largest number of chains of a rank. All ranks make as many transfers as that rank needs. */
static int64_t most_chains(const em_draws *draws)
{
    return em_partition_first(em_grid_n_chain(draws->grid), em_grid_n_group(draws->grid), 1);
}

/* The numbers of draws and chains of a transfer when filling: several whole chains, or a part of
 * one. They are the same on all ranks. */
static part fill_block(const em_draws *draws, const series *filled, int64_t n_draw)
{
    const int64_t draw_bytes = em_most(filled->size * (int64_t)sizeof(double), 1);
    const int64_t fit = em_most(FILL_BYTES / draw_bytes, 1);
    const int64_t n_chain = em_most(fit / em_most(n_draw, 1), 1);
    const int64_t most = most_chains(draws) < MOST_CHUNKS ? most_chains(draws) : MOST_CHUNKS;

    return (part){.n_chain = n_chain < most ? n_chain : most,
                  .n_draw = fit < n_draw ? fit : n_draw};
}

static em_status fill_series(const em_draws *draws, const series *filled, int64_t first)
{
    part block = fill_block(draws, filled, draws->n_draw - first);
    const int64_t n = block.n_chain * block.n_draw * filled->size, most = block.n_draw;
    const double nan = NAN;
    EM_SCOPED char *value = NULL;
    em_status status = em_agree(em_allocate(n, filled->item_bytes, &value));

    if (status)
        return status;
    for (int64_t i = 0; i < n; i++)
        em_dataset_convert(filled->storage, 1, &nan, value + (size_t)i * filled->item_bytes);
    for (; !status && block.first_chain < most_chains(draws); block.first_chain += block.n_chain)
        for (int64_t draw = first; !status && draw < draws->n_draw; draw += most) {
            block.first_draw = draw;
            block.n_draw = draws->n_draw - draw < most ? draws->n_draw - draw : most;
            status = put_part(draws, filled, block, value, "hdf5-fill");
        }
    return status;
}

/* Writes NaN into the draws from `first` on. The flush before extends the file to its full length:
 * the bytes between two parts are then zero, however MPI writes the parts. Collective. */
static em_status fill(const em_draws *draws, hid_t file, int64_t first)
{
    em_status status = em_h5_flush(file);

    for (int64_t i = 0; i < draws->n_series && !status; i++)
        status = fill_series(draws, &draws->series[i], first);
    return status;
}

em_status em_draws_create(const em_grid *grid, em_group *group, int64_t n_series,
                          const em_variable *wanted, em_draw_space space, em_draws **out)
{
    em_dimension *chain = NULL;
    em_status status = em_allocate(1, sizeof **out, out);
    em_draws *draws = *out;

    if (!status) {
        draws->grid = grid;
        draws->n_draw = draws->n_kept = space.n_draw;
        status = em_own_all(&draws->memory, EM_ARRAY(draws->series, n_series));
    }
    if (!status)
        status = em_own(&draws->memory, em_format_text(&draws->draw_path, "%s/draw", group->name),
                        &draws->draw_path);
    status = em_agree(status);
    if (status)
        return status;
    for (int64_t i = 0; i < n_series; i++)
        lay_out(draws, &wanted[i], space.n_chunk_draw);
    status = reserve_draws(draws, 0, group->id);
    if (!status)
        status =
            em_dimension_get(&group->dimensions, "chain", em_grid_n_chain(grid), 0, NULL, &chain);
    if (!status)
        status = em_dimension_get(&group->dimensions, "draw", space.n_draw, DRAW_CHUNK, NULL,
                                  &draws->draw);
    for (int64_t i = 0; i < n_series && !status; i++)
        status = add_series(draws, group, chain, &wanted[i], &draws->series[i]);
    status = status ? status : em_agree(em_dimensions_finish(&group->dimensions));
    return status ? status : fill(draws, group->id, space.n_copied);
}

/* Extends the group to twice `n_draw` draws. Doubling makes growth rare. Growth changes the
 * metadata of the file, and a run that is killed at that moment may lose the file. Collective. */
static em_status grow(em_draws *draws, int64_t n_draw)
{
    const int64_t old = draws->n_draw;
    const int64_t grown = n_draw > 2 * old ? n_draw : 2 * old;

    draws->n_draw = draws->n_kept = grown;
    em_status status = reserve_draws(draws, old, draws->series[0].dataset.id);
    status = status ? status : em_dimension_resize(draws->draw, grown);
    for (int64_t i = 0; i < draws->n_series && !status; i++)
        status = em_agree(em_dataset_resize(&draws->series[i].dataset, grown));
    return status ? status : fill(draws, draws->series[0].dataset.id, old);
}

/* Reserves memory for `n_row` draws of the largest series. Local. */
static em_status reserve_buffer(em_draws *draws, int64_t n_row)
{
    int64_t largest = 0;

    for (int64_t i = 0; i < draws->n_series; i++)
        largest = draws->series[i].size > largest ? draws->series[i].size : largest;
    if (n_row * largest * (int64_t)sizeof(double) <= draws->buffer_bytes)
        return EM_OK;
    em_release(&draws->buffer);
    draws->buffer_bytes = 0;
    const em_status status = em_allocate_doubles(n_row * largest, (double **)&draws->buffer);
    if (!status)
        draws->buffer_bytes = n_row * largest * (int64_t)sizeof(double);
    return status;
}

/* Extracts one series from rows that hold all series. If there is only one, the rows themselves are
 * used. Only the first shard of a group writes. */
static const void *pack(const em_draws *draws, const series *packed, int64_t n_row,
                        const double *value)
{
    const size_t bytes = (size_t)packed->size * packed->item_bytes;
    char *next = draws->buffer;

    if (packed->storage == EM_STORE_REAL && packed->size == draws->width)
        return value;
    for (int64_t row = 0; row < n_row && em_grid_shard(draws->grid) == 0;
         row++, next += bytes, value += draws->width)
        em_dataset_convert(packed->storage, packed->size, value, next);
    return draws->buffer;
}

/* Writes a series, in several transfers for many chains. Collective. Errors: EM_EIO, agreed. */
static em_status put_series(const em_draws *draws, const series *put, int64_t first, int64_t n,
                            const char *value)
{
    const int64_t n_local = em_grid_n_local_chain(draws->grid);
    const size_t chain_bytes = (size_t)(n * put->size) * put->item_bytes;
    em_status status = EM_OK;

    for (int64_t chain = 0; !status && chain < most_chains(draws); chain += MOST_CHUNKS)
        status =
            put_part(draws, put, (part){chain, MOST_CHUNKS, first, n},
                     chain < n_local ? value + (size_t)chain * chain_bytes : value, "hdf5-write");
    return status;
}

em_status em_draws_put(em_draws *draws, int64_t first, int64_t n, const double *value)
{
    const int64_t n_row = em_grid_n_local_chain(draws->grid) * n;
    em_status status = em_agree(reserve_buffer(draws, n_row));

    if (!status && first + n > draws->n_draw)
        status = grow(draws, first + n);
    for (int64_t i = 0; !status && i < draws->n_series; i++) {
        const series *put = &draws->series[i];

        status = put_series(draws, put, first, n, pack(draws, put, n_row, value));
        value += put->size;
    }
    return status;
}

em_status em_draws_put_chain(em_draws *draws, int64_t chain, int64_t first, int64_t n,
                             const double *value)
{
    em_status status = em_agree(reserve_buffer(draws, n));

    for (int64_t i = 0; !status && i < draws->n_series; i++) {
        const series *put = &draws->series[i];
        const void *packed =
            chain < em_grid_n_local_chain(draws->grid) ? pack(draws, put, n, value) : draws->buffer;

        status = put_part(draws, put, (part){chain, 1, first, n}, packed, "hdf5-write");
        value += put->size;
    }
    return status;
}

void em_draws_keep(em_draws *draws, int64_t n_draw)
{
    draws->n_kept = n_draw < draws->n_draw ? n_draw : draws->n_draw;
}

static em_status shrink(hid_t file, const char *path, em_dataset dataset, int64_t n_draw)
{
    dataset.id = H5Dopen2(file, path, H5P_DEFAULT);
    em_status status = em_h5_check(dataset.id, file, "cannot open %s", path);
    status = status ? status : em_dataset_resize(&dataset, n_draw);
    em_dataset_close(&dataset);
    return status;
}

em_status em_draws_shrink(const em_draws *draws, hid_t file)
{

    if (draws->n_kept == draws->n_draw)
        return EM_OK;
    em_status status = shrink(file, draws->draw_path, (em_dataset){.n_axes = 1}, draws->n_kept);
    for (int64_t i = 0; i < draws->n_series && !status; i++)
        status = shrink(file, draws->series[i].path, draws->series[i].dataset, draws->n_kept);
    return status;
}

void em_draws_close(em_draws *draws)
{
    for (int64_t i = 0; i < draws->n_series; i++)
        em_dataset_close(&draws->series[i].dataset);
}

void em_draws_destroy(em_draws **out)
{
    if (*out)
        em_release(&(*out)->buffer);
    em_release_owner(out);
}
