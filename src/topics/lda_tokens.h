/*
 * The tokens of a shard's documents, laid out for sampling their topics, and a sweep over them.
 * Documents form blocks whose counts n_dk, of tokens of document d in topic k, fit into a
 * processor's cache. Within a block tokens are ordered by word, so that phi of a word stays in the
 * cache. Given phi, documents are independent, so their order is arbitrary. The tokens of a
 * document are drawn in the order of words. All Local, but where noted.
 *
 * An entry is the tokens of one word in one document. A run is the tokens of one word in all
 * documents of a block. A slot is the place of a token among those of its block, by document.
 */
#pragma once

#include "base/memory.h"
#include "data/corpus/corpus.h"
#include "emass/status.h"
#include "math/rng.h"
#include "math/simd/tokens.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* The number of slots of a document of `length` tokens: rounded up to a multiple of four, because
 * the generator gives four random numbers at a time. The slots of a document's tokens are in the
 * order of its words. */
static inline int64_t em_padded_length(int64_t length)
{
    return (length + 3) / 4 * 4;
}

/* The number of tokens of a document. */
int64_t em_document_length(em_document document);

/* The largest number of entries that em_sort_entries makes of documents with n_entry words and
 * n_token tokens. It is more than n_entry, because an entry has at most EM_ENTRY_TOKENS tokens. */
static inline int64_t em_most_entries(int64_t n_entry, int64_t n_token)
{
    return n_entry + n_token / EM_ENTRY_TOKENS;
}

/* Sorts the entries of n documents by word, and within a word by document. The entries of word v
 * are entry[start[v]] .. entry[start[v + 1] - 1]. start [n_word + 2] and entry are written. Returns
 * the number of words that occur, which is the number of runs. */
int64_t em_sort_entries(int64_t n_word, int64_t n, const em_document *document, int64_t *start,
                        em_token_entry *entry);

/* Draws 32 random bits for each slot of n documents, whose numbers in the corpus and tokens are
 * number [n] and length [n]. bits [slots] has them. item [slots / 4] is work space. Their sizes are
 * rounded up to multiples of 32 and of 8. */
void em_draw_token_bits(const em_stream *stream, int64_t n, const int64_t *number,
                        const int32_t *length, uint64_t *item, uint32_t *bits);

/* A block of documents of one level. */
typedef struct em_token_block {
    int level;
    int64_t first_document, n_document; /* in the arrays number, length and first of em_tokens */
    int64_t first_token, n_token;       /* in the topics of a chain */
    int64_t begin, end; /* a range of tokens of this shard, in the order of the corpus,
                           that contains those of the block */
    int64_t n_entry, n_run;
    char *layout;  /* entries and runs (em_block_view); NULL: in the scratch file */
    int64_t place; /* of the layout in the scratch file, in bytes */
} em_token_block;

/* The topics of all tokens of a chain, block by block and document by document; n_topic means none
 * yet. */
typedef struct em_token_topics {
    uint16_t *held; /* [n_token]; NULL: in the scratch file */
    int64_t place;  /* of them in the scratch file, in bytes */
} em_token_topics;

/* An open block: its tokens by word, and their topics by document. */
typedef struct em_block_view {
    const em_token_block *block;
    const em_token_entry *entry; /* [n_entry] */
    const int32_t *run_word;     /* [n_run] words, ascending */
    const uint32_t *run_entry;   /* [n_run + 1] entries before each run */
    const uint32_t *run_token;   /* [n_run + 1] tokens before each run */
    uint16_t *topic;             /* [n_token] */
} em_block_view;

/* The unit of sums over documents and tokens other than counts. The terms are integers, so that the
 * sums do not depend on the assignment of documents to shards. */
#define EM_TOPIC_UNIT 0x1p-20

/* Local. */
static inline int64_t em_topic_in_units(double x)
{
    return (int64_t)llround(x / EM_TOPIC_UNIT);
}

/* A probability of a word by which documents are folded in; none is 0. Local. */
static inline float em_topic_floored(float phi)
{
    return phi > 1e-12F ? phi : 1e-12F;
}

/* log Gamma(x + n) / Gamma(x) in these units. Local. */
static inline int64_t em_topic_density(double x, int64_t n)
{
    return em_topic_in_units(lgamma(x + (double)n) - lgamma(x));
}

/*
 * The order of sums over documents d, in units of EM_TOPIC_UNIT. With A = sum_k alpha_k:
 *     [EM_LDA_DENSITY]      log p(topics of all tokens | alpha)
 *     [EM_LDA_TOTAL_SLOPE]  sum_d [psi(A + n_d) - psi(A)]
 *     [EM_LDA_SLOPES + k]   sum_d [psi(alpha_k + n_dk) - psi(alpha_k)]
 */
enum { EM_LDA_DENSITY, EM_LDA_TOTAL_SLOPE, EM_LDA_SLOPES };

/* Terms of these sums with n_dk below this are tabulated. */
enum { EM_LDA_TABLE = 64 };

