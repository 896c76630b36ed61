#include "run/path.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Data that the environment does not place lie beside the config. */
static const char data_name[] = "EMASS_DATA", data_folder[] = "data";

static bool is_set(const char *name)
{
    const char *value = getenv(name);

    return value && *value;
}

/* What ${NAME} stands for. */
static em_status look_up(const char *name, const char **value)
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
        em_status status;

        if (!begin[2 + length] || length == 0 || length >= sizeof name)
            return em_fail(EM_ECONFIG, "found '%s', expected ${NAME}", em_excerpt_of(begin).text);
        snprintf(name, sizeof name, "%.*s", (int)length, begin + 2);
        status = look_up(name, &value);
        if (status)
            return status;
        fprintf(out, "%.*s%s", (int)(begin - text), text, value);
    }
    fputs(text, out);
    return EM_OK;
}

/* Whether there is a file, or that of file.h5:/dataset. */
static bool is_there(const char *path)
{
    const char *colon = strstr(path, ":/");
    char file[4096];

    snprintf(file, sizeof file, "%.*s", colon ? (int)(colon - path) : (int)strlen(path), path);
    return access(path, F_OK) == 0 || access(file, F_OK) == 0;
}

/* Says what to set where data are in neither place. */
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
    size_t length;
    char *replaced = NULL;
    FILE *out = open_memstream(&replaced, &length);
    em_status status;

    if (!out)
        return em_fail(EM_EMEMORY, "out of memory while reading a path");
    status = write_replaced(*path, out);
    if (fclose(out) && !status)
        status = em_fail(EM_EMEMORY, "out of memory while reading a path");
    if (!status) {
        const int folder = slash && *replaced != '/' ? (int)(slash + 1 - config_path) : 0;
        char *written = *path;
        *path = NULL;
        status = em_format_text(path, "%.*s%s", folder, config_path, replaced);
        if (!status)
            status = check_data(written, *path);
        em_release(&written);
    }
    free(replaced);
    return status;
}
