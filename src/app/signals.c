#include "app/signals.h"

#include "base/fault.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t came, is_made, patience = 20, stopped; /* seconds, a status */
static em_context *volatile to_stop;                                /* NULL: none */

static void note_signal(int number)
{
    (void)number;
    if (!came && !is_made)
        alarm((unsigned)patience);
    came = 1;
    if (to_stop)
        em_context_interrupt(to_stop);
}

static void end_all_the_same(int number)
{
    (void)number;
    _exit(stopped);
}

void em_signals_end_within_reason(int status)
{
    const struct sigaction late = {.sa_handler = end_all_the_same};

    if (em_fault("impatient"))
        patience = 1;
    stopped = status;
    sigaction(SIGALRM, &late, NULL);
    alarm((unsigned)patience);
}

static void lose_patience(int number)
{
    static const char words[] = "emass: stopped by a signal before the model was made: nothing was "
                                "written\n";

    (void)number;
    _exit(write(STDERR_FILENO, words, sizeof words - 1) ? stopped : EXIT_FAILURE);
}

void em_signals_catch(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
    struct sigaction action = {.sa_handler = note_signal};
    const struct sigaction late = {.sa_handler = lose_patience};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        action.sa_flags = SA_RESTART | (numbers[i] == SIGINT ? (int)SA_RESETHAND : 0);
        sigaction(numbers[i], &action, NULL);
    }
    stopped = em_exit_status(EM_ESTOPPED);
    sigaction(SIGALRM, &late, NULL);
}

void em_signals_hand_on(em_context *context)
{
    to_stop = context;
    if (em_fault("impatient"))
        patience = 1;
    if (context && came)
        em_context_interrupt(context);
}

void em_signals_run_is_made(void)
{
    is_made = 1;
    alarm(0);
}
