/* The sections of a config, which has one sampler or a list of them. */
#include "adaptation/mass_window/mass_options.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/text/nearest.h"
#include "emass/model/counts.h"
#include "mass/estimator.h"
#include "model/model_list.h"
#include "run/config/config.h"
#include "run/config/config_parse.h"
#include "run/config/config_path.h"
#include "run/config/model_catalogue.h"
#include "sampler/kernel/sampler.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The names of the sections of samplers in a list. */
const char *const em_sampler_sections[EM_MOST_KERNELS] = {
    "sampler[0]",  "sampler[1]",  "sampler[2]",  "sampler[3]", "sampler[4]",  "sampler[5]",
    "sampler[6]",  "sampler[7]",  "sampler[8]",  "sampler[9]", "sampler[10]", "sampler[11]",
    "sampler[12]", "sampler[13]", "sampler[14]", "sampler[15]"};

/* The names of the sections of the masses of samplers in a list. */
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

em_status em_config_say_entry(const em_yaml_entry *entry, em_status status)
{
    return status == EM_ECONFIG
               ? em_fail(status, "%s: %s: %s", entry->place, entry->key, em_error_text())
               : status;
}

bool em_is_element(const em_parse *p, const em_config_section *section)
{
    return p->is_list && section->kind && strcmp(section->kind, "sampler") == 0;
}

