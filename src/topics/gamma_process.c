#include "topics/gamma_process.h"

#include "emass/random.h"

#include <math.h>

#define START_SPREAD 0.3

static double round_of(const em_gamma_process *process, int64_t k)
{
    return (double)(1 + process->rounds * k / process->n);
}

void em_gamma_process_start(const em_gamma_process *process, const em_draw *draw, uint64_t first,
                            double *theta)
{
    const int64_t n = process->n;

    em_draw_normals(draw, first, em_gamma_process_size(process), theta);
    for (int64_t i = 0; i < em_gamma_process_size(process); i++)
        theta[i] *= START_SPREAD;
    for (int64_t k = 0; k < n; k++)
        theta[n + k] += log(round_of(process, k));
}

/* Adds the log density, and its derivative, of theta where x = exp(theta) is a Gamma(shape, rate)
 * variable. */
static double add_log_gamma(double theta, double shape, double rate, double *gradient)
{
    *gradient += shape - rate * exp(theta);
    return shape * theta - rate * exp(theta);
}

void em_gamma_process_add_prior(const em_gamma_process *process, const double *theta,
                                double *log_density, double *gradient)
{
    const int64_t n = process->n;
    const double *hyper = theta + 2 * n;
    const double alpha = exp(hyper[0]), gamma = exp(hyper[1]), c = exp(hyper[2]);
    double sum = 0, all_E = 0, all_T = 0, all_d = 0;

    for (int64_t k = 0; k < n; k++) {
        const double d = round_of(process, k);
        sum += add_log_gamma(theta[k], 1, c, &gradient[k]);
        sum += add_log_gamma(theta[n + k], d, alpha, &gradient[n + k]) - lgamma(d);
        all_E += exp(theta[k]);
        all_T += exp(theta[n + k]);
        all_d += d;
    }
    sum += all_d * hyper[0] + (double)n * (hyper[1] + hyper[2]) - (double)process->rounds * gamma;
    gradient[2 * n] += all_d - alpha * all_T;
    gradient[2 * n + 1] += (double)n - (double)process->rounds * gamma;
    gradient[2 * n + 2] += (double)n - c * all_E;
    for (int i = 0; i < EM_GAMMA_HYPER; i++)
        sum += add_log_gamma(hyper[i], process->shape, process->rate, &gradient[2 * n + i]);
    *log_density += sum;
}

bool em_gamma_process_weights(const em_gamma_process *process, const double *theta, double *r)
{
    const int64_t n = process->n;
    bool finite = true;

    for (int64_t k = 0; k < n; k++) {
        r[k] = exp(theta[k] - exp(theta[n + k])) + EM_LEAST_WEIGHT;
        finite &= isfinite(r[k]) != 0;
    }
    return finite;
}

void em_gamma_process_add_slope(const em_gamma_process *process, const double *theta,
                                const double *slope, double *gradient)
{
    const int64_t n = process->n;

    for (int64_t k = 0; k < n; k++) {
        const double T = exp(theta[n + k]), weight = exp(theta[k] - T);
        gradient[k] += weight * slope[k];
        gradient[n + k] -= weight * T * slope[k];
    }
}

static double all_rounds(const em_gamma_process *process)
{
    double sum = 0;

    for (int64_t k = 0; k < process->n; k++)
        sum += round_of(process, k);
    return sum;
}

/* Computes the derivatives of a weighted sum of the diagonal. With g_k = weight(E_k) + weight(T_k)
 * T_k^2, sum_i weight_i G_i has the derivative g_k S + S' sum_l g_l w_l by w_k, where S' = dS/dR.
 * Its derivative by T_k has a further term of its own. */
void em_gamma_process_diagonal(const em_gamma_process *process, em_gamma_documents documents,
                               const em_diagonal *ask)
{
    const int64_t n = process->n;
    const double *E = ask->theta, *T = E + n, *of_E = ask->weight, *of_T = of_E + n;
    double R = (double)n * EM_LEAST_WEIGHT, all = 0;

    for (int64_t k = 0; k < n; k++) {
        const double t = exp(T[k]), w = exp(E[k] - t);
        R += w;
        all += (of_E[k] + of_T[k] * t * t) * w;
    }
    const double S = documents.number * log1p(documents.length / R);
    const double change = documents.number * (1 / (R + documents.length) - 1 / R);
    for (int64_t k = 0; k < n; k++) {
        const double t = exp(T[k]), w = exp(E[k] - t), tt = t * t;
        const double by_w = (of_E[k] + of_T[k] * tt) * S + change * all;
        ask->metric[k] = 1 + w * S;
        ask->metric[n + k] = round_of(process, k) + tt * w * S;
        ask->own[k] = w * (S + w * change);
        ask->own[n + k] = tt * w * ((2 - t) * S - t * w * change);
        ask->slope[k] = w * by_w;
        ask->slope[n + k] = 2 * of_T[k] * tt * w * S - t * w * by_w;
    }
    for (int64_t i = 2 * n; i < em_gamma_process_size(process); i++) {
        ask->metric[i] = process->shape + (i == 2 * n ? all_rounds(process) : (double)n);
        ask->own[i] = ask->slope[i] = 0;
    }
}
