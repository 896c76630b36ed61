#include "adaptation/starts/ascent.h"

#include "math/finite.h"
#include "math/linalg.h"

#include <math.h>
#include <string.h>

enum { MEMORY = 5, POINTS = EM_ASCENT_GRADIENTS + 1 };

/* A curvature pair of BFGS: a step s, and the change y of the negative gradient along it, with s^T
 * y > 0. */
typedef struct pair {
    double *s, *y, product;
} pair;

/* A point of the path at which a chain may start, with its estimated mass and scales. */
typedef struct vantage {
    int64_t point;
    double mass;   /* log_mass */
    double *scale; /* [stride] */
} vantage;

/* A point on the search line that becomes the next point of the path if it is good enough. */
typedef struct trial {
    double *theta, *gradient; /* [stride] */
    double log_density;       /* NaN: none */
} trial;

/* An ascent under way: the current point is the last one of `path`. */
typedef struct search {
    em_posterior *posterior;
    int64_t chain;
    em_ascent *path;
    double *direction; /* [stride] */
    trial trial, spare;
    double longest; /* step, in the norm of the parameters */
    int64_t n_pair; /* the youngest is the last */
    pair pair[MEMORY];
    vantage best, mouth; /* mouth: the best point, if the ascent leads into the neck of a funnel */
} search;

em_status em_ascent_create(em_owner *owner, int64_t dim, em_ascent **out)
{
    em_ascent *ascent = NULL;
    em_status status = em_own_all(owner, EM_ARRAY(ascent, 1));
    const int64_t stride = em_stride(dim);

    *out = ascent;
    if (!status)
        status =
            em_own_all(owner, EM_ARRAY(ascent->work, (POINTS + 9 + 2 * MEMORY) * stride + POINTS));
    if (status)
        return status;
    ascent->dim = dim;
    ascent->most = EM_ASCENT_GRADIENTS;
    ascent->stride = stride;
    ascent->point = ascent->work;
    ascent->scale = ascent->point + POINTS * stride;
    ascent->best_scale = ascent->scale + stride;
    ascent->gradient = ascent->best_scale + stride;
    ascent->log_density = ascent->gradient + (7 + 2 * MEMORY) * stride;
    return EM_OK;
}

static void add(int64_t n, double factor, const double *x, double *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] += factor * x[i];
}

em_status em_evaluate_point(em_posterior *posterior, int64_t chain, int64_t dim,
                            const double *theta, double *gradient, double *log_density)
{
    const em_query query = {.n_chain = 1,
                            .stride = em_stride(dim),
                            .chain = &chain,
                            .theta = theta,
                            .log_density = log_density,
                            .gradient = gradient};
    const em_status status = em_posterior_evaluate(posterior, &query);

    if (status > 0 || !isfinite(*log_density) || !em_all_finite(dim, gradient))
        *log_density = NAN;
    return status < 0 ? status : EM_OK;
}

static em_status evaluate(search *s, const double *theta, double *gradient, double *log_density)
{
    s->path->gradients++;
    return em_evaluate_point(s->posterior, s->chain, s->path->dim, theta, gradient, log_density);
}

static double *last_point(const em_ascent *path)
{
    return path->point + (path->n_point - 1) * path->stride;
}

/* direction = H gradient (Nocedal & Wright 2006, algorithm 7.4), from H_0 = diag(scale). Returns
 * the predicted gain. */
static double choose_direction(search *s)
{
    em_ascent *path = s->path;
    const int64_t n = path->dim;
    double weight[MEMORY] = {0}, *q = s->trial.gradient; /* free now */

    memcpy(q, path->gradient, (size_t)n * sizeof *q);
    for (int64_t k = s->n_pair - 1; k >= 0; k--) {
        weight[k] = em_dot(n, s->pair[k].s, q) / s->pair[k].product;
        add(n, -weight[k], s->pair[k].y, q);
    }
    for (int64_t i = 0; i < n; i++)
        s->direction[i] = path->scale[i] * q[i];
    for (int64_t k = 0; k < s->n_pair; k++)
        add(n, weight[k] - em_dot(n, s->pair[k].y, s->direction) / s->pair[k].product, s->pair[k].s,
            s->direction);
    return em_dot(n, path->gradient, s->direction);
}

/* Updates the diagonal H_0 after a step (Gilbert & Lemarechal 1989; Zhang et al. 2022, algorithm
 * 3). */
