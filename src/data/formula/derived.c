#include "data/formula/derived.h"

#include "base/memory.h"
#include "base/text.h"
#include "data/table/column_moments.h"
#include "par/message.h"

#include <math.h>

void em_derived_release(em_derived *derived)
{
    em_release_all(&derived->name, &derived->coding);
}

/* ---------------------------------------------------------------- a row */

static double apply(em_operator op, double x)
{
    static double (*const function[EM_N_OPERATOR])(double) = {
        [EM_OP_LOG] = log, [EM_OP_LOG2] = log2, [EM_OP_LOG10] = log10, [EM_OP_LOG1P] = log1p,
        [EM_OP_EXP] = exp, [EM_OP_SQRT] = sqrt, [EM_OP_ABS] = fabs};

    return op == EM_OP_NEGATE ? -x : function[op](x);
}

static double combine(em_operator op, double x, double y)
{
    switch (op) {
    case EM_OP_ADD:
        return x + y;
    case EM_OP_SUBTRACT:
        return x - y;
    case EM_OP_MULTIPLY:
        return x * y;
    case EM_OP_DIVIDE:
        return x / y;
    default:
        return pow(x, y);
    }
}

double em_derived_value(const em_derived *derived, const double *row)
{
    double stack[EM_MOST_STEPS];
    int n = 0;

    for (int i = 0; i < derived->n_step; i++) {
        const em_step *s = &derived->step[i];
        if (s->op <= EM_OP_COLUMN)
            stack[n++] = s->op == EM_OP_NUMBER ? s->number : row[s->column];
        else if (s->op >= EM_OP_NEGATE)
            stack[n - 1] = apply(s->op, stack[n - 1]);
        else {
            n--;
            stack[n - 1] = combine(s->op, stack[n - 1], stack[n]);
        }
    }
    return stack[0];
}

/* The orthogonal polynomials up to degree `n` at u, their leading coefficient 1: p[0] is 1
 * (Forsythe 1957). */
static void recur(const double *alpha, const double *norm, double u, int n, double *p)
{
    p[0] = 1;
    for (int k = 1; k <= n; k++)
        p[k] = (u - alpha[k - 1]) * p[k - 1] - (k > 1 ? norm[k - 1] / norm[k - 2] * p[k - 2] : 0);
}

void em_derived_make(const em_derived *derived, const double *row, double *out)
{
    const double x = em_derived_value(derived, row), *c = derived->coding;
    double p[EM_MOST_DEGREE + 1];
    const int n = derived->degree;

    if (n == 0) {
        out[0] = x;
        return;
    }
    p[0] = 1;
    for (int k = 1; derived->raw && k <= n; k++)
        p[k] = p[k - 1] * x;
    if (!derived->raw)
        recur(c + 1, c + 1 + n, x - c[0], n, p);
    for (int k = 1; k <= n; k++)
        out[k - 1] = derived->raw ? p[k] : p[k] / sqrt(c[1 + n + k]);
}

/* ---------------------------------------------------------------- a table */

em_status em_derived_check(const em_derived *derived, const em_table *table)
{
    const int64_t n = table->n_column;
    int64_t held = 0;

    while (held < table->n_row && isfinite(em_derived_value(derived, table->value + held * n)))
        held++;
    const int64_t row = em_table_first_row(table, held);
    return row < 0
               ? EM_OK
               : em_fail(EM_EDATA,
                         "%s:%lld: found a row for which %s of the formula is not a finite number",
                         table->path, (long long)em_table_line(table, row),
                         em_excerpt_of(derived->name).text);
}

/* Sums over all rows of p_k^2 and u p_k^2. `work` [2 n_row]. Collective. */
static em_status sum_squares(const em_derived *derived, const em_table *table, int k, double *work,
                             double sum[2])
{
    const double *c = derived->coding;
    const int64_t n = table->n_row;
    double p[EM_MOST_DEGREE + 1];

    for (int64_t i = 0; i < n; i++) {
        const double u = em_derived_value(derived, table->value + i * table->n_column) - c[0];
        recur(c + 1, c + 1 + derived->degree, u, k, p);
        work[i] = p[k] * p[k];
        work[n + i] = u * work[i];
    }
    const em_status status = em_sum_exactly(n, work, &sum[0]);
    return status ? status : em_sum_exactly(n, work + n, &sum[1]);
}

/* Finds the recurrence of the polynomials, as R's poly() does. */
static em_status find_coding(em_derived *derived, const em_table *table, double *work)
{
    const int degree = derived->degree;
    double *alpha = derived->coding + 1, *norm = derived->coding + 1 + degree, sum[2];

    for (int64_t i = 0; i < table->n_row; i++)
        work[i] = em_derived_value(derived, table->value + i * table->n_column);
    em_status status = em_sum_exactly(table->n_row, work, &derived->coding[0]);
    derived->coding[0] /= (double)table->total;
    for (int k = 0; !status && k <= degree; k++) {
        status = sum_squares(derived, table, k, work, sum);
        norm[k] = sum[0];
        /* of numbers that are zero but for rounding: as many different values as the degree */
        if (!status && !(norm[k] > 1e-20 * (k > 0 ? norm[k - 1] * norm[1] / norm[0] : 0)))
            status = em_fail(EM_EDATA,
                             "%s: %s of the formula: found at most %d different values, expected "
                             "more than its degree",
                             table->path, em_excerpt_of(derived->name).text, k);
        if (k < degree)
            alpha[k] = sum[1] / sum[0];
    }
    return status;
}

em_status em_derived_find(em_derived *derived, const em_table *table)
{
    EM_SCOPED double *work = NULL;

    if (em_derived_coding_size(derived) == 0)
        return EM_OK;
    em_status status = em_allocate_doubles(2 * table->n_row, &work);
    if (!status)
        status = em_allocate_all(EM_ARRAY(derived->coding, em_derived_coding_size(derived)));
    status = em_agree_first(status, 0);
    return status ? status : find_coding(derived, table, work);
}
