/* Shows part of a state to the visitor of the whole, under names with a prefix. */
#ifndef EM_BASE_OPTIONS_PART_VISITOR_H
#define EM_BASE_OPTIONS_PART_VISITOR_H

#include "emass/visitor.h"

typedef struct em_part_visitor {
    em_visitor visitor; /* for the part */
    const em_visitor *parent;
    const char *prefix;
} em_part_visitor;

/* Returns &part->visitor; `parent` and `prefix` must outlive it. Local. */
const em_visitor *em_part_visitor_start(em_part_visitor *part, const em_visitor *parent,
                                        const char *prefix);

#endif
