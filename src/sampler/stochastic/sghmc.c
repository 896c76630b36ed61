/*
 * Stochastic gradient Hamiltonian Monte Carlo (EQUATIONS 7). With the stochastic gradient
 * g ~ grad log p = -grad U of covariance V, W = M^-1 and a friction C (or gamma: C = gamma M):
 *
 *     d theta = W p dt,   dp = g dt - C W p dt + N(0, 2 C dt)
 *
 * A minibatch adds noise to p, B = eps/2 V per unit of 2 dt, which is subtracted from the injected
 * noise. One inner step is one of
 *
 *     euler      p <- p + eps g(theta) - eps C W p + N(0, 2 eps (C - B)),  theta <- theta + eps W p
 *     splitting  A, p <- E p, p <- p + eps g(theta) + N(0, 2 eps (C - B)), p <- E p, A
 *                with E = exp(-eps/2 C W)
 *     aboba      A, p <- p + eps/2 g(theta), p <- E p + N(0, M - E M E^T - K V K^T),
 *                p <- p + eps/2 g(theta), A, with E = exp(-eps C W), K = eps/2 (I + E)
 *
 * where A is theta <- theta + eps/2 W p. Euler is of order 1, the others of order 2; aboba has the
 * exact covariance of theta on Gaussians. Momenta persist from one iteration to the next; with
 * refresh_momentum each iteration draws p ~ N(0, M), as in Algorithm 3 of Roychowdhury &
 * Parthasarathy. With Euler this is their printed form, which is biased (EQUATIONS 7): only with
 * `paper`.
 */
#include "sampler/stochastic/langevin.h"

#include "base/memory.h"
#include "math/linalg.h"

#include <math.h>

enum { EULER, SPLITTING, ABOBA };
static const char *const integrators[] = {"euler", "splitting", "aboba", NULL};

typedef struct sghmc_options {
    em_stochastic_options stochastic;
    int integrator;
    double friction;
    em_reals friction_matrix;
    bool correct_noise, refresh_momentum, paper;
} sghmc_options;

static const em_field fields[] = {
    EM_STOCHASTIC_FIELDS("0.01"),
    EM_CHOICE(sghmc_options, integrator, .fallback = "aboba", .choices = integrators,
              .doc = "aboba or splitting (order 2), or euler (order 1)"),
    EM_REAL(sghmc_options, friction, .minimum = 1e-300, .maximum = 1e300, .fallback = "1",
            .doc = "gamma, per unit of time: the friction matrix is gamma M"),
    EM_REALS(
        sghmc_options, friction_matrix, .fallback = "",
        .doc = "C instead of gamma M: one number (times the identity), its diagonal, or its rows"),
    EM_CORRECT_NOISE_FIELD(sghmc_options, "true"),
    EM_BOOL(sghmc_options, refresh_momentum, .fallback = "false",
            .doc = "draw a fresh momentum in each iteration"),
    EM_BOOL(sghmc_options, paper, .fallback = "false",
            .doc = "Algorithm 3 as printed: euler with fresh momenta, whose bias is larger "
                   "(EQUATIONS 7)"),
    {0}};

typedef struct sghmc_sampler {
    em_langevin langevin;
    const sghmc_options *options;
    int integrator;
} sghmc_sampler;

/* The structure of C. */
static em_structure sghmc_friction_structure(const em_reals *C, int64_t dim)
{
    return C->count == dim * dim && dim > 1 ? EM_MASS_DENSE : EM_MASS_DIAG;
}

static em_status sghmc_check_options(const sghmc_options *options, int64_t dim)
{
    const int64_t count = options->friction_matrix.count;

    if (count > 1 && count != dim && count != dim * dim)
        return em_fail(EM_ECONFIG,
                       "sampler.friction_matrix: found %lld numbers, expected 1, %lld or %lld",
                       (long long)count, (long long)dim, (long long)(dim * dim));
    if (options->refresh_momentum && options->integrator == EULER && !options->paper)
        return em_fail(EM_ECONFIG, "sampler.refresh_momentum: found true with integrator euler, "
                                   "which is biased, expected aboba or splitting (or paper: true)");
    return EM_OK;
}

