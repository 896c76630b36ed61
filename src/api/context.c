#include "api/context.h"

#include "base/memory.h"
#include "math/linalg.h"
#include "math/simd/simd.h"
#include "model/model.h"
#include "version.h"

#include <sched.h>
#include <stdatomic.h>

/* Identifies the thread that is inside a call of the library, by the address of its `depth`; NULL:
 * no thread is. */
static _Atomic(const int *) inside;
static _Thread_local int depth;

static bool take_turn(void)
{
    const int *nobody = NULL;

    if (depth == 0 && !atomic_compare_exchange_strong(&inside, &nobody, &depth))
        return false;
    depth++;
    return true;
}

static void end_turn(void)
{
    if (--depth == 0)
        atomic_store(&inside, NULL);
}

static em_entry enter(const em_context *context)
{
    return (em_entry){.world = em_world_enter(context->world),
                      .registry = em_registry_enter(&context->registry),
                      .locale = em_locale_enter(),
                      .printing = em_h5_silence(),
                      .blas_threads = em_linalg_use_threads(1)};
}

static em_status refuse(void)
{
    return em_fail(EM_EUSAGE, "another thread of this process is in a call of emass: expected one "
                              "at a time");
}

em_status em_context_enter(const em_context *context, em_entry *entry)
{
    if (!take_turn())
        return refuse();
    *entry = enter(context);
    return EM_OK;
}

void em_context_enter_later(const em_context *context, em_entry *entry)
{
    while (!take_turn())
        sched_yield();
    *entry = enter(context);
}

void em_context_leave(em_entry *entry)
{
    em_linalg_use_threads(entry->blas_threads);
    em_h5_restore(entry->printing);
    em_locale_leave(&entry->locale);
    em_registry_enter(entry->registry);
    em_world_enter(entry->world);
    end_turn();
}

static em_status check_ranks(MPI_Comm ranks)
{
    int started = 0, ended = 0;

    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    if (!started || ended)
        return em_fail(EM_EUSAGE, "em_context_create: MPI is not running: expected a call between "
                                  "MPI_Init and MPI_Finalize");
    if (ranks == MPI_COMM_NULL)
        return em_fail(EM_EUSAGE,
                       "em_context_create: found MPI_COMM_NULL, expected a communicator");
    return EM_OK;
}

static em_status create(MPI_Comm ranks, const em_context_options *options, em_context **out)
{
    const em_context_options none = {.message = NULL}, *given = options ? options : &none;
    em_context *context = NULL;

    const em_status made = em_allocate(1, sizeof *context, &context);
    em_world *world = NULL;
    em_status status = em_world_create(
        ranks, &(em_world_options){given->message, given->to, given->may_abort}, &world);
    if (!status) {
        em_world *before = em_world_enter(world);
        status = em_agree(made);
        em_world_enter(before);
    }
    if (status) {
        em_world_destroy(&world);
        em_release(&context);
        return status;
    }
    context->world = world;
    *out = context;
    return EM_OK;
}

em_status em_context_create(MPI_Comm ranks, const em_context_options *options, em_context **out)
{
    em_status status = check_ranks(ranks);

    *out = NULL;
    status = status ? status : em_simd_check();
    if (!status && !take_turn())
        status = refuse();
    if (status)
        return status;
    status = create(ranks, options, out);
    end_turn();
    return status;
}

static void destroy(em_context *context)
{
    em_world_destroy(&context->world);
    for (int i = 0; i < context->registry.count; i++)
        em_release(&context->model[i]);
    em_release_all(&context->model, &context->registry.model, &context);
}

void em_context_destroy(em_context **out)
{
    em_context *context = *out;

    *out = NULL;
    if (!context)
        return;
    context->is_left = true;
    if (context->n_run == 0)
        destroy(context);
}

void em_context_let_go(em_context *context)
{
    if (--context->n_run == 0 && context->is_left)
        destroy(context);
}

/* Appends a model to the registry, in arrays that are longer by one. */
static em_status append(em_context *context, em_model_ops *model)
{
    const int n = context->registry.count;
    em_model_ops **owned = NULL;
    const em_model_ops **shown = NULL;
    em_status status = em_allocate_all(EM_ARRAY(owned, n + 1), EM_ARRAY(shown, n + 1));

    if (status) {
        em_release(&owned);
        return status;
    }
    for (int i = 0; i <= n; i++)
        shown[i] = owned[i] = i < n ? context->model[i] : model;
    em_release_all(&context->model, &context->registry.model);
    context->model = owned;
    context->registry = (em_registry){n + 1, shown};
    return EM_OK;
}

em_status em_context_add_model(em_context *context, const em_model_ops *ops, const void *state)
{
    em_entry entry;
    em_model_ops *model = NULL;
    em_status status = em_context_enter(context, &entry);

    if (status)
        return status;
    status = em_allocate(1, sizeof *model, &model);
    if (!status) {
        *model = *ops;
        model->state = state;
        status = em_model_complete("em_context_add_model", model);
    }
    if (!status && em_model_named(model->name))
        status =
            em_fail(EM_EUSAGE,
                    "em_context_add_model: found a second model called %s, expected another name",
                    model->name);
    status = status ? status : append(context, model);
    if (status)
        em_release(&model);
    em_context_leave(&entry);
    return status;
}

void em_context_interrupt(em_context *context)
{
    em_world_interrupt(context->world);
}

const char *em_version(void)
{
    return EM_VERSION;
}
