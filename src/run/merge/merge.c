#include "run/merge/merge_state.h"

#include "base/memory.h"
#include "par/world.h"
#include "run/output/output.h"
#include "run/output/stored_config.h"

#include <string.h>

/* MOST_NUMBERS: the numbers in memory at a time. LONG_CHUNK: the draws that are contiguous in the
 * file. */
enum { MOST_NUMBERS = 1 << 21, LONG_CHUNK = 1 << 14 };

/* ---------------------------------------------------------------- files that can be merged */

static em_status check_complete(const em_merge_state *m)
{
    for (const em_reader *file = m->reader; file && !m->request->common;
         file = em_reader_next(file)) {
        int64_t complete = 1;

        em_reader_int((em_reader *)file, "complete", &complete);
        if (!complete)
            return em_fail(
                EM_EDATA,
                "%s: found a run that has not ended, expected a complete file: emass run --resume "
                "continues it, and --common merges only the draws that all files have",
                em_reader_path(file));
    }
    return EM_OK;
}

/* Checks that superchains have the same number of chains in all files, because nested R-hat has no
 * meaning otherwise. */
static em_status check_superchains(const em_merge_state *m)
{
    const em_reader *first = m->reader;
    int64_t of_first = 0;

    em_reader_int(m->reader, "superchains", &of_first);
    for (em_reader *file = em_reader_next(first); file; file = em_reader_next(file)) {
        int64_t n = 0;

        em_reader_int(file, "superchains", &n);
        if (n * em_reader_n_own_chain(first) != of_first * em_reader_n_own_chain(file))
            return em_fail(EM_EDATA,
                           "%s: found %lld superchains of %lld chains, expected %lld of %lld as %s "
                           "has",
                           em_reader_path(file), (long long)n,
                           (long long)em_reader_n_own_chain(file), (long long)of_first,
                           (long long)em_reader_n_own_chain(first), em_reader_path(first));
    }
    return EM_OK;
}

static em_status open_group(const em_merge_state *m, const char *group, em_reader **out)
{
    return em_reader_open_all(m->request->n_input, m->request->input, group, m->request->common,
                              out);
}

static em_status open_inputs(em_merge_state *m)
{
    const em_merging *request = m->request;
    em_status status = open_group(m, "posterior", &m->reader);

    if (!status && em_reader_n_draw(m->reader) < 1)
        status = em_fail(EM_EDATA, "%s: found no draws, expected those of a run",
                         em_reader_path(em_reader_shortest(m->reader)));
    status = status ? status : check_complete(m);
    status = status ? status : check_superchains(m);
    status = status ? status : em_reader_cut(m->reader, &m->request->cut);
    status = status ? status : em_allocate(request->n_input, sizeof *m->contents, &m->contents);
    for (int64_t i = 0; !status && i < request->n_input; i++)
        status = em_contents_read(request->input[i], &m->contents[i]);
    return status;
}

/* ---------------------------------------------------------------- groups of draws */

static em_status copy_draws(em_merge_state *m, em_reader *reader, int64_t width, int group)
{
    const int64_t n_draw = em_reader_n_draw(reader);
    const int64_t most_chain =
        em_partition_first(em_grid_n_chain(m->grid), em_grid_n_group(m->grid), 1);
    const int64_t fit = width > 0 && width < MOST_NUMBERS ? MOST_NUMBERS / width : 1;
    const int64_t step = fit < n_draw ? fit : n_draw;
    em_row_reading from = {.reader = reader, .n_chain = 1, .step = 1, .width = width};
    EM_SCOPED double *rows = NULL;
    em_status status = em_allocate_doubles(step * width, &from.work);

    status = status ? status : em_allocate_doubles(step * width, &rows);
    status = em_agree(status);
    for (int64_t c = 0; !status && c < most_chain; c++)
        for (int64_t first = 0; !status && first < n_draw; first += step) {
            const int64_t n = n_draw - first < step ? n_draw - first : step;
            from.first_chain = em_grid_first_chain(m->grid) + c;
            if (c < em_grid_n_local_chain(m->grid))
                status = em_reader_rows(&from, first, n, rows);
            status = em_agree(status);
            status = status ? status : em_writer_put_chain(m->writer, group, c, first, n, rows);
        }
    em_release(&from.work);
    return status;
}

/* Describes the variables in the order of the reader. */
static em_status describe_draws(const em_merge_state *m, const em_contents_group *group,
                                em_reader *reader, em_merge_written *all, em_variable *series,
                                int64_t *width)
{
    em_status status = EM_OK;

    *width = 0;
    for (int64_t i = 0; !status && i < em_reader_n_variable(reader); i++) {
        const em_reader_variable *variable = em_reader_variable_at(reader, i);
        const em_contents_array *array = em_contents_array_of(group, variable->name);

        if (!array)
            return em_fail(EM_EDATA, "%s: two variables of group %s are called %s",
                           m->request->input[0], group->name, variable->name);
        status = em_merge_describe(m->request->input[0], group, array, 2, &all[i]);
        series[i] = all[i].variable;
        *width += variable->size;
    }
    return status;
}