/* ---- the heat bath: E and the noise, for one mass, V and step size ---- */

/* The factor by which E multiplies a component with rate r, an eigenvalue of C W. */
static double sghmc_keep(int integrator, double eps, double rate)
{
    return integrator == EULER       ? 1 - eps * rate
           : integrator == SPLITTING ? exp(-eps * rate / 2)
                                     : exp(-eps * rate);
}

/* The arrays from which a bath is computed. All have the same structure. A and V become the
 * covariances of the injected noise and of the gradient noise. */
typedef struct ingredients {
    em_structure structure;
    int64_t dim;
    double *W, *M, *C, *V; /* V NULL: zero */
    double *A, *decay;
    double *y, *X, *Y, *scratch; /* of matrices */
    double *rate, *factor;       /* [dim] */
} ingredients;

enum { N_DIAG = 6, N_DENSE = 10, N_VECTOR = 2 }; /* arrays of a structure, and vectors */

static em_status sghmc_allocate_ingredients(em_structure structure, int64_t dim, ingredients *a)
{
    double **const array[] = {&a->W,     &a->M, &a->C, &a->V, &a->A,
                              &a->decay, &a->y, &a->X, &a->Y, &a->scratch};
    const int64_t size = em_mass_size(structure, dim);
    const int n_array = structure == EM_MASS_DENSE ? N_DENSE : N_DIAG;
    em_status status = em_allocate(n_array * size + N_VECTOR * dim, sizeof(double), &a->W);

    if (status)
        return status;
    a->structure = structure;
    a->dim = dim;
    for (int i = 1; i < n_array; i++)
        *array[i] = a->W + i * size;
    a->rate = a->W + n_array * size;
    a->factor = a->rate + dim;
    return EM_OK;
}

static void sghmc_set_friction(const sghmc_options *options, ingredients *a)
{
    const em_reals *C = &options->friction_matrix;
    const int64_t size = em_mass_size(a->structure, a->dim);

    if (C->count == 1)
        for (int64_t i = 0; i < a->dim; i++)
            a->C[a->structure == EM_MASS_DENSE ? i * (a->dim + 1) : i] = C->value[0];
    else if (C->count > 1)
        em_spread(sghmc_friction_structure(C, a->dim), a->structure, a->dim, C->value, a->C);
    else
        for (int64_t i = 0; i < size; i++)
            a->C[i] = options->friction * a->M[i];
}

static em_status sghmc_gather(const sghmc_options *options, const em_bath_key *key, ingredients *a)
{
    const int64_t dim = a->dim;
    em_status status = em_mass_matrix(key->mass, EM_MAP_VELOCITY, a->structure, a->W);

    status = status ? status : em_mass_matrix(key->mass, EM_MAP_SOLVE, a->structure, a->M);
    sghmc_set_friction(options, a);
    if (key->noise)
        em_spread(key->noise->structure, a->structure, dim, key->noise->covariance, a->V);
    else
        a->V = NULL;
    return status;
}

/* For the integrators euler and splitting: A = 2 eps C, and the gradient contributes eps^2 V. */
static void sghmc_noise_of_friction(double eps, ingredients *a)
{
    for (int64_t i = 0; i < em_mass_size(a->structure, a->dim); i++) {
        a->A[i] = 2 * eps * a->C[i];
        if (a->V)
            a->V[i] *= eps * eps;
    }
}

static void sghmc_mix_diag(int integrator, double eps, ingredients *a)
{
    if (integrator != ABOBA)
        sghmc_noise_of_friction(eps, a);
    for (int64_t i = 0; i < a->dim; i++) {
        const double e = sghmc_keep(integrator, eps, a->C[i] * a->W[i]), k = eps / 2 * (1 + e);
        a->decay[i] = e;
        if (integrator == ABOBA) {
            a->A[i] = a->M[i] * (1 - e * e);
            if (a->V)
                a->V[i] *= k * k;
        }
    }
}

