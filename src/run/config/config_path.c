#include "run/config/config_path.h"

#include "base/memory.h"
#include "base/text.h"
#include "base/text/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of data, beside the config, if the environment variable is not set. */
static const char data_name[] = "EMASS_DATA", data_folder[] = "data";

static bool is_set(const char *name)
{
    const char *value = getenv(name);

    return value && *value;
}

/* The value of ${NAME}. */
static em_status value_of(const char *name, const char **value)
{
    *value = is_set(name) ? getenv(name) : data_folder;
    if (is_set(name) || strcmp(name, data_name) == 0)
        return EM_OK;
    return em_fail(EM_ECONFIG, "the environment variable %s is not set", em_excerpt_of(name).text);
}

/* Writes `text` with every ${NAME} replaced, once. */
static em_status write_replaced(const char *text, FILE *out)
{
    const char *begin;

    for (; (begin = strstr(text, "${")); text = strchr(begin, '}') + 1) {
        char name[256];
        const char *value;
        const size_t length = strcspn(begin + 2, "}");

        if (!begin[2 + length] || length == 0 || length >= sizeof name)
            return em_fail(EM_ECONFIG, "found '%s', expected ${NAME}", em_excerpt_of(begin).text);
        snprintf(name, sizeof name, "%.*s", (int)length, begin + 2);
        const em_status status = value_of(name, &value);
        if (status)
            return status;
        fprintf(out, "%.*s%s", (int)(begin - text), text, value);
    }
    fputs(text, out);
    return EM_OK;
}

/* Whether the file exists; for file.h5:/dataset, whether file.h5 exists. */
static bool is_there(const char *path)
{
    const char *colon = strstr(path, ":/");
    char file[4096];

    snprintf(file, sizeof file, "%.*s", colon ? (int)(colon - path) : (int)strlen(path), path);
    return access(path, F_OK) == 0 || access(file, F_OK) == 0;
}

/* Fails because the data are neither where the environment variable points nor beside the config.
 * The message names the variable to set. */
static em_status check_data(const char *written, const char *path)
{
    if (!strstr(written, "${EMASS_DATA}") || is_set(data_name) || is_there(path))
        return EM_OK;
    return em_fail(EM_ECONFIG,
                   "found nothing at %s, expected a file there, or the environment variable %s, "
                   "which is not set, to name the folder of the data",
                   path, data_name);
}

em_status em_expand_path(const char *config_path, char **path)
{
    const char *slash = strrchr(config_path, '/');
    EM_SCOPED char *replaced = NULL;
    em_text_stream text;
    em_status status = em_text_begin(&text);

    status = status ? status : write_replaced(*path, text.out);
    status = em_text_end(&text, status, &replaced);
    if (!status) {
        const int folder = slash && *replaced != '/' ? (int)(slash + 1 - config_path) : 0;
        char *written = *path;
        *path = NULL;
        status = em_format_text(path, "%.*s%s", folder, config_path, replaced);
        status = status ? status : check_data(written, *path);
        em_release(&written);
    }
    return status;
}

/* Writes a column such as "table.csv:age" with its path made relative to the current folder. */
static em_status write_column(const char *config_path, const char *text, FILE *out)
{
    const char *colon = strrchr(text, ':');
    EM_SCOPED char *path = NULL, *whole = NULL;
    em_status status = em_format_text(&path, "%.*s", (int)(colon - text), text);

    status = status ? status : em_expand_path(config_path, &path);
    status = status ? status : em_format_text(&whole, "%s%s", path, colon);
    if (!status)
        em_json_write_string(whole, out);
    return status;
}

static em_status write_expanded(const char *config_path, const char *json, FILE *out)
{
    em_status status = EM_OK;

    while (!status && *json) {
        const char *start = json;
        EM_SCOPED char *text = NULL;
        if (*json != '"') {
            fputc(*json++, out);
            continue;
        }
        status = em_json_read_string(&json, &text);
        if (!status && !em_json_is_name(json) && strchr(text, ':'))
            status = write_column(config_path, text, out);
        else if (!status)
            fprintf(out, "%.*s", (int)(json - start), start);
    }
    return status;
}

em_status em_expand_paths(const char *config_path, char **json)
{
    char *expanded = NULL;
    em_text_stream text;
    em_status status = em_text_begin(&text);

    status = status ? status : write_expanded(config_path, *json, text.out);
    status = em_text_end(&text, status, &expanded);
    if (!status) {
        em_release(json);
        *json = expanded;
    }
    return status;
}

/* Whether the files of all columns of a mapping exist. */
static bool columns_are_there(const char *json)
{
    bool there = true;

    while (there && *json) {
        EM_SCOPED char *text = NULL;
        if (*json != '"') {
            json++;
            continue;
        }
        if (em_json_read_string(&json, &text) != EM_OK)
            return false;
        char *colon = em_json_is_name(json) ? NULL : strrchr(text, ':');
        if (colon) {
            *colon = '\0';
            there = is_there(text);
        }
    }
    return there;
}

bool em_path_is_there(const char *path)
{
    return *path == '{' ? columns_are_there(path) : is_there(path);
}

em_status em_path_setting(const char *option, const char *path, char **out)
{
    const em_status status = em_allocate((int64_t)(strlen(option) + 2 * strlen(path)) + 4, 1, out);

    if (status)
        return status;
    char *at = stpcpy(stpcpy(*out, option), "='");
    for (; *path; path++) {
        if (*path == '\'')
            *at++ = '\'';
        *at++ = *path;
    }
    strcpy(at, "'");
    return EM_OK;
}
