#include "model/stan/stan_find.h"

#include "base/memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST = 4096 };

/* The current folder is not looked into: a folder called stanli is no package. */
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

/* Writes folder/<rest> where that is a file; else *path is empty. */
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

em_status em_stan_find(char **path)
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