/* V <- K V K^T with K = X W, X = sum_k eps/2 (1 + keep_k) y_k y_k^T. */
static em_status sghmc_noise_of_kick(double eps, ingredients *a)
{
    const int64_t n = a->dim;

    for (int64_t k = 0; k < n; k++)
        a->rate[k] = eps / 2 * (1 + a->factor[k]);
    em_status status = em_spectral(n, a->y, n, a->rate, a->X);
    em_multiply(n, a->X, a->W, n, a->scratch);
    em_multiply(n, a->scratch, a->V, n, a->Y);
    em_multiply(n, a->W, a->X, n, a->scratch);
    em_multiply(n, a->Y, a->scratch, n, a->V);
    return status;
}

/* Computes E in the frame of M and C: E M = sum_k keep_k y_k y_k^T. decay is the transpose of E. */
static em_status sghmc_mix_dense(int integrator, double eps, ingredients *a)
{
    const int64_t n = a->dim;
    em_status status = em_frame(EM_MASS_DENSE, n, a->M, a->C, a->y, a->rate);

    for (int64_t k = 0; k < n; k++)
        a->factor[k] = sghmc_keep(integrator, eps, a->rate[k]);
    status = status ? status : em_spectral(n, a->y, n, a->factor, a->X);
    em_multiply(n, a->W, a->X, n, a->decay);
    if (integrator != ABOBA) {
        sghmc_noise_of_friction(eps, a);
        return status;
    }
    for (int64_t k = 0; k < n; k++)
        a->rate[k] = 1 - a->factor[k] * a->factor[k];
    status = status ? status : em_spectral(n, a->y, n, a->rate, a->A);
    return status || !a->V ? status : sghmc_noise_of_kick(eps, a);
}

/* Stores E. If C is a multiple of M, then E is a multiple of the identity, and is stored as a
 * diagonal. */
static em_status sghmc_set_decay(const sghmc_sampler *s, double eps, ingredients *a, em_bath *bath)
{
    if (s->options->friction_matrix.count > 0)
        return em_bath_set_decay(bath, a->structure, a->decay);
    for (int64_t i = 0; i < a->dim; i++)
        a->factor[i] = sghmc_keep(s->integrator, eps, s->options->friction);
    return em_bath_set_decay(bath, EM_MASS_DIAG, a->factor);
}

static em_status sghmc_make_bath(const void *self, const em_bath_key *key, em_bath **out)
{
    const sghmc_sampler *s = self;
    const int64_t dim = key->mass->dim;
    const bool dense = key->mass->ops->structure == EM_MASS_DENSE ||
                       (key->noise && key->noise->structure == EM_MASS_DENSE) ||
                       sghmc_friction_structure(&s->options->friction_matrix, dim) == EM_MASS_DENSE;
    ingredients a;
    EM_SCOPED double *memory = NULL;
    em_status status = sghmc_allocate_ingredients(dense ? EM_MASS_DENSE : EM_MASS_DIAG, dim, &a);

    memory = a.W;
    status = status ? status : sghmc_gather(s->options, key, &a);
    if (!status && dense)
        status = sghmc_mix_dense(s->integrator, key->step_size, &a);
    else if (!status)
        sghmc_mix_diag(s->integrator, key->step_size, &a);
    status = status ? status : em_bath_create(a.structure, dim, a.A, a.V, out);
    status = status ? status : sghmc_set_decay(s, key->step_size, &a, *out);
    if (!status)
        em_bath_fix(*out, 1);
    return status;
}

static double sghmc_refresh_bytes(int64_t dim)
{
    return em_bytes_of_doubles((N_DIAG + N_VECTOR) * dim) + em_bath_bytes(dim);
}

