#include "app/command/check_plan.h"

#include "base/memory.h"
#include "math/rng.h"
#include "model/model.h"
#include "par/world.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

enum { N_POINT = 5, MOST_TRIES = 100, MOST_DIRECTIONS = 200 };

/* Central differences with span h have an error O(h^2 f''') from the span and O(ulp f / h) from
 * rounding. At h = 1e-5 of the scale both are near 1e-9 of the gradient. If the slope jumps within
 * the span (a ReLU at 0), the error is O(h), and narrower spans are tried. */
static const double span = 1e-5, narrowest = 1e-8, tolerance = 1e-5;

/* Seconds that the comparison may take if the densities of many observations take long, and seconds
 * after which no more starts are tried. */
static const double most_seconds = 10, most_seconds_of_starts = 1;

typedef struct checker {
    const em_checked *of;
    /* Of the run, one for all evaluations; size 0: all observations. */
    em_minibatch minibatch;
    bool is_wrong; /* the gradient, somewhere */
    int64_t n_compared,
        n_hidden; /* compared components; components hidden by the rounding of densities */
    int64_t most; /* directions at a point */
    uint64_t last_finite;
    int n_tried, n_finite; /* possible starts of chains, and those with a finite density */
    double *theta, *gradient, *moved, *scratch; /* [stride] each */
} checker;

static em_status density(checker *check, em_wanted wanted, const double *theta, double *gradient,
                         double *value)
{
    static const int64_t first_chain = 0;
    const em_query query = {.n_chain = 1,
                            .stride = em_stride(check->of->model->dim),
                            .chain = &first_chain,
                            .theta = theta,
                            .log_density = value,
                            .gradient = gradient,
                            .wanted = wanted,
                            .seed = (uint64_t)check->of->config->run.seed};

    return check->minibatch.size > 0
               ? em_posterior_estimate(check->of->posterior, &check->minibatch, &query)
               : em_posterior_evaluate(check->of->posterior, &query);
}

/* The largest minibatch of the samplers; size 0 if one of them needs all observations. */
static em_minibatch find_minibatch(const em_checked *of)
{
    em_minibatch minibatch = {.size = 0};

    for (int i = 0; i < of->config->n_kernel; i++) {
        const em_kernel_options *kernel = &of->config->kernel[i];
        const em_sampler_options *options = kernel->options;
        if (kernel->ops->by_model)
            continue;
        if (!em_takes_minibatches(kernel->ops, options) ||
            options->minibatch >= of->model->rows.total)
            return (em_minibatch){.size = 0};
        minibatch.size = em_most(minibatch.size, options->minibatch);
    }
    return minibatch;
}

/* Prints ", for a minibatch of 100 observations" if gradients are of minibatches. */
static void say_minibatch(const checker *check)
{
    if (check->minibatch.size > 0)
        printf(", for a minibatch of %lld observations", (long long)check->minibatch.size);
    printf("\n");
}

/* For a model without a gradient it computes the log density only. */
static em_wanted wanted(const checker *check)
{
    return check->of->model->gradient == EM_GRADIENT_EXACT ? EM_WANT_BOTH : EM_WANT_LOG_DENSITY;
}

/* Computes |analytic - numeric| / (1 + |numeric|) of one component with the span `width`. *right:
 * it is as small as rounding allows. */
static em_status difference(checker *check, int64_t i, double width, double *error, bool *right)
{
    const double scale = width * fmax(1, fabs(check->theta[i]));
    double up = 0, down = 0;

    *right = true;
    for (int64_t k = 0; k < check->of->model->dim; k++)
        check->moved[k] = check->theta[k];
    check->moved[i] = check->theta[i] + scale;
    const double above = check->moved[i];
    em_status status = density(check, EM_WANT_LOG_DENSITY, check->moved, check->scratch, &up);
    check->moved[i] = check->theta[i] - scale;
    if (!status)
        status = density(check, EM_WANT_LOG_DENSITY, check->moved, check->scratch, &down);
    if (!isfinite(up) || !isfinite(down)) /* at the edge of where there is a density */
        return status;
    const double numeric = (up - down) / (above - check->moved[i]);
    /* The difference cannot be better than the rounding of the densities. */
    const double rounding = 1e-14 * (fabs(up) + fabs(down)) / scale / (1 + fabs(numeric));
    *error = fabs(check->gradient[i] - numeric) / (1 + fabs(numeric));
    *right = *error < tolerance + rounding;
    return status;
}

