#include "model/bounds.h"

#include <math.h>

/* A vector along the last axis of a parameter: n constrained numbers x, and n_free unconstrained
 * numbers theta. */
typedef struct vector {
    em_bounds bounds;
    int64_t n, n_free;
} vector;

static vector vector_of(const em_variable *parameter)
{
    const int last = parameter->n_axes - 1;
    const int64_t n = last < 0 ? 1 : parameter->shape[last];
    const bool sums_to_one = parameter->bounds.constraint == EM_SIMPLEX;

    return (vector){parameter->bounds, n, sums_to_one ? n - 1 : n};
}

static int64_t n_vector(const em_variable *parameter)
{
    const int64_t n = vector_of(parameter).n;

    return n > 0 ? em_variable_size(parameter) / n : 0;
}

int64_t em_bounds_size(int64_t n, const em_variable *parameter)
{
    int64_t size = 0;

    for (int64_t i = 0; i < n; i++)
        size += em_variable_size(&parameter[i]);
    return size;
}

int64_t em_bounds_free_size(int64_t n, const em_variable *parameter)
{
    int64_t size = 0;

    for (int64_t i = 0; i < n; i++)
        size += n_vector(&parameter[i]) * vector_of(&parameter[i]).n_free;
    return size;
}

bool em_bounds_any(int64_t n, const em_variable *parameter)
{
    for (int64_t i = 0; i < n; i++)
        if (parameter[i].bounds.constraint != EM_FREE)
            return true;
    return false;
}

double em_bounds_distance(int64_t n, const em_variable *parameter, int64_t i, double at)
{
    int64_t k = 0;

    while (k < n && i >= em_variable_size(&parameter[k]))
        i -= em_variable_size(&parameter[k++]);
    if (k == n)
        return INFINITY;
    const em_bounds *b = &parameter[k].bounds;
    const bool below = b->constraint == EM_UPPER || b->constraint == EM_BETWEEN;
    const bool above = b->constraint == EM_LOWER || b->constraint == EM_BETWEEN;
    return fmin(above ? at - b->lower : INFINITY, below ? b->upper - at : INFINITY);
}

static double inverse_logit(double u)
{
    return 1 / (1 + exp(-u));
}

/* The share that part k of a simplex takes of what the parts before it have left over. At theta = 0
 * all parts of the simplex are equal. */
static double part(const vector *v, int64_t k, double theta)
{
    return inverse_logit(theta - log((double)(v->n - k - 1)));
}

static void constrain(const vector *v, const double *theta, double *x)
{
    const double lower = v->bounds.lower, upper = v->bounds.upper;
    double left = 1;

    for (int64_t k = 0; k < v->n_free; k++)
        switch (v->bounds.constraint) {
        case EM_FREE:
            x[k] = theta[k];
            break;
        case EM_LOWER:
            x[k] = lower + exp(theta[k]);
            break;
        case EM_UPPER:
            x[k] = upper - exp(theta[k]);
            break;
        case EM_BETWEEN:
            x[k] = lower + (upper - lower) * inverse_logit(theta[k]);
            break;
        case EM_ORDERED:
            x[k] = k == 0 ? theta[k] : x[k - 1] + exp(theta[k]);
            break;
        case EM_SIMPLEX:
            x[k] = left * part(v, k, theta[k]);
            left -= x[k];
            break;
        }
    if (v->n_free < v->n)
        x[v->n_free] = left;
}

static void unconstrain(const vector *v, const double *x, double *theta)
{
    const double lower = v->bounds.lower, upper = v->bounds.upper;
    double left = 1;

    for (int64_t k = 0; k < v->n_free; k++)
        switch (v->bounds.constraint) {
        case EM_FREE:
            theta[k] = x[k];
            break;
        case EM_LOWER:
            theta[k] = log(x[k] - lower);
            break;
        case EM_UPPER:
            theta[k] = log(upper - x[k]);
            break;
        case EM_BETWEEN:
            theta[k] = log((x[k] - lower) / (upper - x[k]));
            break;
        case EM_ORDERED:
            theta[k] = k == 0 ? x[k] : log(x[k] - x[k - 1]);
            break;
        case EM_SIMPLEX:
            theta[k] = log(x[k] / (left - x[k])) + log((double)(v->n - k - 1));
            left -= x[k];
            break;
        }
}

