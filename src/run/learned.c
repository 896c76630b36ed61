/* What the adaptation engine has learned, in the output: the group mass_adaptation. */
#include "base/memory.h"
#include "par/world.h"
#include "run/output_file.h"

#include <stddef.h>
#include <string.h>

/* Rows of numbers, one per M-step, of each pool of the run: [n_pool][n_m_step], on every rank. */
static em_status gather_m_steps(const em_output *output, const em_adapt *adapt, size_t member,
                                double *out)
{
    const int64_t n = em_adapt_n_m_step(adapt);
    const bool shared = em_adapt_n_pool(adapt) == 1;
    const int64_t n_local = shared ? 1 : output->n_local_chain;
    double *local = NULL;
    em_status status = em_agree(em_allocate(n_local * n, sizeof *local, &local));

    for (int64_t pool = 0; !status && pool < n_local; pool++)
        for (int64_t i = 0; i < n; i++)
            memcpy(&local[pool * n + i], (const char *)&em_adapt_m_steps(adapt, pool)[i] + member,
                   sizeof(double));
    if (!status && shared)
        memcpy(out, local, (size_t)n * sizeof *out);
    else if (!status)
        status = em_grid_gather_chains(output->grid, n, local, out);
    em_release(&local);
    return status;
}

static em_status put_m_steps(em_output *output, const em_adapt *adapt)
{
    static const struct {
        const char *name;
        size_t member;
        em_storage storage;
    } columns[] = {
        {"iteration", offsetof(em_m_step, iteration), EM_STORE_INT},
        {"kappa", offsetof(em_m_step, kappa), EM_STORE_REAL},
        {"S_count", offsetof(em_m_step, s_count), EM_STORE_INT},
        {"n_sample", offsetof(em_m_step, n_sample), EM_STORE_INT},
        {"smallest_eigenvalue", offsetof(em_m_step, smallest), EM_STORE_REAL},
        {"largest_eigenvalue", offsetof(em_m_step, largest), EM_STORE_REAL},
        {"trace_deviation", offsetof(em_m_step, trace_deviation), EM_STORE_REAL},
        {"diagonal_deviation", offsetof(em_m_step, diagonal_deviation), EM_STORE_REAL},
        {"thermostat_mass", offsetof(em_m_step, thermostat_mass), EM_STORE_REAL},
    };
    /* The last one only where it is learned. */
    const size_t n_column = sizeof columns / sizeof *columns - !em_adapt_thermostat_mass(adapt);
    const int64_t n = em_adapt_n_m_step(adapt), n_pool = em_adapt_n_pool(adapt);
    em_variable variable = {.n_axes = 1, .shape = {n}, .axis = {"m_step"}};
    double *value = NULL;
    em_status status;

    if (n == 0)
        return EM_OK;
    if (n_pool > 1)
        variable = (em_variable){.n_axes = 2, .shape = {n_pool, n}, .axis = {"chain", "m_step"}};
    status = em_agree(em_allocate(n_pool * n, sizeof *value, &value));
    for (size_t i = 0; !status && i < n_column; i++) {
        variable.name = columns[i].name;
        variable.storage = columns[i].storage;
        status = gather_m_steps(output, adapt, columns[i].member, value);
        if (!status)
            status = em_writer_put_array(output->writer, "mass_adaptation", &variable, value);
    }
    em_release(&value);
    return status;
}

