/*
 * The inner loops of topic models. They draw the topic of one token after the other from its
 * distribution given the topics of the document's other tokens; the word distributions of the
 * topics are fixed. Every instruction set uses vectors of 16 floats. AVX-512 and AVX2 give the same
 * topics; a processor with neither may round differently. All Local.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Rows by topic are padded to whole vectors, with room for one topic that no token has: its
 * probabilities are 0. */
enum { EM_TOPIC_LANES = 16, EM_MOST_TOPICS = 65000 };

static inline int64_t em_topic_stride(int64_t n_topic)
{
    return (n_topic + EM_TOPIC_LANES) / EM_TOPIC_LANES * EM_TOPIC_LANES;
}

/* Tokens that are worked at together. */
enum { EM_TOKEN_BATCH = 8 };

/* The prior's sums are kept for groups of so many vectors, as many as fill whole vectors. */
enum { EM_GROUP_VECTORS = 4, EM_GROUP_TOPICS = EM_GROUP_VECTORS * EM_TOPIC_LANES };

static inline int64_t em_topic_groups(int64_t n_topic)
{
    const int64_t n = (n_topic + EM_GROUP_TOPICS - 1) / EM_GROUP_TOPICS;

    return (n + EM_TOPIC_LANES - 1) / EM_TOPIC_LANES * EM_TOPIC_LANES;
}

/* Sums are looked at eight vectors at a time. */
static inline int64_t em_token_room(int64_t n_topic)
{
    return (1 + EM_TOKEN_BATCH) * (em_topic_stride(n_topic) + EM_TOPIC_LANES) + 8 * EM_TOPIC_LANES;
}

/* The topics of one document that has few of them: entry i < n is topic[i], count[i] times, which
 * may be 0; up to the next multiple of 16 the padding topic, 0 times. Each topic stands there once,
 * and there is room for one more than the document may have. */
typedef struct em_topic_list {
    int32_t n;
    uint16_t *topic;
    float *count;
} em_topic_list;

/* Tokens of one word, of a block of documents. Neighbours had better be of different documents, so
 * that a processor can work at several tokens at a time; that they are drawn in this order is of no
 * meaning where the documents differ, since then they do not depend on each other. */
typedef struct em_token_run {
    int64_t n, n_more;        /* tokens behind these, of other words: what they need is fetched */
    const uint16_t *document; /* [n] within the block */
    const uint32_t *slot;     /* [n] of its random bits */
    const uint32_t *bits;     /* by slot */
    uint16_t *topic;          /* [n] replaced; n_topic: none so far */
    uint16_t *place;          /* by slot: of the topic in the document's list; replaced */
    int64_t n_topic, stride;  /* em_topic_stride(n_topic) */
    const float *phi;         /* [stride] probability of this word in each topic; padding 0 */
    const float *alpha;       /* [stride] the prior of each topic; padding any number */
    const float *next_phi;    /* that of the run to come, which is fetched; or NULL */
    float *room;              /* em_token_room(n_topic) aligned */
    /* Of `dense`. */
    float *tokens;  /* [document][stride] tokens of the document in each topic */
    int32_t *count; /* [stride] tokens of this word in each topic; added to */
    const int32_t *next_count;
    /* Of `sparse`. */
    em_topic_list *list; /* [document] */
    float *groups; /* [em_topic_groups(n_topic)] sums of alpha phi up to and with each group */
    bool grouped;  /* whether they are there; written if not */
} em_token_run;

/*
 * The loops themselves: each token's topic k is drawn with probability proportional to
 *     (alpha_k + n_dk) phi_k,   n_dk without the token itself,
 * and the document's counts are kept up. `dense` looks at all topics and adds to the word's counts
 * too. `sparse` looks at the topics that the document has, whose part is n_dk phi_k, and beside
 * them at the sum of alpha_k phi_k over all topics, which is the word's: a token that falls into
 * that part finds its group of topics by the sums up to each, and looks at the topics of that group
 * alone.
 */
typedef struct em_token_kernels {
    const char *name;
    void (*dense)(const em_token_run *run);
    void (*sparse)(const em_token_run *run);
    /* Mixtures from phi alone, by `n_step` steps of EM: with N_k = n_d / K at first,
     *     g_vk ~ phi_vk (alpha + N_k),   N_k = sum_v x_v g_vk,
     * for a document of n different words, phi [n][stride] their rows and x [n] their counts.
     * mixture [2 stride] begins with alpha + N_k then. */
    void (*fold_in)(int64_t n, const float *phi, const float *x, int64_t n_topic, int64_t stride,
                    float alpha, int64_t n_step, float *mixture);
} em_token_kernels;

/* The widest first; ends with NULL. */
extern const em_token_kernels *const em_token_kernel_list[];
bool em_token_kernels_run(const em_token_kernels *kernels);
const em_token_kernels *em_token_kernels_best(void);
