#include "data/count.h"

#include <math.h>

static em_status fail(const em_table *table, int64_t row, const char *what, double found,
                      const char *expected)
{
    return em_fail(EM_EDATA, "%s:%lld: found %s %.15g, expected %s", table->path,
                   (long long)table->line[row], what, found, expected);
}

em_status em_table_check_counts(const em_table *table)
{
    for (int64_t i = 0; i < table->n_row; i++) {
        const double y = table->response[i];
        if (!(y >= 0 && y < EM_MOST_COUNT && y == floor(y)))
            return fail(table, i, "response", y, "a count: 0, 1, 2, ...");
        if (table->exposure && !(table->exposure[i] > 0))
            return fail(table, i, "exposure", table->exposure[i], "a number above 0");
    }
    return EM_OK;
}
