#include "run/path.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What ${NAME} stands for. Data that the environment does not place lie beside the config. */
static em_status look_up(const char *name, const char **value)
{
    *value = getenv(name);
    if (*value && **value)
        return EM_OK;
    *value = "data";
    if (strcmp(name, "EMASS_DATA") == 0)
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
        em_release(path);
        status = em_format_text(path, "%.*s%s", folder, config_path, replaced);
    }
    free(replaced);
    return status;
}
