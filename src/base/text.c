#include "base/text.h"

#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Reads to the end rather than asking for the size: the file may be a pipe. */
static em_status read_all(const char *path, FILE *file, int64_t max_bytes, char *text)
{
    const size_t length = fread(text, 1, (size_t)max_bytes + 1, file);

    if (ferror(file))
        return em_fail(EM_EUSAGE, "cannot read %s: %s", path, strerror(errno));
    if ((int64_t)length > max_bytes)
        return em_fail(EM_EDATA, "%s: longer than %lld bytes", path, (long long)max_bytes);
    if (strlen(text) != length)
        return em_fail(EM_EDATA, "%s: found a NUL byte, expected text", path);
    return EM_OK;
}

em_status em_read_text_file(const char *path, int64_t max_bytes, char **text)
{
    FILE *file = fopen(path, "rb");
    em_status status;

    *text = NULL;
    if (!file)
        return em_fail(EM_EUSAGE, "cannot read %s: %s", path, strerror(errno));
    status = em_allocate(max_bytes + 2, 1, text);
    if (!status)
        status = read_all(path, file, max_bytes, *text);
    fclose(file);
    if (status)
        em_release(text);
    return status;
}

em_excerpt em_excerpt_of(const char *text)
{
    enum { LONGEST = 64 };
    const size_t length = strlen(text);
    size_t cut = length;
    em_excerpt excerpt;

    if (length > LONGEST)
        for (cut = LONGEST; cut > 0 && ((unsigned char)text[cut] & 0xc0) == 0x80; cut--)
            continue;
    snprintf(excerpt.text, sizeof excerpt.text, "%.*s%s", (int)cut, text,
             cut < length ? "..." : "");
    for (char *c = excerpt.text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' '; /* nothing that a file could send to a terminal */
    return excerpt;
}
