#include "run/loop/earlier_mass.h"

#include "base/memory.h"
#include "io/draws/reader.h"
#include "par/world.h"
#include "posterior/noncentring.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The numbers of a mass, and their form. */
typedef struct earlier_numbers {
    int structure;     /* em_structure_choice */
    int64_t most_rank; /* of low rank */
    em_reals blocks;   /* of blocks: their sizes */
    double *number;
} earlier_numbers;

/* The group of an earlier run's file with the results of a sampler: "mass_adaptation", or
 * "mass_adaptation_topics". */
typedef struct source {
    const char *path;
    char group[256];
} source;

/* Whether the group has an array of that name. */
static bool has(const source *from, const char *name)
{
    EM_SCOPED_BY(em_reader_close) em_reader *reader = NULL;
    const bool found = !em_reader_open(from->path, "posterior", &reader) &&
                       em_reader_has(reader, from->group, name);
    return found;
}

/* Reads an array of the group. It must have `expected` numbers; with 0 it may have any number,
 * which becomes *count. */
static em_status read_numbers(const source *from, const char *name, int64_t expected,
                              int64_t *count, double **out)
{
    em_status status = em_read_array(from->path, from->group, name, count, out);

    if (!status && expected > 0 && *count != expected)
        status =
            em_fail(EM_EDATA, "%s: found %s of %lld numbers, expected %lld, shared by all chains",
                    from->path, name, (long long)*count, (long long)expected);
    return status;
}

static em_status read_array_mass(const source *from, int64_t dim, earlier_numbers *out)
{
    int64_t count = 0;
    em_status status = read_numbers(from, "inv_mass", 0, &count, &out->number);

    if (!status && count != dim && count != dim * dim)
        status =
            em_fail(EM_EDATA,
                    "%s: found an inverse mass of %lld numbers, expected %lld or %lld x %lld, "
                    "shared by all chains",
                    from->path, (long long)count, (long long)dim, (long long)dim, (long long)dim);
    out->structure = count == dim ? EM_STRUCTURE_DIAG : EM_STRUCTURE_DENSE;
    return status;
}

/* Reads scales and, if there are directions, values and directions. */
static em_status read_low_rank(const source *from, int64_t dim, earlier_numbers *out)
{
    double *part[3] = {NULL, NULL, NULL};
    int64_t count[3] = {0, 0, 0};
    em_status status = read_numbers(from, "inv_mass_scale", dim, &count[0], &part[0]);

    if (!status && has(from, "inv_mass_value")) {
        status = read_numbers(from, "inv_mass_value", 0, &count[1], &part[1]);
        if (!status && count[1] > EM_MASS_MOST_RANK)
            status =
                em_fail(EM_EDATA, "%s: found an inverse mass of rank %lld, expected at most %d",
                        from->path, (long long)count[1], EM_MASS_MOST_RANK);
        if (!status)
            status = read_numbers(from, "inv_mass_direction", count[1] * dim, &count[2], &part[2]);
    }
    if (!status)
        status = em_allocate(count[0] + count[1] + count[2], sizeof *out->number, &out->number);
    for (int64_t i = 0, at = 0; !status && i < 3; at += count[i++])
        if (count[i] > 0)
            memcpy(out->number + at, part[i], (size_t)count[i] * sizeof **part);
    em_release_all(&part[0], &part[1], &part[2]);
    out->structure = EM_STRUCTURE_LOW_RANK;
    out->most_rank = count[1];
    return status;
}

