#include "adaptation/starts/probes.h"

#include "base/memory.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "par/message.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

/* The least distance of probes from a mode, in its standard deviations. */
static const double nearest = 3;

/* A mode explains a probe if the Newton step from the probe ends at most so far from the centre of
 * the mode. */
static const double explained = 2;

/* FIRST_ROUND: ascents of a chain in the first round; each round has twice as many as the one
 * before. FROM_LAW: one in so many probes is drawn from the distribution of starts, and the others
 * around a mode. The numbers of the draws of probes begin above those of other draws. */
enum { FIRST_ROUND = 4, FROM_LAW = 4 };
static const uint64_t first_probe = UINT64_C(1) << 36;

/* The modes whose Laplace mass is known. */
typedef struct known_modes {
    int n, mode[EM_MOST_MODES];
    double *inverse; /* [n][dim][dim] lower triangles W with W^T W the covariance */
    double *work;    /* [3][stride] */
} known_modes;

static void know_modes(const em_mode_search *search, known_modes *known)
{
    const int64_t square = search->dim * search->dim;

    known->n = 0;
    for (int m = 0; m < search->n_mode; m++) {
        double *w = known->inverse + known->n * square;
        if (isnan(search->mode[m].log_mass))
            continue;
        memcpy(w, search->mode[m].precision, (size_t)square * sizeof *w);
        if (em_cholesky(search->dim, w, search->dim) == EM_OK &&
            em_invert_lower(search->dim, w, search->dim) == EM_OK)
            known->mode[known->n++] = m;
    }
}

/* A point in a random direction from a mode. The logarithm of its distance is uniform. */
static void draw_around(const em_ascents *a, const known_modes *known, const em_stream *stream,
                        double *theta)
{
    const int64_t dim = a->search->dim;
    double *direction = known->work, place[2];

    em_normals(stream, dim, direction);
    const double square = em_dot(dim, direction, direction);
    for (int k = 0; k < 2; k++)
        place[k] = em_uniform(stream, (uint64_t)(2 * a->search->stride + k));
    const int which = (int)(place[0] * known->n);
    const double *w = known->inverse + which * dim * dim,
                 *centre = a->search->mode[known->mode[which]].centre;
    const double far = nearest * pow(a->search->plan.farthest / nearest, place[1]) / sqrt(square);
    memcpy(theta, centre, (size_t)dim * sizeof *theta);
    for (int64_t i = 0; i < dim; i++)
        for (int64_t j = 0; j <= i; j++)
            theta[j] += far * w[i * dim + j] * direction[i];
}

/* Whether the Newton step of a mode leads from theta, where the gradient is `gradient`, to its
 * centre. The distance from the centre is |W (gradient + precision (theta - centre))|. */
static bool explains(const em_ascents *a, const known_modes *known, int k, const double *theta,
                     const double *gradient)
{
    const int64_t dim = a->search->dim;
    const em_optimum_mode *mode = &a->search->mode[known->mode[k]];
    const double *w = known->inverse + k * dim * dim;
    double *from = known->work, *rest = from + a->search->stride, square = 0;

    for (int64_t i = 0; i < dim; i++) {
        from[i] = theta[i] - mode->centre[i];
        rest[i] = gradient[i];
    }
    for (int64_t i = 0; i < dim; i++) {
        const double *row = mode->precision + i * dim;
        for (int64_t j = 0; j < i; j++) {
            rest[i] += row[j] * from[j];
            rest[j] += row[j] * from[i];
        }
        rest[i] += row[i] * from[i];
    }
    for (int64_t i = 0; i < dim && square < explained * explained; i++) {
        const double z = em_dot(i + 1, w + i * dim, rest);
        square += z * z;
    }
    return square < explained * explained;
}

/* Draws a probe of a chain, and evaluates its gradient. *found: no known mode explains the
 * gradient. */
