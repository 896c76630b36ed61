#include "app/signals.h"

#include "par/mpi_world.h"

#include <signal.h>

static volatile sig_atomic_t came, is_there;
static em_world *world;

static void note_signal(int number)
{
    (void)number;
    came = 1;
    if (is_there)
        em_world_interrupt(world);
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

void em_signals_hand_on(void)
{
    world = em_world_here();
    is_there = 1;
    if (came)
        em_world_interrupt(world);
}
