/* Copies the draws of an earlier output of the same run to a new one. */
#include "base/memory.h"
#include "io/draws/reader.h"
#include "par/world.h"
#include "run/output/output_file.h"

#include <string.h>

/* The number of doubles of one draw. */
static int64_t width_of(em_reader *reader)
{
    int64_t width = 0;

    for (int64_t i = 0; i < em_reader_n_variable(reader); i++)
        width += em_reader_variable_at(reader, i)->size;
    return width;
}

/* The number of draws in the file for one draw of the run now: more than one if draws: auto has
 * thinned the run since, 0 if the file is thinned more. */
static int64_t step_of(em_reader *reader, const em_plan *plan)
{
    int64_t thinning = plan->first_thin;

    if (plan->until_done)
        em_reader_int(reader, EM_OUTPUT_THINNING, &thinning);
    return thinning > 0 && plan->thin % thinning == 0 ? plan->thin / thinning : 0;
}

/* Whether a file holds the draws. `plan` NULL: they are draws of warmup, which are never thinned.
 * Damaged draws count as missing. If a file just cannot be read now, that is an error. */
static em_status holds(const em_grid *grid, const em_plan *plan, const char *path,
                       const char *group, int64_t n_draw, int64_t width, bool *can)
{
    EM_SCOPED_BY(em_reader_close) em_reader *reader = NULL;
    const em_status status = n_draw > 0 ? em_reader_open(path, group, &reader) : EM_OK;

    if (n_draw > 0 && status == EM_OK) {
        const int64_t step = plan ? step_of(reader, plan) : 1;
        *can &= em_reader_n_chain(reader) == em_grid_n_chain(grid) && step > 0 &&
                em_reader_n_draw(reader) >= n_draw * step && width_of(reader) == width;
    } else if (n_draw > 0)
        *can = false;
    return status == EM_EDATA ? EM_OK : status;
}

em_status em_output_can_restore(const em_layout *layout, const em_grid *grid, const em_plan *plan,
                                const char *path, int64_t done, bool *can)
{
    const em_stored_draws stored = em_plan_stored_draws(plan, done);
    em_status status = EM_OK;

    *can = true;
    for (int64_t i = 0; !status && i < layout->n_group; i++) {
        const em_draw_group *group = &layout->group[i];
        status = holds(grid, plan, path, group->name, stored.sampling, group->width, can);
        if (!status)
            status = holds(grid, NULL, path, em_warmup_group(group->name).text, stored.warmup,
                           group->width, can);
    }
    status = em_agree(status);
    double cannot = !*can;
    em_grid_maximum(grid, 1, &cannot);
    *can = cannot == 0;
    return status;
}

/* The number of values of all chains in one transfer. Transfers are collective. They are larger
 * than those while sampling, which may have few draws each. */
enum { MOST_NUMBERS = 1 << 20 };

/* Gives a draw to the convergence monitor. The visits of tempered draws are the last number of
 * their statistics. */
static void keep(em_monitor *monitor, bool is_posterior, int64_t chain, int64_t draw,
                 const double *row, int64_t width)
{
    if (is_posterior)
        em_monitor_keep(monitor, chain, draw, row);
    else
        em_monitor_keep_visit(monitor, chain, draw, row[width - 1]);
}

/* Copies a group of draws. `monitor` NULL: nothing of the group is monitored. */
static em_status copy_group(em_output *output, const char *path, const char *name, bool is_warmup,
                            int64_t n_draw, const em_file_group *to, em_monitor *monitor)
{
    const bool is_posterior = strcmp(name, "posterior") == 0;
    em_row_reading from = {.first_chain = em_grid_first_chain(output->run.grid),
                           .n_chain = output->n_local_chain,
                           .width = to->width};
    double *rows = NULL;
    em_status status = em_agree(em_reader_open(path, name, &from.reader));
    from.step = status || is_warmup ? 1 : step_of(from.reader, output->run.plan);
    const int64_t of_draw = em_grid_n_chain(output->run.grid) * to->width * from.step;
    const int64_t block = em_least(n_draw, em_most(MOST_NUMBERS / of_draw, 1));
    const int64_t n_row = output->n_local_chain * block;

    status = status ? status : em_allocate_doubles(n_row * to->width, &rows);
    status = status ? status : em_allocate_doubles(n_row * to->width * from.step, &from.work);
    status = em_agree(status);
    for (int64_t first = 0; !status && first < n_draw; first += block) {
        const int64_t n = n_draw - first < block ? n_draw - first : block;
        status = em_agree(em_reader_rows(&from, first, n, rows));
        status = status ? status : em_writer_put_draws(output->writer, to->group, first, n, rows);
        for (int64_t r = 0; !status && monitor && r < output->n_local_chain * n; r++)
            keep(monitor, is_posterior, r / n, first + r % n, rows + r * to->width, to->width);
    }
    em_reader_close(&from.reader);
    em_release_all(&from.work, &rows);
    return status;
}

em_status em_output_restore(em_output *output, const char *path, em_monitor *monitor)
{
    const em_stored_draws stored = em_plan_stored_draws(output->run.plan, output->run.done);
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < output->layout->n_group; i++) {
        const char *name = output->layout->group[i].name;
        if (stored.sampling > 0) /* the posterior is the first group */
            status = copy_group(output, path, name, false, stored.sampling, &output->sampling[i],
                                i == 0 || strcmp(name, "sample_stats") == 0 ? monitor : NULL);
        if (!status && stored.warmup > 0)
            status = copy_group(output, path, em_warmup_group(name).text, true, stored.warmup,
                                &output->warmup[i], NULL);
    }
    return status ? status : em_writer_flush(output->writer);
}
