/* Passes a part of a state to the visitor of the whole state, under names with a prefix. */
#pragma once

#include "emass/visitor.h"

typedef struct em_part_visitor {
    em_visitor visitor; /* for the part */
    const em_visitor *parent;
    const char *prefix;
} em_part_visitor;

/* Returns &part->visitor; `parent` and `prefix` must outlive it. Local. */
const em_visitor *em_part_visitor_start(em_part_visitor *part, const em_visitor *parent,
                                        const char *prefix);
