#include "model/stan/stan_program.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/stan/stan_declared.h"
#include "par/world.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- the files that a program
 * includes */

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
        const char *const next = found ? *at + LENGTH : em_stan_skip_one(*at);
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
    EM_SCOPED char *text = NULL;

    self->left -= size + 1;
    if (self->left < 0)
        return em_fail(EM_EDATA, "%s: longer than %lld bytes with all that it includes",
                       self->program, (long long)self->most);
    em_status status = em_read_text_file(file, size, &text);
    return status ? status : check(self, file, text, of);
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
    EM_SCOPED char *file = NULL;
    struct stat about;
    em_status status = em_format_text(&file, "%s/%.*s", self->folder, found->length, found->name);

    if (!status && found->length > 0 && stat(file, &about) == 0) {
        const inclusion this = {by, about.st_dev, about.st_ino, by ? by->depth + 1 : 1};
        if (!S_ISREG(about.st_mode))
            status = em_fail(EM_EDATA, "%s:%ld: #include %s: found %s, expected a file", path,
                             found->line, em_excerpt_of(file).text, em_file_kind(about.st_mode));
        else if (this.depth > MOST_DEPTH)
            status = em_fail(EM_EDATA, "%s:%ld: #include %s: found more than %d nested #include",
                             path, found->line, em_excerpt_of(file).text, MOST_DEPTH);
        else if (!is_within(&this))
            status = enter(self, file, (int64_t)about.st_size, &this);
    }
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

/*
 * Checks all files that a program includes from `folder`, directly or through other files. Each
 * must be a regular text file: a pipe may never end. Together they may have at most `most` bytes,
 * each counted as often as it is included. A file that is missing or includes itself is no error
 * here, because the interpreter reports it. Messages call the program `path`. Errors:
 * EM_EUSAGE, EM_EDATA, EM_EMEMORY.
 */
static em_status check_includes(const char *path, const char *folder, const char *program,
                                int64_t most)
{
    inspection all = {path, folder, most, most};

    return check(&all, path, program, NULL);
}

/* ---------------------------------------------------------------- where libstanli.so is */

enum { LONGEST = 4096 };

/* The command that locates the package. The current folder is not searched, because a folder called
 * stanli is not the package. */
static const char ask_python[] =
    "timeout 60 python3 -c 'import sys; sys.path = [p for p in sys.path if p]\n"
    "import importlib.util as u\n"
    "s = u.find_spec(\"stanli\")\n"
    "print(s.submodule_search_locations[0] if s else \"\")' 2>/dev/null";

static bool is_file(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

static em_status from_environment(const char *value, char **path)
{
    struct stat about;

    if (stat(value, &about) != 0)
        return em_fail(EM_ECONFIG, "EMASS_STANLI: there is no %s, expected libstanli.so", value);
    return S_ISDIR(about.st_mode) ? em_format_text(path, "%s/libstanli.so", value)
                                  : em_copy_text(value, path);
}

/* Writes folder/<rest> to *path if that is a file; else *path is empty. */
static void try_folder(const char *folder, const char *rest, char path[LONGEST])
{
    const int length = snprintf(path, LONGEST, "%s/%s", folder, rest);

    if (length >= LONGEST || !is_file(path))
        path[0] = '\0';
}

static void beside_program(char path[LONGEST])
{
    char program[LONGEST - 64];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);

    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (slash)
        *slash = '\0';
    try_folder(program, "../lib/emass/libstanli.so", path);
}

static void from_python(char path[LONGEST])
{
    char folder[LONGEST - 64] = "";
    FILE *answer = popen(ask_python, "r");

    path[0] = '\0';
    if (!answer)
        return;
    if (fgets(folder, sizeof folder, answer)) {
        folder[strcspn(folder, "\n")] = '\0';
        try_folder(folder, "_bin/libstanli.so", path);
    }
    pclose(answer);
}

/* Finds libstanli.so: the file, or the folder, that EMASS_STANLI names; else ../lib/emass relative
 * to the program (make stanli); else in the package `stanli` of the python3 in PATH, which is
 * located without importing it. Starts a process. */
static em_status find_library(char **path)
{
    const char *value = getenv("EMASS_STANLI");
    char found[LONGEST];

    if (value && *value)
        return from_environment(value, path);
    beside_program(found);
    if (!found[0])
        from_python(found);
    if (found[0])
        return em_copy_text(found, path);
    return em_fail(EM_ECONFIG,
                   "model.program needs libstanli.so, which is neither in EMASS_STANLI nor beside "
                   "emass nor known to python3: pip install stanli, or make stanli");
}

