#include "base/options/part_visitor.h"

#include <stdio.h>

typedef struct full_name {
    char text[256];
} full_name;

static full_name name_of(const em_part_visitor *part, const char *name)
{
    full_name full;

    snprintf(full.text, sizeof full.text, "%s%s", part->prefix, name);
    return full;
}

static em_status part_chains(void *context, const char *name, int64_t n, double *x)
{
    const em_part_visitor *part = context;

    return part->parent->chains(part->parent->context, name_of(part, name).text, n, x);
}

static em_status part_shared(void *context, const char *name, int64_t n, double *x)
{
    const em_part_visitor *part = context;

    return part->parent->shared(part->parent->context, name_of(part, name).text, n, x);
}

static em_status part_sharded(void *context, const char *name, em_number kind, int64_t total,
                              int64_t first, int64_t count, void *x)
{
    const em_part_visitor *part = context;

    return part->parent->sharded(part->parent->context, name_of(part, name).text, kind, total,
                                 first, count, x);
}

const em_visitor *em_part_visitor_start(em_part_visitor *part, const em_visitor *parent,
                                        const char *prefix)
{
    *part = (em_part_visitor){.parent = parent, .prefix = prefix};
    part->visitor = (em_visitor){.context = part,
                                 .restores = parent->restores,
                                 .chains = part_chains,
                                 .shared = part_shared,
                                 .sharded = part_sharded};
    return &part->visitor;
}