/* Reads the sizes of blocks, and the array of each block. */
static em_status read_blocks(const source *from, int64_t dim, earlier_numbers *out)
{
    em_mass_form form = {.dim = dim};
    EM_SCOPED em_part *part = NULL;
    int64_t count = 0;
    em_status status =
        read_numbers(from, "inv_mass_block_size", 0, &out->blocks.count, &out->blocks.value);

    if (!status)
        status = em_mass_parts(dim, out->blocks.count, out->blocks.value, &form.n_part, &part);
    if (status == EM_EDATA)
        status = em_fail(EM_EDATA,
                         "%s: found an inverse mass of %lld blocks, expected one of dimension %lld",
                         from->path, (long long)out->blocks.count, (long long)dim);
    form.part = part;
    if (!status)
        status = read_numbers(from, "inv_mass_blocks", em_mass_block_diagonal.size(&form), &count,
                              &out->number);
    out->structure = EM_STRUCTURE_BLOCK_DIAGONAL;
    return status;
}

static em_status read_mass(const source *from, int64_t dim, earlier_numbers *out)
{
    if (has(from, "inv_mass_scale"))
        return read_low_rank(from, dim, out);
    return has(from, "inv_mass_blocks") ? read_blocks(from, dim, out)
                                        : read_array_mass(from, dim, out);
}

/* Copies an array of rank 0 to all ranks. Collective. */
static em_status share_array(int64_t *count, double **x)
{
    em_broadcast(count, sizeof *count);
    const em_status status = em_agree(*x ? EM_OK : em_allocate(*count, sizeof **x, x));
    if (!status)
        em_broadcast(*x, (size_t)*count * sizeof **x);
    return status;
}

/* Gives all ranks the mass that rank 0 has read. Collective. */
static em_status share_mass(const char *path, int64_t dim, earlier_numbers *found, em_initial *out)
{
    em_mass_form form = {.dim = dim};
    EM_SCOPED em_part *part = NULL;
    em_status status = share_array(&found->blocks.count, &found->blocks.value);

    em_broadcast(&found->structure, sizeof found->structure);
    em_broadcast(&found->most_rank, sizeof found->most_rank);
    form.ops = em_mass_structures[found->structure - EM_STRUCTURE_DIAG];
    form.most_rank = found->most_rank;
    if (!status && found->blocks.count > 0)
        status = em_agree(
            em_mass_parts(dim, found->blocks.count, found->blocks.value, &form.n_part, &part));
    form.part = part;
    int64_t size = form.ops->size(&form);
    status = status ? status : share_array(&size, &found->number);
    status = status ? status : em_mass_of(&form, found->number, &out->mass);
    if (status > 0)
        status = em_fail(EM_EDATA, "%s: the inverse mass is not positive definite", path);
    out->structure = found->structure;
    out->blocks = found->blocks;
    return em_agree(status);
}

/* Reads the mean step size of all chains. If all are equal, it is exactly that step size. */
static em_status read_step_size(const source *from, em_initial *out)
{
    EM_SCOPED double *step = NULL;
    int64_t count = 0;
    em_status status = read_numbers(from, "step_size", 0, &count, &step);

    out->step_size = 0;
    for (int64_t i = 0; !status && i < count; i++)
        out->step_size += (step[i] - out->step_size) / (double)(i + 1);
    if (!status && !(out->step_size > 0 && isfinite(out->step_size)))
        status = em_fail(EM_EDATA, "%s: found a step size of %g", from->path, out->step_size);
    return status;
}

/* Reads the trajectory length. A run with a kernel whose trajectories have no fixed time has stored
 * no length. Versions without steps of several stages have stored two numbers. */
static em_status read_trajectory(const source *from, em_initial *out)
{
    EM_SCOPED double *x = NULL;
    int64_t count = 0;
    const bool found = has(from, "trajectory");
    em_status status = found ? read_numbers(from, "trajectory", 0, &count, &x) : EM_OK;

    if (found && !status && !((count == 2 || count == 3) && x[0] > 0 && x[1] >= 0 && x[1] <= 1))
        status = em_fail(
            EM_EDATA, "%s: found a trajectory of %lld numbers, expected time, jitter, multistage",
            from->path, (long long)count);
    out->trajectory = (em_trajectory){.time = NAN};
    if (found && !status)
        out->trajectory =
            (em_trajectory){.time = x[0], .jitter = x[1], .multistage = count == 3 && x[2] == 1};
    return status;
}

