#include "model/stan/stan_include.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

/* A file, and the files that include it. */
typedef struct inclusion {
    const struct inclusion *by; /* NULL: by the program */
    dev_t device;
    ino_t number;
    int depth;
} inclusion;

enum { MOST_DEPTH = 1000 };

/* The state that all inclusions share. */
typedef struct inspection {
    const char *program, *folder;
    int64_t most, left; /* bytes */
} inspection;

/* A directive #include: its line, and the file that it names. */
typedef struct directive {
    long line;
    const char *name;
    int length;
} directive;

/* The position after the comment, the string or the character at `c`. */
static const char *skip_one(const char *c)
{
    const char *end = NULL;

    if (c[0] == '/' && c[1] == '*') {
        end = strstr(c + 2, "*/");
        return end ? end + 2 : c + strlen(c);
    }
    if (c[0] == '/' && c[1] == '/')
        return c + strcspn(c, "\n");
    if (c[0] == '"') {
        end = c + 1 + strcspn(c + 1, "\"\n");
        return *end == '"' ? end + 1 : end;
    }
    return c + 1;
}

/* Reads the name of a file, which stands in quotes or in <>, or ends with a blank. */
static void read_name(const char **at, directive *out)
{
    const char *const close = **at == '"' ? "\"\r\n" : **at == '<' ? ">\r\n" : " \t\r\n";

    *at += **at == '"' || **at == '<';
    out->name = *at;
    out->length = (int)strcspn(*at, close);
    *at += out->length;
}

/* Finds the next directive from *at on. *line is the line of *at. */
static bool find_directive(const char **at, long *line, directive *out)
{
    static const char word[] = "#include";
    enum { LENGTH = sizeof word - 1 };

    while (**at) {
        const bool found = strncmp(*at, word, LENGTH) == 0 && isspace((unsigned char)(*at)[LENGTH]);
        const char *const next = found ? *at + LENGTH : skip_one(*at);
        out->line = *line;
        for (; *at < next; ++*at)
            *line += **at == '\n';
        if (!found)
            continue;
        for (; isspace((unsigned char)**at); ++*at)
            *line += **at == '\n';
        read_name(at, out);
        return true;
    }
    return false;
}

static em_status check(inspection *self, const char *path, const char *text, const inclusion *of);

/* Reads and checks an included file of `size` bytes. */
static em_status enter(inspection *self, const char *file, int64_t size, const inclusion *of)
{
    char *text = NULL;
    em_status status = EM_OK;

    self->left -= size + 1;
    if (self->left < 0)
        return em_fail(EM_EDATA, "%s: longer than %lld bytes with all that it includes",
                       self->program, (long long)self->most);
    status = em_read_text_file(file, size, &text);
    if (!status)
        status = check(self, file, text, of);
    em_release(&text);
    return status;
}

static bool is_within(const inclusion *file)
{
    for (const inclusion *i = file->by; i; i = i->by)
        if (i->device == file->device && i->number == file->number)
            return true;
    return false;
}

static em_status follow(inspection *self, const char *path, const directive *found,
                        const inclusion *by)
{
    char *file = NULL;
    struct stat about;
    em_status status = em_format_text(&file, "%s/%.*s", self->folder, found->length, found->name);

    if (!status && found->length > 0 && stat(file, &about) == 0) {
        const inclusion this = {by, about.st_dev, about.st_ino, by ? by->depth + 1 : 1};
        if (!S_ISREG(about.st_mode))
            status = em_fail(EM_EDATA, "%s:%ld: #include %s: found %s, expected a file", path,
                             found->line, em_excerpt_of(file).text, em_file_kind(about.st_mode));
        else if (this.depth > MOST_DEPTH)
            status = em_fail(EM_EDATA, "%s:%ld: #include %s: more than %d within each other", path,
                             found->line, em_excerpt_of(file).text, MOST_DEPTH);
        else if (!is_within(&this))
            status = enter(self, file, (int64_t)about.st_size, &this);
    }
    em_release(&file);
    return status;
}

static em_status check(inspection *self, const char *path, const char *text, const inclusion *of)
{
    directive found;
    long line = 1;
    em_status status = EM_OK;

    while (!status && find_directive(&text, &line, &found))
        status = follow(self, path, &found, of);
    return status;
}

em_status em_stan_check_includes(const char *path, const char *folder, const char *program,
                                 int64_t most)
{
    inspection all = {path, folder, most, most};

    return check(&all, path, program, NULL);
}