/* ---- the step ---- */

/* p <- E p + fraction eps g + noise of the bath. */
static void sghmc_kick(em_langevin *s, const em_step_context *context, em_block *block, int64_t k,
                       double fraction)
{
    em_stochastic_noise(s->options, context, block, k, s->normals);
    em_bath_kick(s->bath, block->n_chain, fraction, s->eps, block->gradient, s->normals, s->noise,
                 block->momentum);
}

static void sghmc_drift_half(em_langevin *s, const em_step_context *context, em_block *block,
                             int64_t k)
{
    (void)k;
    em_langevin_drift(s, context, block, 0.5);
}

static void sghmc_euler(em_langevin *s, const em_step_context *context, em_block *block, int64_t k)
{
    sghmc_kick(s, context, block, k, 1);
    em_langevin_drift(s, context, block, 1);
}

static bool sghmc_is_last(const em_langevin *s, int64_t k)
{
    return k == s->options->leapfrog_steps - 1;
}

/* Makes the last half of A, and the first half of the next step's A while positions are in the
 * cache. */
static void sghmc_drift_on(em_langevin *s, const em_step_context *context, em_block *block,
                           int64_t k)
{
    em_langevin_drift(s, context, block, 0.5);
    if (!sghmc_is_last(s, k))
        em_langevin_drift(s, context, block, 0.5);
}

static void sghmc_splitting(em_langevin *s, const em_step_context *context, em_block *block,
                            int64_t k)
{
    sghmc_kick(s, context, block, k, 1);
    /* p <- E p */
    em_bath_decay(s->bath, block->n_chain, block->momentum, s->velocity);
    sghmc_drift_on(s, context, block, k);
}

static void sghmc_aboba(em_langevin *s, const em_step_context *context, em_block *block, int64_t k)
{
    em_langevin_add(s, block, 0.5, block->gradient, block->momentum);
    sghmc_kick(s, context, block, k, 0.5);
    sghmc_drift_on(s, context, block, k);
}

static em_status sghmc_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    static em_langevin_part *const after[] = {
        [EULER] = sghmc_euler, [SPLITTING] = sghmc_splitting, [ABOBA] = sghmc_aboba};
    sghmc_sampler *self = (sghmc_sampler *)base;
    const sghmc_options *options = self->options = base->options;
    em_status status = sghmc_check_options(options, dim);

    status = status ? status : em_langevin_set_up(base, n_chain, dim);
    self->langevin.heats = true;
    self->langevin.baths.make = sghmc_make_bath;
    self->langevin.baths.corrects = options->correct_noise;
    self->integrator = options->paper ? EULER : options->integrator;
    self->langevin.refreshes = options->refresh_momentum || options->paper;
    self->langevin.before = self->integrator == EULER ? NULL : sghmc_drift_half;
    self->langevin.after = after[self->integrator];
    return status;
}

static em_status sghmc_refresh(em_sampler *base, const em_step_context *context, em_block *block)
{
    em_langevin_refresh((em_langevin *)base, context, block);
    return em_baths_update(&((em_langevin *)base)->baths, context, base);
}

const em_sampler_ops em_sghmc = {
    .name = "sghmc",
    .doc = "stochastic gradient HMC with friction: euler, splitting or aboba integrator",
    .source = "Chen, Fox & Guestrin 2014; SGHMC-EM: Roychowdhury & Parthasarathy 2017, Alg. 3; "
              "splitting: Chen, Ding & Carin 2015",
    .size = sizeof(sghmc_sampler),
    .options_size = sizeof(sghmc_options),
    .fields = fields,
    EM_LANGEVIN_OPS,
    .set_up = sghmc_set_up,
    .step = em_langevin_step,
    .uses_noise = true,
    .refresh = sghmc_refresh,
    .refresh_bytes = sghmc_refresh_bytes,
    .noise_share = em_langevin_noise_share,
    .noise_remedy = "the friction",
};
