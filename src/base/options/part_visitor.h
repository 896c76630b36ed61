/* Part of a state, shown to the visitor of the whole under names with a prefix of its own. */
#ifndef EM_BASE_OPTIONS_PART_VISITOR_H
#define EM_BASE_OPTIONS_PART_VISITOR_H

#include "emass/visitor.h"

typedef struct em_part_visitor {
    em_visitor visitor; /* for the part */
    const em_visitor *parent;
    const char *prefix;
} em_part_visitor;

/* Returns &part->visitor; `whole` and `prefix` outlive it. Local. */
const em_visitor *em_part_visitor_start(em_part_visitor *part, const em_visitor *parent,
                                        const char *prefix);

#endif
