#include "run/config/compatibility.h"

#include "base/memory.h"
#include "base/options/field.h"
#include "base/text.h"
#include "emass/model/latent.h"
#include "par/world.h"

#include <string.h>

/* Among the parameters that a sampler moves, the first block whose parameters are positive or, as
 * asked, the first whose need not be. NULL: none. */
static const em_parameters *moved(const em_kernel_options *kernel, const em_model *model,
                                  bool positive)
{
    for (int64_t b = 0; b < model->n_block; b++)
        if (model->block[b].positive == positive &&
            (!kernel->block || strcmp(model->block[b].name, kernel->block) == 0))
            return &model->block[b];
    return NULL;
}

static bool has_positive(const em_model *model)
{
    for (int64_t b = 0; b < model->n_block; b++)
        if (model->block[b].positive)
            return true;
    return false;
}

/* Whether the model has the option `parameters`, which topic models have. It selects the parameters
 * of which the word distributions are functions. */
static bool has_parameters_option(const em_config *config)
{
    return em_field_find(config->model->fields, "parameters") != NULL;
}

static em_metric_kind metric_of(const em_kernel_options *kernel)
{
    return kernel->ops->metric ? kernel->ops->metric(kernel->options) : EM_METRIC_MASS;
}

static em_status check_positive(const em_config *config, const em_kernel_options *kernel,
                                const em_model *model)
{
    const em_sampler_ops *sampler = kernel->ops;
    const bool keeps = metric_of(kernel) == EM_METRIC_EXPANDED_MEAN;
    const em_parameters *positive = moved(kernel, model, true);
    const em_parameters *free = moved(kernel, model, false);

    if (sampler->by_model)
        return EM_OK;
    if (positive && !keeps)
        return em_fail(EM_ECONFIG,
                       "sampler %s does not keep %s of model %s above zero: expected sgrld or "
                       "sgrhmc with metric: expanded_mean%s",
                       sampler->name, positive->name, model->ops->name,
                       free && !kernel->block ? ", for that block alone" : "");
    if (free && keeps)
        return em_fail(EM_ECONFIG,
                       "sampler %s with metric: expanded_mean keeps %s of model %s above zero, but "
                       "they may be negative: expected %s",
                       sampler->name, free->name, model->ops->name,
                       has_positive(model)
                           ? "a list of samplers, with another sampler for that block"
                       : has_parameters_option(config) ? "model.parameters: expanded_mean"
                                                       : "another metric");
    return EM_OK;
}

static em_status check_kernel(const em_config *config, const em_kernel_options *kernel,
                              const em_model *model)
{
    const em_sampler_ops *sampler = kernel->ops;
    const char *name = model->ops->name;

    if (sampler->by_model && !(model->ops->latent && model->ops->latent->update))
        return em_fail(EM_ECONFIG,
                       "sampler %s needs an update by the model, but model %s has none: expected "
                       "another sampler",
                       sampler->name, name);
    if (sampler->by_model && model->update_of &&
        !(kernel->block && strcmp(kernel->block, model->update_of) == 0))
        return em_fail(EM_ECONFIG,
                       "%s%ssampler %s needs an update by model %s, which has one for %s only: "
                       "expected another sampler",
                       kernel->location ? kernel->location : "", kernel->location ? ": " : "",
                       sampler->name, name, model->update_of);
    if (!sampler->by_model && !model->ops->add_prior)
        return em_fail(
            EM_ECONFIG,
            "sampler %s needs a density, which model %s does not have: expected sampler %s",
            sampler->name, name,
            !has_parameters_option(config) ? "gibbs"
            : metric_of(kernel) == EM_METRIC_EXPANDED_MEAN || strcmp(sampler->name, "sgrld") == 0
                ? "lda_gibbs, or model.parameters: expanded_mean with metric: expanded_mean"
            : sampler->minibatches ? "lda_gibbs, or model.parameters: expanded_natural"
                                   : "lda_gibbs");
    if (!sampler->by_model && !sampler->minibatches && model->estimates)
        return em_fail(EM_ECONFIG,
                       "sampler %s needs an exact density, but model %s estimates it by random "
                       "numbers: expected a sampler that takes minibatches (emass list samplers)",
                       sampler->name, name);
    if (model->gradient == EM_GRADIENT_NONE && !sampler->without_gradient && !sampler->by_model)
        return em_fail(EM_ECONFIG,
                       "sampler %s needs gradients, and model %s has none: expected slice or rwm",
                       sampler->name, name);
    if (metric_of(kernel) == EM_METRIC_DENSITY && model->estimates)
        return em_fail(EM_ECONFIG,
                       "sampler %s with metric: density needs an exact density, but model %s "
                       "estimates it by random numbers: expected another metric",
                       sampler->name, name);
    return check_positive(config, kernel, model);
}

const em_parameters *em_sampler_parameters(const em_config *config, const em_model *model, int i)
{
    for (int64_t b = 0; config->kernel[i].block && b < model->n_block; b++)
        if (strcmp(model->block[b].name, config->kernel[i].block) == 0)
            return &model->block[b];
    return NULL;
}

