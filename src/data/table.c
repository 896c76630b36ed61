#include "data/builder.h"

#include "base/memory.h"
#include "data/array.h"
#include "par/grid.h"
#include "par/message.h"
#include "par/world.h"

#include <string.h>

void em_table_destroy(em_table **out)
{
    em_table *table = *out;

    if (!table)
        return;
    for (int64_t i = 0; table->name && i < table->n_column; i++)
        em_release(&table->name[i]);
    em_release(&table->name);
    em_release(&table->path);
    em_release(&table->run);
    em_release(&table->line);
    em_release(&table->response);
    em_release(&table->exposure);
    em_release(&table->start);
    em_release(&table->column);
    em_release(&table->value);
    em_release(out);
}

em_status em_table_generate(const char *name, int64_t n_row, int64_t n_column, const double *value,
                            em_table **out)
{
    const int64_t first = em_deal_first(n_row, em_world_size(), em_world_rank());
    const int64_t end = em_deal_first(n_row, em_world_size(), em_world_rank() + 1);
    em_status status = em_table_create(name, out);

    if (!status) {
        (*out)->n_column = n_column;
        status = em_table_begin_run(*out, em_world_rank());
    }
    if (!status)
        status = em_array_reserve(&(*out)->value, &(*out)->value_capacity, 0,
                                  (end - first) * n_column, sizeof *value);
    if (!status && end > first) {
        memcpy((*out)->value, value + first * n_column,
               (size_t)((end - first) * n_column) * sizeof *value);
        status = em_table_end_rows(*out, first + 1, end - first);
    }
    status = em_agree_first(status, 0);
    if (!status)
        status = em_table_finish(*out);
    if (status)
        em_table_destroy(out);
    return status;
}