/* ---------------------------------------------------------------- text */

/* The number of bytes to read of a file, at most `most`; for a pipe a fixed number. */
static int64_t largest_text(const char *path, int64_t most)
{
    enum { MOST_OF_A_PIPE = 1 << 26 };
    struct stat about;
    int64_t room = MOST_OF_A_PIPE;

    if (stat(path, &about) == 0 && S_ISREG(about.st_mode))
        room = (int64_t)about.st_size;
    return room < most ? room : most;
}

em_status em_stan_read_text(const char *path, int64_t most, char **text)
{
    const bool leads = em_world_rank() == 0;

    *text = NULL;
    return em_share_text(leads ? em_read_text_file(path, largest_text(path, most), text) : EM_OK,
                         text);
}

/* ---------------------------------------------------------------- the library */

/* Checks that all nodes have the same file, because other copies would be other models. Collective.
 */
static em_status compare_identities(const char *path, const em_stan_library *library)
{
    char first[sizeof library->identity];
    em_status status = EM_OK;

    memcpy(first, library->identity, sizeof first);
    em_broadcast(first, sizeof first);
    if (strcmp(first, library->identity) != 0)
        status = em_fail(EM_ECONFIG, "%s: found build %s, expected %s as on rank 0", path,
                         library->identity, first);
    return em_agree(status);
}

em_status em_stan_open(const char *path, bool interpreter, em_stan_library *out)
{
    EM_SCOPED char *found = NULL;
    em_status status = EM_OK;

    if (interpreter) {
        status = em_share_text(em_world_rank() == 0 ? find_library(&found) : EM_OK, &found);
        path = found;
    }
    status = status ? status : em_agree(em_stan_library_open(path, interpreter, out));
    return status ? status : compare_identities(path, out);
}

/* ---------------------------------------------------------------- translation */

static void skip_to(const char **text, const char *mark)
{
    const char *at = strstr(*text, mark);

    *text = at ? at + strlen(mark) : "";
}

/*
 * The compiler's message, "Syntax error in 'string', line 2, column 13 ...:" with an excerpt of the
 * program between two rulers and the reason after it, as "m.stan:2:13: Syntax error ...: reason".
 * In an included file it names that instead of 'string'.
 */
static em_status translation_failed(const char *path, const char *message)
{
    static const char ruler[] = "   ---------------------------------------------";
    char file[256] = "", kind[64] = "", text[2048];
    long line = 0, column = 0;
    const char *rest = message;

    em_stan_one_line(message, text, sizeof text);
    if (sscanf(message, "%63[^'\n] '%255[^']', line %ld, column %ld", kind, file, &line, &column) !=
        4)
        return em_fail(EM_EDATA, "%s: %s", path, text);
    skip_to(&rest, ruler);
    skip_to(&rest, ruler);
    skip_to(&rest, "\n");
    rest += strspn(rest, " \n");
    if (*rest)
        em_stan_one_line(rest, text, sizeof text);
    if (strlen(kind) > 4 && strcmp(kind + strlen(kind) - 4, " in ") == 0)
        kind[strlen(kind) - 4] = '\0';
    return em_fail(EM_EDATA, "%s:%ld:%ld: %s: %s", strcmp(file, "string") == 0 ? path : file, line,
                   column + 1, kind, text);
}

static em_status translate(const em_stan_library *library, const char *path, const char *program,
                           char **translated)
{
    const char *slash = strrchr(path, '/');
    const size_t room = strlen(program) + 65536; /* the message quotes lines of it */
    EM_SCOPED char *error = NULL, *folder = NULL;
    char *text = NULL;
    em_status status =
        em_format_text(&folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");

    status = status ? status : check_includes(path, folder, program, EM_STAN_MOST_PROGRAM_BYTES);
    status = status ? status : em_allocate((int64_t)room, 1, &error);
    if (!status) {
        const char *const folders[] = {folder};
        text = library->translate(program, folders, 1, 0, error, room);
        error[room - 1] = '\0';
        status = text ? em_copy_text(text, translated) : translation_failed(path, error);
    }
    if (text)
        library->free_text(text);
    return status;
}

em_status em_stan_translate(const em_stan_library *library, const char *path, const char *program,
                            char **translated)
{
    const bool leads = em_world_rank() == 0;

    *translated = NULL;
    return em_share_text(leads ? translate(library, path, program, translated) : EM_OK, translated);
}
