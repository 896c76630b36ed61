/* The logarithm of a product of numbers, with few calls of log. No product of eight of them may
 * overflow. Begins as {.product = 1}. All Local. */
#pragma once

#include <math.h>

typedef struct em_log_product {
    double sum, product;
    int n;
} em_log_product;

static inline void em_log_product_multiply(em_log_product *l, double factor)
{
    l->product *= factor;
    if (++l->n % 8 == 0) {
        l->sum += log(l->product);
        l->product = 1;
    }
}

static inline double em_log_product_value(const em_log_product *l)
{
    return l->sum + log(l->product);
}
