#include "model/external/failures.h"

#include "base/file.h"
#include "base/text/json.h"

#include <math.h>
#include <stdio.h>

enum { MOST_NUMBERS = 12 }; /* of a position, in a list */

static const double NOT_COUNTED = -1e15; /* sums with it are negative */

em_status em_failures_create(const em_model_context *context, em_failures **out)
{
    const int64_t n_text = EM_MOST_FAILURES * EM_FAILURE_BYTES / (int64_t)sizeof(double);
    em_status status = em_allocate(1, sizeof **out, out);
    em_failures *failures = *out;

    if (status)
        return status;
    failures->first_chain = context->first_chain;
    failures->n_chain = context->n_chain;
    return em_own_all(&failures->memory, EM_ARRAY(failures->evaluations, context->n_chain),
                      EM_ARRAY(failures->count, context->n_chain),
                      EM_ARRAY(failures->text, context->n_chain * n_text));
}

/* {"chain": 3, "position": [0.5, 2], "why": "..."} */
static void print(char *out, int64_t chain, int64_t n, const double *x, const char *why)
{
    char reason[161];
    EM_SCOPED_FILE *to = fmemopen(out, EM_FAILURE_BYTES - 1, "w");

    if (!to)
        return;
    snprintf(reason, sizeof reason, "%s", why);
    fprintf(to, "{\"chain\": %lld, \"position\": [", (long long)chain);
    for (int64_t i = 0; i < n && i < MOST_NUMBERS; i++) {
        fputs(i > 0 ? ", " : "", to);
        if (isfinite(x[i]))
            em_json_write_number(x[i], to);
        else
            fputs("null", to);
    }
    fprintf(to, "%s], \"why\": ", n > MOST_NUMBERS ? ", \"...\"" : "");
    em_json_write_string(reason, to);
    fputc('}', to);
}

/* The index on this rank of a chain. Copies of tempered chains have other numbers than chains. */
static int64_t own_index(const em_failures *failures, int64_t chain)
{
    const int64_t own = chain - failures->first_chain;

    return own >= 0 && own < failures->n_chain ? own : chain % failures->n_chain;
}

void em_failures_count_evaluation(em_failures *failures, int64_t chain)
{
    if (failures->n_chain > 0)
        failures->evaluations[own_index(failures, chain)]++;
}

void em_failures_add(em_failures *failures, int64_t chain, int64_t n, const double *x,
                     const char *why)
{
    char *text = (char *)(void *)failures->text;

    if (!failures->first[0])
        snprintf(failures->first, sizeof failures->first, "%s", why);
    if (failures->n_chain == 0)
        return;
    const int64_t c = own_index(failures, chain);
    text += c * EM_MOST_FAILURES * EM_FAILURE_BYTES;
    if (failures->count[c]++ < EM_MOST_FAILURES)
        print(text + ((int64_t)failures->count[c] - 1) * EM_FAILURE_BYTES, chain, n, x, why);
}

em_status em_failures_visit(em_failures *failures, const em_visitor *visitor)
{
    const int64_t n = EM_MOST_FAILURES * EM_FAILURE_BYTES / (int64_t)sizeof(double);
    em_status status = visitor->chains(visitor->context, "evaluations", 1, failures->evaluations);

    if (status == EM_EDATA && visitor->restores) { /* of a version that did not count them */
        for (int64_t c = 0; c < failures->n_chain; c++)
            failures->evaluations[c] = NOT_COUNTED;
        status = EM_OK;
    }
    if (!status)
        status = visitor->chains(visitor->context, "failed_evaluations", 1, failures->count);
    if (status == EM_EDATA && visitor->restores) { /* of a version whose model had no failures */
        for (int64_t c = 0; c < failures->n_chain; c++)
            failures->count[c] = 0;
        return EM_OK;
    }
    return status ? status
                  : visitor->chains(visitor->context, "failed_evaluation_texts", n, failures->text);
}
