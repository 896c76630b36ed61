/* Writes the results of the adaptation engine to the output: the group mass_adaptation. */
#include "base/memory.h"
#include "par/world.h"
#include "run/output/output_file.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* A name such as "mass_adaptation" or "mass_adaptation_topics". */
typedef struct block_name {
    char text[256];
} block_name;

static block_name name_of_block(const char *what, const char *block)
{
    block_name name;

    snprintf(name.text, sizeof name.text, "%s%s%s", what, block ? "_" : "", block ? block : "");
    return name;
}

/* Gathers n numbers of each pool of the run, from those of this rank: [n_pool][n], on every rank.
 */
static em_status gather_pools(const em_output *output, int64_t n_pool, int64_t n,
                              const double *local, double *out)
{
    if (n_pool > 1)
        return em_grid_gather_chains(output->run.grid, n, local, out);
    memcpy(out, local, (size_t)n * sizeof *out);
    return EM_OK;
}

/* The number of pools of this rank: one, where all chains share it. */
static int64_t n_local_pool(const em_output *output, const em_adapt *adapt)
{
    return em_adapt_learned(adapt).n_pool == 1 ? 1 : output->n_local_chain;
}

/* Gathers one number of each M-step of each pool of the run: [n_pool][n_m_step], on every rank. */
static em_status gather_m_steps(const em_output *output, const em_adapt *adapt, size_t member,
                                double *out)
{
    const int64_t n = em_adapt_learned(adapt).n_m_step, n_local = n_local_pool(output, adapt);
    EM_SCOPED double *local = NULL;
    em_status status = em_agree(em_allocate(n_local * n, sizeof *local, &local));

    for (int64_t pool = 0; !status && pool < n_local; pool++)
        for (int64_t i = 0; i < n; i++)
            memcpy(&local[pool * n + i], (const char *)&em_adapt_m_steps(adapt, pool)[i] + member,
                   sizeof(double));
    return status ? status : gather_pools(output, em_adapt_learned(adapt).n_pool, n, local, out);
}

static em_status put_m_steps(em_output *output, const em_adapt *adapt, const char *group)
{
    static const em_record_column columns[] = {
        {"iteration", offsetof(em_m_step, iteration), EM_STORE_INT},
        {"kappa", offsetof(em_m_step, kappa), EM_STORE_REAL},
        {"S_count", offsetof(em_m_step, s_count), EM_STORE_INT},
        {"n_sample", offsetof(em_m_step, n_sample), EM_STORE_INT},
        {"smallest_eigenvalue", offsetof(em_m_step, smallest), EM_STORE_REAL},
        {"largest_eigenvalue", offsetof(em_m_step, largest), EM_STORE_REAL},
        {"trace_deviation", offsetof(em_m_step, trace_deviation), EM_STORE_REAL},
        {"diagonal_deviation", offsetof(em_m_step, diagonal_deviation), EM_STORE_REAL},
        {"unevenness", offsetof(em_m_step, unevenness), EM_STORE_REAL},
        {"thermostat_mass", offsetof(em_m_step, thermostat_mass), EM_STORE_REAL},
    };
    /* The last column is written only where a thermostat mass is learned. */
    const size_t n_column =
        sizeof columns / sizeof *columns - !em_adapt_context(adapt, NULL, 0).thermostat_mass;
    const int64_t n = em_adapt_learned(adapt).n_m_step, n_pool = em_adapt_learned(adapt).n_pool;
    em_variable variable = {.n_axes = 1, .shape = {n}, .axis = {"m_step"}};
    EM_SCOPED double *value = NULL;

    if (n == 0)
        return EM_OK;
    if (n_pool > 1)
        variable = (em_variable){.n_axes = 2, .shape = {n_pool, n}, .axis = {"chain", "m_step"}};
    em_status status = em_agree(em_allocate(n_pool * n, sizeof *value, &value));
    for (size_t i = 0; !status && i < n_column; i++) {
        variable.name = columns[i].name;
        variable.storage = columns[i].storage;
        status = gather_m_steps(output, adapt, columns[i].member, value);
        status = status ? status : em_writer_put_array(output->writer, group, &variable, value);
    }
    return status;
}