static void update_scale(em_ascent *path, const pair *new)
{
    double along = 0, across = 0;

    for (int64_t i = 0; i < path->dim; i++) {
        along += new->y[i] * new->y[i] * path->scale[i];
        across += new->s[i] * new->s[i] / path->scale[i];
    }
    for (int64_t i = 0; i < path->dim; i++) {
        const double scale = path->scale[i];
        const double inverse = along / (new->product *scale) +
                               new->y[i] * new->y[i] / new->product -
                               along *new->s[i] * new->s[i] / (new->product *across *scale *scale);
        path->scale[i] = inverse > 1e-20 && inverse < 1e20 ? 1 / inverse : scale;
    }
}

/* Adds the step to the curvature pairs, unless the log density is convex along it. */
static void learn_from_step(search *s)
{
    em_ascent *path = s->path;
    const int64_t n = path->dim;
    const double *from = last_point(path);
    const pair oldest = s->pair[0];

    if (s->n_pair == MEMORY) {
        memmove(s->pair, s->pair + 1, (MEMORY - 1) * sizeof *s->pair);
        s->pair[--s->n_pair] = oldest;
    }
    pair *const new = &s->pair[s->n_pair];
    for (int64_t i = 0; i < n; i++) {
        new->s[i] = s->trial.theta[i] - from[i];
        new->y[i] = path->gradient[i] - s->trial.gradient[i];
    }
    new->product = em_dot(n, new->s, new->y);
    if (new->product > 1e-10 * sqrt(em_dot(n, new->s, new->s) * em_dot(n, new->y, new->y))) {
        s->n_pair++;
        update_scale(path, new);
    }
}

/* The logarithm of density times volume at the last point, up to a constant. The volume is that of
 * a normal distribution with the variances `scale`. */
static double log_mass(const em_ascent *path)
{
    double volume = 0;

    for (int64_t i = 0; i < path->dim; i++)
        volume += log(path->scale[i]) / 2;
    return path->log_density[path->n_point - 1] + volume;
}

/* Stores the last point as the best one so far. */
static void note(const em_ascent *path, double mass, vantage *best)
{
    best->point = path->n_point - 1;
    best->mass = mass;
    memcpy(best->scale, path->scale, (size_t)path->stride * sizeof(double));
}

/* Whether the last point is better than the mouth of a funnel found so far. In the neck of a funnel
 * the density rises while the volume falls, so the product of density and estimated volume decides.
 * If the density at a point exceeds that at the mouth by more than it varies among draws of a
 * normal distribution, the point is better only if its product is larger by the same amount. */
static bool is_mouth(const search *s, double mass)
{
    const em_ascent *path = s->path;
    const double fall = em_fall_of_draws(path->dim);
    const bool high =
        path->log_density[path->n_point - 1] > path->log_density[s->mouth.point] + fall;

    return mass > s->mouth.mass + (high ? fall : 0);
}

/* Chooses the point at which a chain may start: the best point or, if the ascent has not converged,
 * the mouth of the funnel. */
static void choose_vantage(const search *s)
{
    em_ascent *path = s->path;
    const vantage *from = path->converged ? &s->best : &s->mouth;

    path->best = from->point;
    path->best_mass = from->mass;
    if (from != &s->best)
        memcpy(path->best_scale, from->scale, (size_t)path->stride * sizeof(double));
}

/* Makes the trial the last point of the path. */
static void move(search *s)
{
    em_ascent *path = s->path;
    const size_t row = (size_t)path->stride * sizeof(double);

    learn_from_step(s);
    memcpy(path->gradient, s->trial.gradient, row);
    path->n_point++;
    memcpy(last_point(path), s->trial.theta, row);
    path->log_density[path->n_point - 1] = s->trial.log_density;
    const double mass = log_mass(path);
    if (mass > s->best.mass)
        note(path, mass, &s->best);
    if (is_mouth(s, mass))
        note(path, mass, &s->mouth);
}

/* Evaluates the point at `step` times the direction. */
static em_status try_step(search *s, double step)
{
    em_ascent *path = s->path;

    memcpy(s->trial.theta, last_point(path), (size_t)path->stride * sizeof(double));
    add(path->dim, step, s->direction, s->trial.theta);
    return evaluate(s, s->trial.theta, s->trial.gradient, &s->trial.log_density);
}

/* Whether the density at the trial has risen by a fraction of the predicted gain. */
static bool is_higher(const search *s, double step, double gain)
{
    const em_ascent *path = s->path;

    return s->trial.log_density >= path->log_density[path->n_point - 1] + 1e-4 * step * gain;
}

