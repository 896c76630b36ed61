#include "model/external/child.h"

#include "base/memory.h"
#include "par/grid.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_ANSWER = 1 << 26, LEAST_ROOM = 1 << 16 };

/* ---------------------------------------------------------------- start */

/* Whether an environment variable belongs to MPI. It is not passed on, because the program is no
 * rank of the run, even if it uses MPI. */
static bool is_of_mpi(const char *variable)
{
    static const char *const prefix[] = {"OMPI_", "PMIX_", "PMI_", "PRTE_", "MPI_LOCAL", "HYDI_"};

    for (size_t i = 0; i < sizeof prefix / sizeof *prefix; i++)
        if (strncmp(variable, prefix[i], strlen(prefix[i])) == 0)
            return true;
    return false;
}

static em_status environment_of_child(char ***out)
{
    int64_t n = 0, kept = 0;

    while (environ[n])
        n++;
    const em_status status = em_allocate(n + 1, sizeof **out, out);
    for (int64_t i = 0; !status && i < n; i++)
        if (!is_of_mpi(environ[i]))
            (*out)[kept++] = environ[i];
    return status;
}

/* Starts the program by posix_spawn. Unlike fork, this is safe in a process with pages that MPI has
 * registered. */
static int spawn(em_child *child, int in, int out, char *const *environment)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all, none;

    sigfillset(&all);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_addchdir_np(&actions, child->folder);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    const int error = posix_spawnp(&child->id, child->command[0], &actions, &attributes,
                                   child->command, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

em_status em_child_start(em_child *child)
{
    int in[2], out[2], error;
    EM_SCOPED char **environment = NULL;
    em_status status = environment_of_child(&environment);

    if (status)
        return status;
    if (pipe2(in, O_CLOEXEC) != 0)
        return em_fail(EM_EIO, "no pipe to %s: %s", child->command[0], strerror(errno));
    if (pipe2(out, O_CLOEXEC) != 0) {
        error = errno;
        close(in[0]), close(in[1]);
        return em_fail(EM_EIO, "no pipe from %s: %s", child->command[0], strerror(error));
    }
    error = spawn(child, in[0], out[1], environment);
    close(in[0]), close(out[1]);
    if (error) {
        child->id = 0;
        close(in[1]), close(out[0]);
        return em_fail(EM_ECONFIG, "model.command: found %s, which cannot be started in %s: %s",
                       child->command[0], child->folder, strerror(error));
    }
    child->to = in[1];
    child->from = out[0];
    child->used = 0;
    fcntl(child->to, F_SETFL, O_NONBLOCK);
    fcntl(child->from, F_SETFL, O_NONBLOCK);
    return EM_OK;
}

/* ---------------------------------------------------------------- end */

/* Whether the process ends within this number of seconds; *how is its status as of waitpid. */
static bool ends_within(const em_child *child, double seconds, int *how)
{
    static const struct timespec moment = {0, 2000000};
    const double start = em_clock();

    do {
        const pid_t id = waitpid(child->id, how, WNOHANG);
        if (id == child->id || (id < 0 && errno == ECHILD))
            return true;
        nanosleep(&moment, NULL);
    } while (em_clock() - start < seconds);
    return false;
}

int em_child_stop(em_child *child, double patience)
{
    int how = 0;

    if (child->id == 0)
        return 0;
    close(child->to);
    const bool ended = ends_within(child, patience, &how);
    kill(-child->id, SIGKILL); /* and what it has started */
    if (!ended)
        while (waitpid(child->id, &how, 0) < 0 && errno == EINTR)
            continue;
    close(child->from);
    child->id = 0;
    return ended ? how : -1;
}

void em_child_release(em_child *child)
{
    em_release(&child->buffer);
}

/* Whether it ended by a signal that asks programs to end: SIGTERM, or one by which a batch system
 * announces a time limit. A shell then ends with exit status 128 and the number. */
static bool was_asked_to_end(int how)
{
    static const int asks[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    const int number = WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how) - 128;

    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++)
        if (number == asks[i])
            return true;
    return false;
}

