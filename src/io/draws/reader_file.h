/* Private to the reader: an open file and its group; several files are a list. */
#pragma once

#include "io/draws/reader.h"
#include "io/hdf5/foreign.h"

#include <hdf5.h>

enum { EM_MOST_READER_AXES = 8 };

typedef struct em_reader_entry {
    em_reader_variable variable;
    hid_t id;
} em_reader_entry;

struct em_reader {
    char *path;
    em_foreign file;
    hid_t group;
    int64_t n_chain, n_draw, n_planned, n_variable;
    int64_t n_own_draw; /* draws in this file, of which n_draw are used */
    bool common;        /* of files of unequal numbers of draws */
    em_reader_entry *variable;
    em_reader *next; /* the next file, whose chains follow those of this one */
};

/* Numbers of a dataset, of the type H5T_NATIVE_DOUBLE or H5T_NATIVE_FLOAT. Local. Errors:
 * EM_EDATA. */
em_status em_reader_read(hid_t id, hid_t type, hid_t memory, hid_t space, void *out);