/* Wolfe's second condition: if the slope at the trial is nearly that at the last point, the step is
 * too short. The curvature pairs then come from a steeper region, and on a straight slope no new
 * pair replaces them. The step grows while the density rises, up to the longest one. */
static em_status lengthen(search *s, double step, double gain)
{
    const double limit = s->longest / sqrt(em_dot(s->path->dim, s->direction, s->direction));
    bool rises = true;
    em_status status = EM_OK;

    while (!status && rises && s->path->gradients < s->path->most && 4 * step <= limit &&
           em_dot(s->path->dim, s->direction, s->trial.gradient) > 0.9 * gain) {
        const trial shorter = s->trial;
        s->trial = s->spare;
        s->spare = shorter;
        step *= 4;
        status = try_step(s, step);
        rises = !status && is_higher(s, step, gain) && s->trial.log_density > shorter.log_density;
        if (!rises) {
            s->spare = s->trial;
            s->trial = shorter;
        }
    }
    return status;
}

/* Steps along the direction to a point with a higher density. *moved: there is one. */
static em_status search_line(search *s, double gain, bool *moved)
{
    em_ascent *path = s->path;
    const double length = sqrt(em_dot(path->dim, s->direction, s->direction));
    const bool bounded = length > s->longest;
    double step = bounded ? s->longest / length : 1, tried = step;
    em_status status = EM_OK;

    *moved = false;
    while (!status && !*moved && path->gradients < path->most && step > 1e-12) {
        status = try_step(s, step);
        tried = step;
        *moved = !status && is_higher(s, step, gain);
        if (*moved && bounded && step * length >= s->longest)
            s->longest *= 2;
        step *= isnan(s->trial.log_density) ? 0.1 : 0.3;
    }
    return !status && *moved && !bounded && tried == 1 ? lengthen(s, tried, gain) : status;
}

/* Drops the curvature pairs, and limits the next step to a tenth of the last one. */
static void forget(search *s)
{
    em_ascent *path = s->path;
    const double *last = last_point(path);
    double square = 0;

    for (int64_t i = 0; i < path->dim; i++) {
        const double step = path->n_point > 1 ? last[i] - last[i - path->stride] : 1;
        square += step * step;
        path->scale[i] = 1;
    }
    s->n_pair = 0;
    s->longest = 0.1 * sqrt(square);
}

/* Whether the last step raised the log density by more than 1. The next one may then do so too, so
 * the path has not converged. */
static bool is_doubtful(const em_ascent *path)
{
    const double *last = &path->log_density[path->n_point - 1];

    return path->n_point > 1 && last[0] > last[-1] + 1;
}

static em_status ascend(search *s)
{
    em_ascent *path = s->path;
    bool moved = true, doubted = false;
    em_status status = evaluate(s, path->point, path->gradient, path->log_density);

    note(path, log_mass(path), &s->best);
    note(path, s->best.mass, &s->mouth);
    path->stuck = isnan(path->log_density[0]);
    while (!status && !path->stuck && path->gradients < path->most) {
        const double gain = choose_direction(s);
        path->converged = fabs(gain) < 0.02;
        if (path->converged && (doubted || !is_doubtful(path)))
            break;
        if (gain > 0 && !path->converged)
            status = search_line(s, gain, &moved);
        if (!status && gain > 0 && !path->converged && moved) {
            move(s);
            doubted = false;
        } else if (s->n_pair > 0) {
            doubted = true;
            forget(s);
        } else {
            path->stuck = path->n_point == 1 && path->gradients < path->most;
            path->converged |= path->n_point > 1;
            break;
        }
    }
    choose_vantage(s);
    return status;
}

em_status em_ascend(em_posterior *posterior, int64_t chain, const double *theta,
                    const double *scale, em_ascent *out)
{
    search s = {.posterior = posterior, .chain = chain, .path = out};
    double *next = out->gradient + out->stride;

    s.longest = sqrt((double)out->dim);
    s.direction = next, next += out->stride;
    s.trial.theta = next, next += out->stride;
    s.trial.gradient = next, next += out->stride;
    s.spare.theta = next, next += out->stride;
    s.spare.gradient = next, next += out->stride;
    s.best.scale = out->best_scale;
    s.mouth.scale = next, next += out->stride;
    for (int i = 0; i < MEMORY; i++, next += 2 * out->stride)
        s.pair[i] = (pair){.s = next, .y = next + out->stride};
    out->n_point = 1;
    out->gradients = 0;
    out->converged = out->stuck = false;
    for (int64_t i = 0; i < out->dim; i++)
        out->scale[i] = scale ? scale[i] : 1;
    memcpy(out->point, theta, (size_t)out->stride * sizeof *theta);
    return ascend(&s);
}