/* Reads the map of non-centred parameters. A run in the model's coordinates has stored no map.
 * Versions before `information` was added have stored only the first numbers of each row; the
 * others are then 0. */
static em_status read_noncentring(const source *from, int64_t dim, em_initial *out)
{
    static const int64_t earlier[] = {offsetof(em_noncentring_row, information) / sizeof(double),
                                      offsetof(em_noncentring_row, second_degree) / sizeof(double)};
    EM_SCOPED double *read = NULL;
    int64_t count = 0, width = EM_NONCENTRING_NUMBERS;

    if (!has(from, "noncentring"))
        return EM_OK;
    em_status status = read_numbers(from, "noncentring", 0, &count, &read);
    for (size_t v = 0; v < sizeof earlier / sizeof *earlier; v++)
        width = count == dim * earlier[v] ? earlier[v] : width;
    if (!status && count != dim * width)
        status = em_fail(EM_EDATA, "%s: found noncentring of %lld numbers, expected %lld x %d",
                         from->path, (long long)count, (long long)dim, EM_NONCENTRING_NUMBERS);
    status = status ? status : em_allocate_doubles(dim * EM_NONCENTRING_NUMBERS, &out->noncentring);
    for (int64_t i = 0; !status && i < dim; i++)
        memcpy(out->noncentring + i * EM_NONCENTRING_NUMBERS, read + i * width,
               (size_t)width * sizeof *read);
    return status;
}

/* Copies the result to all ranks. Collective. */
static em_status share_noncentring(int64_t dim, em_initial *out)
{
    int64_t count = out->noncentring ? dim * EM_NONCENTRING_NUMBERS : 0;

    em_broadcast(&count, sizeof count);
    return count > 0 ? share_array(&count, &out->noncentring) : EM_OK;
}

em_status em_initial_load(const char *path, const char *block, int64_t dim, em_initial *out)
{
    source from = {.path = path};
    earlier_numbers found = {.number = NULL};
    em_status status = EM_OK;

    snprintf(from.group, sizeof from.group, "mass_adaptation%s%s", block ? "_" : "",
             block ? block : "");

    *out = (em_initial){.mass = NULL};
    if (em_world_rank() == 0) {
        status = read_mass(&from, dim, &found);
        status = status ? status : read_step_size(&from, out);
        status = status ? status : read_trajectory(&from, out);
        status = status ? status : read_noncentring(&from, dim, out);
    }
    status = em_agree(status);
    if (!status) {
        em_broadcast(&out->step_size, sizeof out->step_size);
        em_broadcast(&out->trajectory, sizeof out->trajectory);
        status = share_mass(path, dim, &found, out);
        status = status ? status : share_noncentring(dim, out);
    } else
        em_release(&found.blocks.value);
    em_release(&found.number);
    return status;
}

void em_initial_release(em_initial *initial)
{
    em_mass_destroy(&initial->mass);
    em_release_all(&initial->noncentring, &initial->blocks.value);
}

em_status em_initial_positions(const char *path, int64_t first_chain, int64_t n_chain, int64_t dim,
                               int64_t stride, double *theta)
{
    EM_SCOPED_BY(em_reader_close) em_reader *reader = NULL;
    em_status status = em_reader_open(path, "unconstrained_posterior", &reader);

    if (!status && (em_reader_n_variable(reader) != 1 || em_reader_n_draw(reader) < 1 ||
                    em_reader_n_chain(reader) < 1 || em_reader_variable_at(reader, 0)->size != dim))
        status = em_fail(
            EM_EDATA,
            "%s: expected draws of %lld unconstrained parameters (output.save_unconstrained: true)",
            path, (long long)dim);
    for (int64_t c = 0; !status && c < n_chain; c++)
        status = em_reader_draws(reader, 0, (first_chain + c) % em_reader_n_chain(reader), 1,
                                 em_reader_n_draw(reader) - 1, 1, theta + c * stride);
    return status;
}
