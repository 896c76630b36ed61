#include "run/initial.h"

#include "base/memory.h"
#include "io/reader.h"
#include "par/world.h"

#include <math.h>

static em_status read_mass(const char *path, int64_t dim, em_initial *out)
{
    int64_t count = 0;
    em_status status = em_read_array(path, "mass_adaptation/inv_mass", &count, &out->inverse);

    out->structure = count == dim ? EM_MASS_DIAG : EM_MASS_DENSE;
    if (!status && count != dim && count != dim * dim)
        status = em_fail(EM_EDATA,
                         "%s: found an inverse mass of %lld numbers, expected %lld or %lld x %lld, "
                         "shared by all chains",
                         path, (long long)count, (long long)dim, (long long)dim, (long long)dim);
    return status;
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
    em_status status = EM_OK;

    *out = (em_initial){.inverse = NULL};
    if (em_world_rank() == 0) {
        status = read_mass(path, dim, out);
        if (!status)
            status = read_step_size(path, out);
        if (!status)
            status = read_trajectory(path, out);
    }
    status = em_agree(status);
    if (!status) {
        em_broadcast(&out->structure, sizeof out->structure);
        em_broadcast(&out->step_size, sizeof out->step_size);
        em_broadcast(&out->time, sizeof out->time);
        em_broadcast(&out->jitter, sizeof out->jitter);
        const int64_t size = em_mass_size(out->structure, dim);
        status = em_agree(out->inverse ? EM_OK : em_allocate(size, sizeof(double), &out->inverse));
        if (!status)
            em_broadcast(out->inverse, (size_t)size * sizeof(double));
    }
    if (status)
        em_initial_release(out);
    return status;
}

void em_initial_release(em_initial *initial)
{
    em_release(&initial->inverse);
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