/* Fails because the process has closed its output or takes no input. The message says how the
 * process ended. */
static em_status fail_ended(em_child *child)
{
    const int how = em_child_stop(child, 0.2);

    child->asked_to_end = how != -1 && was_asked_to_end(how);
    if (how == -1)
        return em_fail(EM_NONFINITE, "the process closed its output and did not end");
    return WIFSIGNALED(how)
               ? em_fail(EM_NONFINITE, "the process was ended by signal %d (%s)", WTERMSIG(how),
                         strsignal(WTERMSIG(how)))
               : em_fail(EM_NONFINITE, "the process ended with exit status %d", WEXITSTATUS(how));
}

/* ---------------------------------------------------------------- lines */

/* Writes without SIGPIPE, even if the process has ended. */
static ssize_t write_quietly(int to, const char *text, size_t length)
{
    static const struct timespec now = {0, 0};
    sigset_t broken, before;

    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken, &before);
    const ssize_t n = write(to, text, length);
    const int error = errno;
    if (n < 0 && error == EPIPE)
        sigtimedwait(&broken, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return n;
}

/* Reads the available bytes. Errors: EM_NONFINITE if the process has ended or wrote too much;
 * EM_EMEMORY. */
static em_status read_some(em_child *child)
{
    if (child->capacity - child->used < LEAST_ROOM) {
        if (child->used >= MOST_ANSWER) {
            em_child_stop(child, 0);
            return em_fail(EM_NONFINITE, "the process wrote a line of more than %d bytes",
                           MOST_ANSWER);
        }
        const em_status status =
            em_reallocate((int64_t)(2 * child->capacity + 2 * LEAST_ROOM), 1, &child->buffer);
        if (status)
            return status;
        child->capacity = 2 * child->capacity + 2 * LEAST_ROOM;
    }
    const ssize_t n =
        read(child->from, child->buffer + child->used, child->capacity - child->used - 1);
    if (n == 0)
        return fail_ended(child);
    child->used += n > 0 ? (size_t)n : 0;
    return EM_OK;
}

/* Waits until the pipe is readable or writable; false: the time is over. */
static bool waits(const em_child *child, bool writes, double end)
{
    struct pollfd ready[2] = {{child->from, POLLIN, 0}, {child->to, POLLOUT, 0}};
    const double left = end - em_clock();

    if (left <= 0)
        return false;
    poll(ready, writes ? 2 : 1, left > 1 ? 1000 : 1 + (int)(1000 * left));
    return true;
}

em_status em_child_ask(em_child *child, const char *line, double timeout, char **answer)
{
    const double end = isnan(timeout) ? INFINITY : em_clock() + timeout;
    size_t left = strlen(line), seen = 0;
    char *newline = NULL;
    em_status status = EM_OK;

    child->used = 0;
    child->asked_to_end = false;
    while (!status && !newline) {
        const ssize_t n = left > 0 ? write_quietly(child->to, line, left) : 0;
        if (n < 0 && errno == EPIPE)
            return fail_ended(child);
        line += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
        if (!waits(child, left > 0, end)) {
            em_child_stop(child, 0);
            return em_fail(EM_NONFINITE, "the evaluation took longer than %g s", timeout);
        }
        status = read_some(child);
        newline = status || child->used == seen
                      ? NULL
                      : memchr(child->buffer + seen, '\n', child->used - seen);
        seen = child->used;
    }
    if (status)
        return status;
    *newline = '\0';
    *answer = child->buffer;
    if (left > 0 || newline + 1 < child->buffer + child->used) {
        em_child_stop(child, 0);
        return em_fail(EM_NONFINITE, "the process wrote more than one line for one evaluation");
    }
    return EM_OK;
}