static em_status component_error(checker *check, int64_t i, double *error)
{
    bool right = false;
    em_status status = EM_OK;

    for (double width = span; !status && !right && width >= narrowest; width /= 10) {
        double narrower = 0;
        status = difference(check, i, width, &narrower, &right);
        *error = width == span || narrower < *error ? narrower : *error;
    }
    const bool hidden = right && *error >= tolerance; /* nothing is known of it then */
    check->is_wrong |= !right;
    check->n_compared++;
    check->n_hidden += hidden;
    *error = hidden ? 0 : *error;
    return status;
}

/* Draws a start of a chain: the start that the model gives, or a random point. */
static em_status draw_start(checker *check, uint64_t point)
{
    const em_stream stream = {(uint64_t)check->of->config->run.seed, point, 0, EM_RNG_INIT};
    const em_draw draw = {stream.seed, 0, (int64_t)point, EM_DRAW_START};

    em_uniforms_within(&stream, check->of->model->dim, check->of->config->run.init_radius,
                       check->theta);
    return em_model_start(check->of->model, &draw, check->theta);
}

/* Sets the number of directions for which there is time, from the time of one density. Collective,
 * because shards evaluate together. */
static void plan_directions(checker *check, double seconds)
{
    const double most = most_seconds / N_POINT / (2 * seconds);

    check->most = most > MOST_DIRECTIONS ? MOST_DIRECTIONS : most > 1 ? (int64_t)most : 1;
    em_broadcast(&check->most, sizeof check->most);
}

/* Draws the next random point, and computes its density; NaN: it is not finite. */
static em_status next_start(checker *check, double *value)
{
    const uint64_t point = (uint64_t)check->n_tried++;
    em_status status = draw_start(check, point);

    status = status ? status : density(check, wanted(check), check->theta, check->gradient, value);
    if (status || !isfinite(*value))
        return status;
    check->last_finite = point;
    check->n_finite++;
    return EM_OK;
}

/* Compares the gradient at a random point with a finite density, because chains start only at such
 * points. */
static em_status check_point(checker *check, double *worst, int64_t *where)
{
    const int64_t dim = check->of->model->dim;
    const double start = em_clock();
    double value = 0;
    em_status status = next_start(check, &value);

    if (status || !isfinite(value))
        return status;
    plan_directions(check, em_clock() - start);
    if (check->of->model->gradient != EM_GRADIENT_EXACT)
        return EM_OK;
    const int64_t every = (dim + check->most - 1) / check->most;
    for (int64_t i = 0; !status && i < dim; i += every) {
        double error = 0;
        status = component_error(check, i, &error);
        if (!(error <= *worst)) {
            *worst = error;
            *where = i;
        }
    }
    return status;
}

static void say_agreement(const checker *check, int n_point, double worst, int64_t where)
{
    if (check->of->model->gradient != EM_GRADIENT_EXACT)
        printf("# gradient   none: the model gives log densities alone, which are finite at %d "
               "possible starts of chains",
               n_point);
    else if (!check->is_wrong && check->n_hidden == check->n_compared)
        printf("# gradient   not compared: the log density at %d possible starts of chains is so "
               "large that rounding errors hide the central differences",
               n_point);
    else if (!check->is_wrong && check->n_hidden > 0)
        printf("# gradient   agrees with central differences at %d points, to %.2g; %lld of %lld "
               "components could not be compared, because of the rounding errors of large log "
               "densities",
               n_point, worst, (long long)check->n_hidden, (long long)check->n_compared);
    else if (!check->is_wrong)
        printf("# gradient   agrees with central differences at %d points, to %.2g", n_point,
               worst);
    else
        printf("# gradient   differs from central differences by up to %.2g of its size (component "
               "%lld; %d points were compared): the density has errors of this size at possible "
               "starts of chains, from rounding or from a solver in the model (ODE, root, "
               "integral)",
               worst, (long long)where, n_point);
    say_minibatch(check);
    fflush(stdout);
}

