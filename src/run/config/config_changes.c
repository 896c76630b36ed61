#include "run/config/config_changes.h"

#include "base/memory.h"
#include "base/options/field.h"
#include "base/text.h"
#include "run/config/config_parse.h"
#include "run/config/yaml.h"

#include <stdio.h>
#include <string.h>

/* Two stored configs, and the keys that differ. */
typedef struct comparison {
    em_yaml *old, *new;
    em_changes *changes;
    FILE *keys;
} comparison;

static void note(const comparison *c, const char *section, const char *option)
{
    fprintf(c->keys, "%s%s.%s", ftell(c->keys) > 0 ? ", " : "", section, option);
}

/* ---------------------------------------------------------------- values */

/* The canonical form of the value of an option; NULL if the value is invalid. */
static em_status write_canonical(const em_field *field, const em_value *value, char **text)
{
    em_field alone[2] = {*field, {.name = NULL}};
    EM_SCOPED void *options = NULL;
    em_text_stream written;
    em_status status = em_allocate(1, 64, &options);

    *text = NULL;
    alone[0].offset = 0;
    if (!status && em_field_read(alone, value, options) == EM_OK) {
        status = em_text_begin(&written);
        if (!status)
            em_field_write(alone, options, written.out);
        status = em_text_end(&written, status, text);
    }
    if (options)
        em_field_release(alone, options);
    return status;
}

/* The entry of an option in its section or, if missing, in the section from which it inherits. */
static em_status find_key(const em_yaml *yaml, const em_config_section *section,
                          const em_field *field, char **key, bool *inherited)
{
    em_status status = em_format_text(key, "%s.%s", section->name, field->name);

    *inherited = !status && section->inherits && !em_yaml_find(yaml, *key);
    if (*inherited) {
        em_release(key);
        status = em_format_text(key, "%s.%s", section->inherits, field->name);
    }
    return status;
}

/* The canonical form of an option's value in a config or, if it is not given, of its default. */
static em_status get_canonical(em_yaml *yaml, const em_config_section *section,
                               const em_field *field, char **text, bool *inherited)
{
    EM_SCOPED char *key = NULL;
    em_status status = find_key(yaml, section, field, &key, inherited);

    *text = NULL;
    if (!status && !em_yaml_find(yaml, key) && field->fallback)
        status = em_yaml_put(yaml, "default", key, field->fallback);
    if (!status && em_yaml_find(yaml, key))
        status = write_canonical(field, &em_yaml_find(yaml, key)->value, text);
    return status;
}

/* Whether draws were auto and are now a number, or the reverse. Such runs keep other states. */
static bool is_other_kind_of_run(const em_field *field, const char *old, const char *new)
{
    return strcmp(field->name, "draws") == 0 && old && new &&
           (strcmp(old, "auto") == 0) != (strcmp(new, "auto") == 0);
}

/* Whether the option of `stop` only ends a run and does not affect convergence checks. */
static bool ends_run_otherwise(const char *name)
{
    return strcmp(name, "max_time") == 0 || strcmp(name, "max_draws") == 0 ||
           strcmp(name, "end_after") == 0;
}

static em_status compare_option(const comparison *c, const em_config_section *section,
                                const em_field *field)
{
    EM_SCOPED char *old = NULL, *new = NULL;
    bool old_inherits = false, new_inherits = false;
    em_status status = get_canonical(c->old, section, field, &old, &old_inherits);

    status = status ? status : get_canonical(c->new, section, field, &new, &new_inherits);
    const bool is_of_other = old_inherits && new_inherits; /* whose comparison says it */
    if (!status && !is_of_other && !(old && new &&strcmp(old, new) == 0)) {
        if (!field->may_change || is_other_kind_of_run(field, old, new))
            note(c, section->name, field->name);
        if (is_other_kind_of_run(field, old, new))
            c->changes->was_auto = strcmp(old, "auto") == 0;
        if (strcmp(section->name, "stop") == 0 && !ends_run_otherwise(field->name))
            c->changes->stop_rule = true;
    }
    return status;
}

/* ---------------------------------------------------------------- sections */

/* Whether the entry of the section has this text. */
static bool says(const em_yaml *yaml, const em_config_section *section, const char *option,
                 const char *text)
{
    char key[64];

    snprintf(key, sizeof key, "%s.%s", section->name, option);
    const em_yaml_entry *entry = em_yaml_find(yaml, key);
    return entry && entry->value.kind == EM_VALUE_SCALAR &&
           strcmp(entry->value.text.value[0], text) == 0;
}

/* Records options of the earlier config that this version does not have. */
static void note_unknown(const comparison *c, const em_config_section *section)
{
    const size_t length = strlen(section->name);

    for (int64_t i = 0; i < c->old->count; i++) {
        const em_yaml_entry *entry = &c->old->entry[i];
        const char *option = entry->key + length + 1;
        if (strncmp(entry->key, section->name, length) != 0 || entry->key[length] != '.' ||
            entry->value.kind == EM_VALUE_MAPPING)
            continue;
        if (section->block && strncmp(option, "mass.", strlen("mass.")) == 0) /* its own section */
            continue;
        if (!(section->chosen && strcmp(option, "name") == 0) &&
            !(section->block && strcmp(option, "block") == 0) &&
            !em_field_find(section->fields, option))
            note(c, section->name, option);
    }
}

static em_status compare_section(const comparison *c, const em_config_section *section)
{
    em_status status = EM_OK;

    if (section->chosen && !says(c->old, section, "name", section->chosen)) {
        note(c, section->name, "name");
        return EM_OK;
    }
    if (section->block && !says(c->old, section, "block", section->block))
        note(c, section->name, "block");
    note_unknown(c, section);
    for (const em_field *field = section->fields; !status && field && field->name; field++)
        status = compare_option(c, section, field);
    return status;
}

static em_status compare_all(const comparison *c, const em_config *config)
{
    char next[32];
    em_status status = EM_OK;

    if (config->temper.on != em_config_has_section(c->old, "temper"))
        note(c, "temper", "reference");
    for (int i = 0; !status && i < config->n_section; i++)
        status = compare_section(c, &config->section[i]);
    snprintf(next, sizeof next, "sampler[%d]", config->n_kernel);
    if (em_yaml_find(c->old, next))
        note(c, next, "name");
    return status;
}

em_status em_changes_find(const em_config *config, const char *stored, em_changes *out)
{
    em_text_stream keys;
    em_status status = em_text_begin(&keys);
    comparison c = {.changes = out, .keys = keys.out};

    *out = (em_changes){.refused = NULL};
    if (!status)
        status =
            em_yaml_parse("the config", config->stored, em_config_is_data, config->model, &c.new);
    if (!status &&
        em_yaml_parse("an old config", stored, em_config_is_data, config->model, &c.old) == EM_OK)
        status = compare_all(&c, config);
    else if (!status)
        fputs("all options (the stored config cannot be read)", c.keys);
    status = em_text_end(&keys, status, &out->refused);
    if (!status && keys.length == 0)
        em_release(&out->refused);
    em_yaml_destroy(&c.old);
    em_yaml_destroy(&c.new);
    return status;
}
