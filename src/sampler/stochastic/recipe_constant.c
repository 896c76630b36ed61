/*
 * The sampler `recipe`: the recipe of Ma, Chen & Fox (2015; EQUATIONS 13) with constant matrices
 * from the config. With the stochastic gradient g ~ grad log p = -grad U of covariance V and W =
 * M^-1, z = theta with H = U, or z = (theta, p) with H = U + p^T W p / 2:
 *
 *     z <- z - eps (D + Q) grad H(z) + N(0, 2 eps D - eps^2 (D + Q) V (D + Q)^T)
 *
 * By default D = diag(0, M) and Q = [[0, -I], [I, 0]], which is SGHMC with friction 1. All of z
 * moves at once (explicit Euler, of order 1), so that steps must be smaller than those of sghmc.
 * For matrices that depend on z use the library: sampler/stochastic/recipe.h.
 */
#include "base/memory.h"
#include "math/linalg.h"
#include "sampler/stochastic/langevin.h"
#include "sampler/stochastic/recipe.h"

#include <math.h>
#include <string.h>

typedef struct recipe_options {
    em_stochastic_options stochastic;
    em_reals D, Q;
    bool correct_noise;
} recipe_options;

static const em_field fields[] = {
    EM_STOCHASTIC_FIELDS("0.001"),
    EM_REALS(recipe_options, D, .fallback = "",
             .doc = "rows of D, for theta or for (theta, p): symmetric, positive semidefinite; "
                    "absent: zero"),
    EM_REALS(recipe_options, Q, .fallback = "",
             .doc = "rows of Q, of the same order: skew-symmetric; absent: zero; D and Q both "
                    "absent: SGHMC"),
    EM_CORRECT_NOISE_FIELD(recipe_options, "true"),
    {0}};

typedef struct recipe_sampler {
    em_langevin langevin;
    const recipe_options *options;
    em_recipe recipe; /* its order is dim or 2 dim */
    em_recipe_stepper *stepper;
    double *normals, *z, *V; /* [stride of order], [order], [order][order] */
    double *M;               /* [dim][dim], of the mass of this version, once there is one */
    uint64_t version;
    bool has_mass;
    /* The chain that is being moved. */
    const em_mass *mass;
    const double *gradient, *velocity;
} recipe_sampler;

/* ---- options ---- */

static bool recipe_constant_is_mirrored(const em_reals *matrix, int64_t n, double sign)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            if (matrix->value[i * n + j] != sign * matrix->value[j * n + i])
                return false;
    return true;
}

static em_status recipe_constant_check_semidefinite(const em_reals *D, int64_t n)
{
    EM_SCOPED double *work = NULL;
    em_status status = em_allocate_doubles(n * n + n, &work);

    if (status)
        return status;
    double *value = work + n * n;
    memcpy(work, D->value, (size_t)(n * n) * sizeof *work);
    status = em_eigen(n, work, n, value);
    if (!status && value[0] < -1e-12 * fabs(value[n - 1]))
        status = em_fail(EM_ECONFIG, "sampler.D: found the eigenvalue %g, expected none below zero",
                         value[0]);
    return status;
}

/* Finds the order of D and Q, which is dim or 2 dim. */
static em_status recipe_constant_find_order(const recipe_options *options, int64_t dim,
                                            int64_t *order)
{
    const em_reals *D = &options->D, *Q = &options->Q;
    const int64_t count = D->count > 0 ? D->count : Q->count;

    *order = count == dim * dim ? dim : 2 * dim;
    if (count > 0 && count != *order * *order)
        return em_fail(EM_ECONFIG, "sampler.%s: found %lld numbers, expected %lld or %lld",
                       D->count > 0 ? "D" : "Q", (long long)count, (long long)(dim * dim),
                       (long long)(4 * dim * dim));
    if (Q->count > 0 && Q->count != count)
        return em_fail(EM_ECONFIG, "sampler.Q: found %lld numbers, expected %lld as in D",
                       (long long)Q->count, (long long)count);
    if (D->count > 0 && !recipe_constant_is_mirrored(D, *order, 1))
        return em_fail(EM_ECONFIG, "sampler.D: expected a symmetric matrix");
    if (Q->count > 0 && !recipe_constant_is_mirrored(Q, *order, -1))
        return em_fail(EM_ECONFIG, "sampler.Q: expected a skew-symmetric matrix");
    return D->count > 0 ? recipe_constant_check_semidefinite(D, *order) : EM_OK;
}

/* ---- functions for the stepper ---- */

/* (-g, W p) */
static em_status recipe_constant_slope(void *user, const double *z, double *out)
{
    const recipe_sampler *s = user;
    const int64_t dim = s->mass->dim;

    (void)z;
    for (int64_t i = 0; i < dim; i++)
        out[i] = -s->gradient[i];
    memcpy(out + dim, s->velocity, (size_t)(s->recipe.dim - dim) * sizeof *out);
    return EM_OK;
}

/* Sets the mass of the chain that is being moved. */
static em_status recipe_constant_set_mass(recipe_sampler *s, const em_mass *mass)
{
    em_status status = EM_OK;

    s->mass = mass;
    if (!s->has_mass || s->version != mass->version)
        status = em_mass_matrix(mass, EM_MAP_SOLVE, EM_MASS_DENSE, s->M);
    s->version = mass->version;
    s->has_mass = !status;
    return status;
}

