/*
 * The stochastic gradient Nose-Hoover thermostat as printed (Roychowdhury & Parthasarathy 2017,
 * Alg. 2), `paper: true`: Euler's method with the friction xi W p and the noise N(0, 2 a eps I),
 *
 *     p <- p + eps g - eps xi W p + N(0, 2 a eps I);  theta <- theta + eps W p,
 *     xi <- xi + eps (p^T W p - D) / mu
 *
 * which leaves no product law invariant unless M is proportional to the identity.
 */
#include "sampler/thermostat/sgnht.h"

#include <math.h>

/* Kicks p with a friction by the velocity v and with standard normals z. */
static void sgnht_printed_kick(int64_t n, double eps, double a, double xi, const double *g,
                               const double *v, const double *z, double *restrict p)
{
    const double scale = sqrt(2 * a * eps);

    for (int64_t i = 0; i < n; i++)
        p[i] += eps * g[i] - eps * xi * v[i] + scale * z[i];
}

em_status em_sgnht_step_printed(em_sampler *base, const em_step_context *context, em_block *block)
{
    em_sgnht_sampler *s = (em_sgnht_sampler *)base;
    em_thermostat *t = &s->thermostat;
    const int64_t n = block->stride;
    em_status status = EM_OK;

    em_thermostat_begin(t, block);
    for (int64_t k = 0; !status && k < t->options->leapfrog_steps; k++) {
        em_stochastic_noise(t->options, context, block, k, t->normals);
        status = em_stochastic_gradient(t->options, context, block, k);
        em_mass_velocity(context->mass, block->n_chain, block->momentum, t->work);
        for (int64_t c = 0; c < block->n_chain; c++)
            sgnht_printed_kick(n, context->step_size[c], s->options->diffusion, block->extra[c],
                               block->gradient + c * n, t->work + c * n, t->normals + c * n,
                               block->momentum + c * n);
        em_sgnht_turn(s, context, block, 1, em_thermostat_drift(t, context, block, 1));
    }
    if (!status)
        em_thermostat_end(t, context, block);
    return status;
}
