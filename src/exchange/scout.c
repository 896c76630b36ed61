#include "exchange/scout.h"

#include "base/memory.h"
#include "mass/moments.h"
#include "math/linalg.h"

#include <math.h>
#include <string.h>

enum { MOST_GRADIENTS = 60, MEMORY = 5 };

/* A point and what the target says of it. */
typedef struct place {
    double *x, *gradient; /* [stride] */
    double log_density;   /* NaN: none */
} place;

/* s = x' - x, y = gradient - gradient', of which s^T y > 0. */
typedef struct pair {
    double *s, *y, product;
} pair;

typedef struct climber {
    em_posterior *posterior;
    const em_mass *mass;
    int64_t chain, dim, stride, gradients;
    place here, there;
    double *direction, *image; /* [stride]; image: W y */
    double reach;              /* a step without pairs has, in standard deviations */
    int64_t n_pair;            /* the youngest is the last */
    pair pair[MEMORY];
    double *room;
} climber;

static double inner(const climber *c, const double *a, const double *b)
{
    double sum = 0;

    for (int64_t i = 0; i < c->dim; i++)
        sum += a[i] * b[i];
    return sum;
}

static em_status create(climber *c, double *theta)
{
    const em_model *model = em_posterior_model(c->posterior);
    em_status status;

    c->dim = model->dim;
    c->stride = em_stride(c->dim);
    status = em_allocate((5 + 2 * MEMORY) * c->stride, sizeof(double), &c->room);
    double *next = c->room;
    double **const row[] = {&c->here.gradient, &c->there.x, &c->there.gradient, &c->direction,
                            &c->image};
    c->here.x = theta;
    for (size_t i = 0; !status && i < sizeof row / sizeof *row; i++, next += c->stride)
        *row[i] = next;
    for (int i = 0; !status && i < MEMORY; i++, next += 2 * c->stride)
        c->pair[i] = (pair){.s = next, .y = next + c->stride};
    return status;
}

/* The density at a place. A rejection makes it NaN. */
static em_status look(climber *c, place *at)
{
    const em_query query = {.n_chain = 1,
                            .stride = c->stride,
                            .chain = &c->chain,
                            .theta = at->x,
                            .log_density = &at->log_density,
                            .gradient = at->gradient};
    const em_status status = em_posterior_evaluate(c->posterior, &query);

    c->gradients++;
    if (status > 0 || !isfinite(at->log_density) || !em_all_finite(c->dim, at->gradient))
        at->log_density = NAN;
    return status < 0 ? status : EM_OK;
}

static void add(const climber *c, double factor, const double *x, double *out)
{
    for (int64_t i = 0; i < c->dim; i++)
        out[i] += factor * x[i];
}

/* direction = H gradient (Nocedal & Wright 2006, algorithm 7.4), from H = gamma W; without pairs up
 * the gradient, as far as is tried. */
static void choose_direction(climber *c)
{
    double weight[MEMORY] = {0}, scale = 1;
    double *q = c->there.gradient; /* free now */

    memcpy(q, c->here.gradient, (size_t)c->stride * sizeof *q);
    for (int64_t k = c->n_pair - 1; k >= 0; k--) {
        weight[k] = inner(c, c->pair[k].s, q) / c->pair[k].product;
        add(c, -weight[k], c->pair[k].y, q);
    }
    em_mass_velocity(&c->mass, 1, q, c->direction);
    if (c->n_pair > 0) {
        const pair *last = &c->pair[c->n_pair - 1];
        em_mass_velocity(&c->mass, 1, last->y, c->image);
        scale = last->product / inner(c, last->y, c->image);
    } else
        scale = c->reach / sqrt(inner(c, q, c->direction));
    for (int64_t i = 0; i < c->dim; i++)
        c->direction[i] *= scale;
    for (int64_t k = 0; k < c->n_pair; k++)
        add(c, weight[k] - inner(c, c->pair[k].y, c->direction) / c->pair[k].product, c->pair[k].s,
            c->direction);
}

/* From here to there, and what that tells of the curvature; where it is that of a valley, the next
 * step is twice as long. */
