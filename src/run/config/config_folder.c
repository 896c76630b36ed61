#include "run/config/config_folder.h"

#include "base/file.h"
#include "base/memory.h"
#include "par/world.h"
#include "run/config/config_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- paths of a config */

/* Whether any path of the config passes `test`. The test gets each path both expanded and as it was
 * written. */
static bool any_path(const em_config *config, bool (*test)(const char *path, const char *written))
{
    for (int i = 0; i < config->n_section; i++)
        for (const em_field *f = config->section[i].fields; f && f->name; f++) {
            const char *const *path =
                (const char *const *)((const char *)config->section[i].options + f->offset);
            char key[256];
            snprintf(key, sizeof key, "%s.%s", config->section[i].name, f->name);
            const em_yaml_entry *entry = em_yaml_find(config->yaml, key);
            const bool given = entry && entry->value.kind == EM_VALUE_SCALAR;
            if ((f->type == EM_FIELD_PATH || f->type == EM_FIELD_DATA) && *path &&
                test(*path, given ? entry->value.text.value[0] : ""))
                return true;
        }
    return false;
}

static bool is_relative(const char *path, const char *written)
{
    return *path == '{' || *written != '/';
}

bool em_home_matters(const em_config *config)
{
    return any_path(config, is_relative);
}

static bool is_missing(const char *path, const char *written)
{
    return *written != '/' && !em_path_is_there(path);
}

bool em_home_has_all_paths(const em_config *config)
{
    return !any_path(config, is_missing);
}

/* ---------------------------------------------------------------- name of the folder */

/* The real path of the folder of a file, with links resolved; NULL: there is none. The caller frees
 * it by free(). */
static char *real_folder_of(const char *path)
{
    EM_SCOPED char *folder = NULL;

    return em_file_folder(path, &folder) ? NULL : realpath(folder, NULL);
}

/* The length of the common parent folder of both paths; 0: only "/". */
static size_t common_length(const char *a, const char *b)
{
    size_t common = 0, i = 0;

    for (; a[i] && a[i] == b[i]; i++)
        if (a[i] == '/')
            common = i;
    if ((!a[i] || a[i] == '/') && (!b[i] || b[i] == '/') && i > 1)
        common = i;
    return common;
}

/* The relative path from one folder to another. Both have no links. */
static em_status find_way(const char *from, const char *to, char **way)
{
    const size_t common = common_length(from, to);
    const char *rest = to[common] == '/' ? to + common + 1 : to + common;
    int64_t n_up = 0;

    for (const char *at = from + common; (at = strchr(at, '/')); at++)
        n_up += at[1] != '\0';
    const em_status status = em_allocate(3 * n_up + (int64_t)strlen(rest) + 2, 1, way);
    for (int64_t i = 0; !status && i < n_up; i++)
        memcpy(*way + 3 * i, "../", 3);
    if (!status)
        strcpy(*way + 3 * n_up, n_up == 0 && !*rest ? "." : rest);
    return status;
}

/* The name by which the output refers to the folder; NULL: none. Local. */
static em_status name(const char *folder, const char *output, bool reproducible, char **out)
{
    char *to = realpath(folder, NULL), *from = real_folder_of(output);
    em_status status = EM_OK;

    *out = NULL;
    if (to && from && (strcmp(from, to) == 0 || common_length(from, to) > 0))
        status = find_way(from, to, out);
    else if (to && !reproducible)
        status = em_copy_text(to, out);
    free(to);
    free(from);
    return status;
}

em_status em_home_put(em_writer *writer, const char *folder, const char *output, bool reproducible)
{
    const bool leads = em_world_rank() == 0;
    EM_SCOPED char *text = NULL;
    em_status status = leads && folder ? name(folder, output, reproducible, &text) : EM_OK;

    if (!status && leads && !text)
        status = em_copy_text("", &text);
    status = em_share_text(status, &text);
    if (!status && *text)
        status = em_writer_put_text(writer, EM_HOME_ATTRIBUTE, text);
    return status;
}

em_status em_home_of(const char *output, const char *name, char **folder)
{
    EM_SCOPED char *target = NULL;
    em_status status = em_file_follow(output, &target);

    if (!status && *name == '/')
        status = em_copy_text(name, folder);
    else if (!status)
        status = em_format_text(folder, "%.*s%s", (int)em_file_folder_length(target), target, name);
    return status;
}
