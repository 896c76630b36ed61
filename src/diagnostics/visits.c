#include "diagnostics/visits.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The largest lag at which visits may depend on each other. */
enum { MOST_LAG = 16 };

struct em_visits {
    em_owner memory; /* of its arrays */
    int64_t n_chain, n_draw, n_visit;
    int64_t *of_draw; /* [n_chain][n_draw]: those of a chain by the time that they began */
    int64_t *first;   /* [n_chain + 1] of the chain */
    double *sum;      /* [n_visit] */
};

typedef struct numbered {
    double visit;
    int64_t draw;
} numbered;

static int compare(const void *left, const void *right)
{
    const double a = ((const numbered *)left)->visit, b = ((const numbered *)right)->visit;

    return (a > b) - (a < b);
}

/* Numbers the visits of all chains from chain c on, by their first draws. order, group [n_draw]:
 * work space. */
static void number_visits(em_visits *v, int64_t c, const double *visit, numbered *order,
                          int64_t *group)
{
    int64_t *of_draw = v->of_draw + c * v->n_draw, n_group = 0;

    for (int64_t i = 0; i < v->n_draw; i++)
        order[i] = (numbered){visit[i], i};
    qsort(order, (size_t)v->n_draw, sizeof *order, compare);
    for (int64_t i = 0; i < v->n_draw; i++) {
        n_group += i == 0 || order[i].visit != order[i - 1].visit;
        of_draw[order[i].draw] = n_group - 1;
    }
    for (int64_t g = 0; g < n_group; g++)
        group[g] = -1;
    v->first[c] = v->n_visit;
    for (int64_t i = 0; i < v->n_draw; i++) {
        int64_t *number = &group[of_draw[i]];
        if (*number < 0)
            *number = v->n_visit++;
        of_draw[i] = *number;
    }
    v->first[c + 1] = v->n_visit;
}

em_status em_visits_create(int64_t n_chain, int64_t n_draw, const double *visit, em_visits **out)
{
    EM_SCOPED numbered *order = NULL;
    EM_SCOPED int64_t *group = NULL;
    em_status status = em_allocate(1, sizeof **out, out);
    em_visits *v = *out;

    if (status)
        return status;
    v->n_chain = n_chain;
    v->n_draw = n_draw;
    status = em_own_all(&v->memory, EM_ARRAY(v->of_draw, n_chain * n_draw),
                        EM_ARRAY(v->first, n_chain + 1), EM_ARRAY(v->sum, n_chain * n_draw));
    status = status ? status : em_allocate_all(EM_ARRAY(order, n_draw), EM_ARRAY(group, n_draw));
    for (int64_t c = 0; !status && c < n_chain; c++)
        number_visits(v, c, visit + c * n_draw, order, group);
    if (status)
        em_release_owner(out);
    return status;
}

/* Sum over all chains of the products of the sums of two visits that are `lag` apart. */
static double product_at(const em_visits *v, int64_t lag)
{
    double sum = 0;

    for (int64_t c = 0; c < v->n_chain; c++)
        for (int64_t k = v->first[c]; k + lag < v->first[c + 1]; k++)
            sum += v->sum[k] * v->sum[k + lag];
    return sum;
}

/* The variance of the sum of all visits: that of independent visits, or more if neighbours are
 * correlated, with Bartlett's weights. */
static double variance_of_sum(const em_visits *v)
{
    const double each = (double)v->n_visit / (double)v->n_chain;
    const double width = fmin(MOST_LAG, ceil(2 * sqrt(each)));
    const double independent = product_at(v, 0);
    double dependent = independent;

    for (int64_t lag = 1; (double)lag < width; lag++)
        dependent += 2 * (1 - (double)lag / width) * product_at(v, lag);
    return fmax(independent, dependent);
}

double em_visits_ess(em_visits *v, const double *x, int64_t left_out)
{
    const int64_t n_all = v->n_chain * v->n_draw;
    double n = 0, mean = 0, square = 0, between = 0, used = (double)v->n_visit;

    for (int64_t i = 0; i < n_all; i++)
        if (i % v->n_draw != left_out)
            mean += (x[i] - mean) / ++n;
    memset(v->sum, 0, (size_t)v->n_visit * sizeof *v->sum);
    for (int64_t i = 0; i < n_all; i++)
        if (i % v->n_draw != left_out) {
            v->sum[v->of_draw[i]] += x[i] - mean;
            square += (x[i] - mean) * (x[i] - mean);
        }
    between = variance_of_sum(v) * used / (used - 1);
    return v->n_visit > v->n_chain && between > 0 && isfinite(square)
               ? n * n / (n - 1) * (square / between)
               : INFINITY;
}
