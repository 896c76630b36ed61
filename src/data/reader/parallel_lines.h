/*
 * A parallel reader of the lines of one text file. Of a plain file each rank reads a range of bytes
 * and the rest of the last line that begins in it. A compressed file is unpacked by rank 0, which
 * sends blocks of whole lines to the ranks in turn.
 */
#pragma once

#include "data/reader/lines.h"

typedef struct em_parallel_lines em_parallel_lines;

/* The first line of a file and what follows from it; the same on all ranks. */
typedef struct em_parallel_lines_head {
    char *line;     /* freed by em_release; NULL: there is none */
    int64_t number; /* of that line */
    int64_t offset; /* where the next one begins */
    bool plain;
} em_parallel_lines_head;

/* Collective. Errors, agreed: EM_EDATA, EM_EMEMORY. */
em_status em_parallel_lines_read_head(const char *path, em_parallel_lines_head *head);

/* The key of a line, which ends with a newline or a zero; -1: the line is blank. Neighbouring lines
 * with one key are read by one rank. Local. */
typedef int64_t em_parallel_lines_key(const char *line);

/* Begins at the start of the file, or with `after_head` at the offset and line number of `head`.
 * `key` NULL: lines are independent of one another. Collective. Errors, agreed: those of
 * em_lines_open. */
em_status em_parallel_lines_open(const char *path, const em_parallel_lines_head *head,
                                 bool after_head, em_parallel_lines_key *key,
                                 em_parallel_lines **out);

/* Returns the next run of lines of this rank, which em_lines_next reads; *lines NULL: there are no
 * more. *order sorts the runs of all ranks. Local to the ranks that read the file: each calls this
 * until there are no more lines, or calls em_parallel_lines_close. Errors: those of em_lines_next.
 */
em_status em_parallel_lines_next(em_parallel_lines *input, em_lines **lines, int64_t *order);

/* The number of the line last read by this rank, or by the rank that decompresses. Local. */
int64_t em_parallel_lines_line(const em_parallel_lines *input);

/* Closes the input; NULL-safe. A rank that stops early discards the rest. Local, as
 * em_parallel_lines_next. */
void em_parallel_lines_close(em_parallel_lines **input);
