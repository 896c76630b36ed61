#include "io/hdf5/crash_guard.h"

#include "par/world.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_DATA = 2, PATIENCE = 2 /* s until another rank than the first prints the message */ };

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE};

enum { N_CRASH = sizeof crashes / sizeof *crashes };

static struct {
    bool enabled;
    int rank;
    char message[1024];
    struct sigaction before[N_CRASH];
} guard;

static void report(int number)
{
    (void)number;
    if (guard.rank > 0)
        sleep(PATIENCE);
    const ssize_t written = write(STDERR_FILENO, guard.message, strlen(guard.message));
    _exit(written < 0 ? 1 : EXIT_DATA);
}

void em_h5_guard_enable(void)
{
    guard.enabled = true;
}

void em_h5_guard_begin(const char *path)
{
    const struct sigaction action = {.sa_handler = report};

    if (!guard.enabled)
        return;
    guard.rank = em_world_rank();
    snprintf(guard.message, sizeof guard.message,
             "emass: %.800s: found damaged references, at which HDF5 crashed, expected those that "
             "were written\n",
             path);
    for (int i = 0; i < N_CRASH; i++)
        sigaction(crashes[i], &action, &guard.before[i]);
}

void em_h5_guard_end(void)
{
    for (int i = 0; guard.enabled && i < N_CRASH; i++)
        sigaction(crashes[i], &guard.before[i], NULL);
}
