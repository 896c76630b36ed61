/* The model and the samplers that the names in a config choose. */
#include "base/memory.h"
#include "base/text.h"
#include "base/text/nearest.h"
#include "model/model_list.h"
#include "run/config/config_parse.h"
#include "run/config/config_path.h"
#include "run/config/model_catalogue.h"
#include "sampler/kernel/sampler.h"

#include <string.h>

/* Whether this is a regression that has another family, or other effects, than those of the models
 * here. */
static bool is_other_regression(const char *name)
{
    static const char *const names[] = {
        "gamma",    "beta",     "ordinal",     "cumulative",       "ordered",  "multinomial",
        "probit",   "cloglog",  "categorical", "inverse_gaussian", "binomial", "zero_inflated",
        "weibull",  "cox",      "survival",    "lognormal",        "tweedie",  "hurdle",
        "mixed",    "lmer",     "glmer",       "multilevel",       "gam",      "hierarchical",
        "quantile", "stan_glm", "brms"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static em_status unknown_variant(const em_config_section *section, const em_yaml_entry *entry)
{
    const bool is_text = entry->value.kind == EM_VALUE_SCALAR;
    const char *found = is_text ? entry->value.text.value[0] : "";
    em_nearest nearest = em_nearest_start(found);
    em_variant variant;

    for (int i = 0; section->variants(i, &variant); i++)
        em_nearest_offer(&nearest, variant.name);
    if (!is_text)
        return em_fail(EM_ECONFIG, "%s: %s: expected a name (see emass list %ss)", entry->place,
                       entry->key, section->kind);
    if (strcmp(section->kind, "model") == 0 && is_other_regression(found))
        return em_fail(
            EM_ECONFIG,
            "%s: unknown model '%s'; regressions are linear, logistic, poisson and "
            "negative_binomial, and another takes a Stan program (name: stan), which brms "
            "or Bambi write",
            entry->place, found);
    if (nearest.name)
        return em_fail(EM_ECONFIG, "%s: unknown %s '%s'; did you mean %s?", entry->place,
                       section->kind, em_excerpt_of(found).text, nearest.name);
    return em_fail(EM_ECONFIG, "%s: unknown %s '%s' (see emass list %ss)", entry->place,
                   section->kind, em_excerpt_of(found).text, section->kind);
}

/* Chooses the variant and allocates its options; *index is its place in the list, unless a name is
 * missing, which is for require_name to say, after misspelt keys. */
static em_status choose(em_parse *p, em_config_section *section, int *index)
{
    const em_yaml_entry *entry = em_yaml_find(p->yaml, em_join_key(section->name, "name").text);
    const bool is_text = entry && entry->value.kind == EM_VALUE_SCALAR;
    const char *name = is_text ? entry->value.text.value[0] : entry ? NULL : section->fallback;
    em_variant variant;

    if (!entry && !name)
        return EM_OK;
    for (int i = 0; name && section->variants(i, &variant); i++)
        if (strcmp(variant.name, name) == 0) {
            *index = i;
            section->chosen = variant.name;
            section->fields = variant.fields;
            return em_allocate(1, variant.options_size, &section->options);
        }
    return unknown_variant(section, entry);
}

/* The library where the model's name is none of ours; NULL: none is given, or it is an option. */
static const em_yaml_entry *find_library(const em_parse *p)
{
    const em_yaml_entry *name = em_yaml_find(p->yaml, "model.name");
    const em_yaml_entry *library = em_yaml_find(p->yaml, "model.library");
    const char *wanted =
        name && name->value.kind == EM_VALUE_SCALAR ? name->value.text.value[0] : "";
    em_variant variant;

    for (int i = 0; em_model_variant(i, &variant); i++)
        if (strcmp(variant.name, wanted) == 0)
            return NULL;
    return library && library->value.kind == EM_VALUE_SCALAR ? library : NULL;
}

/* A model that is in a plug-in. */
static em_status choose_plugin(em_parse *p, const em_yaml_entry *library)
{
    const em_yaml_entry *name = em_yaml_find(p->yaml, "model.name");
    em_config_section *section = &p->section[EM_SECTION_MODEL];
    char *path = NULL;
    em_status status = em_copy_text(library->value.text.value[0], &path);

    if (!status)
        status = em_expand_path(p->config->path, &path);
    if (!status)
        status = em_plugin_open(path, &p->config->plugin);
    em_release(&path);
    if (status == EM_ECONFIG)
        return em_fail(status, "%s: %s: %s", library->place, library->key, em_error_text());
    if (status)
        return status;
    p->config->model = em_plugin_model(p->config->plugin);
    section->chosen = p->config->model->name;
    section->fields = p->config->model->fields;
    if (name && (name->value.kind != EM_VALUE_SCALAR ||
                 strcmp(name->value.text.value[0], section->chosen) != 0))
        return em_fail(EM_ECONFIG, "%s: %s: expected %s, the model that is in %s", name->place,
                       name->key, section->chosen,
                       em_excerpt_of(library->value.text.value[0]).text);
    return em_allocate(1, p->config->model->options_size, &section->options);
}

em_status em_config_choose_model(em_parse *p)
{
    const em_yaml_entry *library = find_library(p);
    em_config_section *section = &p->section[p->n_section++];
    int model = 0;

    *section = (em_config_section){.name = "model", .kind = "model", .variants = em_model_variant};
    const em_status status = library ? choose_plugin(p, library) : choose(p, section, &model);

    if (!library)
        p->config->model = em_model_at(model);
    p->config->model_options = section->options;
    return status;
}

/* The parameters that a sampler of a list is of. */
static em_status read_block(em_parse *p, const em_config_section *section,
                            em_kernel_options *kernel)
{
    const em_yaml_entry *parent = em_yaml_find(p->yaml, section->name);
    const em_yaml_entry *block = em_yaml_find(p->yaml, em_join_key(section->name, "block").text);
    em_status status;

    if (!block)
        return em_fail(EM_ECONFIG, "%s: %s.block is missing: which parameters it moves",
                       parent->place, section->name);
    if (block->value.kind != EM_VALUE_SCALAR)
        return em_fail(EM_ECONFIG, "%s: %s: expected the name of a block of the model's parameters",
                       block->place, block->key);
    status = em_copy_text(block->value.text.value[0], &kernel->block);
    return status ? status : em_copy_text(block->place, &kernel->location);
}

static em_status choose_kernel(em_parse *p, int i)
{
    em_kernel_options *kernel = &p->config->kernel[i];
    em_config_section *section = &p->section[EM_SECTION_SAMPLER + i];
    int sampler = 0;
    em_status status;

    if (!p->is_list)
        section->fallback =
            p->config->model->sampler ? p->config->model->sampler : em_default_sampler;
    status = choose(p, section, &sampler);
    kernel->ops = em_samplers[sampler];
    kernel->options = section->options;
    return status || !p->is_list ? status : read_block(p, section, kernel);
}

em_status em_config_choose_samplers(em_parse *p)
{
    em_config *config = p->config;
    em_status status = EM_OK;

    for (int i = 0; !status && i < config->n_kernel; i++)
        status = choose_kernel(p, i);
    config->sampler = config->kernel[0].ops;
    config->sampler_options = config->kernel[0].options;
    return status;
}
