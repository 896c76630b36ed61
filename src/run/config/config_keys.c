/* Checks the keys of a config, and suggests keys for unknown ones. */
#include "base/text.h"
#include "base/text/nearest.h"
#include "run/config/config_parse.h"

#include <stdio.h>
#include <string.h>

/* The innermost section that has the key, or whose name it is. */
static const em_config_section *find_section(const em_parse *p, const char *key)
{
    const em_config_section *found = NULL;

    for (int i = 0; i < p->config->n_section; i++) {
        const em_config_section *section = &p->config->section[i];
        const size_t length = strlen(section->name);
        if (strncmp(section->name, key, length) == 0 && (key[length] == '.' || !key[length]) &&
            (!found || length > strlen(found->name)))
            found = section;
    }
    return found;
}

/* Finds the i-th table of options that are allowed in the section: that of the chosen variant, or
 * those of all variants. */
static bool table_of(const em_config_section *section, int i, const em_field **table)
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

static const em_field *em_find_option(const em_config_section *section, const char *option)
{
    const em_field *table, *field = NULL;

    for (int i = 0; !field && table_of(section, i, &table); i++)
        field = em_field_find(table, option);
    return field;
}

/* The name of an option in a group: "k0" for the group `kappa` with an option kappa.k0. For the
 * group "" it is an option of the section. NULL: there is no such group. */
static const char *first_of_group(const em_config_section *section, const char *group)
{
    const size_t length = strlen(group);
    const em_field *table;

    if (section->variants && length == 0)
        return "name";
    for (int i = 0; table_of(section, i, &table); i++)
        for (const em_field *field = table; field && field->name; field++)
            if (length == 0)
                return field->name;
            else if (strncmp(field->name, group, length) == 0 && field->name[length] == '.')
                return field->name + length + 1;
    return NULL;
}

/* ---- unknown keys ---- */

/* A section that has an option of exactly this name. */
static const em_config_section *find_elsewhere(const em_parse *p, const char *option)
{
    for (int i = 0; i < p->config->n_section; i++)
        if (em_find_option(&p->config->section[i], option))
            return &p->config->section[i];
    return NULL;
}

/* A hint that names the command that lists the options of a section. */
typedef struct hint {
    char text[256];
} hint;

static hint list_of(const em_config_section *section)
{
    hint where = {" (see emass list)"};

    if (section->chosen)
        snprintf(where.text, sizeof where.text, " (see emass list %ss %s)", section->kind,
                 em_excerpt_of(section->chosen).text);
    return where;
}

/* Fails because of an unknown key. `meant`: the suggestion; NULL: no key is near, and `otherwise`
 * ends the message. */
static em_status unknown_key(const em_yaml_entry *entry, const char *meant, const char *otherwise)
{
    const em_excerpt key = em_excerpt_of(entry->key);

    if (meant)
        return em_fail(EM_ECONFIG, "%s: unknown key %s; did you mean %s?", entry->place, key.text,
                       meant);
    return em_fail(EM_ECONFIG, "%s: unknown key %s%s", entry->place, key.text, otherwise);
}

static em_status unknown_section(const em_parse *p, const em_yaml_entry *entry)
{
    const em_config_section *other = find_elsewhere(p, entry->key);
    const bool is_sampler = p->is_list && strncmp(entry->key, "sampler", 7) == 0;
    em_nearest nearest = em_nearest_start(entry->key);

    if (is_sampler)
        return em_fail(EM_ECONFIG, "%s: %s: sampler is a list: expected sampler[0] to sampler[%d]",
                       entry->place, em_excerpt_of(entry->key).text, p->config->n_kernel - 1);
    if (other)
        return unknown_key(entry, em_join_key(other->name, entry->key).text, "");
    for (int i = 0; i < p->config->n_section; i++)
        em_nearest_offer(&nearest, p->config->section[i].name);
    return unknown_key(entry, nearest.name,
                       ", expected model, sampler, mass, run, stop, output or temper");
}

