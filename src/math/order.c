#include "math/order.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void em_sort_numbers(int64_t n, double *x)
{
    qsort(x, (size_t)n, sizeof *x, compare);
}