/* Sets D = (0 0; 0 M) and Q = (0 -I; I 0). */
static void recipe_constant_set_sghmc(int64_t dim, const double *M, double *D, double *Q)
{
    const int64_t n = 2 * dim;

    for (int64_t i = 0; i < dim; i++) {
        Q[i * n + dim + i] = -1;
        Q[(dim + i) * n + i] = 1;
        memcpy(D + (dim + i) * n + dim, M + i * dim, (size_t)dim * sizeof *D);
    }
}

static void recipe_constant_matrices(void *user, const double *z, double *D, double *Q)
{
    const recipe_sampler *s = user;
    const recipe_options *options = s->options;
    const size_t bytes = (size_t)(s->recipe.dim * s->recipe.dim) * sizeof *D;

    (void)z;
    memset(D, 0, bytes);
    memset(Q, 0, bytes);
    if (options->D.count > 0)
        memcpy(D, options->D.value, bytes);
    if (options->Q.count > 0)
        memcpy(Q, options->Q.value, bytes);
    if (options->D.count == 0 && options->Q.count == 0)
        recipe_constant_set_sghmc(s->mass->dim, s->M, D, Q);
}

/* The divergence of constant matrices is zero. */
static void recipe_constant_divergence(void *user, const double *z, double *gamma)
{
    (void)z;
    memset(gamma, 0, (size_t)((recipe_sampler *)user)->recipe.dim * sizeof *gamma);
}

/* ---- the sampler ---- */

static em_status recipe_constant_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    recipe_sampler *s = (recipe_sampler *)base;
    int64_t order;
    em_status status = recipe_constant_find_order(base->options, dim, &order);

    if (status)
        return status;
    s->options = base->options;
    s->recipe = (em_recipe){.dim = order,
                            .user = s,
                            .slope = recipe_constant_slope,
                            .matrices = recipe_constant_matrices,
                            .divergence = recipe_constant_divergence};
    status = em_langevin_set_up(base, n_chain, dim);
    status = status ? status : em_recipe_create(&base->memory, &s->recipe, &s->stepper);
    return status ? status
                  : em_own_all(&base->memory, EM_ARRAY(s->normals, em_stride(order)),
                               EM_ARRAY(s->z, order), EM_ARRAY(s->V, order * order),
                               EM_ARRAY(s->M, dim * dim));
}

/* Writes V to the block of theta. The rest of the matrix is zero. */
static void recipe_constant_set_noise(recipe_sampler *s, const em_noise *noise)
{
    const int64_t n = s->recipe.dim;

    s->recipe.V = noise ? s->V : NULL;
    for (int64_t i = 0; noise && i < noise->dim; i++)
        for (int64_t j = 0; j < noise->dim; j++)
            s->V[i * n + j] = noise->structure == EM_MASS_DENSE
                                  ? noise->covariance[i * noise->dim + j]
                                  : (i == j ? noise->covariance[i] : 0);
}

/* Makes inner step k of chain c from its gradient and velocity. */
static em_status recipe_constant_move(recipe_sampler *s, const em_step_context *context,
                                      em_block *block, int64_t c, int64_t k)
{
    const int64_t row = c * block->stride, dim = block->dim, rest = s->recipe.dim - dim;
    const em_stream stream = {
        context->seed, (uint64_t)block->chain[c],
        (uint64_t)em_stochastic_step_number(&s->options->stochastic, context, k), EM_RNG_NOISE};
    em_status status = recipe_constant_set_mass(s, context->mass[c]);

    if (status)
        return status;
    s->gradient = block->gradient + row;
    s->velocity = s->langevin.velocity + row;
    recipe_constant_set_noise(s, s->options->correct_noise && context->noise ? context->noise[c]
                                                                             : NULL);
    em_normals(&stream, s->recipe.dim, s->normals);
    memcpy(s->z, block->theta + row, (size_t)dim * sizeof *s->z);
    memcpy(s->z + dim, block->momentum + row, (size_t)rest * sizeof *s->z);
    status = em_recipe_step(s->stepper, s->langevin.eps[c], s->normals, s->z);
    memcpy(block->theta + row, s->z, (size_t)dim * sizeof *s->z);
    memcpy(block->momentum + row, s->z + dim, (size_t)rest * sizeof *s->z);
    return status;
}

static em_status recipe_constant_step(em_sampler *base, const em_step_context *context,
                                      em_block *block)
{
    recipe_sampler *self = (recipe_sampler *)base;
    em_langevin *s = &self->langevin;
    em_status status = EM_OK;

    em_langevin_begin(s, context, block, 0);
    for (int64_t k = 0; !status && k < s->options->leapfrog_steps; k++) {
        status = em_stochastic_gradient(s->options, context, block, k);
        em_mass_velocity(context->mass, block->n_chain, block->momentum, s->velocity);
        for (int64_t c = 0; !status && c < block->n_chain; c++)
            status = recipe_constant_move(self, context, block, c, k);
    }
    em_langevin_end(s, context, block);
    return status;
}

static em_status recipe_constant_refresh(em_sampler *base, const em_step_context *context,
                                         em_block *block)
{
    if (((recipe_sampler *)base)->recipe.dim > block->dim)
        em_langevin_refresh((em_langevin *)base, context, block);
    return EM_OK;
}

const em_sampler_ops em_recipe_constant = {
    .name = "recipe",
    .doc = "the general recipe z <- z - eps (D + Q) grad H + noise, with constant D and Q",
    .source = "Ma, Chen & Fox 2015, eq. 9",
    .size = sizeof(recipe_sampler),
    .options_size = sizeof(recipe_options),
    .fields = fields,
    EM_LANGEVIN_OPS,
    .set_up = recipe_constant_set_up,
    .step = recipe_constant_step,
    .uses_noise = true,
    .refresh = recipe_constant_refresh,
};