/* Fails because another variant of the section has the option and the chosen one does not. */
static em_status option_of_other(const em_config_section *section, const em_yaml_entry *entry,
                                 const char *option)
{
    em_variant variant;

    for (int i = 0; section->chosen && section->variants(i, &variant); i++)
        if (em_field_find(variant.fields, option))
            return em_fail(EM_ECONFIG, "%s: %s is not an option of %s, but of %s", entry->place,
                           entry->key, section->chosen, variant.name);
    return EM_OK;
}

static em_status unknown_option(const em_parse *p, const em_config_section *section,
                                const em_yaml_entry *entry, const char *option)
{
    const em_config_section *other = find_elsewhere(p, option);
    em_nearest nearest = em_nearest_start(option);
    const em_field *table;
    em_status status = option_of_other(section, entry, option);

    if (status)
        return status;
    if (section->variants && strcmp(section->kind, "model") == 0 && strcmp(option, "family") == 0)
        return unknown_key(entry, NULL,
                           "; the family is the name of the model: linear, logistic, poisson or "
                           "negative_binomial, or, in a Stan program, stan");
    if (find_section(p, option))
        return unknown_key(entry, option, "");
    if (other)
        return em_fail(EM_ECONFIG, "%s: unknown key %s; did you mean %s?%s", entry->place,
                       em_excerpt_of(entry->key).text, em_join_key(other->name, option).text,
                       section->chosen ? list_of(section).text : "");
    for (int i = 0; table_of(section, i, &table); i++)
        for (const em_field *field = table; field && field->name; field++)
            em_nearest_offer(&nearest, field->name);
    if (section->variants)
        em_nearest_offer(&nearest, "name");
    return unknown_key(entry, nearest.name, list_of(section).text);
}

/* ---- every key ---- */

/* Whether the key is one such as "model.layers[1]", which stands for an element of a list of data.
 */
static bool is_element_of_data(const em_parse *p, const em_yaml_entry *entry)
{
    char key[256];

    snprintf(key, sizeof key, "%.*s", (int)strcspn(entry->key, "["), entry->key);
    return strchr(entry->key, '[') &&
           em_config_is_data(p->config->model, key) == EM_YAML_ALL_IS_DATA;
}

static em_status check_key(em_parse *p, const em_yaml_entry *entry)
{
    const em_config_section *section = find_section(p, entry->key);

    if (!section && p->is_list && strcmp(entry->key, "sampler") == 0)
        return EM_OK;
    if (!section)
        return unknown_section(p, entry);
    const size_t length = strlen(section->name);
    const bool is_option = entry->key[length] == '.';
    const char *option = entry->key + length + is_option;
    const char *first = first_of_group(section, option);
    if (!is_option || first) {
        if (entry->value.kind == EM_VALUE_MAPPING || entry->value.kind == EM_VALUE_NULL)
            return EM_OK;
        return em_fail(EM_ECONFIG,
                       "%s: %s: found a value, expected a mapping of options, such as {%s: ...}",
                       entry->place, entry->key, first ? first : "name");
    }
    if (section->variants && strcmp(option, "name") == 0)
        return EM_OK;
    if (em_is_element(p, section) && strcmp(option, "block") == 0)
        return EM_OK;
    const em_field *field = em_find_option(section, option);
    if (!field && is_element_of_data(p, entry))
        return EM_OK;
    if (!field)
        return unknown_option(p, section, entry, option);
    if (entry->value.kind == EM_VALUE_MAPPING && field->type != EM_FIELD_DATA &&
        field->type != EM_FIELD_JSON)
        return em_fail(EM_ECONFIG, "%s: %s: found a mapping, expected a value", entry->place,
                       entry->key);
    return EM_OK;
}

em_status em_config_check_keys(em_parse *p)
{
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < p->yaml->count; i++)
        status = check_key(p, &p->yaml->entry[i]);
    return status;
}