/* The final inverse mass of each pool, and the step size of each chain. */
static em_status put_mass(em_output *output, const em_adapt *adapt)
{
    const em_mass_form *form = em_adapt_form(adapt);
    const int64_t dim = output->model->dim, size = form->ops->size(form);
    const int64_t n_pool = em_adapt_n_pool(adapt), n_chain = em_grid_n_chain(output->grid);
    const int64_t n_local = n_pool == 1 ? 1 : output->n_local_chain;
    em_variable inverse = {.name = "inv_mass"};
    const em_variable step = {
        .name = "step_size", .n_axes = 1, .shape = {n_chain}, .axis = {"chain"}};
    double *local = NULL, *all = NULL;
    em_status status = em_allocate(n_local * size, sizeof *local, &local);

    if (n_pool > 1) {
        inverse.axis[inverse.n_axes] = "chain";
        inverse.shape[inverse.n_axes++] = n_pool;
    }
    for (int i = 0; i < (form->ops->structure == EM_MASS_DENSE ? 2 : 1); i++)
        inverse.shape[inverse.n_axes++] = dim;
    if (!status)
        status = em_allocate(n_pool * size + n_chain, sizeof *all, &all);
    status = em_agree(status);
    for (int64_t i = 0; !status && i < n_local; i++)
        form->ops->write(em_adapt_mass(adapt)[i], form, local + i * size);
    if (!status && n_pool > 1)
        status = em_grid_gather_chains(output->grid, size, local, all);
    else if (!status)
        memcpy(all, local, (size_t)size * sizeof *all);
    if (!status)
        status = em_writer_put_array(output->writer, "mass_adaptation", &inverse, all);
    if (!status)
        status =
            em_grid_gather_chains(output->grid, 1, em_adapt_step_size(adapt), all + n_pool * size);
    if (!status)
        status = em_writer_put_array(output->writer, "mass_adaptation", &step, all + n_pool * size);
    em_release(&local);
    em_release(&all);
    return status;
}

/* The stages of warmup, by their names: when each ended and what it ended with. */
static em_status put_stages(em_output *output, const em_adapt *adapt)
{
    static const struct {
        const char *name;
        size_t member;
        em_storage storage;
    } columns[] = {
        {"stage_iteration", offsetof(em_stage_record, iteration), EM_STORE_INT},
        {"stage_gradients", offsetof(em_stage_record, gradients), EM_STORE_INT},
        {"stage_end", offsetof(em_stage_record, end), EM_STORE_INT},
        {"stage_trajectory", offsetof(em_stage_record, time), EM_STORE_REAL},
        {"stage_step_size", offsetof(em_stage_record, step_size), EM_STORE_REAL},
    };
    enum { MOST = 16 };
    const int64_t n = em_adapt_n_stage(adapt);
    const em_stage_record *record = em_adapt_stages(adapt);
    const char *label[MOST];
    double value[MOST];
    em_variable variable = {.n_axes = 1, .shape = {n}, .axis = {"stage"}, .label = {label}};
    char text[512];
    em_status status = EM_OK;

    if (n == 0)
        return EM_OK;
    for (int64_t i = 0; i < n; i++)
        label[i] = em_stage_name((int)record[i].stage);
    for (size_t k = 0; !status && k < sizeof columns / sizeof *columns; k++) {
        variable.name = columns[k].name;
        variable.storage = columns[k].storage;
        for (int64_t i = 0; i < n; i++)
            memcpy(&value[i], (const char *)&record[i] + columns[k].member, sizeof *value);
        status = em_writer_put_array(output->writer, "mass_adaptation", &variable, value);
    }
    const em_trajectory drawn = em_adapt_trajectory(adapt, INT64_C(1) << 40);
    const double trajectory[] = {drawn.time, drawn.jitter};
    variable = (em_variable){.name = "trajectory", .n_axes = 1, .shape = {2}, .axis = {"of_time"}};
    if (!status && drawn.kind == EM_TRAJECTORY_TIME)
        status = em_writer_put_array(output->writer, "mass_adaptation", &variable, trajectory);
    em_adapt_describe(adapt, sizeof text, text);
    if (!status)
        status = em_writer_put_int(output->writer, "rescued_chains", em_adapt_n_rescued(adapt));
    return status ? status : em_writer_put_text(output->writer, "warmup", text);
}

em_status em_output_put_learned(em_output *output, const em_adapt *adapt)
{
    em_status status = put_m_steps(output, adapt);

    if (!status)
        status = put_stages(output, adapt);
    return status ? status : put_mass(output, adapt);
}