double em_fall_of_draws(int64_t dim)
{
    const double half = 0.5 * (double)dim;

    return half + 4 * (sqrt(half) + 2);
}

int64_t em_ascent_start(const em_ascent *ascent)
{
    const double least = ascent->log_density[ascent->best] - em_fall_of_draws(ascent->dim);
    int64_t start = 0;

    while (ascent->log_density[start] < least)
        start++;
    return start;
}

em_optimum em_ascent_end(const em_ascent *ascent)
{
    return (em_optimum){last_point(ascent), ascent->gradient, ascent->scale,
                        ascent->log_density[ascent->n_point - 1], ascent->converged};
}

/* Minus the Hessian, from differences of gradients at a thousandth of a standard deviation on both
 * sides. *good: all gradients are finite. */
static em_status differentiate(em_posterior *posterior, int64_t chain, int64_t n,
                               const em_optimum *at, double *work, double *out, bool *good)
{
    double *theta = work, *gradient = work + em_stride(n), log_density;
    em_status status = EM_OK;

    memcpy(theta, at->theta, (size_t)n * sizeof *theta);
    for (int64_t j = 0; !status && *good && j < n; j++) {
        const double h = 1e-3 * sqrt(at->scale[j]);
        for (int sign = -1; !status && sign <= 1; sign += 2) {
            theta[j] = at->theta[j] + sign * h;
            status = em_evaluate_point(posterior, chain, n, theta, gradient, &log_density);
            *good = *good && !isnan(log_density);
            for (int64_t i = 0; i < n; i++)
                out[j * n + i] = sign < 0 ? gradient[i] : (out[j * n + i] - gradient[i]) / (2 * h);
        }
        theta[j] = at->theta[j];
    }
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < j; i++)
            out[j * n + i] = out[i * n + j] = (out[j * n + i] + out[i * n + j]) / 2;
    return status;
}

/* Moves by one standard deviation in the direction of the most negative curvature, uphill. */
static em_status leave_saddle(int64_t n, const double *gradient, double *hessian, double *out)
{
    EM_SCOPED double *value = NULL;
    em_status status = em_allocate(n, sizeof *value, &value);
    int64_t lowest = 0;

    status = status ? status : em_eigen(n, hessian, n, value);
    for (int64_t k = 1; !status && k < n; k++)
        lowest = value[k] < value[lowest] ? k : lowest;
    const double *v = hessian + lowest * n;
    for (int64_t i = 0; !status && value[lowest] < 0 && i < n; i++)
        out[i] = v[i] / sqrt(-value[lowest]) * (em_dot(n, v, gradient) < 0 ? -1 : 1);
    return status < 0 ? status : EM_OK;
}

em_status em_laplace(em_posterior *posterior, int64_t chain, int64_t dim, const em_optimum *at,
                     double *precision, double *log_mass, double *onward)
{
    const size_t matrix = (size_t)(dim * dim) * sizeof *precision;
    bool good = true;
    double *work = NULL, log_det = 0;
    em_status status = em_posterior_share_failure(
        posterior, em_allocate(2 * em_stride(dim) + dim * dim, sizeof *work, &work));

    *log_mass = NAN;
    memset(onward, 0, (size_t)dim * sizeof *onward);
    status = status ? status : differentiate(posterior, chain, dim, at, work, precision, &good);
    if (status || !good) {
        em_release(&work);
        return status;
    }
    memcpy(work, precision, matrix);
    good = em_cholesky(dim, work, dim) == EM_OK;
    for (int64_t i = 0; good && i < dim; i++)
        log_det += 2 * log(work[i * dim + i]);
    memcpy(work, precision, matrix);
    if (good && em_invert_spd(dim, work, dim) == EM_OK) {
        for (int64_t i = 0; i < dim; i++)
            onward[i] = em_dot(dim, work + i * dim, at->gradient);
        if (em_dot(dim, onward, at->gradient) < 1) {
            *log_mass = at->log_density - log_det / 2 + (double)dim * log(2 * M_PI) / 2;
            memset(onward, 0, (size_t)dim * sizeof *onward);
        }
    } else
        status = leave_saddle(dim, at->gradient, work, onward);
    em_release(&work);
    return status;
}
