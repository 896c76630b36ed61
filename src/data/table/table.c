#include "data/table/table.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/table/builder.h"
#include "par/message.h"
#include "par/world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const em_beside_names[EM_N_BESIDE] = {[EM_BESIDE_EXPOSURE] = "exposure",
                                                  [EM_BESIDE_OFFSET] = "offset",
                                                  [EM_BESIDE_WEIGHTS] = "weights"};

void em_table_destroy(em_table **out)
{
    em_table *table = *out;

    if (!table)
        return;
    em_release_texts(table->n_column, &table->name);
    for (int64_t i = 0; table->text && i < table->n_column; i++)
        em_levels_release(&table->text[i]);
    em_levels_release(&table->label);
    for (int k = 0; k < EM_N_BESIDE; k++)
        em_release(&table->beside[k]);
    em_release_all(&table->text, &table->factor, &table->path, &table->run, &table->line,
                   &table->response, &table->start, &table->column, &table->value, out);
}

int64_t em_table_line_of(const em_table *table, int64_t held)
{
    int64_t low = 0, high = table->n_break;

    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (table->line[middle].held <= held)
            low = middle;
        else
            high = middle;
    }
    return high == 0 ? -1 : table->line[low].line + held - table->line[low].held;
}

/* The index at which this rank holds a row of the table; -1: another rank holds it. */
static int64_t held_of(const em_table *table, int64_t row)
{
    for (int64_t r = 0; r < table->n_run; r++) {
        const em_row_run *run = &table->run[r];
        if (run->rank == em_world_rank() && run->row <= row && row < run->row + run->count)
            return run->held + row - run->row;
    }
    return -1;
}

void em_table_print_value(const em_table *table, int64_t j, double value, char out[EM_LEVEL_BYTES])
{
    const int64_t code = em_level_code(value);

    if (code >= 0)
        snprintf(out, EM_LEVEL_BYTES, "%s", table->text[j].text[code]);
    else
        snprintf(out, EM_LEVEL_BYTES, "%.15g", value);
}

bool em_names_are_utf8(int64_t n, char *const *name)
{
    int64_t j = 0;

    while (j < n && (!name || !name[j] || em_is_utf8(name[j])))
        j++;
    return j == n;
}

void em_table_say_guess(const em_table *table)
{
    if (table->row_guessed)
        em_say("note: %s: the first line is read as a row, as there is a number in it (with "
               "header: no without this note)",
               table->path);
}

int64_t em_table_row(const em_table *table, int64_t i)
{
    for (int64_t r = 0; r < table->n_run; r++) {
        const em_row_run *run = &table->run[r];
        if (run->rank == em_world_rank() && run->held <= i && i < run->held + run->count)
            return run->row + i - run->held;
    }
    return -1;
}

int64_t em_table_first_row(const em_table *table, int64_t held)
{
    double row = held < table->n_row ? (double)em_table_row(table, held) : INFINITY; /* < 2^53 */

    em_world_smallest(1, &row);
    return isinf(row) ? -1 : (int64_t)row;
}

int64_t em_table_line(const em_table *table, int64_t row)
{
    const int64_t held = held_of(table, row);
    int64_t line = held < 0 ? 0 : em_table_line_of(table, held);

    em_world_sum(1, &line);
    return line;
}

/* Gives all ranks a number of every row. The bits of a number are summed over the ranks; they are 0
 * except on the rank that holds the row. */
static em_status gather(const em_table *table, double (*number)(const em_table *, int64_t held),
                        double **out)
{
    EM_SCOPED int64_t *bits = NULL;
    em_status status = em_allocate(table->total, sizeof *bits, &bits);

    status = status ? status : em_allocate_doubles(table->total, out);
    status = em_agree_first(status, 0);
    for (int64_t r = 0; !status && r < table->n_run; r++) {
        const em_row_run *run = &table->run[r];
        for (int64_t i = 0; run->rank == em_world_rank() && i < run->count; i++) {
            const double value = number(table, run->held + i);
            memcpy(&bits[run->row + i], &value, sizeof value);
        }
    }
    if (!status) {
        em_world_sum(table->total, bits);
        memcpy(*out, bits, (size_t)table->total * sizeof **out);
    }
    return status;
}

static double line_number(const em_table *table, int64_t held)
{
    return (double)em_table_line_of(table, held);
}

static double response(const em_table *table, int64_t held)
{
    return table->response[held];
}

em_status em_table_lines(const em_table *table, double **out)
{
    return gather(table, line_number, out);
}

em_status em_table_responses(const em_table *table, double **out)
{
    return gather(table, response, out);
}

double em_table_number(const em_table *table, int64_t row, const double *column)
{
    const int64_t held = held_of(table, row);
    double number = held < 0 ? -INFINITY : column[held];

    em_world_largest(1, &number);
    return number;
}

static bool is_count(double y)
{
    return y >= 0 && y < EM_MOST_COUNT && y == floor(y);
}

static em_status fail(const em_table *table, int64_t row, const char *what, double found,
                      const char *expected)
{
    return em_fail(EM_EDATA, "%s:%lld: found %s %.15g, expected %s", table->path,
                   (long long)em_table_line(table, row), what, found, expected);
}

em_status em_table_check_counts(const em_table *table)
{
    int64_t held = 0;
    const double *exposure = table->beside[EM_BESIDE_EXPOSURE];

    while (held < table->n_row && is_count(table->response[held]) &&
           (!exposure || exposure[held] > 0))
        held++;
    const int64_t row = em_table_first_row(table, held);
    if (row < 0)
        return EM_OK;
    const double y = em_table_number(table, row, table->response);
    if (!is_count(y))
        return fail(table, row, "response", y,
                    y >= EM_MOST_COUNT ? "a count of at most 2^53" : "a count: 0, 1, 2, ...");
    return fail(table, row, "exposure", em_table_number(table, row, exposure), "a number above 0");
}
