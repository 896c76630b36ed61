#include "model/gamma_process.h"

#include "emass/random.h"

#include <math.h>

#define START_SPREAD 0.3

static double round_of(const em_gamma_process *process, int64_t k)
{
    return (double)(1 + process->rounds * k / process->n);
}

void em_gamma_process_place(const em_gamma_process *process, const em_draw *draw, uint64_t first,
                            double *theta)
{
    const int64_t n = process->n;

    em_draw_normals(draw, first, em_gamma_process_size(process), theta);
    for (int64_t i = 0; i < em_gamma_process_size(process); i++)
        theta[i] *= START_SPREAD;
    for (int64_t k = 0; k < n; k++)
        theta[n + k] += log(round_of(process, k));
}

/* A Gamma(shape, rate) variable x = exp(theta): log density of theta and its derivative. */
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
