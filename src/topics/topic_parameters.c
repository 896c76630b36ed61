#include "topics/topic_parameters.h"

#include "emass/random.h"
#include "math/simd/vector.h"

#include <float.h>
#include <math.h>
#include <string.h>

const char *const em_topic_forms[] = {"expanded_mean", "expanded_natural", NULL};

#define SMALLEST_PHI 1e-30F

/* The smallest divisor. A parameter that was reflected at zero may be zero. */
#define SMALLEST_THETA 1e-200

/* The spread of the words of a topic at the starts of chains. */
#define START_SPREAD 0.1

em_status em_topic_parameters_create(em_owner *owner, em_topic_parameters *topics)
{
    topics->n = topics->shape.n_word * topics->shape.n_topic;
    return em_own_all(owner, EM_ARRAY(topics->work, em_stride(topics->n)),
                      EM_ARRAY(topics->total, topics->shape.n_topic),
                      EM_ARRAY(topics->count, topics->shape.n_topic));
}

void em_topic_parameters_start(const em_topic_parameters *topics, const em_draw *draw,
                               double *theta)
{
    em_draw_normals(draw, 0, topics->n, theta);
    for (int64_t i = 0; i < topics->n; i++)
        theta[i] = topics->form == EM_TOPICS_MEAN ? exp(START_SPREAD * theta[i])
                                                  : topics->mean + topics->sd * theta[i];
}

/* ---------------------------------------------------------------- word distributions */

/* sum[k] = the sum over words of x [n_word][n_topic]. */
static void sum_words(const em_topic_parameters *topics, const double *x, double *sum)
{
    const int64_t n_topic = topics->shape.n_topic;

    memset(sum, 0, (size_t)n_topic * sizeof *sum);
    for (int64_t v = 0; v < topics->shape.n_word; v++)
        for (int64_t k = 0; k < n_topic; k++)
            sum[k] += x[v * n_topic + k];
}

/* exp(theta_kv - max_w theta_kw), into topics->work. */
static void exponentiate(em_topic_parameters *topics, const double *theta)
{
    const int64_t n_topic = topics->shape.n_topic;
    double *restrict most = topics->total, *restrict work = topics->work;

    for (int64_t k = 0; k < n_topic; k++)
        most[k] = -INFINITY;
    for (int64_t v = 0; v < topics->shape.n_word; v++)
        for (int64_t k = 0; k < n_topic; k++)
            most[k] = most[k] > theta[v * n_topic + k] ? most[k] : theta[v * n_topic + k];
    for (int64_t v = 0; v < topics->shape.n_word; v++)
        for (int64_t k = 0; k < n_topic; k++)
            work[v * n_topic + k] = theta[v * n_topic + k] - most[k];
    em_exp(em_stride(topics->n), work, work);
}

/* Computes the weights of words, to which phi is proportional. topics->total gets their sums. */
static const double *weigh(em_topic_parameters *topics, const double *theta)
{
    const double *weight = theta;

    if (topics->form == EM_TOPICS_NATURAL) {
        exponentiate(topics, theta);
        weight = topics->work;
    }
    sum_words(topics, weight, topics->total);
    return weight;
}

static bool has_laws(const em_topic_parameters *topics, const double *weight)
{
    int64_t wrong = 0;

    for (int64_t k = 0; k < topics->shape.n_topic; k++)
        wrong |= !(topics->total[k] > 0 && topics->total[k] <= DBL_MAX);
    for (int64_t i = 0; i < topics->n; i++)
        wrong |= !(weight[i] >= 0);
    return !wrong;
}

