/* `emass topics`: the topics of all chains of a run, and the tables and pages that show them. */
#pragma once

#include "base/page.h"
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

/* The largest number of words of a topic that are shown, and that coherence takes. */
enum { EM_TOPICS_MOST_TOP = 50 };

/* A topic is junk if its coherence (NPMI) is at most this: its words occur together no more often
 * than by chance. */
#define EM_JUNK_NPMI 0.0

/* Held-out scores by one definition. */
typedef struct em_topic_score {
    double *perplexity; /* [n_chain] with probabilities averaged over the draws; NULL: none */
    double *pooled;     /* [n_chain] equal elements: averaged over all chains too; NULL: none */
    char doc[EM_HELD_OUT_DOC_SIZE]; /* their definition */
} em_topic_score;

enum { EM_TOPIC_SCORES = 2 }; /* folding in by EM, and by the model's Gibbs sampler */

/* The topics of a run. Those of `mean` and of what follows it are numbered as in the first chain.
 */
typedef struct em_topics {
    const em_command_host *host;
    const char *path;          /* of the run's file */
    const char *folder;        /* where relative paths of the config start; NULL: as in the run */
    const char *documents;     /* corpus whose mixtures are computed; NULL: none */
    const char *html, *output; /* files to be written; NULL: none */
    int by_gibbs; /* whether documents are folded in by the model's Gibbs sampler, not by EM */
    long n_top;   /* words of each topic that are shown and that coherence takes */
    int64_t n_chain, n_topic, n_word;
    char *verdict;  /* of the run; NULL: none is stored */
    char *data;     /* hash of its data; NULL: none is stored */
    double seconds; /* of its sampling; NaN: not stored */
    char **word;    /* [n_word] */
    double *share;  /* [n_chain][n_topic] */
    double *alpha;  /* [n_chain][n_topic]; NULL: none */
    em_topic_score score[EM_TOPIC_SCORES];
    float *mean;          /* [n_topic][n_word] mean of phi over the chains that have the topic */
    double *mean_share;   /* [n_topic] likewise */
    int64_t *n_found;     /* [n_topic] chains with this topic, the first one included */
    int64_t *order;       /* [n_topic] the largest first */
    int32_t *top;         /* [n_topic][n_top] words, the most probable first */
    int64_t *n_preferred; /* [n_topic] how many of `top` are more probable than 1 / n_word, their
                             probability in a uniform topic */
    double *coherence;    /* [n_topic] NPMI; NULL: not known */
} em_topics;

/* Reads the run t->path into the members of t from n_chain to n_preferred. n_top is at most n_word
 * then. Local. Errors: EM_EDATA, EM_EMEMORY. */
em_status em_topics_read(em_topics *t);

/* Finds the `n` largest of x [size], the largest first. There are as many. Local. */
void em_topics_largest(int64_t size, const float *x, long n, int32_t *out);

/* Frees the arrays that coherence does not need: those with an element for each word or each chain.
 * The verdict and the scores are kept. */
void em_topics_release_words(em_topics *t);
void em_topics_release(em_topics *t); /* Frees all members but the texts set by the caller. */

/* Whether topic k is junk; false if coherence is not known. Local. */
bool em_topic_is_junk(const em_topics *t, int64_t k);

/* Computes overlap [n_topic][n_topic], sum_v sqrt(p_v q_v) of each two topics p and q of t->mean.
 * Local. Errors: EM_EMEMORY. */
em_status em_topic_overlaps(const em_topics *t, float *overlap);

/* Averages the topics over the chains: sets t->mean, which has those of the first chain before,
 * t->mean_share and t->n_found. The topics of another chain are assigned one to one to those of the
 * first so that the sum of overlaps is largest. `phi` is the index of the variable phi in `reader`;
 * some topics are read at a time. Local. Errors: those of reading, EM_EMEMORY. */
em_status em_topics_match_chains(em_topics *t, em_reader *reader, int64_t phi);

/*
 * Writes t->html: one self-contained page with the trace of the perplexity and, for each topic, its
 * size, coherence, words and nearest topics. An existing page of this kind is replaced, but no
 * other file. Local. Errors: EM_EUSAGE, EM_EIO, EM_EMEMORY.
 */
em_status em_topics_write_page(const em_topics *t);

/* Writes the scores and a table of the topics as HTML. Local. Errors: EM_EIO, EM_EMEMORY. */
em_status em_topics_put(FILE *out, const em_topics *t);

extern const char em_topics_page_line[]; /* the first line of every page of topics */

/* Begins a page with this title, followed by the name `of` unless it is NULL. An existing page of
 * topics is replaced, but no other file. em_page_close(page, status) ends it, also after a failure.
 * Local. Errors: EM_EUSAGE, EM_EMEMORY. */
em_status em_topics_open_page(const char *path, const char *title, const char *of, em_page *page);

/* Writes a figure of y [n] against the numbers of topics x [n], which ascend. `format` is the
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

/* Computes the mixture of topics of each document of the corpus t->documents, and prints it or
 * writes it to t->output, [n_document][n_topic]. The corpus must have the words of the run.
 * Probabilities of words are at least 1e-12. Local. Errors: those of reading; EM_EUSAGE if the file
 * exists, EM_EIO. */
em_status em_topics_mix_documents(const em_topics *t);

/* Writes t->mean to t->output, as a table (io/hdf5/numbers.h). Local. Errors: EM_EUSAGE if the file
 * exists, EM_EIO. */
em_status em_topics_write_topics(const em_topics *t);

/* Computes the coherence (NPMI) of the topics of n runs, t[i]->coherence, over the documents of the
 * first run's corpus, which is read once. All runs have the same n_word. If that corpus is missing,
 * the first run gets no coherence, and the corpus of the next run is read. Local. Errors: those of
 * reading it. */
em_status em_topics_find_coherence(int64_t n, em_topics *const *t);