typedef struct em_tokens {
    em_owner memory;                     /* of its work space */
    int64_t n_topic, stride;             /* em_topic_stride */
    int64_t n_word, n_document, n_token; /* the last two of this shard */
    int64_t n_all,
        first_token; /* tokens of the whole corpus; tokens of the shards before this one */
    int n_level; /* documents whose number is a multiple of 2^(n_level - 1 - l) have level l or a
                    lower one */
    bool sparse; /* documents keep lists of their topics */
    int64_t n_block;
    em_token_block *block; /* [n_block] by level */
    int64_t *number;       /* [n_document] in the corpus, in the order of the blocks */
    int32_t *length;       /* [n_document] tokens */
    int64_t *first;        /* [n_document] number of this shard's tokens before it in the corpus */
    /* Used if layouts and topics are in a scratch file. */
    int scratch;          /* file; -1: none */
    int64_t scratch_used; /* bytes */
    char *layout_room;    /* of the open block */
    uint16_t *topic_room; /* likewise */
    /* Work space for the largest block. */
    float *tokens;        /* [document][stride] n_dk, unless documents keep lists */
    em_topic_list *list;  /* [document] the topics with n_dk above 0 */
    uint16_t *list_topic; /* memory of the lists */
    float *list_count;
    int32_t *place;      /* [n_topic + 1] index in the list being made; INT32_MAX: none */
    uint16_t *state;     /* by slot: the topic, or its index in the document's list */
    uint16_t *drawn;     /* [n_token] topics in the order of runs */
    uint64_t *item;      /* of em_draw_token_bits */
    uint32_t *bits;      /* by slot */
    float *alpha, *room; /* those of em_token_run */
    float *groups;       /* [n_word][em_topic_groups] sums of the prior, if documents keep lists */
    bool *grouped;       /* [n_word] whether `groups` is computed for this sweep */
    int64_t (*table)[EM_LDA_TABLE][2]; /* [n_topic] terms of EM_LDA_DENSITY and EM_LDA_SLOPES + k */
    double *table_alpha;               /* [n_topic] the alpha_k of `table`; 0: not computed yet */
} em_tokens;

/*
 * Lays out the documents of a corpus, in one pass over it that frees them. `sparse`: 0, 1, or -1
 * for the faster one with n_topic topics. `scratch` NULL: in memory; else in an unnamed file in
 * this folder, which exists as long as the tokens. Errors: EM_EMEMORY, EM_EIO, EM_ECONFIG if the
 * file cannot be created, and those of em_corpus_each_once.
 */
em_status em_tokens_create(em_corpus *corpus, int64_t n_topic, int sparse, const char *scratch,
                           em_tokens **out);
void em_tokens_destroy(em_tokens **tokens); /* NULL-safe. */

/* Allocates the topics of one chain. No token has a topic yet. Errors: EM_EMEMORY, EM_EIO. */
em_status em_tokens_add_chain(em_tokens *tokens, em_token_topics *topics);

static inline void em_tokens_release_chain(em_token_topics *topics)
{
    em_release(&topics->held);
}

/* Opens block b, and asks for the next one to be read ahead. The view is valid until another block
 * is opened. em_block_close stores the topics that were changed. Errors: EM_EIO. */
em_status em_block_open(em_tokens *tokens, int64_t b, const em_token_topics *topics,
                        em_block_view *view);
em_status em_block_close(em_tokens *tokens, const em_token_topics *topics,
                         const em_block_view *view);

/* The number of elements of the list of topics of a document of `length` tokens. */
int64_t em_topic_list_capacity(int64_t n_topic, int64_t length);

/* Arguments of em_tokens_sweep. */
typedef struct em_sweep {
    uint64_t seed; /* (seed, chain, iteration) is the key of random numbers, with the document */
    int64_t chain, iteration;
    int level;           /* documents of levels 0 .. level are swept */
    const double *alpha; /* [n_topic] */
    const float *phi;    /* [n_word][stride], padding 0 */
    int32_t *count; /* written: [own words][stride] n_kv, the tokens of word v in topic k, over the
                       swept documents of all shards */
    struct em_lda_exchange *exchange; /* brings topics to the shards of their words */
    const struct em_shards *shards;   /* NULL: one shard */
    int64_t *sums;                    /* [EM_LDA_SLOPES + n_topic] written; NULL: not needed */
} em_sweep;

/* Draws the topics of the documents of the sweep, given phi. Collective over the ranks of a group.
 * Errors, agreed: EM_EIO, EM_EMEMORY. */
em_status em_tokens_sweep(em_tokens *tokens, const em_sweep *sweep, const em_token_topics *topics);

/* Sets the topics with which a chain starts. All tokens of a document of level 0 get the same
 * random topic. Tokens of other documents get none. Errors: EM_EIO. */
em_status em_tokens_start(em_tokens *tokens, uint64_t seed, int64_t chain,
                          const em_token_topics *topics);

/* Finds the tokens of this shard among tokens begin .. begin + total - 1 of the corpus. They are
 * *count tokens, of which the first is token begin + *first of the corpus. */
void em_tokens_own_part(const em_tokens *tokens, int64_t begin, int64_t total, int64_t *first,
                        int64_t *count);

/* Copies the topics of this shard's tokens first .. first + count - 1 from the layout to `ordered`,
 * in the order of the corpus; `restores`: from `ordered` to the layout. Errors: EM_EIO. */
em_status em_tokens_copy(em_tokens *tokens, const em_token_topics *topics, bool restores,
                         int64_t first, int64_t count, uint16_t *ordered);

/* Computes the counts of tokens by word and topic, as after a sweep, into sweep->count; also uses
 * its exchange and shards. Collective over the ranks of a group. Errors, agreed: EM_EIO,
 * EM_EMEMORY. */
em_status em_tokens_count(em_tokens *tokens, const em_token_topics *topics, const em_sweep *sweep);
