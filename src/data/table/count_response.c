#include "data/table/count_response.h"

#include <math.h>

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
    int64_t held = 0, row;
    const double *exposure = table->beside[EM_BESIDE_EXPOSURE];
    double y;

    while (held < table->n_row && is_count(table->response[held]) &&
           (!exposure || exposure[held] > 0))
        held++;
    row = em_table_first_row(table, held < table->n_row ? held : -1);
    if (row < 0)
        return EM_OK;
    y = em_table_number(table, row, table->response);
    if (!is_count(y))
        return fail(table, row, "response", y, "a count: 0, 1, 2, ...");
    return fail(table, row, "exposure", em_table_number(table, row, exposure), "a number above 0");
}
