/*
 * Reads files in ArviZ's InferenceData schema, written by emass or other programs (netCDF-4 with
 * any chunking and numeric type, compressed or not). Unusual HDF5 features are refused
 * (io/hdf5/foreign.h). Names and labels are in printable form (em_text_escape). All Local: every
 * rank reads by itself, and ranks may read different columns.
 */
#pragma once

#include "emass/model.h"
#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct em_reader em_reader;

/* One dataset of a group of draws. */
typedef struct em_reader_variable {
    char *name;
    int n_axes; /* beyond chain and draw */
    int64_t shape[8];
    int64_t size;         /* product of shape */
    em_role role;         /* of files that tell it; else parameter */
    bool unwatched;       /* convergence checks skip this variable and those after it */
    int64_t index_base;   /* the first index of axes without labels: 0, or 1 for Stan programs */
    char **axis_label[8]; /* [shape[i]] of each axis; NULL: numbered from index_base */
    char ***element;      /* *element: [size] names made by em_reader_label; NULL: none yet */
} em_reader_variable;

/* The name of element k: mu, theta[Choate], beta[2,x]. The first call creates it, and it is valid
 * until the reader is closed. If memory is short, it is the name of the variable. */
const char *em_reader_label(const em_reader_variable *variable, int64_t k);

/* Opens the file and a group in it; NULL: no group, only the attributes. Errors, in one line that
 * names the file: EM_EDATA if the file is missing, not HDF5 or truncated, has no such group, or the
 * group has no (chain, draw, ...) variables; EM_EIO if the system cannot read it; EM_EMEMORY. */
em_status em_reader_open(const char *path, const char *group, em_reader **out);
void em_reader_close(em_reader **reader);

/* Opens several files as one. Chains are numbered consecutively in the order of the files.
 * Variables, elements and attributes are those of the first file. `common`: the numbers of draws
 * may differ, except in groups of warmup; the first draws of each chain that all files have are
 * used. Errors: as em_reader_open, and EM_EDATA if files do not match (another model, data set,
 * variable or number of draws) or have the same chains. */
em_status em_reader_open_all(int64_t n, const char *const *path, const char *group, bool common,
                             em_reader **out);

/* Opens another group of the files of a reader in the same way. Errors: as em_reader_open_all. */
em_status em_reader_open_beside(const em_reader *reader, const char *group, em_reader **out);

/* Walks over the files of a reader: the reader of the next file, borrowed (NULL: this is the last),
 * the path of this file, and the number of chains in it. */
em_reader *em_reader_next(const em_reader *reader);
const char *em_reader_path(const em_reader *reader);
int64_t em_reader_n_own_chain(const em_reader *reader);
int64_t em_reader_n_own_draw(const em_reader *reader);
/* The first file with the fewest draws. */
const em_reader *em_reader_shortest(const em_reader *reader);

/* A text that says which draws are used, if files had more draws: "the first 400 draws of each
 * chain, as many as b.h5 has"; NULL: all are. Freed by em_release. Errors: EM_EMEMORY. */
em_status em_reader_cut(em_reader *reader, char **out);

int64_t em_reader_n_chain(const em_reader *reader);
/* The number of draws. In the file of a run in progress, or of one that was killed, it is the
 * number that all chains have so far. */
int64_t em_reader_n_draw(const em_reader *reader);
/* The draws that the file has space for: more than em_reader_n_draw if it is not finished. */
int64_t em_reader_n_planned(const em_reader *reader);
int64_t em_reader_n_variable(const em_reader *reader);
const em_reader_variable *em_reader_variable_at(const em_reader *reader, int64_t i);
int64_t em_reader_find(const em_reader *reader, const char *name); /* -1: there is none */

/* Elements first .. first + n of variable i for all chains and draws, as
 * out[n][n_chain][n_draw]. Errors: EM_EDATA, EM_EIO, EM_EMEMORY. */
em_status em_reader_elements(em_reader *reader, int64_t i, int64_t first, int64_t n, double *out);

/* Draws first .. first + n of some chains of variable i, all its elements, as
 * out[n_chain][n][size]. Errors: EM_EDATA, EM_EIO. */
em_status em_reader_draws(em_reader *reader, int64_t i, int64_t first_chain, int64_t n_chain,
                          int64_t first, int64_t n, double *out);

/* How to read draws with all variables of a group side by side in a row. */
typedef struct em_row_reading {
    em_reader *reader;
    int64_t first_chain, n_chain;
    int64_t step;  /* of every `step` draws in the file the last one is read */
    int64_t width; /* numbers in a row */
    double *work;  /* [n_chain][n * step][width], for n draws at a time */
} em_row_reading;

/* Reads n draws as rows[n_chain][n][width], the first of them from draw first * step of the file
 * on. Errors: EM_EDATA, also if the variables have more than `width` numbers; EM_EIO. */
em_status em_reader_rows(const em_row_reading *how, int64_t first, int64_t n, double *rows);

/* Elements first .. first + n of the first draw of a chain of variable i, as out[n]. Errors:
 * EM_EDATA, EM_EIO. */
em_status em_reader_floats(em_reader *reader, int64_t i, int64_t chain, int64_t first, int64_t n,
                           float *out);

/* Root attributes, of the first file. False when absent or of another type. Text is released by
 * em_release. */
bool em_reader_text(em_reader *reader, const char *name, char **text);
bool em_reader_int(em_reader *reader, const char *name, int64_t *value);
bool em_reader_real(em_reader *reader, const char *name, double *value);

/* Reads a whole dataset of numbers of a group as doubles, newly allocated (em_release), and how
 * many they are. Local. Errors: EM_EDATA, also if its extents are of many more numbers than the
 * file can store; EM_EIO, EM_EMEMORY. */
em_status em_read_array(const char *path, const char *group, const char *name, int64_t *count,
                        double **value);

/* The number of labels of the coordinate "group/axis", and the labels in printable form, cut to 255
 * bytes. The array and each label are freed by em_release. Local. Errors: EM_EDATA, also if there
 * is no such coordinate; EM_EIO, EM_EMEMORY. */
em_status em_read_labels(const char *path, const char *name, int64_t *count, char ***label);

/* True when <group>/<name> exists in the file. */
bool em_reader_has(em_reader *reader, const char *group, const char *name);

/* Iterates over the draws of elements of a reader, which it reads in batches of 64 MB. Reading any
 * part of a compressed variable decompresses all its chunks, so batches are then 256 MB or a
 * sixteenth of the variable. All Local. */

typedef struct em_element {
    int64_t variable, index;
} em_element;

typedef struct em_elements em_elements;

/* Creates an iterator over `n` elements `wanted`. Borrows them and the reader. Errors: EM_EMEMORY.
 */
em_status em_elements_create(em_reader *reader, int64_t n, const em_element *wanted,
                             em_elements **out);
void em_elements_destroy(em_elements **elements);

/* All draws of the next element, [n_chain][n_draw], valid until the next call. Errors: EM_EDATA,
 * EM_EIO, EM_EMEMORY. */
em_status em_elements_next(em_elements *elements, const double **draws);
