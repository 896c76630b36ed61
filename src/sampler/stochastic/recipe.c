#include "sampler/stochastic/recipe.h"

#include <math.h>
#include <string.h>

struct em_recipe_stepper {
    const em_recipe *recipe;
    double *D, *Q, *covariance, *vectors, *scratch;  /* [dim][dim] */
    double *slope, *gamma, *drift, *noise, *shifted; /* [dim] */
};

em_status em_recipe_create(em_owner *owner, const em_recipe *recipe, em_recipe_stepper **out)
{
    const int64_t n = recipe->dim, square = n * n;
    const em_status status = em_own_all(owner, EM_ARRAY(*out, 1));
    em_recipe_stepper *s = *out;

    if (status)
        return status;
    s->recipe = recipe;
    return em_own_all(owner, EM_ARRAY(s->D, square), EM_ARRAY(s->Q, square),
                      EM_ARRAY(s->covariance, square), EM_ARRAY(s->vectors, square),
                      EM_ARRAY(s->scratch, square), EM_ARRAY(s->slope, n), EM_ARRAY(s->gamma, n),
                      EM_ARRAY(s->drift, n), EM_ARRAY(s->noise, n), EM_ARRAY(s->shifted, n));
}

/* Computes Gamma by central differences of D + Q. D and Q are overwritten. */
static void recipe_difference(em_recipe_stepper *s, const double *z)
{
    const em_recipe *recipe = s->recipe;
    const int64_t n = recipe->dim;

    memset(s->gamma, 0, (size_t)n * sizeof *s->gamma);
    for (int64_t j = 0; j < n; j++) {
        const double h = 1e-5 * fmax(1, fabs(z[j]));
        memcpy(s->shifted, z, (size_t)n * sizeof *z);
        for (int side = 1; side >= -1; side -= 2) {
            s->shifted[j] = z[j] + side * h;
            recipe->matrices(recipe->user, s->shifted, s->D, s->Q);
            for (int64_t i = 0; i < n; i++)
                s->gamma[i] += side * (s->D[i * n + j] + s->Q[i * n + j]) / (2 * h);
        }
    }
}

/* Sets the covariance to 2 eps D - eps^2 K V K^T, where K = D + Q is in the memory of Q. */
static void recipe_set_covariance(em_recipe_stepper *s, double eps)
{
    const int64_t n = s->recipe->dim;
    const double *V = s->recipe->V, *K = s->Q;

    for (int64_t i = 0; i < n * n; i++)
        s->covariance[i] = 2 * eps * s->D[i];
    if (!V)
        return;
    memset(s->scratch, 0, (size_t)(n * n) * sizeof *V);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t k = 0; k < n; k++)
                s->scratch[i * n + k] += K[i * n + j] * V[j * n + k];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t k = 0; k < n; k++)
                s->covariance[i * n + j] -= eps * eps * s->scratch[i * n + k] * K[j * n + k];
}

/* Rotates rows and columns p and q of the symmetric S so that S_pq = 0, and the vectors with them.
 */
static void recipe_rotate(int64_t n, int64_t p, int64_t q, double *S, double *vectors)
{
    const double angle = 0.5 * atan2(2 * S[p * n + q], S[q * n + q] - S[p * n + p]);
    const double c = cos(angle), s = sin(angle);

    for (int64_t k = 0; k < n; k++) {
        const double a = S[k * n + p], b = S[k * n + q];
        S[k * n + p] = c * a - s * b;
        S[k * n + q] = s * a + c * b;
    }
    for (int64_t k = 0; k < n; k++) {
        const double a = S[p * n + k], b = S[q * n + k];
        S[p * n + k] = c * a - s * b;
        S[q * n + k] = s * a + c * b;
        const double v = vectors[p * n + k], w = vectors[q * n + k];
        vectors[p * n + k] = c * v - s * w;
        vectors[q * n + k] = s * v + c * w;
    }
}

/* The sum of squares off the diagonal, relative to the sum of all squares. */
static double recipe_off_diagonal(int64_t n, const double *S)
{
    double off = 0, all = 0;

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const double square = S[i * n + j] * S[i * n + j];
            all += square;
            off += i == j ? 0 : square;
        }
    return all > 0 ? off / all : 0;
}

/* Sets noise to a root of the covariance times the normals. It uses Jacobi's method: the matrices
 * are small and change with every step, and a step must not allocate memory, as LAPACK does. */
static void recipe_inject(em_recipe_stepper *s, const double *normals)
{
    const int64_t n = s->recipe->dim;

    memset(s->vectors, 0, (size_t)(n * n) * sizeof(double));
    for (int64_t i = 0; i < n; i++)
        s->vectors[i * n + i] = 1;
    for (int sweep = 0; sweep < 30 && recipe_off_diagonal(n, s->covariance) > 1e-30; sweep++)
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++)
                recipe_rotate(n, p, q, s->covariance, s->vectors);
    memset(s->noise, 0, (size_t)n * sizeof(double));
    for (int64_t k = 0; k < n; k++) {
        const double root = sqrt(fmax(0, s->covariance[k * n + k]));
        for (int64_t i = 0; i < n; i++)
            s->noise[i] += root * normals[k] * s->vectors[k * n + i];
    }
}

em_status em_recipe_step(em_recipe_stepper *s, double eps, const double *normals, double *z)
{
    const em_recipe *recipe = s->recipe;
    const int64_t n = recipe->dim;
    em_status status = recipe->slope(recipe->user, z, s->slope);

    if (status)
        return status;
    if (recipe->divergence)
        recipe->divergence(recipe->user, z, s->gamma);
    else
        recipe_difference(s, z);
    recipe->matrices(recipe->user, z, s->D, s->Q);
    for (int64_t i = 0; i < n * n; i++)
        s->Q[i] += s->D[i];
    recipe_set_covariance(s, eps);
    recipe_inject(s, normals);
    for (int64_t i = 0; i < n; i++) {
        double drift = s->gamma[i];
        for (int64_t j = 0; j < n; j++)
            drift -= s->Q[i * n + j] * s->slope[j];
        s->drift[i] = eps * drift + s->noise[i];
    }
    for (int64_t i = 0; i < n; i++)
        z[i] += s->drift[i];
    return EM_OK;
}
