#include "io/hdf5/crash_handler.h"

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
} handler;

static void report(int number)
{
    (void)number;
    if (handler.rank > 0)
        sleep(PATIENCE);
    const ssize_t written = write(STDERR_FILENO, handler.message, strlen(handler.message));
    _exit(written < 0 ? 1 : EXIT_DATA);
}

void em_h5_crash_handler_enable(void)
{
    handler.enabled = true;
}

void em_h5_crash_handler_begin(const char *path)
{
    const struct sigaction action = {.sa_handler = report};

    if (!handler.enabled)
        return;
    handler.rank = em_world_rank();
    snprintf(handler.message, sizeof handler.message,
             "emass: %.800s: found a damaged file, at which HDF5 crashed, expected it as it was "
             "written\n",
             path);
    for (int i = 0; i < N_CRASH; i++)
        sigaction(crashes[i], &action, &handler.before[i]);
}

void em_h5_crash_handler_end(void)
{
    for (int i = 0; handler.enabled && i < N_CRASH; i++)
        sigaction(crashes[i], &handler.before[i], NULL);
}
