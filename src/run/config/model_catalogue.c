#include "run/config/model_catalogue.h"

#include "adaptation/mass_window/mass_options.h"
#include "mass/estimator.h"
#include "model/model_list.h"
#include "sampler/kernel/sampler.h"

bool em_model_variant(int i, em_variant *out)
{
    const em_model_ops *ops = em_model_at(i);

    if (ops)
        *out = (em_variant){ops->name, ops->doc, ops->source, ops->options_size, ops->fields};
    return ops;
}

bool em_sampler_variant(int i, em_variant *out)
{
    const em_sampler_ops *ops = em_samplers[i];

    if (ops)
        *out = (em_variant){ops->name, ops->doc, ops->source, ops->options_size, ops->fields};
    return ops;
}

bool em_estimator_variant(int i, em_variant *out)
{
    const em_estimator_ops *ops = em_estimators[i];

    if (ops) /* all of them have the options of the section */
        *out =
            (em_variant){ops->name, ops->doc, ops->source, sizeof(em_mass_options), em_mass_fields};
    return ops;
}