/* The names of the model's blocks: "mu, tau". */
static void list_blocks(const em_model *model, size_t bytes, char *out)
{
    out[0] = '\0';
    for (int64_t b = 0; b < model->n_block; b++)
        em_append(bytes, out, "%s%s", b > 0 ? ", " : "", model->block[b].name);
}

static em_status check_block(const em_config *config, const em_model *model, int i)
{
    const em_kernel_options *kernel = &config->kernel[i];
    char names[512];

    list_blocks(model, sizeof names, names);
    if (!em_sampler_parameters(config, model, i))
        return em_fail(EM_ECONFIG, "%s: block: found '%s', expected one of model %s: %s",
                       kernel->location, em_excerpt_of(kernel->block).text, model->ops->name,
                       model->n_block > 0 ? names : "it names none");
    for (int k = 0; k < i; k++)
        if (strcmp(config->kernel[k].block, kernel->block) == 0)
            return em_fail(EM_ECONFIG, "%s: block: found '%s' again, expected each block once",
                           kernel->location, em_excerpt_of(kernel->block).text);
    return EM_OK;
}

/* Checks that every block of the model has a sampler. */
static em_status check_cover(const em_config *config, const em_model *model)
{
    for (int64_t b = 0; b < model->n_block; b++) {
        bool found = false;
        for (int i = 0; i < config->n_kernel; i++)
            found |= strcmp(model->block[b].name, config->kernel[i].block) == 0;
        if (!found)
            return em_fail(EM_ECONFIG, "%s: no sampler for block %s of model %s", config->path,
                           model->block[b].name, model->ops->name);
    }
    return EM_OK;
}

/* Warns that a model has no gradient but a sampler needs one. */
static void warn_of_differences(const em_sampler_ops *sampler, const em_model *model)
{
    if (model->gradient == EM_GRADIENT_DIFFERENCES && !sampler->without_gradient &&
        !sampler->by_model)
        em_say("warning: model %s gives no gradient: central differences take %lld densities for "
               "each that sampler %s needs; samplers slice and rwm need none",
               model->ops->name, (long long)(2 * model->dim), sampler->name);
}

/* Refuses ranks_per_chain for a model that does not divide the work of an evaluation. */
static em_status check_ranks_per_chain(const em_config *config, const em_model *model)
{
    if (config->run.ranks_per_chain == 1 || (model->ops->use_ranks && model->rows.total == 0))
        return EM_OK;
    return em_fail(EM_ECONFIG,
                   "%s: run.ranks_per_chain is %lld, but model %s does not divide the work of an "
                   "evaluation among ranks (em_model_ops.use_ranks): expected 1, or run.shards if "
                   "the data can be divided",
                   config->path, (long long)config->run.ranks_per_chain, model->ops->name);
}

em_status em_check_samplers_suit_model(const em_config *config, const em_model *model)
{
    em_status status = check_ranks_per_chain(config, model);

    for (int i = 0; !status && i < config->n_kernel; i++) {
        status = check_kernel(config, &config->kernel[i], model);
        if (!status && config->kernel[i].block)
            status = check_block(config, model, i);
    }
    if (!status && config->kernel[0].block)
        status = check_cover(config, model);
    for (int i = 0; !status && i < config->n_kernel; i++)
        warn_of_differences(config->kernel[i].ops, model);
    return status;
}

em_status em_check_tempering_suits_model(const em_config *config, const em_model *model)
{
    em_status status = EM_OK;

    if (config->run.superchains > 0 || config->mass.from)
        return em_fail(EM_ECONFIG, "%s: temper: found %s too, expected one of them", config->path,
                       config->mass.from ? "mass.from" : "run.superchains");
    for (int i = 0; !status && i < config->n_kernel; i++)
        status = em_tempering_check_kernel(config->kernel[i].ops, config->kernel[i].options, model);
    return status ? status : em_tempering_check(&config->temper, model);
}

bool em_can_be_tempered(const em_config *config, const em_model *model)
{
    bool can = !em_model_forbids_tempering(model);

    for (int i = 0; i < config->n_kernel; i++)
        can &= !em_sampler_forbids_tempering(config->kernel[i].ops, config->kernel[i].options);
    return can;
}

em_status em_choose_blocks(const em_config *config, const em_model *model, em_mass_options *mass,
                           double **own)
{
    em_reals *blocks = &mass->blocks;

    if (mass->structure != EM_STRUCTURE_BLOCK_DIAGONAL || blocks->count > 0 || model->n_block < 2 ||
        config->n_kernel > 1)
        return EM_OK;
    const em_status status = em_allocate(model->n_block, sizeof **own, own);
    blocks->value = *own;
    for (int64_t i = 0; !status && i < model->n_block; i++)
        if (model->block[i].count > 0)
            blocks->value[blocks->count++] = (double)model->block[i].count;
    return status;
}
