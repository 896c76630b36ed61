#include "diagnostics/visits.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct em_visits {
    int64_t n_chain, n_draw, n_visit;
    int64_t *of_draw; /* [n_chain][n_draw] */
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

em_status em_visits_create(int64_t n_chain, int64_t n_draw, const double *visit, em_visits **out)
{
    em_visits *v = NULL;
    numbered *order = NULL;
    em_status status = em_allocate(1, sizeof *v, &v);

    *out = v;
    if (!status)
        status = em_allocate(n_chain * n_draw, sizeof *v->of_draw, &v->of_draw);
    if (!status)
        status = em_allocate(n_chain * n_draw, sizeof *v->sum, &v->sum);
    if (!status)
        status = em_allocate(n_draw, sizeof *order, &order);
    for (int64_t c = 0; !status && c < n_chain; c++) {
        for (int64_t i = 0; i < n_draw; i++)
            order[i] = (numbered){visit[c * n_draw + i], i};
        qsort(order, (size_t)n_draw, sizeof *order, compare);
        for (int64_t i = 0; i < n_draw; i++) {
            v->n_visit += i == 0 || order[i].visit != order[i - 1].visit;
            v->of_draw[c * n_draw + order[i].draw] = v->n_visit - 1;
        }
    }
    em_release(&order);
    if (status)
        em_visits_destroy(out);
    else {
        v->n_chain = n_chain;
        v->n_draw = n_draw;
    }
    return status;
}

void em_visits_destroy(em_visits **visits)
{
    if (*visits)
        em_release_all(&(*visits)->of_draw, &(*visits)->sum);
    em_release(visits);
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
    for (int64_t k = 0; k < v->n_visit; k++)
        between += v->sum[k] * v->sum[k];
    between *= used / (used - 1);
    return v->n_visit > v->n_chain && between > 0 && isfinite(square)
               ? n * n / (n - 1) * (square / between)
               : INFINITY;
}