static em_status write_draws(em_merge_state *m, const em_contents_group *group, em_reader *reader)
{
    const int64_t n = em_reader_n_variable(reader), n_draw = em_reader_n_draw(reader);
    em_merge_written *all = NULL;
    EM_SCOPED em_variable *series = NULL;
    int64_t width = 0;
    int number = 0;
    em_status status = em_allocate_all(EM_ARRAY(all, n), EM_ARRAY(series, n));

    status = status ? status : describe_draws(m, group, reader, all, series, &width);
    status = em_agree(status);
    if (!status)
        status = em_writer_add_draws(m->writer, group->name, n, series,
                                     (em_draw_space){n_draw, LONG_CHUNK, n_draw}, &number);
    status = status ? status : copy_draws(m, reader, width, number);
    em_merge_release_written(n, &all);
    return status;
}

/* Merges a group that all files have with the same number of draws. Other groups are left out, with
 * a message. */
static em_status merge_draws(em_merge_state *m, const em_contents_group *group)
{
    EM_SCOPED_BY(em_reader_close) em_reader *reader = NULL;
    em_status status = open_group(m, group->name, &reader);

    /* Groups of draws that must be in all files or in none. */
    if (status == EM_EDATA &&
        !(strcmp(group->name, "posterior") == 0 || strcmp(group->name, "sample_stats") == 0)) {
        em_say("warning: group %s is left out: %s", group->name, em_error_text());
        return EM_OK;
    }
    status = em_agree(status);
    if (!status && em_reader_n_draw(reader) > 0)
        status = write_draws(m, group, reader);
    return status;
}

/* ---------------------------------------------------------------- the whole merge */

/* Groups that are not merged: the runs that a file was merged from, and the state of its run. */
static bool is_own(const em_contents_group *group)
{
    return strcmp(group->name, "runs") == 0 || strcmp(group->name, EM_OUTPUT_CHECKPOINT) == 0;
}

/* Prints which groups only later files have. */
static void tell_missing(const em_merge_state *m)
{
    for (int64_t i = 1; i < m->request->n_input; i++)
        for (int64_t g = 0; g < m->contents[i]->n_group; g++) {
            const char *name = m->contents[i]->group[g].name;
            if (!is_own(&m->contents[i]->group[g]) &&
                !em_contents_group_of(em_merge_first(m), name))
                em_say("warning: group %s is left out: %s has it, %s has not", name,
                       m->request->input[i], m->request->input[0]);
        }
}

/* Warns of different thinning. It is not an error, because all chains have the same distribution.
 */
static em_status tell_thinned(const em_merge_state *m)
{
    EM_SCOPED char *unlike = NULL;
    const em_status status = em_thinned_unlike(m->reader, &unlike);

    if (unlike)
        em_say("warning: %s: ESS is rough, because it treats all chains as equally thinned; the "
               "output keeps the config of the first file",
               unlike);
    return em_agree(status);
}

static em_status write_all(em_merge_state *m)
{
    em_status status = em_writer_create(m->grid, em_atomic_file_part(m->output), false, &m->writer);

    status = status ? status : em_merge_attributes(m);
    for (int64_t g = 0; !status && g < em_merge_first(m)->n_group; g++) {
        const em_contents_group *group = &em_merge_first(m)->group[g];
        if (is_own(group))
            continue;
        if (em_contents_has_draws(group))
            status = merge_draws(m, group);
        status = status ? status : em_merge_arrays(m, group);
    }
    status = status ? status : em_merge_runs(m);
    if (!status)
        tell_missing(m);
    return status ? status : tell_thinned(m);
}

static em_status merge(em_merge_state *m)
{
    em_status status = em_atomic_file_take(m->request->output, m->request->overwrite,
                                           m->request->n_input, m->request->input, &m->output);

    status = status ? status : em_agree(open_inputs(m));
    status = status ? status : em_grid_create(em_reader_n_chain(m->reader), 1, &m->grid);
    status = status ? status : write_all(m);
    return em_atomic_file_finish(&m->output, &m->writer, status);
}

em_status em_merge(em_merging *request)
{
    em_merge_state m = {.request = request};
    const em_status status = merge(&m);

    if (!status) {
        request->n_chain = em_reader_n_chain(m.reader);
        request->n_draw = em_reader_n_draw(m.reader);
    }
    for (int64_t i = 0; m.contents && i < request->n_input; i++)
        em_release_owner(&m.contents[i]);
    em_release(&m.contents);
    em_reader_close(&m.reader);
    em_grid_destroy(&m.grid);
    return status;
}
