#include "run/initial.h"

#include "base/memory.h"
#include "io/reader.h"
#include "par/world.h"

#include <math.h>

/* The numbers of the mass, and which of em_mass_structures it has. */
typedef struct em_found {
    int structure;
    double *number;
} em_found;

static em_status read_mass(const char *path, int64_t dim, em_found *out)
{
    int64_t count = 0;
    em_status status = em_read_array(path, "mass_adaptation/inv_mass", &count, &out->number);

    if (!status && count != dim && count != dim * dim)
        status = em_fail(EM_EDATA,
                         "%s: found an inverse mass of %lld numbers, expected %lld or %lld x %lld, "
                         "shared by all chains",
                         path, (long long)count, (long long)dim, (long long)dim, (long long)dim);
    out->structure = count == dim ? 0 : 1;
    return status;
}

/* Gives all ranks the mass that rank 0 has read. Collective. */
static em_status share_mass(const char *path, int64_t dim, em_found *found, em_initial *out)
{
    em_mass_form form = {.dim = dim};
    int64_t size;
    em_status status;

    em_broadcast(&found->structure, sizeof found->structure);
    form.ops = em_mass_structures[found->structure];
    size = form.ops->size(&form);
    status = em_agree(found->number ? EM_OK : em_allocate(size, sizeof(double), &found->number));
    if (status)
        return status;
    em_broadcast(found->number, (size_t)size * sizeof(double));
    status = em_mass_of(&form, found->number, &out->mass);
    if (status > 0)
        status = em_fail(EM_EDATA, "%s: the inverse mass is not positive definite", path);
    return em_agree(status);
}

static em_status read_step_size(const char *path, em_initial *out)
{
    double *step = NULL, sum = 0;
    int64_t count = 0;
    em_status status = em_read_array(path, "mass_adaptation/step_size", &count, &step);

    for (int64_t i = 0; !status && i < count; i++)
        sum += step[i];
    out->step_size = sum / (double)count;
    if (!status && !(out->step_size > 0 && isfinite(out->step_size)))
        status = em_fail(EM_EDATA, "%s: found a step size of %g", path, out->step_size);
    em_release(&step);
    return status;
}

/* Kernels whose trajectories have no time leave none. */
static em_status read_trajectory(const char *path, em_initial *out)
{
    double *x = NULL;
    int64_t count = 0;
    em_reader *reader = NULL;
    em_status status = em_reader_open(path, "posterior", &reader);
    const bool has = !status && em_reader_has(reader, "mass_adaptation", "trajectory");

    em_reader_close(&reader);
    if (has)
        status = em_read_array(path, "mass_adaptation/trajectory", &count, &x);
    if (has && !status && !(count == 2 && x[0] > 0 && x[1] >= 0 && x[1] <= 1))
        status = em_fail(EM_EDATA, "%s: found a trajectory of %lld numbers, expected time, jitter",
                         path, (long long)count);
    out->time = has && !status ? x[0] : NAN;
    out->jitter = has && !status ? x[1] : NAN;
    em_release(&x);
    return status;
}

em_status em_initial_load(const char *path, int64_t dim, em_initial *out)
{
    em_found found = {0, NULL};
    em_status status = EM_OK;

    *out = (em_initial){.mass = NULL};
    if (em_world_rank() == 0) {
        status = read_mass(path, dim, &found);
        if (!status)
            status = read_step_size(path, out);
        if (!status)
            status = read_trajectory(path, out);
    }
    status = em_agree(status);
    if (!status) {
        em_broadcast(&out->step_size, sizeof out->step_size);
        em_broadcast(&out->time, sizeof out->time);
        em_broadcast(&out->jitter, sizeof out->jitter);
        status = share_mass(path, dim, &found, out);
    }
    em_release(&found.number);
    return status;
}

void em_initial_release(em_initial *initial)
{
    em_mass_destroy(&initial->mass);
}

em_status em_initial_positions(const char *path, int64_t first_chain, int64_t n_chain, int64_t dim,
                               int64_t stride, double *theta)
{
    em_reader *reader = NULL;
    em_status status = em_reader_open(path, "unconstrained_posterior", &reader);

    if (!status && (em_reader_n_variable(reader) != 1 || em_reader_n_draw(reader) < 1 ||
                    em_reader_n_chain(reader) < 1 || em_reader_variable_at(reader, 0)->size != dim))
        status = em_fail(EM_EDATA,
                         "%s: expected draws of %lld unconstrained parameters "
                         "(output.save_unconstrained: true)",
                         path, (long long)dim);
    for (int64_t c = 0; !status && c < n_chain; c++)
        status = em_reader_draws(reader, 0, (first_chain + c) % em_reader_n_chain(reader), 1,
                                 em_reader_n_draw(reader) - 1, 1, theta + c * stride);
    em_reader_close(&reader);
    return status;
}
