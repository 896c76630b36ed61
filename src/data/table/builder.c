#include "data/table/builder.h"

#include "base/memory.h"
#include "base/text.h"
#include "par/grid.h"
#include "par/message.h"
#include "par/world.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

em_status em_table_create(const char *path, em_table **out)
{
    em_status status = em_allocate(1, sizeof **out, out);

    status = status ? status : em_copy_text(path, &(*out)->path);
    if (status)
        em_table_destroy(out);
    return status;
}

em_status em_table_make_sparse(em_table *table)
{
    em_status status = em_reserve(&table->column, &table->column_capacity, 0, 1);

    return status ? status : em_reserve(&table->start, &table->start_capacity, 0, 2);
}

em_status em_table_make_labelled(em_table *table)
{
    return em_reserve(&table->response, &table->response_capacity, 0, 1);
}

em_status em_table_begin_run(em_table *table, int64_t order)
{
    em_status status =
        em_reserve(&table->run, &table->run_capacity, table->n_run, table->n_run + 1);

    if (!status)
        table->run[table->n_run++] =
            (em_row_run){.order = order, .held = table->n_row, .rank = em_world_rank()};
    return status;
}

em_status em_table_push(em_table *table, double value)
{
    em_status status =
        em_reserve(&table->value, &table->value_capacity, table->n_value, table->n_value + 1);

    if (!status)
        table->value[table->n_value++] = value;
    return status;
}

em_status em_table_push_sparse(em_table *table, int32_t column, double value)
{
    em_status status =
        em_reserve(&table->column, &table->column_capacity, table->n_value, table->n_value + 1);

    if (status)
        return status;
    table->column[table->n_value] = column;
    return em_table_push(table, value);
}

/* Completes rows whose numbers are already in the table. */
static em_status end_rows(em_table *table, int64_t line, int64_t count)
{
    const int64_t n = table->n_row;
    em_status status = EM_OK;

    if (em_table_line_of(table, n) != line) {
        status =
            em_reserve(&table->line, &table->break_capacity, table->n_break, table->n_break + 1);
        if (!status)
            table->line[table->n_break++] = (em_break){n, line};
    }
    if (!status && table->column)
        status = em_reserve(&table->start, &table->start_capacity, n + 1, n + 2);
    if (status)
        return status;
    if (table->column)
        table->start[n + 1] = table->n_value;
    table->run[table->n_run - 1].count += count;
    table->n_row += count;
    return EM_OK;
}

em_status em_table_end_row(em_table *table, int64_t line)
{
    return end_rows(table, line, 1);
}

em_status em_table_end_row_labelled(em_table *table, int64_t line, double label)
{
    const int64_t n = table->n_row;
    em_status status = em_reserve(&table->response, &table->response_capacity, n, n + 1);

    if (status)
        return status;
    table->response[n] = label;
    return em_table_end_row(table, line);
}

void em_table_drop_row(em_table *table)
{
    table->n_value = table->column ? table->start[table->n_row] : table->n_row * table->n_column;
    table->n_dropped++;
}

em_status em_table_push_text(em_table *table, int64_t column, const char *text)
{
    int64_t code;
    em_status status = EM_OK;

    if (!table->text)
        status = em_allocate(table->n_column, sizeof *table->text, &table->text);
    status = status ? status : em_levels_add(&table->text[column], text, &code);
    return status ? status : em_table_push(table, em_level_value(code));
}

em_status em_table_end_rows(em_table *table, int64_t line, int64_t count)
{
    table->n_value += count * table->n_column;
    return end_rows(table, line, count);
}

/* ---------------------------------------------------------------- the whole */

/* Sorts the runs of all ranks in the order of the rows, and gives the list to all ranks. */
static em_status number_rows(em_table *table)
{
    em_row_run *all;
    int64_t n;
    em_status status = em_world_gather(table->n_run, sizeof *all, table->run, &n, &all);

    if (status)
        return status;
    qsort(all, (size_t)n, sizeof *all, em_by_first_integer);
    table->total = 0;
    for (int64_t i = 0; i < n; i++) {
        all[i].row = table->total;
        table->total += all[i].count;
    }
    em_release(&table->run);
    table->run = all;
    table->n_run = n;
    return EM_OK;
}

em_status em_table_name_columns(em_table *table)
{
    if (table->name || table->unnamed)
        return EM_OK;
    em_status status = em_allocate(table->n_column, sizeof *table->name, &table->name);
    for (int64_t j = 0; !status && j < table->n_column; j++)
        status = em_format_text(&table->name[j], "x%lld", (long long)j + 1);
    return status;
}

