#include "model/regression/collinear.h"

#include "base/memory.h"
#include "base/text.h"
#include "math/linalg.h"
#include "par/message.h"
#include "par/world.h"

#include <math.h>

enum { MOST_COLUMNS = 256, BLOCK = 256, MOST_SAID = 3, WHAT_BYTES = 320 };

#define MOST_PRODUCTS 1e10
#define SUSPECT       1e-9 /* a part of a variance that others leave unexplained */
#define ROUNDING      1e-6 /* of a standardised number, and of a coefficient */

typedef struct dependencies {
    const em_table *table;
    const double *mean, *sd; /* [table->n_column] */
    double response_mean, response_sd;
    bool intercept;
    int64_t n;                      /* columns, and the response after them if it is examined too */
    double *block, *product, *gram; /* [n][BLOCK], [n][n], [n][n] */
    double *factor, *coefficient;   /* [n][n] rows of the Cholesky factor, [n] */
    int64_t *sum;                   /* [n][n] */
    bool *left_out;                 /* [n] constant, or a combination of columns before */
} dependencies;

static double standardised(const dependencies *s, int64_t i, int64_t j)
{
    const bool is_response = j == s->table->n_column;
    const double mean = is_response ? s->response_mean : s->mean[j];
    const double sd = is_response ? s->response_sd : s->sd[j];
    const double x =
        is_response ? s->table->response[i] : s->table->value[i * s->table->n_column + j];

    return s->intercept ? (x - mean) / sd : x / hypot(sd, mean);
}

/* Computes the products of all columns, as integers so that all ranks decide the same. Collective.
 */
static void find_products(dependencies *s)
{
    const int64_t n = s->n, rows = s->table->n_row;
    const double unit = 0x1p50 / (double)s->table->total;

    for (int64_t first = 0; first < rows; first += BLOCK) {
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < BLOCK; i++)
                s->block[j * BLOCK + i] = first + i < rows ? standardised(s, first + i, j) : 0;
        em_gram(n, BLOCK, s->block, s->product);
        for (int64_t k = 0; k < n * n; k++)
            s->gram[k] += s->product[k];
    }
    for (int64_t k = 0; k < n * n; k++)
        s->sum[k] = llrint(s->gram[k] * unit);
    em_world_sum(n * n, s->sum);
    for (int64_t k = 0; k < n * n; k++)
        s->gram[k] = (double)s->sum[k] * 0x1p-50;
}

/* Computes row j of the Cholesky factor for the columns that are not left out. Returns the part of
 * the variance of column j that these do not explain. */
static double factor_row(dependencies *s, int64_t j)
{
    double *row = s->factor + j * s->n, rest = s->gram[j * s->n + j];

    for (int64_t k = 0; k < j; k++) {
        const double *other = s->factor + k * s->n;
        double inner = s->gram[j * s->n + k];
        if (s->left_out[k])
            continue;
        for (int64_t l = 0; l < k; l++)
            inner -= row[l] * other[l];
        row[k] = inner / other[k];
        rest -= row[k] * row[k];
    }
    return rest;
}

/* Finds the coefficients with which the columns before j add up to column j. */
static void find_coefficients(dependencies *s, int64_t j)
{
    double *b = s->coefficient;

    for (int64_t k = j; k-- > 0;) {
        b[k] = s->factor[j * s->n + k];
        for (int64_t l = k + 1; l < j; l++)
            b[k] -= s->factor[l * s->n + k] * b[l];
        b[k] = s->left_out[k] ? 0 : b[k] / s->factor[k * s->n + k];
    }
}

/* Whether the columns with these coefficients add up to column j in all rows. Collective. */
static bool is_combination(const dependencies *s, int64_t j)
{
    double worst = 0;

    for (int64_t i = 0; i < s->table->n_row; i++) {
        double rest = standardised(s, i, j);
        for (int64_t k = 0; k < j; k++)
            if (fabs(s->coefficient[k]) > 0)
                rest -= s->coefficient[k] * standardised(s, i, k);
        worst = fmax(worst, fabs(rest));
    }
    em_world_largest(1, &worst);
    return worst < ROUNDING;
}