/* The form of the stored masses. Masses of low rank have as many directions as the largest of all
 * pools. */
static em_mass_form stored_form(const em_output *output, const em_adapt *adapt)
{
    const em_learned learned = em_adapt_learned(adapt);
    const int64_t n_local = n_local_pool(output, adapt);
    em_mass_form form = *learned.form;
    double most = 0;

    if (form.most_rank == 0)
        return form;
    for (int64_t i = 0; i < n_local; i++)
        most = fmax(most, (double)em_mass_rank(learned.mass[i]));
    em_grid_maximum(output->run.grid, 1, &most);
    form.most_rank = (int64_t)most;
    return form;
}

/* Gathers the numbers of the masses of all pools, [n_pool][size]. Collective. */
static em_status gather_masses(const em_output *output, const em_adapt *adapt,
                               const em_mass_form *form, double *out)
{
    const int64_t n_pool = em_adapt_learned(adapt).n_pool, size = form->ops->size(form);
    const int64_t n_local = n_local_pool(output, adapt);
    EM_SCOPED double *local = NULL;
    em_status status = em_agree(em_allocate(n_local * size, sizeof *local, &local));

    for (int64_t i = 0; !status && i < n_local; i++)
        form->ops->write(em_adapt_learned(adapt).mass[i], form, local + i * size);
    return status ? status : gather_pools(output, n_pool, size, local, out);
}

/* Writes one of the arrays of a mass, for each pool. `number` [2][n_pool][size] has the masses; its
 * second half is work space. */
static em_status put_array(em_output *output, const char *group, int64_t n_pool, int64_t size,
                           const em_mass_array *array, double *number)
{
    double *value = number + n_pool * size;
    em_variable variable = {.name = array->name};
    int64_t count = 1;

    if (n_pool > 1) {
        variable.axis[0] = "chain";
        variable.shape[variable.n_axes++] = n_pool;
    }
    for (int i = 0; i < array->n_axes; i++) {
        variable.shape[variable.n_axes++] = array->shape[i];
        count *= array->shape[i];
    }
    for (int64_t i = 0; i < n_pool; i++)
        memcpy(value + i * count, number + i * size + array->first, (size_t)count * sizeof *value);
    return em_writer_put_array(output->writer, group, &variable, value);
}

/* Writes the sizes of blocks; the parameters after them have a diagonal. */
static em_status put_block_sizes(em_output *output, const em_mass_form *form, const char *group)
{
    const em_part *last = &form->part[form->n_part - 1];
    const bool left_over = last->structure == EM_MASS_DIAG && last->count > 1;
    const int64_t n = form->n_part - left_over;
    const em_variable variable = {
        .name = "inv_mass_block_size", .storage = EM_STORE_INT, .n_axes = 1, .shape = {n}};
    EM_SCOPED double *size = NULL;
    em_status status = em_agree(em_allocate(n, sizeof *size, &size));

    for (int64_t i = 0; !status && i < n; i++)
        size[i] = (double)form->part[i].count;
    return status ? status : em_writer_put_array(output->writer, group, &variable, size);
}

/* Writes the final inverse mass of each pool. */
static em_status put_mass(em_output *output, const em_adapt *adapt, const char *group)
{
    const em_mass_form form = stored_form(output, adapt);
    const int64_t size = form.ops->size(&form), n_pool = em_adapt_learned(adapt).n_pool;
    em_mass_array array[EM_MASS_MOST_ARRAYS];
    const int n_array = form.ops->arrays(&form, array);
    EM_SCOPED double *number = NULL;
    em_status status = em_agree(em_allocate(2 * n_pool * size, sizeof *number, &number));

    status = status ? status : gather_masses(output, adapt, &form, number);
    for (int i = 0; !status && i < n_array; i++)
        status = put_array(output, group, n_pool, size, &array[i], number);
    if (!status && form.n_part > 0)
        status = put_block_sizes(output, &form, group);
    return status;
}

