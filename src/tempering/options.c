#include "tempering/tempering.h"

#include "emass/model/prior.h"

static const char *const moments[] = {
    [EM_TEMPER_ALWAYS] = "always", [EM_TEMPER_AUTO] = "auto", [EM_TEMPER_NEVER] = "never", NULL};
static const char *const references[] = {"auto", "prior", "normal", NULL};

const em_field em_temper_fields[] = {
    EM_CHOICE(em_temper_options, when, .fallback = "always", .choices = moments,
              .doc = "always; auto: chains start without tempering, and ladders begin only if "
                     "warmup ends in several modes; never: as without this section. temper: auto "
                     "means temper: {when: auto}"),
    EM_CHOICE(
        em_temper_options, reference, .fallback = "auto", .choices = references,
        .doc =
            "reference distribution of the first leg: prior, if the model can draw from it (the "
            "log evidence is then the log marginal likelihood); normal; auto: prior if possible"),
    EM_REAL(em_temper_options, scale, .minimum = 1e-6, .maximum = 1e9, .fallback = "auto",
            .word = "auto",
            .doc = "standard deviation of the normal reference in each unconstrained dimension; "
                   "auto: 10, or the distance from the origin of the farthest mode or warmup draw "
                   "if that is larger"),
    EM_INT(em_temper_options, rungs, .minimum = 2, .maximum = EM_MOST_LEG_RUNGS, .fallback = "auto",
           .word = "auto",
           .doc = "temperatures of a leg, reference and target included; auto: twice the "
                  "communication barrier, plus one"),
    EM_INT(em_temper_options, legs, .minimum = 1, .maximum = 2, .fallback = "2",
           .doc = "2: a second leg goes from the target to a normal distribution learned from the "
                  "draws of all ladders; its evidence checks that of the first"),
    {0}};

bool em_tempering_has_prior(const em_model *model)
{
    return model->ops->prior && model->ops->prior->draw && em_model_has_likelihood(model);
}

bool em_sampler_forbids_tempering(const em_sampler_ops *sampler, const em_sampler_options *options)
{
    return sampler->by_model || sampler->n_extra || em_takes_minibatches(sampler, options) ||
           sampler->minibatches || !(sampler->probe || sampler->without_gradient);
}

em_status em_tempering_check_kernel(const em_sampler_ops *sampler,
                                    const em_sampler_options *sampler_options,
                                    const em_model *model)
{
    if (em_sampler_forbids_tempering(sampler, sampler_options))
        return em_fail(
            EM_ECONFIG,
            "temper: sampler %s does not move by an exact density, expected hmc, nuts, walnuts, "
            "rhmc, slice or rwm",
            sampler->name);
    if (sampler->metric && !model->ops->metric)
        return em_fail(EM_ECONFIG, "model %s has no metric, which sampler %s needs",
                       model->ops->name, sampler->name);
    return EM_OK;
}

em_status em_tempering_check(const em_temper_options *options, const em_model *model)
{
    const em_model_prior *prior = model->ops->prior;

    if (em_model_forbids_tempering(model))
        return em_fail(EM_ECONFIG,
                       "temper: model %s keeps latent variables or estimates its density: expected "
                       "a model with an exact density of its parameters",
                       model->ops->name);
    if (options->reference == EM_REFERENCE_PRIOR && !em_tempering_has_prior(model))
        return em_fail(EM_ECONFIG, "temper.reference: found prior, expected normal: model %s %s",
                       model->ops->name,
                       prior && prior->none ? prior->none
                                            : "has no function that draws from its prior, or does "
                                              "not separate prior and likelihood");
    return EM_OK;
}
