#include "app/process/parent.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#define PARENT "EMASS_PARENT"

void em_end_with_parent(void)
{
    const char *given = getenv(PARENT);
    const pid_t parent = given ? (pid_t)strtol(given, NULL, 10) : 0;

    unsetenv(PARENT);
    if (parent <= 0 || getppid() != parent)
        return;
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* it has ended meanwhile */
        raise(SIGTERM);
}
