#include "topics/belief_network.h"

#include "math/simd/vector.h"

#include <math.h>
#include <string.h>

em_status em_belief_network_create(em_owner *owner, em_belief_network *network)
{
    int64_t widest = 0;

    network->n_parameter = network->n_unit = 0;
    for (int l = 0; l < network->n_layer; l++) {
        const int64_t above = l + 1 < network->n_layer ? network->size[l + 1] : 0;
        network->n_parameter += network->size[l] * (above + 1);
        network->n_unit += network->size[l];
        widest = em_most(widest, em_stride(network->size[l]));
    }
    return em_own_all(owner, EM_ARRAY(network->logit, widest), EM_ARRAY(network->with, widest),
                      EM_ARRAY(network->without, widest), EM_ARRAY(network->room, widest),
                      EM_ARRAY(network->prior, widest));
}

void em_belief_network_add_prior(const em_belief_network *network, const double *theta,
                                 double *log_density, double *gradient)
{
    const double precision = 1 / (network->sd * network->sd);
    double sum = 0;

    for (int64_t i = 0; i < network->n_parameter; i++) {
        gradient[i] -= precision * theta[i];
        sum += theta[i] * theta[i];
    }
    *log_density -= precision * sum / 2;
}

/* The index of the first parameter of layer l. A layer has w and then c; the last layer has b. */
static int64_t parameters_of(const em_belief_network *network, int l)
{
    int64_t first = 0;

    for (int i = 0; i < l; i++)
        first += network->size[i] * (network->size[i + 1] + 1);
    return first;
}

static int64_t units_of(const em_belief_network *network, int l)
{
    int64_t first = 0;

    for (int i = 0; i < l; i++)
        first += network->size[i];
    return first;
}

void em_belief_network_logits(const em_belief_network *network, const double *theta,
                              const uint8_t *unit, int l, double *logit)
{
    const int64_t n = network->size[l];
    const bool is_last = l + 1 == network->n_layer;
    const int64_t above = is_last ? 0 : network->size[l + 1];
    const double *w = theta + parameters_of(network, l);
    const uint8_t *h = unit + units_of(network, l) + n;

    for (int64_t k = 0; k < n; k++) {
        logit[k] = w[n * above + k];
        for (int64_t i = 0; i < above; i++)
            logit[k] += h[i] ? w[k * above + i] : 0;
    }
}

/* The contribution of the layer below to the log odds that unit i of layer l is 1. The logits of
 * that layer are those for the current value of the unit. */
static double log_odds_below(em_belief_network *network, const double *w, const uint8_t *below,
                             int64_t n, int64_t above, int64_t i, bool is_set)
{
    double sum = 0;

    for (int64_t k = 0; k < n; k++) {
        const double weight = w[k * above + i];
        network->without[k] = network->logit[k] - (is_set ? weight : 0);
        network->with[k] = network->logit[k] + (is_set ? 0 : weight);
        sum += below[k] ? weight : 0;
    }
    for (int64_t k = n; k < em_stride(n); k++)
        network->with[k] = network->without[k] = 0;
    em_logistic(em_stride(n), network->with, network->with, network->room);
    em_logistic(em_stride(n), network->without, network->without, network->room);
    for (int64_t k = 0; k < n; k++)
        sum -= network->with[k] - network->without[k];
    return sum;
}

/* Updates the units of layer l, one after the other. */
static void sweep_layer(em_belief_network *network, const double *theta, int l,
                        const em_stream *stream, uint64_t first, uint8_t *unit)
{
    const int64_t n = network->size[l - 1], above = network->size[l];
    const double *w = theta + parameters_of(network, l - 1);
    const uint8_t *below = unit + units_of(network, l - 1);
    uint8_t *own = unit + units_of(network, l);

    em_belief_network_logits(network, theta, unit, l - 1, network->logit);
    em_belief_network_logits(network, theta, unit, l, network->prior);
    for (int64_t i = 0; i < above; i++) {
        const bool was = own[i];
        const double odds = network->prior[i] + log_odds_below(network, w, below, n, above, i, was);
        const double u = em_uniform(stream, first + (uint64_t)i);
        own[i] = log(u) - log1p(-u) < odds;
        for (int64_t k = 0; k < n && own[i] != was; k++)
            network->logit[k] += own[i] ? w[k * above + i] : -w[k * above + i];
    }
}

void em_belief_network_sweep(em_belief_network *network, const double *theta,
                             const em_stream *stream, uint64_t first, uint8_t *unit)
{
    for (int l = 1; l < network->n_layer; l++)
        sweep_layer(network, theta, l, stream, first + (uint64_t)units_of(network, l), unit);
}

/* Adds a layer's density and derivatives. The last layer has no weights; its units are independent.
 */
static double add_layer(em_belief_network *network, const double *theta, const uint8_t *unit, int l,
                        double unit_of_sum, double *sum)
{
    const int64_t n = network->size[l], width = em_stride(n);
    const int64_t above = l + 1 < network->n_layer ? network->size[l + 1] : 0;
    const uint8_t *own = unit + units_of(network, l), *h = own + n;
    double *w = sum + parameters_of(network, l), density = 0;

    em_belief_network_logits(network, theta, unit, l, network->logit);
    for (int64_t k = n; k < width; k++)
        network->logit[k] = 0;
    em_logistic(width, network->logit, network->with, network->without);
    for (int64_t k = 0; k < n; k++) {
        const double rest = rint((own[k] - network->without[k]) / unit_of_sum);
        density += (own[k] ? network->logit[k] : 0) - network->with[k];
        w[n * above + k] += rest;
        for (int64_t i = 0; i < above; i++)
            w[k * above + i] += h[i] ? rest : 0;
    }
    return density;
}

double em_belief_network_add(em_belief_network *network, const double *theta, const uint8_t *unit,
                             double unit_of_sum, double *sum)
{
    double density = 0;

    for (int l = 0; l < network->n_layer; l++)
        density += add_layer(network, theta, unit, l, unit_of_sum, sum);
    return rint(density / unit_of_sum);
}
