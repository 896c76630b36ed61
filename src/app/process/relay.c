#include "app/process/relay.h"

#include "base/system/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_wanted(void)
{
    struct stat out;

    return fstat(STDOUT_FILENO, &out) == 0 &&
           (S_ISREG(out.st_mode) || (S_ISCHR(out.st_mode) && !isatty(STDOUT_FILENO)));
}

em_status em_relay_open(em_relay *relay)
{
    int end[2];

    *relay = (em_relay){.from = -1, .to = -1};
    if (!is_wanted())
        return EM_OK;
    if (pipe2(end, O_CLOEXEC) != 0)
        return em_fail(EM_EIO, "cannot make a pipe: %s", strerror(errno));
    relay->from = end[0];
    relay->to = end[1];
    return EM_OK;
}

void em_relay_use(const em_relay *relay)
{
    if (relay->to >= 0)
        dup2(relay->to, STDOUT_FILENO);
}

/* Returns 0 or an errno. */
static int write_all(const char *bytes, ssize_t n)
{
    while (n > 0) {
        const ssize_t put = write(STDOUT_FILENO, bytes, (size_t)n);
        if (put < 0 && errno != EINTR)
            return errno;
        bytes += put > 0 ? put : 0;
        n -= put > 0 ? put : 0;
    }
    return 0;
}

/* After a failure the rest is read too, so that the launcher does not wait. */
static void *copy(void *context)
{
    em_relay *relay = context;
    char bytes[4096];

    for (;;) {
        const ssize_t n = read(relay->from, bytes, sizeof bytes);
        if (n == 0 || (n < 0 && errno != EINTR))
            return NULL;
        if (n > 0 && !relay->error)
            relay->error = write_all(bytes, n);
    }
}

void em_relay_start(em_relay *relay)
{
    if (relay->to < 0)
        return;
    close(relay->to);
    relay->error = em_thread_start(&relay->thread, copy, relay);
    relay->copies = relay->error == 0;
    if (!relay->copies)
        close(relay->from); /* the launcher then ends at its first line */
}

em_status em_relay_finish(em_relay *relay)
{
    if (relay->copies) {
        pthread_join(relay->thread, NULL);
        close(relay->from);
    }
    return relay->error
               ? em_fail(EM_EIO, "cannot write to standard output: %s", strerror(relay->error))
               : EM_OK;
}
