#include "data/table/column_moments.h"

#include "base/memory.h"
#include "par/message.h"

#include <math.h>

/* Exact sums of one number per column. Terms are rounded to fixed point, 2^-62 of the largest term,
 * and added as integers. So the sums do not depend on the order or on the ranks. */
typedef struct exact_sums {
    double *scale; /* [n] powers of two that bring the terms to fixed point; 0: all terms are */
    __int128 *sum; /* [n] */
    int64_t *limb; /* [n][LIMBS], in a form that ranks can add */
} exact_sums;

enum { LIMBS = 4, LIMB_BITS = 32, FIXED_BITS = 61 };

static em_status sums_create(int64_t n, exact_sums *out)
{
    return em_allocate_all(EM_ARRAY(out->scale, n), EM_ARRAY(out->sum, n),
                           EM_ARRAY(out->limb, n * LIMBS));
}

static void sums_release(exact_sums *sums)
{
    em_release_all(&sums->scale, &sums->sum, &sums->limb);
}

/* The scale for terms of at most this size. Terms below 2^-960 count as zero, because they are
 * negligible in any model. */
static double fixed_scale(double largest)
{
    return largest > 0 ? scalbn(1, FIXED_BITS - 1 - ilogb(fmax(largest, 0x1p-960))) : 0;
}

/* Adds the sums of all ranks; the result is out [n]. Collective. */
static void sums_finish(int64_t n, exact_sums *sums, double *out)
{
    for (int64_t j = 0; j < n; j++)
        for (int k = 0; k < LIMBS; k++) {
            const __int128 part = sums->sum[j] >> (k * LIMB_BITS);
            sums->limb[j * LIMBS + k] =
                k == LIMBS - 1 ? (int64_t)part : (int64_t)(part & 0xffffffff);
        }
    em_world_sum(n * LIMBS, sums->limb);
    for (int64_t j = 0; j < n; j++) {
        __int128 sum = 0;
        for (int k = LIMBS; k-- > 0;)
            sum = sum * ((__int128)1 << LIMB_BITS) + sums->limb[j * LIMBS + k];
        out[j] = sums->scale[j] > 0 ? (double)sum / sums->scale[j] : 0;
        sums->sum[j] = 0;
    }
}

static int64_t column_of(const em_table *table, int64_t row, int64_t k)
{
    return table->column ? table->column[k] : k - row * table->n_column;
}

static void find_range(const em_table *table, em_moments *m)
{
    for (int64_t j = 0; j < table->n_column; j++) {
        m->smallest[j] = INFINITY;
        m->largest[j] = -INFINITY;
    }
    for (int64_t i = 0; i < table->n_row; i++)
        for (int64_t k = em_table_first_value(table, i); k < em_table_first_value(table, i + 1);
             k++) {
            const int64_t j = column_of(table, i, k);
            m->count[j]++;
            m->smallest[j] = fmin(m->smallest[j], table->value[k]);
            m->largest[j] = fmax(m->largest[j], table->value[k]);
        }
    em_world_sum(table->n_column, m->count);
    em_world_smallest(table->n_column, m->smallest);
    em_world_largest(table->n_column, m->largest);
}

/* sums->sum[j] += the terms: values, or their squared deviations from the mean. */
static void add_terms(const em_table *table, const double *mean, exact_sums *sums)
{
    for (int64_t i = 0; i < table->n_row; i++)
        for (int64_t k = em_table_first_value(table, i); k < em_table_first_value(table, i + 1);
             k++) {
            const int64_t j = column_of(table, i, k);
            const double x = table->value[k] - (mean ? mean[j] : 0);
            sums->sum[j] += llrint((mean ? x * x : x) * sums->scale[j]);
        }
}

static void find_mean_and_sd(const em_table *table, em_moments *m, exact_sums *sums)
{
    const double n = (double)table->total;

    for (int64_t j = 0; j < table->n_column; j++)
        sums->scale[j] =
            m->count[j] == 0 ? 0 : fixed_scale(fmax(fabs(m->smallest[j]), fabs(m->largest[j])));
    add_terms(table, NULL, sums);
    sums_finish(table->n_column, sums, m->mean);
    for (int64_t j = 0; j < table->n_column; j++) {
        m->mean[j] /= n;
        const double most =
            m->count[j] > 0 ? fmax(m->largest[j] - m->mean[j], m->mean[j] - m->smallest[j]) : 0;
        sums->scale[j] = fixed_scale(most * most);
    }
    add_terms(table, m->mean, sums);
    sums_finish(table->n_column, sums, m->sd);
    for (int64_t j = 0; j < table->n_column; j++)
        m->sd[j] = sqrt((m->sd[j] + (n - (double)m->count[j]) * m->mean[j] * m->mean[j]) / (n - 1));
}

em_status em_moments_find(const em_table *table, bool both, em_moments *out)
{
    const int64_t n = table->n_column;
    EM_SCOPED_BY(sums_release) exact_sums sums = {NULL, NULL, NULL};

    *out = (em_moments){0};
    em_status status =
        em_allocate_all(EM_ARRAY(out->smallest, n), EM_ARRAY(out->largest, n),
                        EM_ARRAY(out->count, n), EM_ARRAY(out->mean, n), EM_ARRAY(out->sd, n));
    if (!status && both)
        status = sums_create(n, &sums);
    status = em_agree_first(status, 0);
    if (!status)
        find_range(table, out);
    if (!status && both)
        find_mean_and_sd(table, out, &sums);
    return status;
}

void em_moments_release(em_moments *m)
{
    em_release_all(&m->smallest, &m->largest, &m->count, &m->mean, &m->sd);
}

em_status em_sum_exactly(int64_t n, const double *x, double *sum)
{
    EM_SCOPED_BY(sums_release) exact_sums sums = {NULL, NULL, NULL};
    double largest = 0;
    em_status status = em_agree_first(sums_create(1, &sums), 0);

    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(x[i]));
    if (!status) {
        em_world_largest(1, &largest);
        sums.scale[0] = isfinite(largest) ? fixed_scale(largest) : 0;
        for (int64_t i = 0; sums.scale[0] > 0 && i < n; i++)
            sums.sum[0] += llrint(x[i] * sums.scale[0]);
        sums_finish(1, &sums, sum);
    }
    if (!isfinite(largest))
        *sum = NAN;
    return status;
}

bool em_moments_constant(const em_table *table, const em_moments *m, int64_t j)
{
    const bool equal = m->smallest[j] >= m->largest[j];

    return m->count[j] == 0 || (equal && (m->count[j] == table->total || m->smallest[j] == 0));
}
