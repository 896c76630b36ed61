#include "support/low_rank_numbers.h"

#include "math/rng.h"

#include <math.h>
#include <string.h>

double some_normal(uint64_t seed, int64_t i)
{
    _Alignas(64) double x[8];
    const em_stream stream = {seed, (uint64_t)i, 0, EM_RNG_TEST};

    em_normals(&stream, 1, x);
    return x[0];
}

/* Orthonormal rows [rank][dim]. */
static void some_directions(uint64_t seed, int64_t dim, int64_t rank, double *v)
{
    for (int64_t k = 0; k < rank; k++) {
        double norm = 0;
        for (int64_t i = 0; i < dim; i++)
            v[k * dim + i] = some_normal(seed, 1000 + k * dim + i);
        for (int64_t j = 0; j < 2 * k; j++) {
            double sum = 0;
            for (int64_t i = 0; i < dim; i++)
                sum += v[k * dim + i] * v[j % k * dim + i];
            for (int64_t i = 0; i < dim; i++)
                v[k * dim + i] -= sum * v[j % k * dim + i];
        }
        for (int64_t i = 0; i < dim; i++)
            norm += v[k * dim + i] * v[k * dim + i];
        for (int64_t i = 0; i < dim; i++)
            v[k * dim + i] /= sqrt(norm);
    }
}

void some_low_rank(uint64_t seed, int64_t dim, int64_t rank, int64_t most_rank, double *number,
                   double *w)
{
    static const double some_value[] = {30, 0.05, 4};
    double *value = number + dim, *v = value + most_rank;

    memset(number, 0, (size_t)(dim + most_rank * (1 + dim)) * sizeof *number);
    for (int64_t i = 0; i < dim; i++)
        number[i] = exp(0.5 * some_normal(seed, i));
    some_directions(seed, dim, rank, v);
    for (int64_t k = 0; k < most_rank; k++)
        value[k] = k < rank ? some_value[k % 3] : 1;
    for (int64_t i = 0; i < dim; i++)
        for (int64_t j = 0; j < dim; j++) {
            w[i * dim + j] = i == j;
            for (int64_t k = 0; k < rank; k++)
                w[i * dim + j] += (value[k] - 1) * v[k * dim + i] * v[k * dim + j];
            w[i * dim + j] *= number[i] * number[j];
        }
}
