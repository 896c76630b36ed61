/* The posterior between a reference distribution and the posterior of the model. */
#include "posterior/tempered.h"

#include "posterior/inside.h"

#include <string.h>

struct em_tempering_panel {
    const em_temperature *of; /* [n_chain] */
    int64_t *chain, *row;     /* [n_chain] chains that p is evaluated for: number, row asked for */
    double *log_density;      /* [n_chain] of p */
    double *reference;        /* [stride] gradient of log r */
};

static em_status create_panel(em_owner *owner, int64_t n_chain, int64_t stride,
                              const em_temperature *of, em_tempering_panel **out)
{
    const em_status status = em_own_all(owner, EM_ARRAY(*out, 1));

    if (status)
        return status;
    (*out)->of = of;
    return em_own_all(owner, EM_ARRAY((*out)->chain, n_chain), EM_ARRAY((*out)->row, n_chain),
                      EM_ARRAY((*out)->log_density, n_chain), EM_ARRAY((*out)->reference, stride));
}

void em_tempered_gradient(double beta, int64_t n, const double *of_r, const double *of_p,
                          double *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = em_tempered_density(beta, of_r[i], of_p[i]);
}

/* Evaluates p for the chains that are not at beta 0, with their rows packed. */
static em_status evaluate_model(em_posterior *posterior, const em_query *query)
{
    em_tempering_panel *panel = posterior->tempering;
    em_query hot = *query;

    hot.n_chain = 0;
    for (int64_t i = 0; i < query->n_chain; i++) {
        if (panel->of[query->chain[i] - posterior->first_chain].beta == 0)
            continue;
        panel->row[hot.n_chain] = i;
        panel->chain[hot.n_chain] = query->chain[i];
        memcpy(posterior->theta + hot.n_chain++ * query->stride, query->theta + i * query->stride,
               (size_t)query->stride * sizeof *query->theta);
    }
    hot.chain = panel->chain;
    hot.theta = posterior->theta;
    hot.gradient = posterior->gradient;
    hot.log_density = panel->log_density;
    return hot.n_chain > 0 ? em_posterior_evaluate(posterior->parent, &hot) : EM_OK;
}

static em_status answer(em_posterior *posterior, const em_query *query)
{
    const int64_t stride = query->stride;
    em_tempering_panel *panel = posterior->tempering;
    em_status status = evaluate_model(posterior, query);

    for (int64_t i = 0, hot = 0; status >= 0 && i < query->n_chain; i++) {
        const em_temperature *at = &panel->of[query->chain[i] - posterior->first_chain];
        double *gradient = query->gradient + i * stride, log_r = 0;
        const bool has_model = at->beta != 0;
        if (at->beta != 1)
            status = at->reference->evaluate(at->reference, query->chain[i],
                                             query->theta + i * stride, &log_r, panel->reference);
        query->log_density[i] =
            em_tempered_density(at->beta, log_r, has_model ? panel->log_density[hot] : 0);
        em_tempered_gradient(at->beta, stride, panel->reference,
                             has_model ? posterior->gradient + hot * stride : panel->reference,
                             gradient);
        hot += has_model;
    }
    return status < 0 ? status : EM_OK;
}

const em_temperature *em_temperature_of(const em_posterior *posterior, int64_t chain)
{
    return &posterior->tempering->of[chain - posterior->first_chain];
}

em_status em_posterior_create_tempered(em_posterior *parent, int64_t n_chain, int64_t first_chain,
                                       const em_temperature *of, em_posterior **out)
{
    em_status status = em_posterior_create_within(parent, n_chain, first_chain, out);

    if (status)
        return status;
    (*out)->answer = answer;
    status = create_panel(&(*out)->memory, n_chain, em_stride(parent->model->dim), of,
                          &(*out)->tempering);
    if (status)
        em_posterior_destroy(out);
    return status;
}
