/* Private to the room: the struct of a context, and how a thread enters one. */
#pragma once

#include "base/text/locale.h"
#include "emass/emass.h"
#include "io/hdf5/hdf5.h"
#include "model/model_list.h"
#include "par/mpi_world.h"

struct em_context {
    em_world *world;
    em_registry registry;
    em_model_ops **model; /* [registry.count] owned */
    int n_run;            /* in it; */
    bool is_left;         /* by the program: it goes with the last of them */
};

/* A run of it is there, or has gone. The second is Collective. */
void em_context_hold(em_context *context);
void em_context_let_go(em_context *context);

/* What the thread and the process were before a call. */
typedef struct em_entry {
    em_world *world;
    const em_registry *registry;
    em_locale locale;
    em_h5_printing printing;
    int blas_threads;
} em_entry;

/*
 * From here to em_context_leave the calling thread is in the context. Calls may be nested, but not
 * mixed with those of another thread: what is set for a call is the process's. Local. Errors:
 * EM_EUSAGE, another thread is in a call; then nothing is to be left.
 */
em_status em_context_enter(const em_context *context, em_entry *entry);
void em_context_leave(em_entry *entry);

/* The same, once the other thread has left. Local. */
void em_context_enter_later(const em_context *context, em_entry *entry);
