/* Private to this folder: the struct of a context, and how a thread enters one. */
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
    int n_run;            /* runs that use it */
    bool is_left;         /* the program has destroyed it; it is freed with its last run */
};

/* Counts the runs that use the context. A run calls em_context_hold when it begins, which is Local,
 * and em_context_let_go when it has ended, which is Collective. */
static inline void em_context_hold(em_context *context)
{
    context->n_run++;
}

void em_context_let_go(em_context *context);

/* The state of the thread and the process before a call. */
typedef struct em_entry {
    em_world *world;
    const em_registry *registry;
    em_locale locale;
    em_h5_printing printing;
    int blas_threads;
} em_entry;

/* The calling thread enters the context until em_context_leave. Calls may be nested, but only one
 * thread may be in a call, because a call changes settings of the process. Local. Errors: EM_EUSAGE
 * if another thread is in a call; the context is then not entered. */
em_status em_context_enter(const em_context *context, em_entry *entry);
void em_context_leave(em_entry *entry);

/* Enters the context as em_context_enter does, but waits until another thread has left it. Local.
 */
void em_context_enter_later(const em_context *context, em_entry *entry);
