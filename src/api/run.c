#include "api/context.h"
#include "api/run_diagnoses.h"

#include "base/fault.h"
#include "base/memory.h"
#include "run/loop/driver.h"

struct em_run {
    em_context *context;
    em_config *config;
    em_engine *engine;
    em_run_mode mode;
};

enum { MOST_OVERRIDES = 4096 };

/* The request of rank 0, on every rank. */
typedef struct stored_request {
    char *config, *path;
    int64_t n_override;
    char **override;
    em_run_mode mode;
    bool same_kernels;
} stored_request;

static em_status check_request(const em_run_request *given)
{
    if (em_world_rank() != 0)
        return EM_OK;
    if (!given->config)
        return em_fail(EM_EUSAGE, "em_run_create: found no config");
    if (given->n_override < 0 || given->n_override > MOST_OVERRIDES)
        return em_fail(EM_EUSAGE, "em_run_create: found %lld overrides, expected 0 to %d",
                       (long long)given->n_override, MOST_OVERRIDES);
    return EM_OK;
}

/* Copies a text of rank 0 to all ranks. Collective. */
static em_status share_text(const char *text, char **out)
{
    return em_share_text(em_world_rank() == 0 ? em_copy_text(text, out) : EM_OK, out);
}

static em_status share_request(const em_run_request *given, stored_request *out)
{
    em_status status = em_agree(check_request(given));

    if (status)
        return status;
    out->n_override = given->n_override;
    out->mode = given->mode;
    out->same_kernels = given->same_kernels;
    em_broadcast(&out->n_override, sizeof out->n_override);
    em_broadcast(&out->mode, sizeof out->mode);
    em_broadcast(&out->same_kernels, sizeof out->same_kernels);
    status = share_text(given->path ? given->path : "config", &out->path);
    status = status ? status : share_text(given->config, &out->config);
    if (!status)
        status = em_agree(em_allocate(out->n_override, sizeof *out->override, &out->override));
    for (int64_t i = 0; !status && i < out->n_override; i++)
        status = share_text(em_world_rank() == 0 ? given->override[i] : NULL, &out->override[i]);
    return status;
}

/* Collective. */
static bool is_anywhere(bool mine)
{
    char ranks[128];

    em_world_list(mine, sizeof ranks, ranks);
    return ranks[0];
}

/* Whether any rank has given a sink. All ranks then call it together. Collective. */
static em_status check_sink(const em_sink *sink, bool *given)
{
    const bool mine = sink->begin || sink->take || sink->flush || sink->visit || sink->finish;
    const bool some = is_anywhere(sink->visit), others = is_anywhere(!sink->visit);

    *given = is_anywhere(mine);
    if (some && others)
        return em_fail(EM_EUSAGE, "em_run_create: sink.visit is given on some ranks only, expected "
                                  "on all or none");
    return EM_OK;
}

static void warn(const em_kernel_options *kernel)
{
    const em_sampler_options *options = kernel->options;

    if (options->minibatch != INT64_MIN && !kernel->ops->minibatches && !kernel->ops->by_model)
        em_say("warning: sampler.minibatch does not apply to %s, which uses all observations",
               kernel->ops->name);
}

static em_status parse(const stored_request *r, em_config **out)
{
    em_status status = em_fault("config")
                           ? em_fail(EM_ECONFIG, "%s: parsing failed (injected)", r->path)
                           : em_config_parse(r->path, r->config, (int)r->n_override,
                                             (const char *const *)r->override, out);

    status = em_agree(status);
    for (int i = 0; !status && i < (*out)->n_kernel; i++)
        warn(&(*out)->kernel[i]);
    return status;
}

static em_status create(const em_run_request *given, em_run *run)
{
    stored_request r = {.config = NULL};
    bool has_sink = false;
    em_status status = share_request(given, &r);

    run->mode = r.mode;
    status = status ? status : check_sink(&given->sink, &has_sink);
    status = status ? status : parse(&r, &run->config);
    em_release_texts(r.n_override, &r.override);
    em_release_all(&r.config, &r.path);
    if (!status)
        status = em_engine_create(run->config,
                                  &(em_engine_request){.mode = run->mode,
                                                       .same_kernels = r.same_kernels,
                                                       .sink = has_sink ? &given->sink : NULL,
                                                       .progress = given->progress,
                                                       .progress_to = given->progress_to},
                                  &run->engine);
    return status;
}

em_status em_run_create(em_context *context, const em_run_request *given, em_run **out)
{
    em_entry entry;
    em_run *run = NULL;
    em_status status = em_context_enter(context, &entry);

    *out = NULL;
    if (status)
        return status;
    status = em_agree(em_allocate(1, sizeof *run, &run));
    if (!status) {
        run->context = context;
        em_context_hold(context);
        status = create(given, run);
    }
    if (status)
        em_run_destroy(&run);
    em_context_leave(&entry);
    *out = run;
    return status;
}

em_status em_run_advance(em_run *run, int64_t iterations)
{
    em_entry entry;
    em_status status = em_context_enter(run->context, &entry);

    if (status)
        return status;
    em_broadcast(&iterations, sizeof iterations);
    status = em_engine_advance(run->engine, iterations);
    em_context_leave(&entry);
    return status;
}

em_status em_run_save(em_run *run)
{
    em_entry entry;
    em_status status = em_context_enter(run->context, &entry);

    if (status)
        return status;
    status = em_engine_save(run->engine);
    em_context_leave(&entry);
    return status;
}

const em_report *em_run_report(em_run *run)
{
    return em_engine_report(run->engine);
}

const char *em_run_config(const em_run *run)
{
    return run->config->full;
}

const char *em_run_file(const em_run *run)
{
    return run->mode == EM_RUN_NO_FILE ? "" : run->config->output.file;
}

em_diagnoses *em_run_diagnoses(const em_run *run)
{
    return em_engine_diagnoses(run->engine);
}

void em_run_destroy(em_run **out)
{
    em_run *run = *out;
    em_entry entry;

    if (!run)
        return;
    em_context_enter_later(run->context, &entry);
    em_engine_destroy(&run->engine);
    em_config_destroy(&run->config);
    em_context_leave(&entry);
    em_context_let_go(run->context);
    em_release(out);
}
