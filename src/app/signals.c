#include "app/signals.h"

#include <signal.h>

static volatile sig_atomic_t came;
static em_context *volatile to_stop; /* NULL: none */

static void note_signal(int number)
{
    (void)number;
    came = 1;
    if (to_stop)
        em_context_interrupt(to_stop);
}

void em_signals_catch(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
    struct sigaction action = {.sa_handler = note_signal};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        action.sa_flags = SA_RESTART | (numbers[i] == SIGINT ? (int)SA_RESETHAND : 0);
        sigaction(numbers[i], &action, NULL);
    }
}

void em_signals_hand_on(em_context *context)
{
    to_stop = context;
    if (context && came)
        em_context_interrupt(context);
}