static em_status probe(em_ascents *a, const known_modes *known, int64_t c, double *theta,
                       bool *found)
{
    const em_mode_search *search = a->search;
    const int64_t chain = em_grid_first_chain(search->grid) + c;
    const uint64_t number = first_probe + (uint64_t)a->probed[c]++;
    const em_stream stream = {search->plan.seed, (uint64_t)chain, number, EM_RNG_INIT};
    double *gradient = known->work + 2 * search->stride, log_density = NAN;
    em_status status = EM_OK;

    memset(theta, 0, (size_t)search->stride * sizeof *theta);
    if (known->n == 0 || number % FROM_LAW == 0)
        status = a->law(a->context, chain, number, theta);
    else
        draw_around(a, known, &stream, theta);
    if (!status)
        status = em_evaluate_point(a->posterior, chain, search->dim, theta, gradient, &log_density);
    a->gradients[c]++;
    *found = !status && !isnan(log_density);
    for (int k = 0; *found && k < known->n; k++)
        *found = !explains(a, known, k, theta, gradient);
    return status < 0 ? status : EM_OK;
}

/* Draws probes of a chain until one leads to an ascent whose end is kept as number k of the chain.
 */
static em_status probe_and_ascend(em_ascents *a, const known_modes *known, int64_t c, int64_t k)
{
    const em_mode_search *search = a->search;
    bool found = false;
    em_status status = EM_OK;

    while (!status && !found && a->gradients[c] < a->limit[c])
        status = probe(a, known, c, a->further, &found);
    if (status || !found)
        return status;
    status = em_ascend(a->posterior, em_grid_first_chain(search->grid) + c, a->further, a->scale,
                       a->path);
    a->gradients[c] += (double)a->path->gradients;
    if (!status && !a->path->stuck)
        em_keep_end(a, c * search->n_each + k);
    return status;
}

/* Makes `n_ascent` ascents of each chain. Their ends replace earlier ones, except that of the
 * start. *left: gradients are left. Collective. */
static em_status probe_round(em_ascents *a, known_modes *known, int64_t n_ascent, bool *left)
{
    const em_mode_search *search = a->search;
    int64_t n_left = 0;
    em_status status = EM_OK;

    know_modes(search, known);
    for (int64_t c = 0; c < search->n_local; c++) {
        for (int64_t k = 1; k <= n_ascent; k++) {
            a->own[(c * search->n_each + k) * a->row + 1] = 0; /* until there is another */
            status = status ? status : probe_and_ascend(a, known, c, k);
        }
        n_left += a->gradients[c] < a->limit[c];
    }
    status = em_agree(status);
    for (int64_t e = 0; e < a->n; e++)
        if (e % search->n_each > 0 && e % search->n_each <= n_ascent) {
            a->mode[e] = -1;
            a->compared[e] = 0;
        }
    em_world_sum(1, &n_left);
    *left = n_left > 0;
    if (!status)
        status = em_grid_gather_chains(search->grid, search->n_each * a->row, a->own, a->end);
    return status ? status : em_sort_into_modes(a);
}

em_status em_probe_modes(em_ascents *a)
{
    const em_mode_search *search = a->search;
    const int64_t square = search->dim * search->dim, most = search->n_each - 1;
    known_modes known = {.n = 0};
    bool left = most > 0;
    em_status status = em_agree(
        em_own_all(&a->memory, EM_ARRAY(known.inverse, EM_MOST_MODES * square),
                   EM_ARRAY(known.work, 3 * search->stride), EM_ARRAY(a->probed, search->n_local),
                   EM_ARRAY(a->limit, search->n_local)));

    for (int64_t c = 0; !status && c < search->n_local; c++)
        a->limit[c] = fmax(search->plan.gradients, a->gradients[c] + search->plan.probe_gradients);
    if (!status && search->plan.probe_gradients > 0) {
        status = em_weigh_lone_mode(a);
        left &= search->n_mode > 0 && !isnan(search->mode[0].log_mass);
    }
    for (int64_t n = FIRST_ROUND; !status && left; n = n < most ? 2 * n : most)
        status = probe_round(a, &known, n < most ? n : most, &left);
    return status;
}