static void go(climber *c)
{
    const place before = c->here;
    const pair oldest = c->pair[0];

    if (c->n_pair == MEMORY) {
        memmove(c->pair, c->pair + 1, (MEMORY - 1) * sizeof *c->pair);
        c->pair[--c->n_pair] = oldest;
    }
    pair *const new = &c->pair[c->n_pair];
    for (int64_t i = 0; i < c->dim; i++) {
        new->s[i] = c->there.x[i] - c->here.x[i];
        new->y[i] = c->here.gradient[i] - c->there.gradient[i];
    }
    new->product = inner(c, new->s, new->y);
    memcpy(c->here.x, c->there.x, (size_t)c->dim * sizeof(double));
    c->here.gradient = c->there.gradient;
    c->here.log_density = c->there.log_density;
    c->there.gradient = before.gradient;
    if (new->product > 1e-10 * sqrt(inner(c, new->s, new->s) * inner(c, new->y, new->y)))
        c->n_pair++;
    else if (c->n_pair == 0)
        c->reach *= 2;
}

/* Until a step would gain less than a hundredth. */
static em_status climb(climber *c)
{
    em_status status = look(c, &c->here);

    while (!status && !isnan(c->here.log_density) && c->gradients < MOST_GRADIENTS) {
        double step = 1, gain;
        choose_direction(c);
        gain = inner(c, c->here.gradient, c->direction);
        if (!(gain > 0) && c->n_pair > 0) {
            c->n_pair = 0;
            continue;
        }
        if (!(gain > 0.02))
            break;
        do {
            memcpy(c->there.x, c->here.x, (size_t)c->stride * sizeof(double));
            add(c, step, c->direction, c->there.x);
            status = look(c, &c->there);
            const bool higher = c->there.log_density >= c->here.log_density + 1e-4 * step * gain;
            if (higher) {
                go(c);
                break;
            }
            step *= isnan(c->there.log_density) ? 0.1 : 0.3;
        } while (!status && c->gradients < MOST_GRADIENTS);
    }
    return status;
}

/* Minus the Hessian, by central differences of a thousandth of a standard deviation. *good: there
 * is one. */
static em_status curvature(climber *c, double *out, bool *good)
{
    double *w = NULL;
    em_status status = em_allocate(c->dim * c->dim, sizeof *w, &w);

    if (!status)
        status = em_mass_matrix(c->mass, EM_MAP_VELOCITY, EM_MASS_DENSE, w);
    for (int64_t j = 0; !status && *good && j < c->dim; j++) {
        const double h = 1e-3 * sqrt(w[j * c->dim + j]);
        for (int sign = -1; !status && sign <= 1; sign += 2) {
            memcpy(c->there.x, c->here.x, (size_t)c->stride * sizeof(double));
            c->there.x[j] += sign * h;
            status = look(c, &c->there);
            *good = *good && !isnan(c->there.log_density);
            for (int64_t i = 0; i < c->dim; i++)
                out[j * c->dim + i] =
                    (sign < 0 ? c->there.gradient[i] : out[j * c->dim + i] - c->there.gradient[i]) /
                    (sign < 0 ? 1 : 2 * h);
        }
    }
    for (int64_t j = 0; j < c->dim; j++)
        for (int64_t i = 0; i < j; i++)
            out[j * c->dim + i] = out[i * c->dim + j] =
                (out[j * c->dim + i] + out[i * c->dim + j]) / 2;
    em_release(&w);
    return status;
}

/* The mass around where it has come to, if that is a peak: the Newton step gains nearly nothing. */
static em_status weigh(climber *c, em_peak *out)
{
    const int64_t n = c->dim;
    bool good = true;
    double *factor = NULL, gain = 0, log_det = 0;
    em_status status = curvature(c, out->covariance, &good);

    if (status || !good)
        return status;
    status = em_allocate(n * n, sizeof *factor, &factor);
    if (!status) {
        memcpy(factor, out->covariance, (size_t)(n * n) * sizeof *factor);
        status = em_cholesky(n, factor, n);
    }
    if (!status)
        status = em_invert_spd(n, out->covariance, n);
    for (int64_t i = 0; !status && i < n; i++) {
        log_det += 2 * log(factor[i * n + i]);
        gain += c->here.gradient[i] * inner(c, out->covariance + i * n, c->here.gradient) / 2;
    }
    if (!status && gain < 0.5)
        out->evidence = c->here.log_density - log_det / 2;
    em_release(&factor);
    return status < 0 && status != EM_ENUMERIC ? status : EM_OK;
}

em_status em_climb_to_peak(em_posterior *posterior, const em_mass *mass, int64_t chain,
                           double least, em_peak *out)
{
    climber c = {.posterior = posterior, .mass = mass, .chain = chain, .reach = 1};
    em_status status = create(&c, out->theta);

    out->evidence = -INFINITY;
    if (!status)
        status = climb(&c);
    out->log_density = c.here.log_density;
    if (!status && c.here.log_density >= least)
        status = weigh(&c, out);
    out->gradients = c.gradients;
    em_release(&c.room);
    return status;
}
