/* A copy in memory of a state that is passed to a visitor, which can be passed to another visitor
 * later. */
#pragma once

#include "emass/visitor.h"

/* An array of the state, as it was passed to a visitor. */
typedef struct em_copied_array {
    char name[96];
    int way; /* which function of the visitor */
    em_number kind;
    int64_t total, first, count;
    int64_t at; /* in `bytes` */
} em_copied_array;

/* All members are zero at first. Only the functions below change it. */
typedef struct em_state_copy {
    int64_t n, capacity;
    em_copied_array *array; /* [n] */
    int64_t n_byte, byte_capacity;
    char *bytes;           /* [n_byte] the numbers of all arrays */
    int64_t n_local_chain; /* rows of an array, unless it is shared */
    em_status status;      /* of copying. Local: EM_EMEMORY */
} em_state_copy;

/* Forgets what was copied before, and returns a visitor that copies. Its functions return EM_OK, as
 * their callers are Collective; `status` has what failed. Local. */
em_visitor em_state_copy_begin(em_state_copy *copy, int64_t n_local_chain);

/* Passes the copy to a visitor that saves. Collective. Errors: those of the visitor. */
em_status em_state_copy_replay(const em_state_copy *copy, const em_visitor *visitor);

void em_state_copy_release(em_state_copy *copy);
