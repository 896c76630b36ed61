/* The sections of a config, which has one sampler or a list of them. */
#include "base/text.h"
#include "emass/model/counts.h"
#include "run/config/config_parse.h"

#include <stdio.h>
#include <string.h>

/* Sections of samplers in a list. */
const char *const em_sampler_sections[EM_MOST_KERNELS] = {
    "sampler[0]",  "sampler[1]",  "sampler[2]",  "sampler[3]", "sampler[4]",  "sampler[5]",
    "sampler[6]",  "sampler[7]",  "sampler[8]",  "sampler[9]", "sampler[10]", "sampler[11]",
    "sampler[12]", "sampler[13]", "sampler[14]", "sampler[15]"};

/* The sections of their masses. */
const char *const em_mass_sections[EM_MOST_KERNELS] = {
    "sampler[0].mass",  "sampler[1].mass",  "sampler[2].mass",  "sampler[3].mass",
    "sampler[4].mass",  "sampler[5].mass",  "sampler[6].mass",  "sampler[7].mass",
    "sampler[8].mass",  "sampler[9].mass",  "sampler[10].mass", "sampler[11].mass",
    "sampler[12].mass", "sampler[13].mass", "sampler[14].mass", "sampler[15].mass"};

em_key em_join_key(const char *section, const char *option)
{
    em_key joined;

    snprintf(joined.text, sizeof joined.text, "%s.%s", section, option);
    return joined;
}

bool em_is_element(const em_parse *p, const em_config_section *section)
{
    return p->is_list && section->kind && strcmp(section->kind, "sampler") == 0;
}

static void add_section(em_parse *p, em_config_section section)
{
    p->section[p->n_section++] = section;
}

bool em_config_has_section(const em_yaml *yaml, const char *name)
{
    const size_t length = strlen(name);

    for (int64_t i = 0; i < yaml->count; i++)
        if (strncmp(yaml->entry[i].key, name, length) == 0 &&
            (yaml->entry[i].key[length] == '.' || !yaml->entry[i].key[length]))
            return true;
    return false;
}

/* The sections of a config, which has one sampler or a list of them. */
em_status em_config_lay_sections(em_parse *p)
{
    em_config *config = p->config;
    int n = 0;

    while (n < EM_MOST_KERNELS && em_yaml_find(p->yaml, em_sampler_sections[n]))
        n++;
    if (n == EM_MOST_KERNELS && em_yaml_find(p->yaml, "sampler[16]"))
        return em_fail(EM_ECONFIG, "%s: more than %d samplers",
                       em_yaml_find(p->yaml, "sampler[16]")->place, EM_MOST_KERNELS);
    p->is_list = n > 0;
    config->n_kernel = p->is_list ? n : 1;
    for (int i = 0; i < config->n_kernel; i++)
        add_section(p, (em_config_section){.name = p->is_list ? em_sampler_sections[i] : "sampler",
                                           .kind = "sampler",
                                           .variants = em_sampler_variant});
    add_section(
        p, (em_config_section){.name = "mass", .fields = em_mass_fields, .options = &config->mass});
    add_section(
        p, (em_config_section){.name = "run", .fields = em_run_fields, .options = &config->run});
    add_section(
        p, (em_config_section){.name = "stop", .fields = em_stop_fields, .options = &config->stop});
    add_section(p, (em_config_section){
                       .name = "output", .fields = em_output_fields, .options = &config->output});
    config->temper.on = em_config_has_section(p->yaml, "temper");
    if (config->temper.on)
        add_section(p, (em_config_section){.name = "temper",
                                           .fields = em_temper_fields,
                                           .options = &config->temper});
    p->n_outer = p->n_section;
    for (int i = 0; i < config->n_kernel; i++) {
        config->kernel[i].mass = p->is_list ? &config->kernel[i].own_mass : &config->mass;
        if (p->is_list)
            add_section(p, (em_config_section){.name = em_mass_sections[i],
                                               .fields = em_block_mass_fields,
                                               .options = &config->kernel[i].own_mass,
                                               .inherits = "mass"});
    }
    return EM_OK;
}

int em_config_sections(const em_config *config, em_section section[EM_MOST_SECTIONS])
{
    const em_section temper = {
        .name = "temper", .fields = em_temper_fields, .options = &config->temper};
    const em_section last[] = {
        {.name = "mass", .fields = em_mass_fields, .options = &config->mass},
        {.name = "run", .fields = em_run_fields, .options = &config->run},
        {.name = "stop", .fields = em_stop_fields, .options = &config->stop},
        {.name = "output", .fields = em_output_fields, .options = &config->output}};
    int n = 0;

    section[n++] = (em_section){.name = "model",
                                .chosen = config->model->name,
                                .fields = config->model->fields,
                                .options = config->model_options};
    for (int i = 0; i < config->n_kernel; i++) {
        const em_kernel_options *kernel = &config->kernel[i];
        section[n++] = (em_section){.name = kernel->block ? em_sampler_sections[i] : "sampler",
                                    .chosen = kernel->ops->name,
                                    .block = kernel->block,
                                    .fields = kernel->ops->fields,
                                    .options = kernel->options};
        if (kernel->block)
            section[n++] = (em_section){.name = em_mass_sections[i],
                                        .inherits = "mass",
                                        .fields = em_block_mass_fields,
                                        .options = &kernel->own_mass};
    }
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        section[n++] = last[i];
    if (config->temper.on)
        section[n++] = temper;
    return n;
}

bool em_config_takes_minibatches(const em_config *config)
{
    for (int i = 0; i < config->n_kernel; i++)
        if (em_takes_minibatches(config->kernel[i].ops, config->kernel[i].options))
            return true;
    return false;
}

bool em_config_shards_matter(const em_config *config)
{
    return !(config->model->counts && config->model->counts->all) &&
           em_config_takes_minibatches(config) && config->run.minibatch_sums == EM_MINIBATCH_FAST;
}

/* The key's option, where it is one of a model; else NULL. */
static const char *option_of_model(const char *key)
{
    static const char section[] = "model.";

    return strncmp(key, section, strlen(section)) == 0 ? key + strlen(section) : NULL;
}

em_yaml_data em_config_is_data(const void *model, const char *key)
{
    const em_model_ops *ops = model;
    const char *option = option_of_model(key);

    if (!option)
        return EM_YAML_NO_DATA;
    if (!ops)
        return EM_YAML_LOOKED_OVER;
    const em_field *field = em_field_find(ops->fields, option);
    if (field && field->type == EM_FIELD_JSON)
        return EM_YAML_ALL_IS_DATA;
    return field && field->type == EM_FIELD_DATA ? EM_YAML_MAPPING_IS_DATA : EM_YAML_NO_DATA;
}

em_yaml_data em_config_may_be_data(const void *context, const char *key)
{
    (void)context;
    return option_of_model(key) ? EM_YAML_ALL_IS_DATA : EM_YAML_NO_DATA;
}
