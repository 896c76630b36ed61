#include "run/config.h"

#include "base/field.h"
#include "base/locale.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/text.h"
#include "model/list.h"
#include "run/catalogue.h"
#include "run/path.h"
#include "run/yaml.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A section of the config: the options of its table, or of the variant that its `name` chooses. */
typedef struct config_section {
    const char *name;
    const char *kind;          /* what its variants are: model, sampler */
    em_variant_list *variants; /* NULL: the section has no `name` */
    const char *fallback;      /* the variant where none is named; NULL: one must be */
    const em_field *fields;    /* of the variant once it is chosen */
    void *options;             /* likewise */
    const char *chosen;        /* name of the variant; NULL: none yet, or no variants */
    const char *inherits;      /* the section whose options stand for those not given; or NULL */
} config_section;

enum { MODEL, SAMPLER }; /* the first sections; as many samplers as there are kernels */

typedef struct parse {
    em_config *config;
    em_yaml *yaml;
    bool is_list;           /* `sampler` is one, of mappings */
    int n_section, n_outer; /* of a list come last: the masses of its samplers */
    config_section section[EM_MOST_SECTIONS];
} parse;

/* A sampler of the list. */
static bool is_element(const parse *p, const config_section *section)
{
    return p->is_list && section->kind && strcmp(section->kind, "sampler") == 0;
}

/* Sections of samplers in a list. */
static const char *const kernel_names[EM_MOST_KERNELS] = {
    "sampler[0]",  "sampler[1]",  "sampler[2]",  "sampler[3]", "sampler[4]",  "sampler[5]",
    "sampler[6]",  "sampler[7]",  "sampler[8]",  "sampler[9]", "sampler[10]", "sampler[11]",
    "sampler[12]", "sampler[13]", "sampler[14]", "sampler[15]"};

/* The sections of their masses. */
static const char *const kernel_masses[EM_MOST_KERNELS] = {
    "sampler[0].mass",  "sampler[1].mass",  "sampler[2].mass",  "sampler[3].mass",
    "sampler[4].mass",  "sampler[5].mass",  "sampler[6].mass",  "sampler[7].mass",
    "sampler[8].mass",  "sampler[9].mass",  "sampler[10].mass", "sampler[11].mass",
    "sampler[12].mass", "sampler[13].mass", "sampler[14].mass", "sampler[15].mass"};

/* A dotted path. */
typedef struct dotted {
    char text[256];
} dotted;

static dotted join(const char *section, const char *option)
{
    dotted joined;

    snprintf(joined.text, sizeof joined.text, "%s.%s", section, option);
    return joined;
}

/* ---- which keys there are ---- */

/* The innermost section that the key is of, or is. */
static const config_section *find_section(const parse *p, const char *key)
{
    const config_section *found = NULL;

    for (int i = 0; i < p->n_section; i++) {
        const config_section *section = &p->section[i];
        const size_t length = strlen(section->name);
        if (strncmp(section->name, key, length) == 0 && (key[length] == '.' || !key[length]) &&
            (!found || length > strlen(found->name)))
            found = section;
    }
    return found;
}

/* The i-th table whose options may stand in the section: the chosen variant's, or all variants'. */
static bool table_of(const config_section *section, int i, const em_field **table)
{
    em_variant variant;

    if (!section->variants || section->chosen) {
        *table = section->fields;
        return i == 0;
    }
    if (!section->variants(i, &variant))
        return false;
    *table = variant.fields;
    return true;
}

static const em_field *find_field(const config_section *section, const char *option)
{
    const em_field *table, *field = NULL;

    for (int i = 0; !field && table_of(section, i, &table); i++)
        field = em_field_find(table, option);
    return field;
}

/* True for `kappa`, where there is an option kappa.k0. */
static bool is_group(const config_section *section, const char *option)
{
    const size_t length = strlen(option);
    const em_field *table;

    for (int i = 0; table_of(section, i, &table); i++)
        for (const em_field *field = table; field && field->name; field++)
            if (strncmp(field->name, option, length) == 0 && field->name[length] == '.')
                return true;
    return false;
}

/* ---- unknown keys ---- */