static void add_section(em_parse *p, em_config_section section)
{
    p->config->section[p->config->n_section++] = section;
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

/* `temper: auto` in place of a mapping is temper.when. */
static em_status expand_temper(em_yaml *yaml)
{
    const em_yaml_entry *entry = em_yaml_find(yaml, "temper");
    EM_SCOPED char *place = NULL, *text = NULL;

    if (!entry || entry->value.kind != EM_VALUE_SCALAR || em_yaml_find(yaml, "temper.when"))
        return EM_OK;
    em_status status = em_copy_text(entry->place, &place);
    status = status ? status : em_copy_text(entry->value.text.value[0], &text);
    status = status ? status : em_yaml_put(yaml, place, "temper", "{}");
    return status ? status : em_yaml_put(yaml, place, "temper.when", text);
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
    const em_status status = expand_temper(p->yaml);
    if (status)
        return status;
    config->temper.on = em_config_has_section(p->yaml, "temper");
    if (config->temper.on)
        add_section(p, (em_config_section){.name = "temper",
                                           .fields = em_temper_fields,
                                           .options = &config->temper});
    p->n_outer = p->config->n_section;
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

/* The model's option that the key names; NULL: the key is not one of a model. */
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

/* ---- the model and the samplers that the names in a config select ---- */

/* Whether the name is of a regression with a family or effects that no built-in model has. */
static bool is_other_regression(const char *name)
{
    static const char *const names[] = {
        "gamma",       "beta",          "ordinal", "cumulative",   "ordered",
        "multinomial", "probit",        "cloglog", "categorical",  "inverse_gaussian",
        "binomial",    "zero_inflated", "weibull", "cox",          "survival",
        "lognormal",   "tweedie",       "hurdle",  "mixed",        "lmer",
        "glmer",       "multilevel",    "gam",     "hierarchical", "quantile",
        "stan_glm",    "brms",          NULL};

    return em_text_find(name, names) >= 0;
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
        return em_fail(EM_ECONFIG,
                       "%s: unknown model '%s'; regressions are linear, logistic, poisson and "
                       "negative_binomial, and others need a Stan program (name: stan), as brms "
                       "makes it, or a model of Bambi",
                       entry->place, found);
    if (nearest.name)
        return em_fail(EM_ECONFIG, "%s: unknown %s '%s'; did you mean %s?", entry->place,
                       section->kind, em_excerpt_of(found).text, nearest.name);
    return em_fail(EM_ECONFIG, "%s: unknown %s '%s' (see emass list %ss)", entry->place,
                   section->kind, em_excerpt_of(found).text, section->kind);
}

/* Chooses the variant of a section and allocates its options; *index is its place in the list. A
 * missing name is not an error here: require_name reports it after misspelt keys. */
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

/* The entry `library`, from which a model is loaded if no built-in model has its name. NULL: there
 * is no entry, or the model is built in and `library` is an option of it. */
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

/* Chooses a model of a plug-in. */
static em_status choose_plugin(em_parse *p, const em_yaml_entry *library)
{
    const em_yaml_entry *name = em_yaml_find(p->yaml, "model.name");
    em_config_section *section = &p->config->section[EM_SECTION_MODEL];
    EM_SCOPED char *path = NULL;
    em_status status = em_copy_text(library->value.text.value[0], &path);

    status = status ? status : em_expand_path(p->config->path, &path);
    status = status ? status : em_plugin_open(path, &p->config->plugin);
    if (status)
        return em_config_say_entry(library, status);
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
    em_config_section *section = &p->config->section[p->config->n_section++];
    int model = 0;

    *section = (em_config_section){.name = "model", .kind = "model", .variants = em_model_variant};
    const em_status status = library ? choose_plugin(p, library) : choose(p, section, &model);

    if (!library)
        p->config->model = em_model_at(model);
    p->config->model_options = section->options;
    return status;
}

/* Checks the block of a sampler in a list. */
static em_status read_block(em_parse *p, em_config_section *section, em_kernel_options *kernel)
{
    const em_yaml_entry *parent = em_yaml_find(p->yaml, section->name);
    const em_yaml_entry *block = em_yaml_find(p->yaml, em_join_key(section->name, "block").text);

    if (!block)
        return em_fail(EM_ECONFIG, "%s: %s.block is missing: which parameters it moves",
                       parent->place, section->name);
    if (block->value.kind != EM_VALUE_SCALAR)
        return em_fail(EM_ECONFIG, "%s: %s: expected the name of a block of the model's parameters",
                       block->place, block->key);
    const em_status status = em_copy_text(block->value.text.value[0], &kernel->block);
    section->block = kernel->block;
    return status ? status : em_copy_text(block->place, &kernel->location);
}

static em_status choose_kernel(em_parse *p, int i)
{
    em_kernel_options *kernel = &p->config->kernel[i];
    em_config_section *section = &p->config->section[EM_SECTION_SAMPLER + i];
    int sampler = 0;

    if (!p->is_list)
        section->fallback =
            p->config->model->sampler ? p->config->model->sampler : em_default_sampler;
    const em_status status = choose(p, section, &sampler);
    kernel->ops = em_sampler_at(sampler);
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

/* ---- options of the sections run, stop and output ---- */

static const char *const minibatch_sums[] = {"fast", "by_parts", NULL};

const em_field em_run_fields[] = {
    EM_INT(em_run_options, chains, .minimum = 1, .maximum = 1e6, .fallback = "4",
           .doc = "chains, distributed over the ranks (or groups of ranks)"),
    EM_INT(em_run_options, superchains, .minimum = 2, .maximum = 1e6, .fallback = "none",
           .word = "none",
           .doc = "number of superchains: groups of equal size whose chains start at one point; "
                  "nested R-hat, for many short chains, then replaces R-hat; none: each chain has "
                  "its own start"),
    EM_INT(em_run_options, shards, .minimum = 1, .maximum = 1e6, .fallback = "1",
           .doc =
               "ranks that compute one chain together, each with a part of the data; the draws are "
               "the same on any number of shards, except for rounding with fast minibatch_sums"),
    EM_INT(em_run_options, ranks_per_chain, .minimum = 1, .maximum = 1e6, .fallback = "1",
           .doc = "ranks that evaluate each density together, for a model that uses MPI "
                  "(em_model_ops.use_ranks); the draws are the same on any number of ranks"),
    EM_INT(em_run_options, warmup, .maximum = 1e9, .fallback = "auto", .word = "auto",
           .doc = "iterations of adaptation before the draws; auto: hmc (at most 1100), nuts and "
                  "walnuts (at most 800) end it by their criteria; other samplers, and hmc with "
                  "leapfrog_steps, have 1000; in a list each sampler has its own warmup, and the "
                  "draws begin after the longest"),
    EM_INT(em_run_options, draws, .minimum = 1, .maximum = 1e9, .fallback = "auto", .word = "auto",
           .doc = "draws stored per chain; auto: the run ends when R-hat is at most 1.01, bulk and "
                  "tail ESS are at least 400 (100 per chain, if that is more), and there are 4000 "
                  "draws of all chains or sampling has taken twice the gradients of warmup. "
                  "stop.r_hat and stop.ess replace their own limit, and either of them removes the "
                  "condition of 4000 draws. About 1000 draws per chain are kept, thinned evenly. "
                  "The default is 1000 for optimisers, samplers with minibatches, and gibbs",
           .may_change = true),
    EM_INT(em_run_options, thin, .minimum = 1, .maximum = 1e6, .fallback = "1",
           .doc = "iterations per stored draw; with draws: auto, at first"),
    EM_INT(em_run_options, seed, .maximum = 9007199254740992, .fallback = "1",
           .doc = "seed of all random numbers; the same seed gives the same draws on any number of "
                  "ranks"),
    EM_REAL(em_run_options, init_radius, .maximum = 1e6, .fallback = "2",
            .doc =
                "chains start uniformly in [-init_radius, init_radius] on the unconstrained scale"),
    EM_CHOICE(
        em_run_options, minibatch_sums, .fallback = "fast", .choices = minibatch_sums,
        .doc = "by_parts: sums over minibatches have the same bits on any number of shards, but "
               "small minibatches take up to ten times as long; fast: sums may differ by rounding"),
    {0}};

const em_field em_stop_fields[] = {
    EM_REAL(em_stop_options, r_hat, .minimum = 1, .maximum = 100, .fallback = "none",
            .word = "none",
            .doc = "stop early when the largest R-hat is at most this; none: no such rule; the "
                   "limit of the verdict is 1.01",
            .may_change = true),
    EM_REAL(em_stop_options, ess, .minimum = 1, .maximum = 1e12, .fallback = "none", .word = "none",
            .doc = "stop early when the smallest bulk or tail ESS is at least this; none: no such "
                   "rule; the limit of the verdict is 100 per chain",
            .may_change = true),
    EM_INT(em_stop_options, check_every, .minimum = 1, .maximum = 1e9, .fallback = "200",
           .doc = "draws between checks of these rules, and between reports of progress",
           .may_change = true),
    EM_INT(em_stop_options, consecutive, .minimum = 1, .maximum = 1e6, .fallback = "2",
           .doc = "checks in a row that have to pass", .may_change = true),
    EM_INT(
        em_stop_options, max_draws, .minimum = 1, .maximum = 1e9, .fallback = EM_DEFAULT_MAX_DRAWS,
        .doc =
            "with draws: auto, the most draws of each chain, draws that were thinned out included",
        .may_change = true),
    EM_INT(em_stop_options, max_gradients, .minimum = 1, .maximum = 1e15, .fallback = "none",
           .word = "none",
           .doc = "with draws: auto, the run ends at the first check after this number of "
                  "gradients of all chains in sampling; none: no limit",
           .may_change = true),
    EM_DURATION(em_stop_options, end_after, .maximum = INFINITY, .fallback = "none", .word = "none",
                .doc = "with draws: auto, the run ends when this time has passed since its start "
                       "or resume, but not during warmup, which only max_time stops. The number "
                       "of draws then depends on the clock; none: no limit",
                .may_change = true),
    EM_BOOL(em_stop_options, separate_modes, .fallback = "true",
            .doc = "with draws: auto, a run whose chains stay in separate modes ends after 4 % of "
                   "stop.max_draws, not converged",
            .may_change = true),
    EM_DURATION(em_stop_options, max_time, .maximum = INFINITY, .fallback = "none", .word = "none",
                .doc = "stop after this time with a checkpoint, even if the run is not complete; "
                       "none: no limit",
                .may_change = true),
    {0}};

const em_field em_output_fields[] = {
    EM_TEXT(em_output_options, file, .fallback = "",
            .doc = "output file, relative to the current folder; ${NAME} as in paths of data; "
                   "absent: the name of the config with .h5",
            .may_change = true),
    EM_BOOL(em_output_options, save_warmup, .fallback = "false",
            .doc = "store the draws of warmup too"),
    EM_BOOL(em_output_options, save_unconstrained, .fallback = "false",
            .doc = "store the draws on the unconstrained scale too"),
    EM_INT(em_output_options, prior_draws, .minimum = 0, .maximum = 1e9, .fallback = "0",
           .doc = "number of draws from the prior for each chain, stored in the group prior; "
                  "observations drawn from them are in prior_predictive"),
    EM_TEXTS(em_output_options, variables, .fallback = "[]",
             .doc = "variables to store, * and ? as in file names; none named: all"),
    EM_INT(em_output_options, flush_every, .minimum = 1, .maximum = 1e6, .fallback = "100",
           .doc = "the least number of draws between writes; small draws are written together, "
                  "about once a second",
           .may_change = true),
    EM_DURATION(em_output_options, checkpoint_every, .maximum = INFINITY, .fallback = "10m",
                .doc = "time between checkpoints", .may_change = true),
    EM_BOOL(em_output_options, keep_checkpoint, .fallback = "false",
            .doc = "keep the last checkpoint of a finished run beside its file; needed only to "
                   "extend a run whose state is larger than 64 MB and than its draws, because the "
                   "file does not store such a state",
            .may_change = true),
    {0}};

bool em_model_variant(int i, em_variant *out)
{
    const em_model_ops *ops = em_model_at(i);

    if (ops)
        *out = (em_variant){ops->name, ops->doc, ops->source, ops->options_size, ops->fields};
    return ops;
}

bool em_sampler_variant(int i, em_variant *out)
{
    const em_sampler_ops *ops = em_sampler_at(i);

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
