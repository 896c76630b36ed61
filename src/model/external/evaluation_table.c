#include "model/external/evaluation_table.h"

#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WHY = EM_WHY_BYTES / sizeof(double) }; /* numbers that a text takes */

em_evaluation_table em_evaluation_table_of(int64_t n, int64_t n_output)
{
    return (em_evaluation_table){.n = n, .n_output = n_output, .width = WHY + 2 * n + n_output};
}

void em_evaluation_table_release(em_evaluation_table *table)
{
    em_hash_table_release(&table->positions);
    em_release(&table->record);
    *table = em_evaluation_table_of(table->n, table->n_output);
}

/* Texts lie among numbers, which are copied as they are. */
char *em_record_why(double *record)
{
    return (char *)(void *)record;
}

double *em_record_x(double *record)
{
    return record + WHY;
}

double *em_record_output(const em_evaluation_table *table, double *record)
{
    return record + WHY + table->n;
}

static em_hash hash_of(const em_evaluation_table *table, const double *x)
{
    return em_hash_of(x, (size_t)table->n * sizeof *x);
}

em_status em_evaluation_table_put(em_evaluation_table *table, const double *record)
{
    int64_t at;
    em_status status =
        em_array_reserve(&table->record, &table->capacity, table->positions.n,
                         table->positions.n + 1, (size_t)table->width * sizeof *record);

    status = status ? status : em_hash_add(&table->positions, hash_of(table, record + WHY), &at);
    if (!status)
        memcpy(table->record + at * table->width, record, (size_t)table->width * sizeof *record);
    return status;
}

em_status em_evaluation_table_add(em_evaluation_table *table, const em_evaluation *e)
{
    EM_SCOPED double *record = NULL;
    em_status status = em_allocate(table->width, sizeof *record, &record);

    if (status)
        return status;
    snprintf(em_record_why(record), EM_WHY_BYTES, "%s", e->why);
    memcpy(em_record_x(record), e->x, (size_t)table->n * sizeof *record);
    memcpy(em_record_output(table, record), e->output, (size_t)table->n_output * sizeof *record);
    for (int64_t i = 0; i < table->n; i++)
        em_record_gradient(table, record)[i] = e->gradient && !e->why[0] ? e->gradient[i] : NAN;
    return em_evaluation_table_put(table, record);
}

bool em_evaluation_table_find(const em_evaluation_table *table, em_evaluation *e)
{
    const int64_t at = em_hash_find(&table->positions, hash_of(table, e->x));

    if (at < 0)
        return false;
    double *found = table->record + at * table->width;
    const double *gradient = em_record_gradient(table, found);
    if (e->gradient && !em_record_why(found)[0] && isnan(gradient[0]))
        return false;
    memcpy(e->why, em_record_why(found), sizeof e->why);
    memcpy(e->output, em_record_output(table, found), (size_t)table->n_output * sizeof *e->output);
    if (e->gradient)
        memcpy(e->gradient, gradient, (size_t)table->n * sizeof *gradient);
    return true;
}