static void say(const dependencies *s, int64_t j)
{
    const em_table *table = s->table;
    const bool is_response = j == table->n_column;
    double constant = !s->intercept ? 0
                      : is_response ? s->response_mean / s->response_sd
                                    : s->mean[j] / s->sd[j];
    int64_t n_of = 0;
    char of[WHAT_BYTES] = "";

    for (int64_t k = 0; k < j; k++) {
        if (!(fabs(s->coefficient[k]) > ROUNDING))
            continue;
        if (s->intercept)
            constant -= s->coefficient[k] * s->mean[k] / s->sd[k];
        if (n_of++ < MOST_SAID)
            em_append(sizeof of, of, "%s%s", n_of > 1 ? ", " : "",
                      em_excerpt_of(table->name[k]).text);
    }
    if (n_of > MOST_SAID)
        em_append(sizeof of, of, " and %lld more", (long long)(n_of - MOST_SAID));
    if (fabs(constant) > ROUNDING)
        em_append(sizeof of, of, " and the intercept");
    if (is_response)
        em_say("warning: %s: the response is a linear combination of %s, to six digits. Without "
               "noise the density is unbounded as sigma goes to 0: give model.sigma a number",
               table->path, of);
    else
        em_say("warning: %s: column %s is a linear combination of %s: only the prior tells "
               "their coefficients apart",
               table->path, em_excerpt_of(table->name[j]).text, of);
}

/* Collective. */
static void find_combinations(dependencies *s)
{
    int64_t found = 0;

    find_products(s);
    for (int64_t j = 0; j < s->n; j++) {
        const double whole = s->gram[j * s->n + j], rest = factor_row(s, j);

        s->left_out[j] = !(whole > 0.5 / (double)s->table->total) || !(rest > 0x1p-45);
        if (whole > 0 && rest < SUSPECT * whole) {
            find_coefficients(s, j);
            if (is_combination(s, j)) {
                s->left_out[j] = true;
                found += j < s->table->n_column;
                if (found <= MOST_SAID || j == s->table->n_column)
                    say(s, j);
            }
        }
        if (s->left_out[j])
            for (int64_t k = 0; k < j; k++)
                s->factor[j * s->n + k] = 0;
        else
            s->factor[j * s->n + j] = sqrt(rest);
    }
    if (found > MOST_SAID)
        em_say("warning: %s: %lld more columns are linear combinations of others", s->table->path,
               (long long)(found - MOST_SAID));
}

em_status em_collinear_say(const em_table *table, bool intercept, const double *mean,
                           const double *sd, double response_mean, double response_sd)
{
    const int64_t n = table->n_column + !isnan(response_sd);
    dependencies s = {.table = table,
                      .mean = mean,
                      .sd = sd,
                      .response_mean = response_mean,
                      .response_sd = response_sd,
                      .intercept = intercept,
                      .n = n};

    if (table->column || n < 2 || n > MOST_COLUMNS || table->total <= table->n_column + intercept ||
        (double)table->total * (double)n * (double)n > MOST_PRODUCTS)
        return EM_OK;
    em_status status = em_allocate_all(EM_ARRAY(s.block, n * BLOCK), EM_ARRAY(s.product, n * n),
                                       EM_ARRAY(s.gram, n * n), EM_ARRAY(s.factor, n * n),
                                       EM_ARRAY(s.coefficient, n), EM_ARRAY(s.sum, n * n),
                                       EM_ARRAY(s.left_out, n));
    status = em_agree_first(status, 0);
    if (!status)
        find_combinations(&s);
    em_release_all(&s.block, &s.product, &s.gram, &s.factor, &s.coefficient, &s.sum, &s.left_out);
    return status;
}
