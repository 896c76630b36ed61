/* The notes about a run that stand beside its verdict, for the program and for hosts. */
#include "base/text.h"
#include "run/loop/driver.h"

#include <stdio.h>

static const char of_first[] = "; the first on this rank: ";

static bool say_unreported(const em_report *r, size_t size, char *line)
{
    snprintf(line, size,
             "warning: %lld draws could not be reported in full: missing numbers are NaN in the "
             "file%s%s",
             (long long)r->unreported, r->failure[0] ? of_first : "", r->failure);
    return r->unreported > 0;
}

static bool say_failures(const em_report *r, size_t size, char *line)
{
    const em_failed_evaluations *failed = &r->failed_evaluations;
    char of_all[64] = "";

    if (failed->total > 0)
        snprintf(of_all, sizeof of_all, " of %lld", (long long)failed->total);
    snprintf(line, size, "note: %lld%s evaluations failed", (long long)failed->count, of_all);
    if (failed->total > 0)
        em_append(size, line, " (%.2g %%)", 100.0 * (double)failed->count / (double)failed->total);
    em_append(
        size, line, ", and were rejections%s%s%s", failed->first[0] ? of_first : "", failed->first,
        failed->list ? "; the file lists the first of each chain (attribute failed_evaluations)"
                     : "");
    return failed->count > 0;
}

static bool say_rejections(const em_report *r, size_t size, char *line)
{
    snprintf(line, size,
             "note: the model rejected %lld position%s that chains tried after warmup%s%s",
             (long long)r->rejections.count, em_plural(r->rejections.count),
             r->rejections.first[0] ? of_first : "", r->rejections.first);
    return r->rejections.count > 0;
}

static bool say_note(const em_report *r, size_t size, char *line)
{
    snprintf(line, size, "note: %s", r->note);
    return r->note[0] != '\0';
}

bool em_report_note(const em_report *report, int64_t which, size_t size, char *line)
{
    static bool (*const say[])(const em_report *, size_t, char *) = {say_unreported, say_failures,
                                                                     say_rejections, say_note};
    const int64_t n = (int64_t)(sizeof say / sizeof *say);

    for (int64_t i = 0; i < n; i++)
        if (say[i](report, size, line) && which-- == 0)
            return true;
    return false;
}
