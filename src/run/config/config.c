#include "base/default_message.h"
#include "base/memory.h"
#include "base/options/field.h"
#include "base/text.h"
#include "base/text/locale.h"
#include "model/model.h"
#include "run/config/config_parse.h"
#include "run/config/config_path.h"
#include "sampler/stochastic/stochastic.h"

#include <math.h>
#include <string.h>

/* ---- values ---- */

static em_status missing(const em_parse *p, const em_config_section *section, const char *option,
                         const char *hint)
{
    const em_yaml_entry *parent = em_yaml_find(p->yaml, section->name);

    return em_fail(EM_ECONFIG, "%s: %s.%s is missing%s", parent ? parent->place : p->config->path,
                   section->name, option, hint);
}

static em_status require_names(const em_parse *p)
{
    if (!p->config->section[EM_SECTION_MODEL].chosen)
        return missing(p, &p->config->section[EM_SECTION_MODEL], "name",
                       " (see emass list models)");
    for (int i = 0; i < p->config->n_kernel; i++)
        if (!p->config->section[EM_SECTION_SAMPLER + i].chosen)
            return missing(p, &p->config->section[EM_SECTION_SAMPLER + i], "name",
                           " (see emass list samplers)");
    return EM_OK;
}

static em_status say_where(const em_parse *p, const em_config_section *section,
                           const em_field *field, em_status status)
{
    const em_key key = em_join_key(section->name, field->name);

    return em_config_say_entry(em_yaml_find(p->yaml, key.text), status);
}

/* Reads an option. It gets its default first, in case that it is not given. */
static em_status read_option(em_parse *p, const em_config_section *section, const em_field *field)
{
    const em_key key = em_join_key(section->name, field->name);
    em_status status = EM_OK;

    if (!em_yaml_find(p->yaml, key.text)) {
        if (!field->fallback)
            return missing(p, section, field->name, "");
        status = em_yaml_put(p->yaml, "default", key.text, field->fallback);
    }
    return status ? status
                  : say_where(p, section, field,
                              em_field_read(field, &em_yaml_find(p->yaml, key.text)->value,
                                            section->options));
}

/* Reads every option of a section; one that is missing may be inherited from another section. */
static em_status read_section(em_parse *p, const em_config_section *section)
{
    em_status status = EM_OK;

    for (const em_field *field = section->fields; !status && field && field->name; field++) {
        const bool is_given = em_yaml_find(p->yaml, em_join_key(section->name, field->name).text);
        if (section->inherits && !is_given)
            status = em_field_read(
                field,
                &em_yaml_find(p->yaml, em_join_key(section->inherits, field->name).text)->value,
                section->options);
        else
            status = read_option(p, section, field);
    }
    return status;
}

/* Names the output after the config and in the current folder: heart.yaml -> heart.h5. */
static em_status name_output(em_config *config)
{
    const char *slash = strrchr(config->path, '/');
    const char *base = slash ? slash + 1 : config->path;
    const char *dot = strrchr(base, '.');
    const size_t length = dot > base ? (size_t)(dot - base) : strlen(base);

    if (config->output.file)
        return EM_OK;
    return em_format_text(&config->output.file, "%.*s.h5", (int)length, base);
}

static em_status read_sections(em_parse *p)
{
    em_status status = EM_OK;

    for (int i = 0; !status && i < p->config->n_section; i++)
        status = read_section(p, &p->config->section[i]);
    return status ? status : name_output(p->config);
}

/* The default of mass.estimator: variance for a sampler that computes no gradients. */
static em_status choose_estimators(em_parse *p)
{
    em_status status = EM_OK;

    for (int i = 0; !status && i < p->config->n_kernel; i++) {
        const char *section = p->is_list ? em_mass_sections[i] : "mass";
        const em_key key = em_join_key(section, "estimator");
        const bool is_given =
            em_yaml_find(p->yaml, key.text) || em_yaml_find(p->yaml, "mass.estimator");
        if (p->config->kernel[i].ops->without_gradient && !is_given)
            status = em_yaml_put(p->yaml, "default", key.text, "variance");
    }
    return status;
}

