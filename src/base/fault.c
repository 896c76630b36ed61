#include "base/fault.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct {
    char site[64];
    size_t compared; /* bytes of the name, with its end: all of it, or those before a '*' */
    bool kills;      /* instead of a failure */
    long countdown;  /* passages left until the one that fails; 0: never */
} fault;

void em_fault_start(int rank)
{
    static const char kill_prefix[] = "kill:";
    const char *text = getenv("EMASS_FAULT");
    char *end;

    fault.countdown = 0;
    fault.kills = text && strncmp(text, kill_prefix, strlen(kill_prefix)) == 0;
    if (fault.kills)
        text += strlen(kill_prefix);
    const char *colon = text ? strchr(text, ':') : NULL;
    if (!colon || (size_t)(colon - text) >= sizeof fault.site)
        return;
    if (strtol(colon + 1, &end, 10) != rank || end == colon + 1)
        return;
    memcpy(fault.site, text, (size_t)(colon - text));
    fault.site[colon - text] = '\0';
    fault.compared = strcspn(fault.site, "*") + (strchr(fault.site, '*') ? 0 : 1);
    fault.countdown = *end == ':' ? strtol(end + 1, NULL, 10) : 1;
}

long em_fault_passage(const char *site)
{
    return strncmp(site, fault.site, fault.compared) == 0 ? fault.countdown : 0;
}

bool em_fault(const char *site)
{
    if (em_fault_passage(site) <= 0 || --fault.countdown > 0)
        return false;
    if (fault.kills)
        raise(SIGKILL);
    return true;
}

em_status em_fault_file(const char *site, const char *path)
{
    return em_fault(site) ? em_fail(EM_EIO, "%s: %s fails: injected by EMASS_FAULT", path, site)
                          : EM_OK;
}
