#include "app/process/signals.h"

#include "base/fault.h"
#include "base/system/foreign_call_watchdog.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* `came`: a signal has arrived. `is_made`: the run has been created. `patience`: seconds that the
 * process waits after the first signal. `waited`: seconds that it has waited. `leaving`: the exit
 * status. */
static volatile sig_atomic_t came, is_made, patience = 20, leaving, waited;
static em_context *volatile to_stop;  /* NULL: none */
static volatile sig_atomic_t follows; /* seconds by which other ranks wait longer than rank 0 */

static void heed_faults(void)
{
    if (em_fault("impatient"))
        patience = 1;
}

static void note_signal(int number)
{
    (void)number;
    if (!came)
        alarm(1);
    came = 1;
    if (to_stop)
        em_context_interrupt(to_stop);
}

/* Closes the output files one by one. A copy of the process runs this and so holds the output files
 * open a moment longer. It closes standard error once the process has ended: that wakes the
 * launcher, which then collects the process. It closes standard output last, and other files at
 * once. */
static _Noreturn void close_one_by_one(pid_t process)
{
    enum { MOST_FILES = 1024, MOMENTS = 400 };
    const struct timespec moment = {.tv_nsec = 5000000};

    for (int i = STDERR_FILENO + 1; i < MOST_FILES; i++)
        close(i);
    for (int i = 0; i < MOMENTS && getppid() == process; i++)
        nanosleep(&moment, NULL);
    close(STDERR_FILENO);
    for (int i = 0; i < MOMENTS && kill(process, 0) == 0; i++)
        nanosleep(&moment, NULL);
    _exit(EXIT_SUCCESS);
}

void em_signals_report_end(void)
{
    const bool by_hydra = getenv("HYDI_CONTROL_FD") || getenv("HYDRA_CONTROL_FD");
    const pid_t process = getpid();

    if (came && by_hydra && fork() == 0)
        close_one_by_one(process);
}

static void end_without_finishing(int number)
{
    (void)number;
    em_signals_report_end();
    _exit(leaving);
}

void em_signals_end_within_reason(int status)
{
    const struct sigaction late = {.sa_handler = end_without_finishing};

    heed_faults();
    leaving = status;
    sigaction(SIGALRM, &late, NULL);
    alarm((unsigned)patience);
}

static _Noreturn void leave(const char *words)
{
    em_signals_report_end();
    _exit(write(STDERR_FILENO, words, strlen(words)) >= 0 ? leaving : EXIT_FAILURE);
}

/* Whether the model hangs: a call of the model has taken ten times as long as the longest call
 * before it, and the time to wait since the signal is over. */
static bool model_is_lost(void)
{
    const double late = patience + follows, usual = 10 * em_foreign_call_longest();
    const double since_call = em_foreign_call_seconds();

    return is_made && waited >= late && since_call >= late && since_call >= usual;
}

/* Ends the process if the model hangs. Runs once a second from the first signal on. */
static void leave_if_hung(int number)
{
    (void)number;
    waited++;
    if (!is_made && waited >= patience)
        leave("emass: stopped by a signal before the run began: it has no draws\n");
    if (model_is_lost())
        leave("emass: stopped by a signal in a call of the model that does not return: a "
              "checkpoint, if one was written, remains (go on with --resume)\n");
    alarm(1);
}

void em_signals_catch(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
    struct sigaction action = {.sa_handler = note_signal};
    const struct sigaction look = {.sa_handler = leave_if_hung, .sa_flags = SA_RESTART};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        action.sa_flags = SA_RESTART | (numbers[i] == SIGINT ? (int)SA_RESETHAND : 0);
        sigaction(numbers[i], &action, NULL);
    }
    leaving = em_exit_status(EM_ESTOPPED);
    sigaction(SIGALRM, &look, NULL);
}

void em_signals_hand_on(em_context *context, int rank)
{
    to_stop = context;
    follows = rank > 0 ? 2 : 0;
    heed_faults();
    if (context && came)
        em_context_interrupt(context);
    if (!context)
        alarm(0);
}

bool em_signals_came(void)
{
    return came;
}

void em_signals_run_is_made(void)
{
    is_made = 1;
}
