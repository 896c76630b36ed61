/*
 * What is told of the topics of a chain: its log density, the shares of topics, a score on test
 * documents, and averages over the draws (phi, shares, priors), for models whose parameters are
 * moved by a kernel. For the chains of one rank.
 */
#ifndef EM_MODEL_TOPIC_RECORD_H
#define EM_MODEL_TOPIC_RECORD_H

#include "data/corpus.h"
#include "emass/model.h"
#include "model/lda_held_out.h"
#include "model/lda_topics.h"

#include <stdbool.h>

typedef struct em_topic_record em_topic_record;

typedef struct em_topic_record_options {
    em_lda_shape shape;
    int64_t first_chain, n_chain, test_every;
    bool store_phi;
} em_topic_record_options;

/* `held_out` NULL: no score. Borrows it, and the names of the corpus. Local. Errors: EM_EMEMORY. */
em_status em_topic_record_create(const em_topic_record_options *options, const em_corpus *corpus,
                                 const em_held_out *held_out, em_topic_record **out);
void em_topic_record_destroy(em_topic_record **record); /* NULL-safe. */

/* Tells the model of its variables and averages, besides those it has already: there is room for
 * EM_TOPIC_VARIABLES more, and for EM_TOPIC_AVERAGES. Local. */
enum { EM_TOPIC_VARIABLES = 4, EM_TOPIC_AVERAGES = 5 };
void em_topic_record_declare(const em_topic_record *record, em_model *model, em_variable *variable,
                             em_variable *average);

/* Where an iteration has left a chain. */
typedef struct em_topic_look {
    int64_t chain;
    double log_density;
    const float *phi;    /* [n_word][stride] */
    const double *count; /* [n_topic] tokens, of some documents at least */
    const double *alpha; /* [n_topic] */
    double beta;
} em_topic_look;

/* Collective over the ranks of a group. */
em_status em_topic_record_take(em_topic_record *record, const em_update *after,
                               const em_topic_look *look);

/* Whether the next em_topic_record_take reads phi. Local. */
bool em_topic_record_wants_phi(const em_topic_record *record, const em_update *after);

/* Whether phi is among what it writes of a draw. Local. */
bool em_topic_record_stores_phi(const em_topic_record *record);

/* Writes the variables of a chain; phi, where it is stored, as given. Returns what follows. Local.
 */
double *em_topic_record_report(const em_topic_record *record, int64_t chain, const float *phi,
                               double *out);
void em_topic_record_report_averages(const em_topic_record *record, int64_t chain, double *out);

/* Collective. */
em_status em_topic_record_visit(em_topic_record *record, const em_visitor *visitor);

/* Reads the corpus of test documents: every shard keeps all of them, and scores those that are
 * dealt to it. `hash` is changed by what was read. Local. Errors: EM_EDATA, EM_EMEMORY. */
em_status em_topic_record_read_test(const em_corpus_options *options, const em_lda_shape *shape,
                                    const em_model_context *context, uint64_t *hash,
                                    em_held_out **out);

#endif
