/* The topics of all chains of a run, and the HTML pages that show them. */
#pragma once

#include "base/page.h"
#include "data/corpus/corpus.h"
#include "emass/model/commands.h"
#include "emass/status.h"
#include "io/draws/reader.h"
#include "topics/lda_held_out.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Topics p and q of two chains are the same topic if their overlap, the Bhattacharyya coefficient
 * sum_v sqrt(p_v q_v) of their word distributions, is above this. */
#define EM_LEAST_OVERLAP 0.7

enum {
    EM_TOPICS_MOST_TOP = 50
}; /* the largest number of words of a topic that are shown or scored */

/* A topic is junk if its words occur together no more often than by chance: an NPMI of 0 or less.
 */
#define EM_JUNK_NPMI 0.0

/* Held-out scores of one definition. */
typedef struct em_topic_score {
    double *perplexity; /* [n_chain]; NULL: none */
    double *pooled;     /* [n_chain] equal elements: averaged over chains, too; NULL: none */
    char doc[EM_HELD_OUT_DOC_SIZE]; /* their definition */
} em_topic_score;

enum { EM_TOPIC_SCORES = 2 }; /* folding in by EM, and by the model's Gibbs sampler */

typedef struct em_topics {
    const em_command_host *host;
    const char *path, *folder, *documents, *html, *output;
    int by_gibbs; /* documents are folded in by the model's Gibbs sampler */
    long n_top;
    int64_t n_chain, n_topic, n_word;
    char *verdict; /* of the run; NULL: none is stored */
    char *data;    /* hash of its data; NULL: none is stored */
    char **word;   /* [n_word] */
    double *share; /* [n_chain][n_topic] */
    double *alpha; /* [n_chain][n_topic]; NULL: none */
    em_topic_score score[EM_TOPIC_SCORES];
    float *mean;          /* [n_topic][n_word] over the chains that have the topic */
    double *mean_share;   /* [n_topic] */
    int64_t *n_found;     /* [n_topic] chains with this topic, the first one included */
    int64_t *order;       /* [n_topic] the largest first */
    int32_t *top;         /* [n_topic][n_top] words, the most probable first */
    int64_t *n_preferred; /* [n_topic] the first of these are more probable than 1 / n_word, as all
                             words would be in a topic that prefers none */
    double *coherence;    /* [n_topic]; NULL: not known */
} em_topics;

/* Reads the topics of t->path. Local. Errors: EM_EDATA, EM_EMEMORY. */
em_status em_topics_read(em_topics *t);

/* Sets order, top and n_preferred. Local. Errors: EM_EMEMORY. */
em_status em_topics_rank(em_topics *t);

/* Frees the arrays with an element for each word or each chain but verdict and scores, which are
 * not needed for coherence. */
void em_topics_release_words(em_topics *t);
void em_topics_release(em_topics *t); /* Frees all members but the texts set by the caller. */

/* Prints a text as a field of CSV. Local. */
void em_topics_print_quoted(const char *text);

/* Whether topic k is junk; false if coherence is not known. Local. */
bool em_topic_is_junk(const em_topics *t, int64_t k);

/* sum_v sqrt(p_av p_bv) of each two topics a and b of t->mean, into overlap[n_topic][n_topic].
 * Local. Errors: EM_EMEMORY. */
em_status em_topic_overlaps(const em_topics *t, float *overlap);

/* Averages the topics over the chains, into t->mean, which holds those of the first one, mean_share
 * and n_found. The topics of another chain are assigned to those of the first so that the sum of
 * overlaps is largest. `phi` is the index of the variable phi in `reader`; it is read some topics
 * at a time. Local. Errors: those of reading, EM_EMEMORY. */
em_status em_topics_match_chains(em_topics *t, em_reader *reader, int64_t phi);

/*
 * Writes t->html: one self-contained page with the trace of the perplexity and, for each topic, its
 * size, coherence, words and nearest topics. An existing page of this kind is replaced, but no
 * other file. Local. Errors: EM_EUSAGE, EM_EIO, EM_EMEMORY.
 */
em_status em_topics_write_page(const em_topics *t);

/* The scores and a table of the topics, as HTML. Local. Errors: EM_EIO, EM_EMEMORY. */
em_status em_topics_put(FILE *out, const em_topics *t);

extern const char em_topics_page_line[]; /* the first line of every page of topics */

/* Begins a page with this title, followed by `of` unless it is NULL. An existing page of topics is
 * replaced, but no other file. em_page_close(page, status) ends it, also after a failure. Local.
 * Errors: EM_EUSAGE, EM_EMEMORY. */
em_status em_topics_open_page(const char *path, const char *title, const char *of, em_page *page);

/* Writes a figure of y [n] over the numbers of topics x [n], in ascending order. `format` is the
 * printf format of y. Local. */
void em_topics_put_curve(FILE *out, const char *title, const char *format, int64_t n,
                         const double *x, const double *y);

/* Arguments of a comparison of runs. */
typedef struct em_topics_comparison {
    const char *folder; /* where relative paths of configs start; NULL: as in the run */
    const char *page;   /* NULL: none */
    long n_top;         /* words of each topic for coherence */
    bool csv, prints;   /* whether a table is printed, and whether as CSV */
} em_topics_comparison;

/* Compares the runs host->file: perplexity, coherence, junk, stability and seconds of each. Their
 * corpus is read once. Local. Errors: those of reading and of em_topics_open_page. */
em_status em_topics_compare(const em_command_host *host, const em_topics_comparison *c);

/* Whether the words were read and have names, not only numbers. Local. */
bool em_topics_are_named(const em_topics *t);

/* Computes the mixture of topics of each document of the corpus t->documents, which must have the
 * words of the run, and prints it or writes it to t->output. Words without a topic have probability
 * 1e-12. Local. Errors: those of reading; EM_EUSAGE if the file exists, EM_EIO. */
em_status em_topics_mix_documents(const em_topics *t);

/* Writes the probabilities of all words in all topics to t->output, as a table (io/hdf5/numbers.h).
 * Local. Errors: EM_EUSAGE if the file exists, EM_EIO. */
em_status em_topics_write_topics(const em_topics *t);

/* Computes the coherence (NPMI) of the topics of n runs over the documents of the first one's
 * corpus, which is read once, into coherence of each; the runs have words of the same number. If
 * the corpus is missing, that of the next run is read, and the first one gets no coherence. Local.
 * Errors: those of reading it. */
em_status em_topics_find_coherence(int64_t n, em_topics *const *t);
