#include "run/config/config_scan.h"

#include "base/memory.h"
#include "base/text.h"
#include "emass/model/commands.h"
#include "run/config/config_parse.h"
#include "run/config/config_path.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_VALUES = 1000 };

/* ---------------------------------------------------------------- values */

/* Reads value number i of the list as the option is read from a config that has only this value. */
static em_status read_value(const em_yaml_entry *entry, const em_field *field, int64_t i,
                            int64_t *out)
{
    const em_value one = {.kind = EM_VALUE_SCALAR, .text = {1, &entry->value.text.value[i]}};
    em_field row = *field;

    row.offset = 0;
    return em_config_say_entry(entry, em_field_read(&row, &one, out));
}

static em_status read_values(const em_yaml_entry *entry, const em_field *field,
                             em_config_scan *scan)
{
    const int64_t n = entry->value.text.count;

    if (n < 1 || n > MOST_VALUES)
        return em_fail(EM_ECONFIG, "%s: %s: found a list of %" PRId64 " values, expected 1 to %d",
                       entry->place, entry->key, n, MOST_VALUES);
    em_status status = em_allocate_all(EM_ARRAY(scan->value, n), EM_ARRAY(scan->file, n));
    status = status ? status : em_copy_text(field->name, &scan->option);
    scan->count = status ? 0 : n;
    for (int64_t i = 0; !status && i < n; i++) {
        status = read_value(entry, field, i, &scan->value[i]);
        for (int64_t j = 0; !status && j < i; j++)
            if (scan->value[j] == scan->value[i])
                status = em_fail(EM_ECONFIG,
                                 "%s: %s: found %" PRId64 " twice, expected different values",
                                 entry->place, entry->key, scan->value[i]);
    }
    return status;
}

/* ---------------------------------------------------------------- outputs */

static em_status name_files(const char *output, em_config_scan *scan)
{
    const size_t length = strlen(output);
    const bool is_h5 = em_text_ends_with(output, ".h5");
    const int base = (int)(is_h5 ? length - 3 : length);
    const char *end = is_h5 ? ".h5" : "";
    em_status status = em_format_text(&scan->page, "%.*s.%s.html", base, output, scan->option);

    for (int64_t i = 0; !status && i < scan->count; i++)
        status = em_format_text(&scan->file[i], "%.*s.%s%" PRId64 "%s", base, output, scan->option,
                                scan->value[i], end);
    return status;
}

em_status em_config_scan_overrides(const em_config_scan *scan, int64_t i, char **value, char **file)
{
    em_status status = em_format_text(value, "model.%s=%" PRId64, scan->option, scan->value[i]);

    return status ? status : em_path_setting("output.file", scan->file[i], file);
}

/* ---------------------------------------------------------------- the config */

/* Checks the config of value number i. The config of the first value names the outputs. */
static em_status check_value(const char *path, const char *text, int n_override,
                             const char *const *override, int64_t i, em_config_scan *scan)
{
    EM_SCOPED_BY(em_config_destroy) em_config *config = NULL;
    EM_SCOPED const char **all = NULL;
    EM_SCOPED char *value = NULL;
    em_status status = em_allocate(n_override + 1, sizeof *all, &all);

    if (!status)
        status = em_format_text(&value, "model.%s=%" PRId64, scan->option, scan->value[i]);
    for (int k = 0; !status && k < n_override; k++)
        all[k] = override[k];
    if (!status) {
        all[n_override] = value;
        status = em_config_parse(path, text, n_override + 1, all, &config);
    }
    if (!status && i == 0) {
        scan->n_chain = config->run.chains;
        scan->group_size = em_config_group_size(config);
        scan->max_time = config->stop.max_time;
        status = name_files(config->output.file, scan);
    }
    return status;
}

/* The list of the option that may have one; NULL: the config has none. */
static const em_yaml_entry *find_list(const em_parse *p, const em_field **field)
{
    const em_model_ops *model = p->config->model;
    const bool is_ours = model && !p->config->plugin && model->commands; /* and stays loaded */
    const char *option = is_ours ? model->commands->scanned : NULL;
    const em_yaml_entry *entry =
        option ? em_yaml_find(p->yaml, em_join_key("model", option).text) : NULL;

    *field = option ? em_field_find(model->fields, option) : NULL;
    return entry && entry->value.kind == EM_VALUE_LIST ? entry : NULL;
}

em_status em_config_scan_read(const char *path, const char *text, int n_override,
                              const char *const *override, em_config_scan *out)
{
    EM_SCOPED_BY(em_config_destroy) em_config *config = NULL;
    const em_field *field = NULL;
    const em_yaml_entry *list = NULL;
    em_status status = em_allocate(1, sizeof *config, &config);
    em_parse p = {.config = config};

    *out = (em_config_scan){.model = NULL};
    status = status ? status : em_copy_text(path, &config->path);
    status = status ? status : em_config_read(&p, text, n_override, override);
    if (!status)
        list = find_list(&p, &field);
    if (list) {
        out->model = config->model;
        status = read_values(list, field, out);
    }
    if (config)
        config->yaml = p.yaml;
    for (int64_t i = 0; !status && i < out->count; i++)
        status = check_value(path, text, n_override, override, i, out);
    if (status)
        em_config_scan_release(out);
    return status;
}

void em_config_scan_release(em_config_scan *scan)
{
    em_release_texts(scan->count, &scan->file);
    em_release_all(&scan->option, &scan->value, &scan->page);
    *scan = (em_config_scan){.model = NULL};
}
