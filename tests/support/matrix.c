#include "support/matrix.h"

void add_product(double scale, const matrix *a, const double *x, double *out)
{
    for (int64_t i = 0; i < a->n; i++)
        for (int64_t j = 0; j < a->n; j++)
            out[i] += scale * a->at[i][j] * x[j];
}

matrix product(const matrix *a, const matrix *b)
{
    matrix out = {.n = a->n};

    for (int64_t i = 0; i < a->n; i++)
        for (int64_t j = 0; j < a->n; j++)
            for (int64_t k = 0; k < a->n; k++)
                out.at[i][j] += a->at[i][k] * b->at[k][j];
    return out;
}

matrix sum(double x, const matrix *a, double y, const matrix *b)
{
    matrix out = {.n = a->n};

    for (int64_t i = 0; i < a->n; i++)
        for (int64_t j = 0; j < a->n; j++)
            out.at[i][j] = x * a->at[i][j] + y * b->at[i][j];
    return out;
}

matrix transposed(const matrix *a)
{
    matrix out = {.n = a->n};

    for (int64_t i = 0; i < a->n; i++)
        for (int64_t j = 0; j < a->n; j++)
            out.at[j][i] = a->at[i][j];
    return out;
}

matrix identity(int64_t n)
{
    matrix out = {.n = n};

    for (int64_t i = 0; i < n; i++)
        out.at[i][i] = 1;
    return out;
}

matrix inverse_of(const matrix *a)
{
    matrix out = *a;

    em_invert_spd(a->n, out.at[0], LAW_MOST_DIM);
    return out;
}

matrix factor_of(const em_mass *mass)
{
    matrix L = {.n = mass->dim};

    for (int64_t j = 0; j < mass->dim; j++) {
        _Alignas(64) double z[8] = {0}, p[8];
        z[j] = 1;
        em_mass_momentum(&mass, 1, z, p);
        for (int64_t i = 0; i < mass->dim; i++)
            L.at[i][j] = p[i];
    }
    return L;
}

matrix decay_of(const matrix *a)
{
    const matrix small = sum(-1.0 / 1024, a, 0, a);
    matrix out = identity(a->n), term = out;

    for (int k = 1; k < 12; k++) {
        const matrix next = product(&term, &small);
        term = sum(1.0 / k, &next, 0, &next);
        out = sum(1, &out, 1, &term);
    }
    for (int k = 0; k < 10; k++)
        out = product(&out, &out);
    return out;
}

void put_block(const matrix *a, int64_t first, int64_t ld, double *out)
{
    for (int64_t i = 0; i < a->n; i++)
        memcpy(out + (first + i) * ld + first, a->at[i], (size_t)a->n * sizeof *out);
}

void pack_matrix(const matrix *a, double *out)
{
    put_block(a, 0, a->n, out);
}

double relative_error(int64_t n, const double *S, int64_t ld, const matrix *T)
{
    double difference = 0, norm = 0;

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            difference += pow(S[i * ld + j] - T->at[i][j], 2);
            norm += pow(T->at[i][j], 2);
        }
    return sqrt(difference / norm);
}