em_status em_output_put_noncentring(em_output *output, const em_noncentring *map, const char *group)
{
    const em_variable variable = {.name = "noncentring",
                                  .n_axes = 2,
                                  .shape = {map ? map->dim : 0, EM_NONCENTRING_NUMBERS},
                                  .axis = {"unconstrained", "of_map"},
                                  .label = {NULL, em_noncentring_name}};

    return map ? em_writer_put_array(output->writer, group, &variable, (const double *)map->row)
               : EM_OK;
}

/* Writes the step size of each chain. */
static em_status put_step_size(em_output *output, const em_adapt *adapt, const char *group)
{
    const int64_t n_chain = em_grid_n_chain(output->run.grid);
    const em_variable step = {
        .name = "step_size", .n_axes = 1, .shape = {n_chain}, .axis = {"chain"}};
    EM_SCOPED double *all = NULL;
    em_status status = em_agree(em_allocate(n_chain, sizeof *all, &all));

    if (!status)
        status = em_grid_gather_chains(output->run.grid, 1, em_adapt_learned(adapt).step_size, all);
    return status ? status : em_writer_put_array(output->writer, group, &step, all);
}

/* Writes the phases of warmup, by their names: when each ended and with what result. */
static em_status put_stages(em_output *output, const em_adapt *adapt, const char *group,
                            const char *block)
{
    static const em_record_column columns[] = {
        {"stage_iteration", offsetof(em_phase_record, iteration), EM_STORE_INT, 1},
        {"stage_gradients", offsetof(em_phase_record, gradients), EM_STORE_INT, 1},
        {"stage_end", offsetof(em_phase_record, end), EM_STORE_INT, 1},
        {"stage_trajectory", offsetof(em_phase_record, time), EM_STORE_REAL, 1},
        {"stage_step_size", offsetof(em_phase_record, step_size), EM_STORE_REAL, 1},
    };
    enum { MOST = 16 };
    const int64_t n = em_adapt_learned(adapt).n_phase;
    const em_phase_record *record = em_adapt_learned(adapt).phase;
    const char *label[MOST];
    const em_variable variable = {.shape = {n}, .axis = {"stage"}, .label = {label}};
    char text[512];

    if (n == 0)
        return EM_OK;
    for (int64_t i = 0; i < n; i++)
        label[i] = em_phase_name((int)record[i].phase);
    em_status status =
        em_writer_put_record(output->writer, group, variable, sizeof columns / sizeof *columns,
                             columns, sizeof *record, record);
    em_adapt_summarise(adapt, sizeof text, text);
    if (!status)
        status =
            em_writer_put_int(output->writer, name_of_block("reinitialised_chains", block).text,
                              em_adapt_learned(adapt).n_reinitialised);
    return status ? status
                  : em_writer_put_text(output->writer, name_of_block("warmup", block).text, text);
}

/* Writes the time and the jitter of trajectories, and whether their steps have several stages. The
 * time is infinite if trajectories end at the U-turn. */
static em_status put_trajectory(em_output *output, const em_adapt *adapt, const char *group)
{
    const em_trajectory drawn = em_adapt_context(adapt, NULL, INT64_C(1) << 40).trajectory;
    const double value[] = {drawn.time, drawn.jitter, drawn.multistage};
    const em_variable variable = {
        .name = "trajectory", .n_axes = 1, .shape = {3}, .axis = {"of_time"}};

    return drawn.time > 0 ? em_writer_put_array(output->writer, group, &variable, value) : EM_OK;
}

em_status em_output_put_learned(em_output *output, const em_adapt *adapt, const char *block)
{
    const block_name group = name_of_block("mass_adaptation", block);
    em_status status = put_m_steps(output, adapt, group.text);

    status = status ? status : put_stages(output, adapt, group.text, block);
    status = status ? status : put_trajectory(output, adapt, group.text);
    status = status ? status : put_mass(output, adapt, group.text);
    status = status ? status
                    : em_output_put_noncentring(output, em_adapt_noncentring(adapt), group.text);
    return status ? status : put_step_size(output, adapt, group.text);
}