/* Checks that a step size to be adapted has a sampler that can adapt it, and a warmup. */
static em_status check_step_size(const em_parse *p, int i)
{
    const em_kernel_options *kernel = &p->config->kernel[i];
    const em_key key = em_join_key(p->config->section[EM_SECTION_SAMPLER + i].name, "step_size");

    if (!isnan(((const em_sampler_options *)kernel->options)->step_size))
        return EM_OK;
    if (p->config->run.warmup == 0 && !p->config->mass.from)
        return em_fail(EM_ECONFIG,
                       "%s: run.warmup is 0, but %s is adapted in warmup: expected a number for "
                       "it, or more warmup",
                       em_yaml_find(p->yaml, "run.warmup")->place, key.text);
    if (!kernel->ops->probe)
        return em_fail(EM_ECONFIG, "%s: %s: found adapt, expected a number: %s cannot adapt it",
                       em_yaml_find(p->yaml, key.text)->place, key.text, kernel->ops->name);
    return EM_OK;
}

/* Checks the options of a stochastic kernel together. */
static em_status check_stochastic(const em_parse *p, int i)
{
    const em_kernel_options *kernel = &p->config->kernel[i];
    const em_config_section *section = &p->config->section[EM_SECTION_SAMPLER + i];
    const char *name = NULL;
    em_status status = EM_OK;

    if (kernel->ops->minibatches)
        status = em_stochastic_check(kernel->options, &name);
    return status ? say_where(p, section, em_field_find(section->fields, name), status) : EM_OK;
}

/* Sets the default number of draws if R-hat cannot show when the run is complete. */
static em_status choose_draws(em_parse *p)
{
    if (em_yaml_find(p->yaml, "run.draws"))
        return EM_OK;
    for (int i = 0; i < p->config->n_kernel; i++)
        if (p->config->kernel[i].ops->minibatches || p->config->kernel[i].ops->by_model)
            return em_yaml_put(p->yaml, "default", "run.draws", "1000");
    return EM_OK;
}

/* Whether an option of `stop` has another value than its default, which a config with all defaults
 * has too. */
static bool is_limited(const em_yaml_entry *entry)
{
    const em_field *field = em_field_find(em_stop_fields, strchr(entry->key, '.') + 1);

    return strcmp(entry->value.text.value[0], field->fallback) != 0;
}

/* Checks draws: auto with the samplers, and that its limits are given with it alone. */
static em_status check_draws(const em_parse *p)
{
    static const char *const limit[] = {"stop.max_draws", "stop.max_gradients", "stop.end_after"};
    enum { N_LIMIT = sizeof limit / sizeof *limit, SHORTEST_TOLD = 32 };
    const em_config *config = p->config;
    const em_yaml_entry *draws = em_yaml_find(p->yaml, "run.draws");
    const bool until_done = config->run.draws == INT64_MIN;

    for (int i = 0; until_done && i < config->n_kernel; i++)
        if (config->kernel[i].ops->optimises)
            return em_fail(EM_ECONFIG,
                           "%s: run.draws: found auto, expected a number: %s is an optimiser, and "
                           "R-hat does not apply to its draws",
                           draws->place, config->kernel[i].ops->name);
    for (int i = 0; !until_done && i < N_LIMIT; i++)
        if (is_limited(em_yaml_find(p->yaml, limit[i])))
            return em_fail(
                EM_ECONFIG, "%s: %s: found together with run.draws: %lld, expected run.draws: auto",
                em_yaml_find(p->yaml, limit[i])->place, limit[i], (long long)config->run.draws);
    if (config->temper.on && config->stop.max_gradients > 0)
        return em_fail(EM_ECONFIG,
                       "%s: stop.max_gradients: found with temper, expected stop.max_draws or "
                       "stop.end_after: gradients of copies are not counted",
                       em_yaml_find(p->yaml, limit[1])->place);
    if (config->temper.on && config->temper.when == EM_TEMPER_AUTO &&
        config->run.warmup != INT64_MIN && config->run.warmup < SHORTEST_TOLD)
        return em_fail(EM_ECONFIG,
                       "%s: run.warmup: found %lld with temper: auto, expected auto or at least "
                       "%d: modes are found from the draws of warmup",
                       em_yaml_find(p->yaml, "run.warmup")->place, (long long)config->run.warmup,
                       SHORTEST_TOLD);
    return EM_OK;
}