bool em_topic_parameters_phi(em_topic_parameters *topics, const double *theta, float *phi)
{
    const em_lda_shape *shape = &topics->shape;
    const double *weight = weigh(topics, theta);

    if (!has_laws(topics, weight))
        return false;
    for (int64_t k = 0; k < shape->n_topic; k++)
        topics->total[k] = 1 / topics->total[k];
    for (int64_t v = 0; v < shape->n_word; v++) {
        const double *row = weight + v * shape->n_topic;
        float *restrict out = phi + v * shape->stride;
        for (int64_t k = 0; k < shape->n_topic; k++) {
            const float x = (float)(row[k] * topics->total[k]);
            out[k] = x > SMALLEST_PHI ? x : SMALLEST_PHI;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- prior */

static double above_zero(double theta)
{
    return theta > SMALLEST_THETA ? theta : SMALLEST_THETA;
}

/* (a - 1) log theta - theta */
static void add_gamma(em_topic_parameters *topics, const double *theta, double *log_density,
                      double *restrict gradient)
{
    const double a = topics->shape_of_mean - 1;
    double logs = 0, sum = 0;

    for (int64_t i = 0; gradient && i < topics->n; i++)
        gradient[i] += a / above_zero(theta[i]) - 1;
    if (!log_density)
        return;
    for (int64_t i = 0; i < topics->n; i++)
        topics->work[i] = above_zero(theta[i]);
    em_log(em_stride(topics->n), topics->work, topics->work);
    for (int64_t i = 0; i < topics->n; i++) {
        logs += topics->work[i];
        sum += theta[i];
    }
    *log_density += a * logs - sum;
}

static void add_normal(const em_topic_parameters *topics, const double *theta, double *log_density,
                       double *restrict gradient)
{
    const double precision = 1 / (topics->sd * topics->sd);
    double sum = 0;

    for (int64_t i = 0; i < topics->n; i++) {
        const double x = theta[i] - topics->mean;
        sum += x * x;
    }
    for (int64_t i = 0; gradient && i < topics->n; i++)
        gradient[i] -= precision * (theta[i] - topics->mean);
    if (log_density)
        *log_density -= precision * sum / 2;
}

void em_topic_parameters_add_prior(em_topic_parameters *topics, const double *theta,
                                   double *log_density, double *gradient)
{
    if (topics->form == EM_TOPICS_MEAN)
        add_gamma(topics, theta, log_density, gradient);
    else
        add_normal(topics, theta, log_density, gradient);
}

/* ---------------------------------------------------------------- likelihood */

/* sum n_kv log phi_kv. Most counts are 0 and are skipped. */
static double log_likelihood(const em_topic_parameters *topics, const double *weight,
                             const double *count)
{
    double sum = 0;

    for (int64_t v = 0; v < topics->shape.n_word; v++)
        for (int64_t k = 0; k < topics->shape.n_topic; k++) {
            const int64_t i = v * topics->shape.n_topic + k;
            if (count[i] > 0)
                sum += count[i] * log(above_zero(weight[i] / topics->total[k]));
        }
    return sum;
}

/* Converts counts to the gradient. With w the weights of words and W_k their sums, it is n_kv /
 * theta_kv - n_k / theta_k in the expanded mean form, where theta are the weights, and n_kv -
 * phi_kv n_k in the expanded natural form. */
double em_topic_parameters_finish(em_topic_parameters *topics, const double *theta, double sweeps,
                                  double *count)
{
    const int64_t n_topic = topics->shape.n_topic;
    const double *weight = weigh(topics, theta);
    const double density = log_likelihood(topics, weight, count) / sweeps;
    const bool is_mean = topics->form == EM_TOPICS_MEAN;
    double *restrict share = topics->total;

    sum_words(topics, count, topics->count);
    for (int64_t k = 0; k < n_topic; k++) {
        topics->count[k] /= sweeps;
        share[k] = topics->count[k] / share[k];
    }
    for (int64_t v = 0; v < topics->shape.n_word; v++) {
        double *restrict row = count + v * n_topic;
        const double *w = weight + v * n_topic;
        for (int64_t k = 0; k < n_topic; k++)
            row[k] = is_mean ? row[k] / (sweeps * above_zero(w[k])) - share[k]
                             : row[k] / sweeps - w[k] * share[k];
    }
    return density;
}

/* ---------------------------------------------------------------- metric */

/* Adds derivatives. With f = phi (1 - phi) and f' = 1 - 2 phi, sum_v weight_v f_v has the
 * derivative phi_u (weight_u f'_u - sum_v weight_v f'_v phi_v) by theta_u. */
static void add_derivatives(em_topic_parameters *topics, const double *tokens, const double *phi,
                            const em_diagonal *ask)
{
    const int64_t n_topic = topics->shape.n_topic;
    double *restrict mean = topics->total, *restrict f = topics->count;

    memset(mean, 0, (size_t)n_topic * sizeof *mean);
    memset(f, 0, (size_t)n_topic * sizeof *f);
    for (int64_t i = 0; i < topics->n; i++) {
        mean[i % n_topic] += ask->weight[i] * (1 - 2 * phi[i]) * phi[i];
        f[i % n_topic] += ask->weight[i] * (1 - phi[i]) * phi[i];
    }
    for (int64_t i = 0; i < topics->n; i++)
        ask->slope[i] =
            tokens[i % n_topic] * phi[i] * (ask->weight[i] * (1 - 2 * phi[i]) - mean[i % n_topic]);
}

void em_topic_parameters_diagonal(em_topic_parameters *topics, const double *tokens,
                                  const em_diagonal *ask)
{
    const int64_t n_topic = topics->shape.n_topic;
    double *phi = topics->work;

    weigh(topics, ask->theta);
    for (int64_t i = 0; i < topics->n; i++)
        phi[i] /= topics->total[i % n_topic];
    for (int64_t i = 0; ask->metric && i < topics->n; i++)
        ask->metric[i] =
            1 / (topics->sd * topics->sd) + tokens[i % n_topic] * phi[i] * (1 - phi[i]);
    for (int64_t i = 0; ask->own && i < topics->n; i++)
        ask->own[i] = tokens[i % n_topic] * phi[i] * (1 - phi[i]) * (1 - 2 * phi[i]);
    if (ask->slope)
        add_derivatives(topics, tokens, phi, ask);
}
