#include "sampler/riemannian/metric_langevin.h"

#include <math.h>

em_status em_metric_langevin_set_up(em_sampler *base, em_divergence of, int64_t n_chain,
                                    int64_t dim)
{
    em_metric_langevin *s = (em_metric_langevin *)base;
    const em_status status = em_langevin_set_up(base, n_chain, dim);

    s->options = base->options;
    return status
               ? status
               : em_metric_create(&base->memory, &s->options->metric, of, n_chain, dim, &s->metric);
}

em_metric_kind em_metric_langevin_metric(const void *options)
{
    return (em_metric_kind)((const em_metric_langevin_options *)options)->metric.kind;
}

em_status em_metric_langevin_step(em_metric_langevin *self, const em_step_context *context,
                                  em_block *block,
                                  void (*agitate)(em_metric_langevin *, const em_block *),
                                  void (*move)(em_metric_langevin *, em_block *, int64_t c))
{
    em_langevin *s = &self->langevin;
    const bool is_whole = s->options->common.minibatch == INT64_MIN;
    em_status status = EM_OK;

    em_langevin_begin(s, context, block, 0);
    for (int64_t k = 0; status >= 0 && k < s->options->leapfrog_steps; k++) {
        status = em_stochastic_gradient(s->options, context, block, k);
        status =
            status ? status : em_metric_evaluate_density(self->metric, context, block, is_whole);
        em_stochastic_noise(s->options, context, block, k, s->normals);
        if (agitate)
            agitate(self, block);
        for (int64_t c = 0; status >= 0 && c < block->n_chain; c++) {
            status = em_metric_set_position(self->metric, context, block, c);
            if (status > 0)
                block->theta[c * block->stride] = NAN; /* em_langevin_end restores the chain */
            else if (!status)
                move(self, block, c);
        }
    }
    em_langevin_end(s, context, block);
    return status < 0 ? status : EM_OK;
}
