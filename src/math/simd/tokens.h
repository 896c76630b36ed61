/*
 * The inner loops of topic models. They draw the topic of each token in turn, given the topics of
 * the document's other tokens. The word distributions of the topics are fixed. Every instruction
 * set uses vectors of 16 floats. AVX-512 and AVX2 give the same topics; a processor with neither
 * may round differently. All Local.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Rows by topic are padded to whole vectors. There is at least one element of padding: a topic that
 * no token has, with probability 0. */
enum { EM_TOPIC_LANES = 16, EM_MOST_TOPICS = 65000 };

static inline int64_t em_topic_stride(int64_t n_topic)
{
    return (n_topic + EM_TOPIC_LANES) / EM_TOPIC_LANES * EM_TOPIC_LANES;
}

/* The number of tokens that are processed together. */
enum { EM_TOKEN_BATCH = 8 };

/* Sums of the prior are kept for groups of EM_GROUP_VECTORS vectors of topics. The number of groups
 * is padded to whole vectors. */
enum { EM_GROUP_VECTORS = 4, EM_GROUP_TOPICS = EM_GROUP_VECTORS * EM_TOPIC_LANES };

static inline int64_t em_topic_groups(int64_t n_topic)
{
    const int64_t n = (n_topic + EM_GROUP_TOPICS - 1) / EM_GROUP_TOPICS;

    return (n + EM_TOPIC_LANES - 1) / EM_TOPIC_LANES * EM_TOPIC_LANES;
}

/* The floats from one row of work space to the next: scanned sums, a row, and three vectors at its
 * end. An odd number of vectors keeps the rows apart in a cache. */
static inline int64_t em_token_pitch(int64_t n_topic)
{
    return ((em_topic_stride(n_topic) / EM_TOPIC_LANES + 4) | 1) * EM_TOPIC_LANES;
}

/* Work space, in floats. */
static inline int64_t em_token_workspace(int64_t n_topic)
{
    return 2 * EM_TOKEN_BATCH * em_token_pitch(n_topic);
}

/* The topics of a document with few topics: topic[i] has count[i] tokens, i < n; the count may be
 * 0. Up to the next multiple of 16 the entries are the padding topic with count 0. No topic is
 * listed twice, and one more entry is allocated than the document may have topics. */
typedef struct em_topic_list {
    int32_t n, room; /* room: entries allocated */
    uint16_t *topic;
    float *count;
} em_topic_list;

/* The tokens of one word in one document: `count` of them, in neighbouring slots. */
typedef struct em_token_entry {
    uint32_t slot;     /* of the first; indexes random bits and topics */
    uint16_t document; /* within the block */
    uint16_t count;
} em_token_entry;

/* The most tokens of an entry. More tokens of a word in a document are divided into entries. */
enum { EM_ENTRY_TOKENS = UINT16_MAX };

/* The next entry of `left` tokens of a word in a document, from slot `slot` on. */
static inline em_token_entry em_next_entry(int64_t left, int64_t slot, int64_t document)
{
    return (em_token_entry){(uint32_t)slot, (uint16_t)document,
                            (uint16_t)(left < EM_ENTRY_TOKENS ? left : EM_ENTRY_TOKENS)};
}

enum { EM_NO_PLACE = 0xffff };

/* The tokens of one word in a block of documents. The order of documents does not affect the draws,
 * because documents are independent. */
typedef struct em_token_run {
    int64_t n, n_more; /* entries of this word; entries after them, which are prefetched */
    const em_token_entry *entry; /* [n + n_more], by ascending document within the word */
    const uint32_t *bits;        /* by slot: random */
    uint16_t *drawn;             /* written: the new topics of this word's tokens, in any order */
    int64_t n_topic, stride;     /* em_topic_stride(n_topic) */
    const float *phi;            /* [stride] probability of this word in each topic; padding 0 */
    const float *alpha;          /* [stride] the prior of each topic; padding any number */
    const float *next_phi;       /* phi of the next run, which is prefetched; or NULL */
    float *room;                 /* [em_token_workspace(n_topic)] work space, 64-byte aligned */
    /* Used by `dense`: */
    float *tokens;   /* [document][stride] tokens of the document in each topic */
    uint16_t *topic; /* by slot: the topic, which is replaced; n_topic: none yet */
    /* Used by `sparse`: */
    em_topic_list *list; /* [document] */
    uint16_t *place;     /* by slot: index of the topic in the document's list, which is replaced;
                            EM_NO_PLACE: no topic yet */
    float *groups;       /* [em_topic_groups(n_topic)] cumulative sums of alpha phi by group */
    bool grouped;        /* whether `groups` is set; if not, `sparse` computes it */
} em_token_run;

/*
 * The loops themselves: each token's topic k is drawn with probability proportional to
 *     (alpha_k + n_dk) phi_k,   n_dk without the token itself,
 * and the document's counts are updated. `dense` computes the probabilities of all topics. `sparse`
 * divides the sum into two parts: n_dk phi_k over the topics of
 * the document, and alpha_k phi_k over all topics, which is the same for all tokens of the word. If
 * the draw falls into the second part, the cumulative sums give the group of topics, and only the
 * topics of that group are searched.
 */
typedef struct em_token_kernels {
    const char *name;
    void (*dense)(const em_token_run *run);
    void (*sparse)(const em_token_run *run);
    /* The topic mixture of a document, given phi, by `n_step` steps of EM: with N_k = n_d / K at
     * first,
     *     g_vk ~ phi_vk (alpha_k + N_k),   N_k = sum_v x_v g_vk,
     * for a document of n different words, phi [n][stride] their rows and x [n] their counts. alpha
     * has [stride] numbers, with padding 0, as phi. The result alpha_k + N_k is at the beginning of
     * mixture [2 stride]. */
    void (*fold_in)(int64_t n, const float *phi, const float *x, int64_t n_topic, int64_t stride,
                    const float *alpha, int64_t n_step, float *mixture);
} em_token_kernels;

/* In descending order of width; ends with NULL. */
extern const em_token_kernels *const em_token_kernel_list[];
bool em_token_kernels_run(const em_token_kernels *kernels);
const em_token_kernels *em_token_kernels_best(void);