/* Checks that concern two options, which the field tables cannot express. */
static em_status check_together(const em_parse *p)
{
    const em_run_options *run = &p->config->run;
    const bool until_done = run->draws == INT64_MIN;
    const int64_t draws = until_done ? p->config->stop.max_draws : run->draws;
    const double warmup = run->warmup == INT64_MIN ? 1000 : (double)run->warmup;
    const double iterations = warmup + (double)draws * (double)run->thin;
    em_status status = check_draws(p);

    if (status)
        return status;
    if (iterations >= 0x1p40) /* the counter of math/rng.h */
        return em_fail(EM_ECONFIG,
                       "%s: run.warmup + %s x run.thin is %.0f iterations, expected less than 2^40",
                       em_yaml_find(p->yaml, until_done ? "stop.max_draws" : "run.draws")->place,
                       until_done ? "stop.max_draws" : "run.draws", iterations);
    if (run->shards > 1 && run->ranks_per_chain > 1)
        return em_fail(
            EM_ECONFIG,
            "%s: run.ranks_per_chain is %lld and run.shards is %lld, expected one of them: a model "
            "either divides its work among ranks itself, or has its data divided",
            em_yaml_find(p->yaml, "run.ranks_per_chain")->place, (long long)run->ranks_per_chain,
            (long long)run->shards);
    for (int i = 0; !status && i < p->config->n_kernel; i++)
        status = check_step_size(p, i);
    for (int i = 0; !status && i < p->config->n_kernel; i++)
        status = check_stochastic(p, i);
    if (status)
        return status;
    if (p->config->mass.from_positions && !p->config->mass.from)
        return em_fail(EM_ECONFIG,
                       "%s: mass.from_positions: found true without mass.from, expected the file "
                       "that has the positions",
                       em_yaml_find(p->yaml, "mass.from_positions")->place);
    return EM_OK;
}

static em_status expand_paths(const em_parse *p, const em_config_section *section)
{
    em_status status = EM_OK;

    for (const em_field *field = section->fields; !status && field && field->name; field++) {
        char **path = (char **)((char *)section->options + field->offset);

        if (field->type == EM_FIELD_DATA && *path && **path == '{')
            status = em_expand_paths(p->config->path, path);
        else if ((field->type == EM_FIELD_PATH || field->type == EM_FIELD_DATA) && *path)
            status = em_expand_path(p->config->path, path);
        status = say_where(p, section, field, status);
    }
    return status;
}

/* Expands variables in a given name of the output, which is not relative to the config's folder. */
static em_status expand_output(const em_parse *p)
{
    const em_yaml_entry *entry = em_yaml_find(p->yaml, "output.file");
    const em_texts *given = &entry->value.text;
    const em_status status =
        given->count > 0 && *given->value[0] ? em_expand_path("", &p->config->output.file) : EM_OK;

    return em_config_say_entry(entry, status);
}

/* ---- the config with every default, as YAML ---- */

/* Writes the key of a field. For the first field of a group it takes two lines, as in `kappa: k0:`.
 */
static void write_key(const char *indent, const em_field *field, const em_field *previous,
                      FILE *out)
{
    const char *dot = strchr(field->name, '.');
    const size_t group = dot ? (size_t)(dot + 1 - field->name) : 0;

    if (dot && (!previous || strncmp(previous->name, field->name, group) != 0))
        fprintf(out, "%s%.*s:\n", indent, (int)group - 1, field->name);
    fprintf(out, "%s%s%s: ", indent, dot ? "  " : "", field->name + group);
}

static const em_field block_field =
    EM_TEXT(em_kernel_options, block, .doc = "parameters of the model that the sampler moves");