/* Counts at how many of further starts the density is finite, as long as there is time. Collective.
 */
static em_status count_starts(checker *check)
{
    const double start = em_clock();
    double value = 0, seconds = 0;
    em_status status = EM_OK;

    while (!status && check->n_tried < MOST_TRIES && seconds < most_seconds_of_starts) {
        status = next_start(check, &value);
        seconds = em_clock() - start;
        em_broadcast(&seconds, sizeof seconds); /* shards evaluate together */
    }
    return status ? status : draw_start(check, check->last_finite); /* where it will be timed */
}

static void say_starts(const checker *check)
{
    const char *why = em_model_why(check->of->model);

    if (check->n_finite < check->n_tried)
        printf("# density    not finite at %d of %d possible starts of chains, which then start "
               "elsewhere%s%s\n",
               check->n_tried - check->n_finite, check->n_tried, *why ? "; first: " : "", why);
}

static em_status compare(checker *check)
{
    double worst = 0;
    int64_t where = 0;
    em_status status = EM_OK;

    while (!status && check->n_finite < N_POINT && check->n_tried < MOST_TRIES)
        status = check_point(check, &worst, &where);
    const int n_point = check->n_finite;
    if (!status && n_point == 0)
        status =
            em_fail(EM_EMODEL,
                    "model %s: no finite log density at %d points within run.init_radius %g of "
                    "the origin%s%s",
                    check->of->config->model->name, MOST_TRIES, check->of->config->run.init_radius,
                    *em_model_why(check->of->model) ? ": " : "", em_model_why(check->of->model));
    if (!status && check->is_wrong && !check->of->model->differentiated)
        status = em_fail(EM_EMODEL,
                         "model %s: the gradient's component %lld differs from central differences "
                         "by %.3g of its size, expected less than %g",
                         check->of->config->model->name, (long long)where, worst, tolerance);
    status = em_agree(status);
    if (!status && em_world_rank() == 0)
        say_agreement(check, n_point, worst, where);
    status = status ? status : em_agree(count_starts(check));
    if (!status && em_world_rank() == 0)
        say_starts(check);
    return status;
}

/* Measures the time of a gradient of one chain at a start, for a fifth of a second. Collective. */
static em_status time_gradient(checker *check)
{
    const double start = em_clock(), enough = 0.2;
    double value = 0, seconds = 0;
    int64_t n = 0;
    em_status status = EM_OK;

    for (int64_t batch = 1; !status && seconds < enough; batch *= 2) {
        for (int64_t i = 0; !status && i < batch; i++)
            status = density(check, wanted(check), check->theta, check->gradient, &value);
        n += batch;
        seconds = em_clock() - start;
        em_broadcast(&seconds, sizeof seconds); /* shards evaluate together */
    }
    status = em_agree(status);
    if (!status && em_world_rank() == 0) {
        printf("# speed      %.3g us a %s of one chain", 1e6 * seconds / (double)n,
               wanted(check) == EM_WANT_BOTH ? "gradient" : "log density");
        say_minibatch(check);
    }
    return status;
}

em_status em_check_gradient(const em_checked *checked)
{
    const int64_t stride = em_stride(checked->model->dim);
    EM_SCOPED double *room = NULL;
    em_status status = em_agree(em_allocate_doubles(4 * stride, &room));
    checker check = {.of = checked, .minibatch = find_minibatch(checked), .theta = room};

    if (!status) {
        check.gradient = room + stride;
        check.moved = room + 2 * stride;
        check.scratch = room + 3 * stride;
        status = compare(&check);
    }
    return status ? status : time_gradient(&check);
}
