#include "math/assignment.h"

#include "base/memory.h"

#include <math.h>
#include <stdbool.h>

/* Rows and columns count from 1; 0 stands for none. */
typedef struct assignment {
    int64_t n;
    const double *cost;
    double *row, *column; /* dual prices */
    double *least;        /* of each column: reduced cost of the best edge to it so far */
    int64_t *owner, *way; /* of each column: its row, and the column before it on the path */
    bool *seen;
} assignment;

/* The column that follows on the shortest path after column `at`, which has an owner. */
static int64_t extend(assignment *a, int64_t at)
{
    const int64_t i = a->owner[at];
    double delta = INFINITY;
    int64_t next = 0;

    a->seen[at] = true;
    for (int64_t j = 1; j <= a->n; j++) {
        if (a->seen[j])
            continue;
        const double reduced = a->cost[(i - 1) * a->n + j - 1] - a->row[i] - a->column[j];
        if (reduced < a->least[j]) {
            a->least[j] = reduced;
            a->way[j] = at;
        }
        if (a->least[j] < delta) {
            delta = a->least[j];
            next = j;
        }
    }
    for (int64_t j = 0; j <= a->n; j++) {
        if (a->seen[j]) {
            a->row[a->owner[j]] += delta;
            a->column[j] -= delta;
        } else {
            a->least[j] -= delta;
        }
    }
    return next;
}

static void add_row(assignment *a, int64_t i)
{
    int64_t at = 0;

    a->owner[0] = i;
    for (int64_t j = 0; j <= a->n; j++) {
        a->least[j] = INFINITY;
        a->seen[j] = false;
    }
    do
        at = extend(a, at);
    while (a->owner[at] != 0);
    for (; at != 0; at = a->way[at])
        a->owner[at] = a->owner[a->way[at]];
}

em_status em_assign(int64_t n, const double *cost, int64_t *column)
{
    EM_SCOPED_BY(em_release_owned) em_owner memory = {NULL};
    assignment a = {.n = n, .cost = cost};
    em_status status = em_own_all(&memory, EM_ARRAY(a.row, n + 1), EM_ARRAY(a.column, n + 1),
                                  EM_ARRAY(a.least, n + 1), EM_ARRAY(a.owner, n + 1),
                                  EM_ARRAY(a.way, n + 1), EM_ARRAY(a.seen, n + 1));

    for (int64_t i = 1; !status && i <= n; i++)
        add_row(&a, i);
    for (int64_t j = 1; !status && j <= n; j++)
        column[a.owner[j] - 1] = j - 1;
    return status;
}