/* The section where an option of exactly this name is known. */
static const config_section *find_elsewhere(const parse *p, const char *option)
{
    for (int i = 0; i < p->n_section; i++)
        if (find_field(&p->section[i], option))
            return &p->section[i];
    return NULL;
}

/* `meant`: what to suggest; NULL: nothing is near, and `otherwise` ends the message. */
static em_status unknown_key(const em_yaml_entry *entry, const char *meant, const char *otherwise)
{
    const em_excerpt key = em_excerpt_of(entry->key);

    if (meant)
        return em_fail(EM_ECONFIG, "%s: unknown key %s; did you mean %s?", entry->place, key.text,
                       meant);
    return em_fail(EM_ECONFIG, "%s: unknown key %s%s", entry->place, key.text, otherwise);
}

static em_status unknown_section(const parse *p, const em_yaml_entry *entry)
{
    const config_section *other = find_elsewhere(p, entry->key);
    const bool is_sampler = p->is_list && strncmp(entry->key, "sampler", 7) == 0;
    em_nearest nearest = em_nearest_start(entry->key);

    if (is_sampler)
        return em_fail(EM_ECONFIG, "%s: %s: sampler is a list: expected sampler[0] to sampler[%d]",
                       entry->place, em_excerpt_of(entry->key).text, p->config->n_kernel - 1);
    if (other)
        return unknown_key(entry, join(other->name, entry->key).text, "");
    for (int i = 0; i < p->n_section; i++)
        em_nearest_offer(&nearest, p->section[i].name);
    return unknown_key(entry, nearest.name, ", expected model, sampler, mass, run, stop or output");
}

/* An option that another variant of the section has, but not the chosen one. */
static em_status option_of_other(const config_section *section, const em_yaml_entry *entry,
                                 const char *option)
{
    em_variant variant;

    for (int i = 0; section->chosen && section->variants(i, &variant); i++)
        if (em_field_find(variant.fields, option))
            return em_fail(EM_ECONFIG, "%s: %s is not an option of %s, but of %s", entry->place,
                           entry->key, section->chosen, variant.name);
    return EM_OK;
}

static em_status unknown_option(const parse *p, const config_section *section,
                                const em_yaml_entry *entry, const char *option)
{
    const config_section *other = find_elsewhere(p, option);
    em_nearest nearest = em_nearest_start(option);
    const em_field *table;
    em_status status = option_of_other(section, entry, option);

    if (status)
        return status;
    if (find_section(p, option))
        return unknown_key(entry, option, "");
    if (other)
        return unknown_key(entry, join(other->name, option).text, "");
    for (int i = 0; table_of(section, i, &table); i++)
        for (const em_field *field = table; field && field->name; field++)
            em_nearest_offer(&nearest, field->name);
    if (section->variants)
        em_nearest_offer(&nearest, "name");
    return unknown_key(entry, nearest.name, " (see emass list)");
}

static em_status check_key(parse *p, const em_yaml_entry *entry)
{
    const config_section *section = find_section(p, entry->key);
    const em_field *field;

    if (!section && p->is_list && strcmp(entry->key, "sampler") == 0)
        return EM_OK;
    if (!section)
        return unknown_section(p, entry);
    const size_t length = strlen(section->name);
    const bool is_option = entry->key[length] == '.';
    const char *option = entry->key + length + is_option;
    if (!is_option || is_group(section, option)) {
        if (entry->value.kind == EM_VALUE_MAPPING || entry->value.kind == EM_VALUE_NULL)
            return EM_OK;
        return em_fail(EM_ECONFIG, "%s: %s: found a value, expected a mapping of options",
                       entry->place, entry->key);
    }
    if (section->variants && strcmp(option, "name") == 0)
        return EM_OK;
    if (is_element(p, section) && strcmp(option, "block") == 0)
        return EM_OK;
    field = find_field(section, option);
    if (!field)
        return unknown_option(p, section, entry, option);
    if (entry->value.kind == EM_VALUE_MAPPING && field->type != EM_FIELD_DATA)
        return em_fail(EM_ECONFIG, "%s: %s: found a mapping, expected a value", entry->place,
                       entry->key);
    return EM_OK;
}

static em_status check_keys(parse *p)
{
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < p->yaml->count; i++)
        status = check_key(p, &p->yaml->entry[i]);
    return status;
}

