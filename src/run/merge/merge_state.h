/* Private to this folder: the state of a merge, and its steps (run/merge/merge.h). */
#pragma once

#include "io/draws/contents.h"
#include "io/draws/reader.h"
#include "io/draws/writer.h"
#include "run/merge/merge.h"
#include "run/output/creation_record.h"
#include "run/transaction/atomic_file.h"

typedef struct em_merge_state {
    em_merging *request;
    em_reader *reader;      /* the posterior groups of all files */
    em_contents **contents; /* [n_input] */
    em_grid *grid;
    em_atomic_file *output;
    em_writer *writer;
    em_created created;
    em_signature signature;
} em_merge_state;

/* The contents of the first file, which the others must match. Local. */
static inline const em_contents *em_merge_first(const em_merge_state *m)
{
    return m->contents[0];
}

/* The labels of an axis; text NULL: the numbers from 0 on. */
typedef struct em_merge_labels {
    int64_t n;
    char **text;
} em_merge_labels;

/* A variable to write, which owns its labels. */
typedef struct em_merge_written {
    em_variable variable;
    em_merge_labels label[EM_MAX_AXES];
} em_merge_written;

/* Describes an array of a file from axis `skip` on. Local. Errors: EM_EDATA, EM_EIO, EM_EMEMORY. */
em_status em_merge_describe(const char *path, const em_contents_group *group,
                            const em_contents_array *array, int skip, em_merge_written *out);
void em_merge_release_written(int64_t n, em_merge_written **out);

/* em_merge_arrays writes the arrays of a group that are not draws. em_merge_attributes writes the
 * attributes that the files have in common. em_merge_runs writes the attributes of each file to the
 * group `runs`. Collective. Errors, agreed: as em_merge. */
em_status em_merge_arrays(em_merge_state *m, const em_contents_group *group);
em_status em_merge_attributes(em_merge_state *m);
em_status em_merge_runs(em_merge_state *m);