static uint64_t hash_row(const em_table *table, int64_t i, uint64_t seed)
{
    const int64_t first = table->column ? table->start[i] : i * table->n_column;
    const int64_t n = table->column ? table->start[i + 1] - first : table->n_column;
    const double *value = n > 0 ? table->value + first : NULL; /* no column but the response */
    uint64_t hash = XXH64(value, (size_t)n * sizeof *value, seed);

    if (table->column && n > 0)
        hash = XXH64(table->column + first, (size_t)n * sizeof *table->column, hash);
    if (table->response)
        hash = XXH64(table->response + i, sizeof *table->response, hash);
    return hash;
}

uint64_t em_table_hash_rows(const em_table *table, int64_t held, int64_t count, int64_t row)
{
    uint64_t sum = 0;

    for (int64_t i = 0; i < count; i++)
        sum += hash_row(table, held + i, (uint64_t)(row + i));
    return sum;
}

void em_table_hash(em_table *table, uint64_t sum)
{
    int64_t about[3] = {0, table->total, table->n_column};

    memcpy(about, &sum, sizeof sum);
    em_world_sum(1, about);
    table->hash = XXH64(about, sizeof about, 0);
    for (int64_t j = 0; table->name && j < table->n_column; j++)
        table->hash = XXH64(table->name[j], strlen(table->name[j]) + 1, table->hash);
    for (int64_t j = 0; table->text && j < table->n_column; j++)
        for (int64_t i = 0; i < table->text[j].count; i++)
            table->hash =
                XXH64(table->text[j].text[i], strlen(table->text[j].text[i]) + 1, table->hash);
}

/* Numbers the texts of column j by their order among the texts of all ranks. */
static em_status merge_texts(em_table *table, int64_t j)
{
    int64_t count, *map = NULL;
    em_status status = em_levels_merge(&table->text[j], &count, &map);

    if (!status && count > EM_MOST_LEVELS)
        status = em_fail(EM_EDATA,
                         "%s:1: found more than %d different texts in column %s, expected a few "
                         "categories",
                         table->path, EM_MOST_LEVELS, em_excerpt_of(table->name[j]).text);
    for (int64_t i = 0; !status && i < table->n_row; i++) {
        double *value = &table->value[i * table->n_column + j];
        const int64_t code = em_level_code(*value);
        if (code >= 0)
            *value = em_level_value(map[code]);
    }
    em_release(&map);
    return status;
}

/* Allocates on all ranks the arrays that any rank needs. Collective. */
static em_status finish_texts(em_table *table)
{
    int64_t any = table->text != NULL;
    em_status status = EM_OK;

    em_world_sum(1, &any);
    if (any == 0)
        return EM_OK;
    if (!table->text)
        status = em_allocate(table->n_column, sizeof *table->text, &table->text);
    status = em_agree_first(status, 0);
    for (int64_t j = 0; !status && j < table->n_column; j++)
        status = merge_texts(table, j);
    return status;
}

static uint64_t hash_runs(const em_table *table)
{
    uint64_t sum = 0;

    for (int64_t r = 0; r < table->n_run; r++)
        if (table->run[r].rank == em_world_rank())
            sum += em_table_hash_rows(table, table->run[r].held, table->run[r].count,
                                      table->run[r].row);
    return sum;
}

em_status em_table_finish(em_table *table)
{
    em_status status = number_rows(table);

    status = status ? status : finish_texts(table);
    em_world_sum(1, &table->n_dropped);
    table->total_entries = table->n_value;
    em_world_sum(1, &table->total_entries);
    status = status ? status : em_agree_first(em_table_name_columns(table), 0);
    if (!status)
        em_table_hash(table, hash_runs(table));
    return status;
}

em_status em_table_generate(int64_t n_row, int64_t n_column, const double *value, em_table **out)
{
    const int64_t first = em_partition_first(n_row, em_world_size(), em_world_rank());
    const int64_t end = em_partition_first(n_row, em_world_size(), em_world_rank() + 1);
    em_status status = em_table_create("generated data", out);

    if (!status) {
        (*out)->n_column = n_column;
        status = em_table_begin_run(*out, em_world_rank());
    }
    if (!status)
        status = em_reserve(&(*out)->value, &(*out)->value_capacity, 0, (end - first) * n_column);
    if (!status && end > first) {
        memcpy((*out)->value, value + first * n_column,
               (size_t)((end - first) * n_column) * sizeof *value);
        status = em_table_end_rows(*out, first + 1, end - first);
    }
    status = em_agree_first(status, 0);
    status = status ? status : em_table_finish(*out);
    if (status)
        em_table_destroy(out);
    return status;
}