/* Transforms the gradient by x into one by theta, from the last number to the first. `later` is a
 * sum over the numbers after k: of by_x for ordered numbers, and of by_x x for a simplex. */
static void pull_back(const vector *v, const double *theta, const double *x, const double *by_x,
                      double *gradient)
{
    const double width = v->bounds.upper - v->bounds.lower;
    double later = v->n_free < v->n ? by_x[v->n_free] * x[v->n_free] : 0, z;

    for (int64_t k = v->n_free - 1; k >= 0; k--)
        switch (v->bounds.constraint) {
        case EM_FREE:
            gradient[k] += by_x[k];
            break;
        case EM_LOWER:
            gradient[k] += by_x[k] * exp(theta[k]);
            break;
        case EM_UPPER:
            gradient[k] -= by_x[k] * exp(theta[k]);
            break;
        case EM_BETWEEN:
            gradient[k] += by_x[k] * width * inverse_logit(theta[k]) * inverse_logit(-theta[k]);
            break;
        case EM_ORDERED:
            later += by_x[k];
            gradient[k] += later * (k == 0 ? 1 : exp(theta[k]));
            break;
        case EM_SIMPLEX:
            z = part(v, k, theta[k]);
            gradient[k] += by_x[k] * x[k] * (1 - z) - z * later;
            later += by_x[k] * x[k];
            break;
        }
}

/* Computes both log logit^-1(u) and log logit^-1(-u). */
static double log_both(double u)
{
    return -fabs(u) - 2 * log1p(exp(-fabs(u)));
}

static double add_jacobian(const vector *v, const double *theta, double *gradient)
{
    const double width = v->bounds.upper - v->bounds.lower;
    double sum = 0, log_left = 0, u;

    for (int64_t k = 0; k < v->n_free; k++)
        switch (v->bounds.constraint) {
        case EM_FREE:
            break;
        case EM_ORDERED:
            if (k == 0)
                break; /* fall through */
        case EM_LOWER:
        case EM_UPPER:
            sum += theta[k];
            gradient[k] += 1;
            break;
        case EM_BETWEEN:
            sum += log(width) + log_both(theta[k]);
            gradient[k] += 1 - 2 * inverse_logit(theta[k]);
            break;
        case EM_SIMPLEX:
            u = theta[k] - log((double)(v->n - k - 1));
            sum += log_both(u) + log_left;
            log_left -= u > 0 ? u + log1p(exp(-u)) : log1p(exp(u));
            gradient[k] += 1 - (double)(v->n_free - k + 1) * inverse_logit(u);
            break;
        }
    return sum;
}

void em_bounds_constrain(int64_t n, const em_variable *parameter, const double *theta, double *x)
{
    for (int64_t i = 0; i < n; i++) {
        const vector v = vector_of(&parameter[i]);
        for (int64_t r = n_vector(&parameter[i]); r > 0; r--, theta += v.n_free, x += v.n)
            constrain(&v, theta, x);
    }
}

void em_bounds_free(int64_t n, const em_variable *parameter, const double *x, double *theta)
{
    for (int64_t i = 0; i < n; i++) {
        const vector v = vector_of(&parameter[i]);
        for (int64_t r = n_vector(&parameter[i]); r > 0; r--, theta += v.n_free, x += v.n)
            unconstrain(&v, x, theta);
    }
}

void em_bounds_pull_back(int64_t n, const em_variable *parameter, const double *theta,
                         const double *x, const double *by_x, double *gradient)
{
    for (int64_t i = 0; i < n; i++) {
        const vector v = vector_of(&parameter[i]);
        for (int64_t r = n_vector(&parameter[i]); r > 0; r--) {
            pull_back(&v, theta, x, by_x, gradient);
            theta += v.n_free, gradient += v.n_free, x += v.n, by_x += v.n;
        }
    }
}

double em_bounds_add_jacobian(int64_t n, const em_variable *parameter, const double *theta,
                              double *gradient)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++) {
        const vector v = vector_of(&parameter[i]);
        for (int64_t r = n_vector(&parameter[i]); r > 0; r--) {
            sum += add_jacobian(&v, theta, gradient);
            theta += v.n_free, gradient += v.n_free;
        }
    }
    return sum;
}
