/*
 * The draws of one element of a reader after the other, read as many at a time as fit 64 MB. Where
 * a variable is compressed every reading inflates all its chunks, whatever part of them is asked
 * for: then 256 MB at a time, or a sixteenth of the variable. All Local.
 */
#ifndef EM_IO_DRAWS_ELEMENTS_H
#define EM_IO_DRAWS_ELEMENTS_H

#include "io/draws/reader.h"

typedef struct em_element {
    int64_t variable, index;
} em_element;

typedef struct em_elements em_elements;

/* For the `n` elements that are wanted; these and the reader are borrowed. Errors: EM_EMEMORY. */
em_status em_elements_create(em_reader *reader, int64_t n, const em_element *wanted,
                             em_elements **out);
void em_elements_destroy(em_elements **elements);

/* All draws of the next of them, [n_chain][n_draw], until the next call. Errors: EM_EDATA, EM_EIO,
 * EM_EMEMORY. */
em_status em_elements_next(em_elements *elements, const double **draws);

#endif
