/* For tests and benches: models made from option texts, as a config would give them. */
#ifndef TESTS_SUPPORT_MODEL_SETUP_H
#define TESTS_SUPPORT_MODEL_SETUP_H

#include "base/memory.h"
#include "base/options/field.h"
#include "emass/model.h"
#include "model/model_list.h"
#include "posterior/posterior.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An option and its value as written; lists end with a NULL name. */
typedef struct setting {
    const char *name, *value;
} setting;

/* A created model and the options it borrows. */
typedef struct setup {
    em_model *model;
    void *options;
    const em_model_ops *ops;
} setup;

const em_model_ops *find_model(const char *name);
em_status set_option(const em_field *field, const char *text, void *options);

/* Every option once: by `settings` (which may be NULL), or else its default. */
em_status set_options(const em_model_ops *ops, const setting *settings, void *options);

/* All that a model may be asked about: of one without a summary, the rows of its shard. */
em_rows all_rows(const em_model *model);

/* Creates shard `shard` of `n_shard`, for as many chains; after a failure s->model is NULL. Freed
 * by teardown. */
em_status try_setup_for(int64_t n_chain, const char *name, const setting *settings, int64_t shard,
                        int64_t n_shard, setup *s);

/* The same for one chain. */
em_status try_setup(const char *name, const setting *settings, int64_t shard, int64_t n_shard,
                    setup *s);

void teardown(setup *s);

/* The log density of the model, of one shard, at theta. */
double density_at(const setup *s, const double *theta);

#endif
