#include "model/stan/stan_program.h"

#include "base/memory.h"
#include "base/text.h"
#include "model/stan/stan_include.h"
#include "par/world.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    em_status status = EM_OK;

    *text = NULL;
    if (em_world_rank() == 0)
        status = em_read_text_file(path, largest_text(path, most), text);
    status = em_agree(status);
    return status ? status : em_broadcast_text(text);
}

/* ---------------------------------------------------------------- the library */

/* Searches for the interpreter on one rank, for all ranks. Collective. */
static em_status find_interpreter(char **path)
{
    em_status status = EM_OK;

    if (em_world_rank() == 0)
        status = find_library(path);
    status = em_agree(status);
    return status ? status : em_broadcast_text(path);
}

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
    char *found = NULL;
    em_status status = EM_OK;

    if (interpreter) {
        status = find_interpreter(&found);
        path = found;
    }
    if (!status)
        status = em_agree(em_stan_library_open(path, interpreter, out));
    if (!status)
        status = compare_identities(path, out);
    em_release(&found);
    return status;
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
    char *error = NULL, *folder = NULL, *text = NULL;
    em_status status =
        em_format_text(&folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");

    if (!status)
        status = em_stan_check_includes(path, folder, program, EM_STAN_MOST_PROGRAM_BYTES);
    if (!status)
        status = em_allocate((int64_t)room, 1, &error);
    if (!status) {
        const char *const folders[] = {folder};
        text = library->translate(program, folders, 1, 0, error, room);
        error[room - 1] = '\0';
        status = text ? em_copy_text(text, translated) : translation_failed(path, error);
    }
    if (text)
        library->free_text(text);
    em_release_all(&error, &folder);
    return status;
}

em_status em_stan_translate(const em_stan_library *library, const char *path, const char *program,
                            char **translated)
{
    em_status status = EM_OK;

    *translated = NULL;
    if (em_world_rank() == 0)
        status = translate(library, path, program, translated);
    status = em_agree(status);
    return status ? status : em_broadcast_text(translated);
}
