/*
 * Observations for models that use single observations: inputs and a response each, distributed
 * over shards. The ranks of a node share one copy. Images and labels in IDX stay bytes. Each rank
 * reads its part of a plain file; rank 0 unpacks a compressed one and sends the parts. Tables are
 * read as in emass/data.h.
 */
#pragma once

#include "emass/model.h"

#include <stdbool.h>
#include <stdint.h>

/* The files of the observations. Messages name these fields as options of a model. */
typedef struct em_examples_source {
    /* a table, a file of images, a folder with one file of images and one of labels, or the common
     * begin of the names of both ("train" of train-images-idx3-ubyte.gz) */
    const char *path;
    const char *labels; /* labels of a file of images; NULL: in the same folder, with the
                           corresponding name */
    /* response column of a table, by name or by number from 1; NULL: the last one */
    const char *response;
    int header; /* em_table_header of a table */
    /* Whether the observations are to be predicted: they need no labels. The inputs of a table are
     * then the columns `input`; NULL: all but the response. */
    bool unlabelled;
    int64_t n_input;
    const char *const *input;
} em_examples_source;

typedef struct em_examples {
    char *path;    /* the file that messages about observations name */
    em_share rows; /* the observations of this shard; locally they are numbered from 0 */
    int64_t n_input;
    bool images;         /* the observations are images of bytes; false: rows of a table */
    int64_t shape[2];    /* rows and columns of an image; of a table n_input, 1 */
    uint64_t hash;       /* of all files */
    const uint8_t *byte; /* of images: [rows.count][n_input] */
    const double *value; /* tables: [rows.count][n_column]; the inputs are the columns `column` */
    int64_t n_column, *column; /* [n_input] */
    int64_t response_at;       /* -1: none */
    const uint8_t *label;      /* of images: [rows.count] */
    struct em_data *table;     /* NULL: images */
    int header;                /* of its file */
    struct em_node_array *node_array;
} em_examples;

/* Reads the observations of the context's shard. Collective. Errors, agreed: EM_EDATA, naming the
 * file and, if one is bad, the observation; EM_EMEMORY. */
em_status em_examples_read(const em_examples_source *source, const em_model_context *context,
                           em_examples **out);
void em_examples_destroy(em_examples **examples); /* NULL-safe. Local. */

/* Bytes of those that are here. Local. */
double em_examples_bytes(const em_examples *examples);

/* The response of observation i of this shard; 0 if observations have none. Local. */
double em_examples_response(const em_examples *examples, int64_t i);

/* The number of classes: `n_class`, or the largest label plus 1 where that is 0. Collective.
 * Errors, agreed: EM_EDATA, naming the first label that is not one of 0, 1, ..., n_class - 1. */
em_status em_examples_classes(const em_examples *examples, int64_t n_class, int64_t *out);