/* Writes the beginning of a sampler in a list, which is its block. */
static void write_head(const em_parse *p, const em_config_section *section, FILE *out)
{
    const ptrdiff_t i = section - &p->config->section[EM_SECTION_SAMPLER];

    if (!em_is_element(p, section)) {
        fprintf(out, "%s:\n", section->name);
        if (section->chosen)
            fprintf(out, "  name: %s\n", section->chosen);
        return;
    }
    fprintf(out, "%s  - block: ", i == 0 ? "sampler:\n" : "");
    em_field_write(&block_field, &p->config->kernel[i], out);
    fprintf(out, "\n    name: %s\n", section->chosen);
}

static void write_section(const em_parse *p, const em_config_section *section,
                          const char *const *left_out, FILE *out)
{
    const em_field *previous = NULL;

    write_head(p, section, out);
    for (const em_field *field = section->fields; field && field->name; field++) {
        if (em_text_find(field->name, left_out) >= 0)
            continue;
        write_key(em_is_element(p, section) ? "    " : "  ", field, previous, out);
        em_field_write(field, section->options, out);
        fputc('\n', out);
        previous = field;
    }
}

/* The options of the mass in a sampler of a list that differ from the section `mass`. */
static void write_own_mass(const em_parse *p, int i, FILE *out)
{
    const em_config_section *section = &p->config->section[p->n_outer + i];
    const em_field *previous = NULL;

    for (const em_field *field = section->fields; field->name; field++) {
        if (!em_yaml_find(p->yaml, em_join_key(section->name, field->name).text))
            continue;
        if (!previous)
            fprintf(out, "    mass:\n");
        write_key("      ", field, previous, out);
        em_field_write(field, section->options, out);
        fputc('\n', out);
        previous = field;
    }
}

/* Writes the config with all defaults. Paths stay as written, so that the text does not depend on
 * the machine. The stored form omits the name of the output, and the shards unless the draws depend
 * on them. Errors: EM_EMEMORY. */
static em_status write_config(const em_parse *p, bool is_stored, char **full)
{
    const char *left_out[7] = {NULL};
    int n_left_out = 0;
    em_text_stream text;
    const em_status status = em_text_begin(&text);

    if (status)
        return status;
    if (is_stored) {
        left_out[n_left_out++] = "file";
        left_out[n_left_out++] = "ranks_per_chain";
    }
    if (is_stored && !em_config_shards_matter(p->config))
        left_out[n_left_out++] = "shards";
    if (p->config->run.draws != INT64_MIN) { /* limits of draws: auto alone */
        left_out[n_left_out++] = "max_draws";
        left_out[n_left_out++] = "max_gradients";
        left_out[n_left_out++] = "end_after";
    }
    for (int i = 0; i < p->n_outer; i++) {
        if (p->config->section[i].options == &p->config->temper && !p->config->temper.on)
            continue; /* it said never */
        write_section(p, &p->config->section[i], left_out, text.out);
        if (em_is_element(p, &p->config->section[i]))
            write_own_mass(p, i - EM_SECTION_SAMPLER, text.out);
    }
    return em_text_end(&text, EM_OK, full);
}

/* ---- the whole config ---- */

/* "key.path=value" */
static em_status apply_override(em_yaml *yaml, const char *override)
{
    const size_t length = strcspn(override, "=");
    EM_SCOPED char *place = NULL, *key = NULL;

    if (!override[length] || length == 0)
        return em_fail(EM_ECONFIG, "--set %s: expected key.path=value",
                       em_excerpt_of(override).text);
    em_status status = em_format_text(&place, "--set %s", em_excerpt_of(override).text);
    status = status ? status : em_format_text(&key, "%.*s", (int)length, override);
    return status ? status : em_yaml_put(yaml, place, key, override + length + 1);
}

/* Prepends file and line to the error message of a model if the message begins with the key of an
 * option that the config has. */
static em_status say_option(const em_config *config, em_status status)
{
    char message[2048];

    if (status != EM_ECONFIG)
        return status;
    snprintf(message, sizeof message, "%s", em_error_text());
    const size_t length = strcspn(message, ":");
    for (int64_t i = 0; i < config->yaml->count; i++) {
        const em_yaml_entry *entry = &config->yaml->entry[i];
        if (strncmp(entry->key, message, length) == 0 && !entry->key[length] &&
            strcmp(entry->place, "default") != 0)
            return em_fail(status, "%s: %s", entry->place, message);
    }
    return status;
}