/* ---- the variant that a section's name chooses ---- */

static em_status unknown_variant(const config_section *section, const em_yaml_entry *entry)
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
    if (nearest.name)
        return em_fail(EM_ECONFIG, "%s: unknown %s '%s'; did you mean %s?", entry->place,
                       section->kind, em_excerpt_of(found).text, nearest.name);
    return em_fail(EM_ECONFIG, "%s: unknown %s '%s' (see emass list %ss)", entry->place,
                   section->kind, em_excerpt_of(found).text, section->kind);
}

/* Chooses the variant and allocates its options; *index is its place in the list, unless a name is
 * missing, which is for require_name to say, after misspelt keys. */
static em_status choose(parse *p, config_section *section, int *index)
{
    const em_yaml_entry *entry = em_yaml_find(p->yaml, join(section->name, "name").text);
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
static const em_yaml_entry *find_library(const parse *p)
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
static em_status choose_plugin(parse *p, const em_yaml_entry *library)
{
    const em_yaml_entry *name = em_yaml_find(p->yaml, "model.name");
    config_section *section = &p->section[MODEL];
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

static em_status choose_model(parse *p)
{
    const em_yaml_entry *library = find_library(p);
    int model = 0;
    em_status status = library ? choose_plugin(p, library) : choose(p, &p->section[MODEL], &model);

    if (!library)
        p->config->model = em_model_at(model);
    p->config->model_options = p->section[MODEL].options;
    return status;
}

/* The parameters that a sampler of a list is of. */
static em_status read_block(parse *p, const config_section *section, em_kernel_options *kernel)
{
    const em_yaml_entry *parent = em_yaml_find(p->yaml, section->name);
    const em_yaml_entry *block = em_yaml_find(p->yaml, join(section->name, "block").text);
    em_status status;

    if (!block)
        return em_fail(EM_ECONFIG, "%s: %s.block is missing: which parameters it moves",
                       parent->place, section->name);
    if (block->value.kind != EM_VALUE_SCALAR)
        return em_fail(EM_ECONFIG, "%s: %s: expected the name of a block of the model's parameters",
                       block->place, block->key);
    status = em_copy_text(block->value.text.value[0], &kernel->block);
    return status ? status : em_copy_text(block->place, &kernel->place);
}

static em_status choose_kernel(parse *p, int i)
{
    em_kernel_options *kernel = &p->config->kernel[i];
    config_section *section = &p->section[SAMPLER + i];
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

static em_status choose_model_and_samplers(parse *p)
{
    em_config *config = p->config;
    em_status status = choose_model(p);

    for (int i = 0; !status && i < config->n_kernel; i++)
        status = choose_kernel(p, i);
    config->sampler = config->kernel[0].ops;
    config->sampler_options = config->kernel[0].options;
    return status;
}

/* ---- values ---- */

static em_status missing(const parse *p, const config_section *section, const char *option,
                         const char *hint)
{
    const em_yaml_entry *parent = em_yaml_find(p->yaml, section->name);

    return em_fail(EM_ECONFIG, "%s: %s.%s is missing%s", parent ? parent->place : p->config->path,
                   section->name, option, hint);
}

static em_status require_names(const parse *p)
{
    if (!p->section[MODEL].chosen)
        return missing(p, &p->section[MODEL], "name", " (see emass list models)");
    for (int i = 0; i < p->config->n_kernel; i++)
        if (!p->section[SAMPLER + i].chosen)
            return missing(p, &p->section[SAMPLER + i], "name", " (see emass list samplers)");
    return EM_OK;
}

/* Puts the place and the key of an option in front of the message, where `status` is of its value.
 */
static em_status say_where(const parse *p, const config_section *section, const em_field *field,
                           em_status status)
{
    const dotted key = join(section->name, field->name);

    if (status != EM_ECONFIG)
        return status;
    return em_fail(status, "%s: %s: %s", em_yaml_find(p->yaml, key.text)->place, key.text,
                   em_error_text());
}

/* One that is not given is first put there with its default. */
static em_status read_option(parse *p, const config_section *section, const em_field *field)
{
    const dotted key = join(section->name, field->name);
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

/* Reads every option of a section; one that is not given may stand in another section. */
static em_status read_section(parse *p, const config_section *section)
{
    em_status status = EM_OK;

    for (const em_field *field = section->fields; !status && field && field->name; field++) {
        const bool is_given = em_yaml_find(p->yaml, join(section->name, field->name).text);
        if (section->inherits && !is_given)
            status = em_field_read(
                field, &em_yaml_find(p->yaml, join(section->inherits, field->name).text)->value,
                section->options);
        else
            status = read_option(p, section, field);
    }
    return status;
}

/* heart.yaml -> heart.h5, in the current folder. */
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

static em_status read_sections(parse *p)
{
    em_status status = EM_OK;

    for (int i = 0; !status && i < p->n_section; i++)
        status = read_section(p, &p->section[i]);
    return status ? status : name_output(p->config);
}

/* A step size that is to be adapted needs a sampler and a warmup for it. */
static em_status check_step_size(const parse *p, int i)
{
    const em_kernel_options *kernel = &p->config->kernel[i];
    const dotted key = join(p->section[SAMPLER + i].name, "step_size");

    if (!isnan(((const em_sampler_options *)kernel->options)->step_size))
        return EM_OK;
    if (p->config->run.warmup == 0 && !p->config->mass.from)
        return em_fail(EM_ECONFIG,
                       "%s: run.warmup is 0, which leaves no iteration to adapt %s in, expected a "
                       "number for it or some warmup",
                       em_yaml_find(p->yaml, "run.warmup")->place, key.text);
    if (!kernel->ops->probe)
        return em_fail(EM_ECONFIG, "%s: %s: found adapt, expected a number: %s cannot adapt it",
                       em_yaml_find(p->yaml, key.text)->place, key.text, kernel->ops->name);
    return EM_OK;
}

/* What the tables cannot say, because it takes two options. */
static em_status check_together(const parse *p)
{
    const em_run_options *run = &p->config->run;
    const double warmup = run->warmup == INT64_MIN ? 1000 : (double)run->warmup;
    const double iterations = warmup + (double)run->draws * (double)run->thin;
    em_status status = EM_OK;

    if (iterations >= 0x1p40) /* the counter of math/rng.h */
        return em_fail(EM_ECONFIG,
                       "%s: run.warmup + run.draws x run.thin is %.0f iterations, expected less "
                       "than 2^40",
                       em_yaml_find(p->yaml, "run.draws")->place, iterations);
    for (int i = 0; !status && i < p->config->n_kernel; i++)
        status = check_step_size(p, i);
    if (status)
        return status;
    if (p->is_list && p->config->mass.from)
        return em_fail(
            EM_ECONFIG,
            "%s: mass.from: found a file beside a list of samplers, expected one sampler "
            "of all parameters",
            em_yaml_find(p->yaml, "mass.from")->place);
    if (p->config->mass.from_positions && !p->config->mass.from)
        return em_fail(EM_ECONFIG,
                       "%s: mass.from_positions: found true without mass.from, expected the file "
                       "that has the positions",
                       em_yaml_find(p->yaml, "mass.from_positions")->place);
    return EM_OK;
}

/* ---- the full config ---- */

/* The key of a field, `kappa: k0:` on two lines where it is the first of its group. */
static void write_key(const char *indent, const em_field *field, const em_field *previous,
                      FILE *out)
{
    const char *dot = strchr(field->name, '.');
    const size_t group = dot ? (size_t)(dot + 1 - field->name) : 0;

    if (dot && (!previous || strncmp(previous->name, field->name, group) != 0))
        fprintf(out, "%s%.*s:\n", indent, (int)group - 1, field->name);
    fprintf(out, "%s%s%s: ", indent, dot ? "  " : "", field->name + group);
}

static bool is_listed(const char *const *list, const char *name)
{
    while (*list && strcmp(*list, name) != 0)
        list++;
    return *list != NULL;
}

static const em_field block_field =
    EM_TEXT(em_kernel_options, block, .doc = "parameters of the model that the sampler moves");

/* A sampler of a list begins with its block. */
static void write_head(const parse *p, const config_section *section, FILE *out)
{
    const ptrdiff_t i = section - &p->section[SAMPLER];

    if (!is_element(p, section)) {
        fprintf(out, "%s:\n", section->name);
        if (section->chosen)
            fprintf(out, "  name: %s\n", section->chosen);
        return;
    }
    fprintf(out, "%s  - block: ", i == 0 ? "sampler:\n" : "");
    em_field_write(&block_field, &p->config->kernel[i], out);
    fprintf(out, "\n    name: %s\n", section->chosen);
}

static void write_section(const parse *p, const config_section *section,
                          const char *const *left_out, FILE *out)
{
    const em_field *previous = NULL;

    write_head(p, section, out);
    for (const em_field *field = section->fields; field && field->name; field++) {
        if (left_out && is_listed(left_out, field->name))
            continue;
        write_key(is_element(p, section) ? "    " : "  ", field, previous, out);
        em_field_write(field, section->options, out);
        fputc('\n', out);
        previous = field;
    }
}

/* What the mass of a sampler of a list has otherwise than the section `mass`. */
static void write_own_mass(const parse *p, int i, FILE *out)
{
    const config_section *section = &p->section[p->n_outer + i];
    const em_field *previous = NULL;

    for (const em_field *field = section->fields; field->name; field++) {
        if (!em_yaml_find(p->yaml, join(section->name, field->name).text))
            continue;
        if (!previous)
            fprintf(out, "    mass:\n");
        write_key("      ", field, previous, out);
        em_field_write(field, section->options, out);
        fputc('\n', out);
        previous = field;
    }
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
    return em_config_takes_minibatches(config) && config->run.minibatch_sums == EM_MINIBATCH_FAST;
}

/* Paths stand in it as they were written, so that it does not depend on the machine. What is stored
 * depends neither on where the file is put, nor on the shards where the draws do not. */
static em_status write_full(const parse *p, bool is_stored, char **full)
{
    static const char *const both[] = {"file", "shards", NULL};
    static const char *const file[] = {"file", NULL};
    const char *const *left_out = !is_stored                           ? NULL
                                  : em_config_shards_matter(p->config) ? file
                                                                       : both;
    size_t length;
    char *text = NULL;
    FILE *out = open_memstream(&text, &length);
    em_status status;

    if (!out)
        return em_fail(EM_EMEMORY, "out of memory while writing the config");
    for (int i = 0; i < p->n_outer; i++) {
        write_section(p, &p->section[i], left_out, out);
        if (is_element(p, &p->section[i]))
            write_own_mass(p, i - SAMPLER, out);
    }
    if (fclose(out) == 0)
        status = em_copy_text(text, full);
    else
        status = em_fail(EM_EMEMORY, "out of memory while writing the config");
    free(text);
    return status;
}

static em_status expand_paths(const parse *p, const config_section *section)
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

/* ---- all of it ---- */

/* "key.path=value" */
static em_status apply_override(em_yaml *yaml, const char *override)
{
    const size_t length = strcspn(override, "=");
    char *place = NULL, *key = NULL;
    em_status status;

    if (!override[length] || length == 0)
        return em_fail(EM_ECONFIG, "--set %s: expected key.path=value",
                       em_excerpt_of(override).text);
    status = em_format_text(&place, "--set %s", em_excerpt_of(override).text);
    if (!status)
        status = em_format_text(&key, "%.*s", (int)length, override);
    if (!status)
        status = em_yaml_put(yaml, place, key, override + length + 1);
    em_release(&key);
    em_release(&place);
    return status;
}

bool em_config_is_data(const char *key)
{
    static const char section[] = "model.";
    em_variant variant;

    for (int i = 0; strncmp(key, section, strlen(section)) == 0 && em_model_variant(i, &variant);
         i++) {
        const em_field *field = em_field_find(variant.fields, key + strlen(section));
        if (field && field->type == EM_FIELD_DATA)
            return true;
    }
    return false;
}

static em_status read_text(parse *p, const char *text, int n_override, const char *const *override)
{
    em_status status = em_yaml_parse(p->config->path, text, em_config_is_data, &p->yaml);

    for (int i = 0; !status && i < n_override; i++)
        status = apply_override(p->yaml, override[i]);
    return status;
}

static void add_section(parse *p, config_section section)
{
    p->section[p->n_section++] = section;
}

/* The sections of a config, which has one sampler or a list of them. */
static em_status lay_sections(parse *p)
{
    em_config *config = p->config;
    int n = 0;

    while (n < EM_MOST_KERNELS && em_yaml_find(p->yaml, kernel_names[n]))
        n++;
    if (n == EM_MOST_KERNELS && em_yaml_find(p->yaml, "sampler[16]"))
        return em_fail(EM_ECONFIG, "%s: more than %d samplers",
                       em_yaml_find(p->yaml, "sampler[16]")->place, EM_MOST_KERNELS);
    p->is_list = n > 0;
    config->n_kernel = p->is_list ? n : 1;
    add_section(p,
                (config_section){.name = "model", .kind = "model", .variants = em_model_variant});
    for (int i = 0; i < config->n_kernel; i++)
        add_section(p, (config_section){.name = p->is_list ? kernel_names[i] : "sampler",
                                        .kind = "sampler",
                                        .variants = em_sampler_variant});
    add_section(
        p, (config_section){.name = "mass", .fields = em_mass_fields, .options = &config->mass});
    add_section(p,
                (config_section){.name = "run", .fields = em_run_fields, .options = &config->run});
    add_section(
        p, (config_section){.name = "stop", .fields = em_stop_fields, .options = &config->stop});
    add_section(p, (config_section){
                       .name = "output", .fields = em_output_fields, .options = &config->output});
    p->n_outer = p->n_section;
    for (int i = 0; i < config->n_kernel; i++) {
        config->kernel[i].mass = p->is_list ? &config->kernel[i].own_mass : &config->mass;
        if (p->is_list)
            add_section(p, (config_section){.name = kernel_masses[i],
                                            .fields = em_block_mass_fields,
                                            .options = &config->kernel[i].own_mass,
                                            .inherits = "mass"});
    }
    return EM_OK;
}

static em_status understand(parse *p)
{
    em_status status;

    if ((status = lay_sections(p)) || (status = choose_model_and_samplers(p)) ||
        (status = check_keys(p)) || (status = require_names(p)) || (status = read_sections(p)) ||
        (status = check_together(p)) || (status = write_full(p, false, &p->config->full)) ||
        (status = write_full(p, true, &p->config->stored)))
        return status;
    for (int i = 0; !status && i < p->n_section; i++)
        status = expand_paths(p, &p->section[i]);
    return status;
}

static em_status parse_config(const char *path, const char *text, int n_override,
                              const char *const *override, em_config **out)
{
    em_config *config;
    em_status status = em_allocate(1, sizeof *config, &config);
    parse p = {.config = config};

    *out = config;
    if (!status)
        status = em_copy_text(path, &config->path);
    if (!status)
        status = read_text(&p, text, n_override, override);
    if (!status)
        status = understand(&p);
    em_yaml_destroy(&p.yaml);
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
    if (c->model_options)
        em_field_release(c->model->fields, c->model_options);
    for (int i = 0; i < c->n_kernel; i++) {
        if (c->kernel[i].options)
            em_field_release(c->kernel[i].ops->fields, c->kernel[i].options);
        em_field_release(em_block_mass_fields, &c->kernel[i].own_mass);
        em_release(&c->kernel[i].options);
        em_release(&c->kernel[i].block);
        em_release(&c->kernel[i].place);
    }
    em_field_release(em_mass_fields, &c->mass);
    em_field_release(em_run_fields, &c->run);
    em_field_release(em_stop_fields, &c->stop);
    em_field_release(em_output_fields, &c->output);
    em_release(&c->model_options);
    em_plugin_close(&c->plugin);
    em_release(&c->path);
    em_release(&c->full);
    em_release(&c->stored);
    em_release(config);
}

int em_config_sections(const em_config *config, em_section section[EM_MOST_SECTIONS])
{
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
        section[n++] = (em_section){.name = kernel->block ? kernel_names[i] : "sampler",
                                    .chosen = kernel->ops->name,
                                    .block = kernel->block,
                                    .fields = kernel->ops->fields,
                                    .options = kernel->options};
        if (kernel->block)
            section[n++] = (em_section){.name = kernel_masses[i],
                                        .inherits = "mass",
                                        .fields = em_block_mass_fields,
                                        .options = &kernel->own_mass};
    }
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        section[n++] = last[i];
    return n;
}
