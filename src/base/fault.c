#include "base/fault.h"

#include <stdlib.h>
#include <string.h>

static struct {
    char site[64];
    long countdown; /* passages left until the one that fails; 0: never */
} fault;

void em_fault_start(int rank)
{
    const char *text = getenv("EMASS_FAULT");
    const char *colon = text ? strchr(text, ':') : NULL;
    char *end;

    fault.countdown = 0;
    if (!colon || (size_t)(colon - text) >= sizeof fault.site)
        return;
    if (strtol(colon + 1, &end, 10) != rank || end == colon + 1)
        return;
    memcpy(fault.site, text, (size_t)(colon - text));
    fault.site[colon - text] = '\0';
    fault.countdown = *end == ':' ? strtol(end + 1, NULL, 10) : 1;
}

long em_fault_passage(const char *site)
{
    return strcmp(site, fault.site) == 0 ? fault.countdown : 0;
}

bool em_fault(const char *site)
{
    return em_fault_passage(site) > 0 && --fault.countdown == 0;
}

em_status em_fault_file(const char *site, const char *path)
{
    return em_fault(site) ? em_fail(EM_EIO, "%s: %s fails: injected by EMASS_FAULT", path, site)
                          : EM_OK;
}