em_model_context em_config_model_context(const em_config *config, em_grid *grid,
                                         const em_shards *shards)
{
    const bool divides = config->run.ranks_per_chain > 1; /* the work, and no data */

    return (em_model_context){.seed = (uint64_t)config->run.seed,
                              .shard = divides ? 0 : em_grid_shard(grid),
                              .n_shard = config->run.shards,
                              .n_rank = config->run.ranks_per_chain,
                              .ranks = config->model->use_ranks ? em_grid_lend_ranks(grid) : NULL,
                              .ops = config->model,
                              .shards = divides ? NULL : shards};
}

em_status em_config_create_model(const em_config *config, const em_model_context *context,
                                 em_model **out)
{
    const uint64_t before = em_messages_set();

    *out = NULL;
    const em_status status =
        em_default_message(em_model_create(config->model, config->model_options, context, out),
                           before, "create of the model");
    if (status > 0)
        return em_fail(EM_EMODEL, "%s", em_error_text());
    if (!status && !*out)
        return em_fail(EM_EMODEL, "create of the model returned EM_OK without a model");
    return say_option(config, status);
}

static em_status read_text(em_parse *p, const char *text, int n_override,
                           const char *const *override)
{
    em_status status =
        em_yaml_parse(p->config->path, text, em_config_is_data, p->config->model, &p->yaml);

    for (int i = 0; !status && i < n_override; i++)
        status = apply_override(p->yaml, override[i]);
    return status;
}

em_status em_config_read(em_parse *p, const char *text, int n_override, const char *const *override)
{
    em_status status = read_text(p, text, n_override, override);

    status = status ? status : em_config_choose_model(p);
    if (status || !p->config->section[EM_SECTION_MODEL].chosen)
        return status;
    em_yaml_destroy(&p->yaml);
    return read_text(p, text, n_override, override);
}

static em_status understand(em_parse *p)
{
    em_status status = em_config_lay_sections(p);

    status = status ? status : em_config_choose_samplers(p);
    status = status ? status : em_config_check_keys(p);
    status = status ? status : require_names(p);
    status = status ? status : choose_draws(p);
    status = status ? status : choose_estimators(p);
    status = status ? status : read_sections(p);
    p->config->temper.on &= p->config->temper.when != EM_TEMPER_NEVER;
    status = status ? status : check_together(p);
    status = status ? status : write_config(p, false, &p->config->full);
    status = status ? status : write_config(p, true, &p->config->stored);
    for (int i = 0; !status && i < p->config->n_section; i++)
        status = expand_paths(p, &p->config->section[i]);
    if (!status && p->config->run.draws == INT64_MIN) {
        p->config->stop.until_done = true;
        p->config->run.draws = p->config->stop.max_draws;
    }
    return status ? status : expand_output(p);
}

static em_status parse_config(const char *path, const char *text, int n_override,
                              const char *const *override, em_config **out)
{
    em_config *config;
    em_status status = em_allocate(1, sizeof *config, &config);
    em_parse p = {.config = config};

    *out = config;
    status = status ? status : em_copy_text(path, &config->path);
    status = status ? status : em_config_read(&p, text, n_override, override);
    status = status ? status : understand(&p);
    if (config)
        config->yaml = p.yaml;
    if (status)
        em_config_destroy(out);
    return status;
}

em_status em_config_parse(const char *path, const char *text, int n_override,
                          const char *const *override, em_config **out)
{
    em_locale locale = em_locale_enter();
    const em_status status = parse_config(path, text, n_override, override, out);

    em_locale_leave(&locale);
    return status;
}

void em_config_destroy(em_config **config)
{
    em_config *c = *config;

    if (!c)
        return;
    for (int i = 0; i < c->n_section; i++)
        em_field_release(c->section[i].fields, c->section[i].options);
    for (int i = 0; i < c->n_kernel; i++)
        em_release_all(&c->kernel[i].options, &c->kernel[i].block, &c->kernel[i].location);
    em_release(&c->model_options);
    em_plugin_close(&c->plugin);
    em_yaml_destroy(&c->yaml);
    em_release_all(&c->path, &c->full, &c->stored, config);
}
