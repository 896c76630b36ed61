#include "base/available_memory.h"

#include "base/fault.h"
#include "base/file.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The two versions of control groups: the folder of each, and the names of its files. */
typedef struct hierarchy {
    const char *root, *most, *used, *cached;
} hierarchy;

static const hierarchy unified = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                  "inactive_file"};
static const hierarchy separate = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                   "memory.usage_in_bytes", "total_inactive_file"};

/* The number after `key` in a file of lines "key number"; 0: none. */
static double keyed_number(const char *path, const char *key)
{
    EM_SCOPED_FILE *file = fopen(path, "r");
    char line[256], name[64];
    double number, found = 0;

    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "%63s %lf", name, &number) == 2 && strcmp(name, key) == 0)
            found = number;
    return found;
}

/* Reads a number from a file of a control group. Returns false if there is none, or if it is "max".
 */
static bool group_number(const char *group, const char *name, double *out)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/%s", group, name) >= (int)sizeof path)
        return false;
    EM_SCOPED_FILE *file = fopen(path, "r");
    return file && fscanf(file, "%lf", out) == 1;
}

/* The memory that a group has left; cached pages of files count as free. */
static double left_to_group(const hierarchy *h, const char *group)
{
    char statistics[PATH_MAX];
    double most, used;

    if (!group_number(group, h->most, &most) || !group_number(group, h->used, &used) ||
        snprintf(statistics, sizeof statistics, "%s/memory.stat", group) >= (int)sizeof statistics)
        return INFINITY;
    return fmax(0, most - used + keyed_number(statistics, h->cached));
}

/* The least memory that a control group and its parents have left. In a container the path may be
 * that on the host, while only the root group is visible. */
static double left_to_groups(const hierarchy *h, const char *path)
{
    char group[PATH_MAX];
    const size_t root = strlen(h->root);
    double available = INFINITY;

    if (snprintf(group, sizeof group, "%s%s", h->root, path) >= (int)sizeof group)
        return INFINITY;
    while (strlen(group) >= root) {
        available = fmin(available, left_to_group(h, group));
        *strrchr(group, '/') = '\0';
    }
    return available;
}

/* The memory left by one line of /proc/self/cgroup, which is "0::/job" in the unified hierarchy and
 * "4:memory:/job" in the older ones. */
static double left_by_line(char *line)
{
    char *controllers = strchr(line, ':'), *path;

    line[strcspn(line, "\n")] = '\0';
    path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path || path[1] != '/')
        return INFINITY;
    *path++ = '\0';
    if (controllers[1] == '\0')
        return left_to_groups(&unified, path);
    return strcmp(controllers + 1, "memory") == 0 ? left_to_groups(&separate, path) : INFINITY;
}

double em_memory_available(void)
{
    static const char machine[] = "/proc/meminfo";
    const double kilobytes =
        keyed_number(machine, "MemAvailable:") + keyed_number(machine, "SwapFree:");
    double available = kilobytes > 0 ? 1024 * kilobytes : INFINITY;
    EM_SCOPED_FILE *groups = fopen("/proc/self/cgroup", "r");
    char line[PATH_MAX];

    while (groups && fgets(line, sizeof line, groups))
        available = fmin(available, left_by_line(line));
    return em_fault_passage("memory-room") ? fmin(available, 0x1p28) : available;
}

/* A number of bytes of this process; 0 where it is unknown. */
static double own_bytes(const char *key)
{
    return 1024 * keyed_number("/proc/self/status", key);
}

double em_resident_bytes(void)
{
    return own_bytes("VmRSS:");
}

double em_peak_bytes(void)
{
    return own_bytes("VmHWM:");
}

void em_peak_restart(void)
{
    EM_SCOPED_FILE *file = fopen("/proc/self/clear_refs", "w");

    if (file)
        fputs("5", file);
}

em_memory_bound em_memory_bind(double bytes)
{
    const double mapped = own_bytes("VmSize:"),
                 arenas = 0x1p28; /* are mapped before they are used */
    const double most = mapped + bytes + arenas;
    em_memory_bound bound = {.holds = false};
    struct rlimit limit;

    if (!(mapped > 0 && most < 0x1p62) || getrlimit(RLIMIT_AS, &limit) != 0 ||
        (limit.rlim_cur != RLIM_INFINITY && (double)limit.rlim_cur <= most))
        return bound;
    bound.before = limit.rlim_cur;
    limit.rlim_cur = (rlim_t)most;
    bound.holds = setrlimit(RLIMIT_AS, &limit) == 0;
    return bound;
}

void em_memory_unbind(em_memory_bound bound)
{
    struct rlimit limit;

    if (bound.holds && getrlimit(RLIMIT_AS, &limit) == 0) {
        limit.rlim_cur = (rlim_t)bound.before;
        setrlimit(RLIMIT_AS, &limit);
    }
}
