#include "topics/lda_topics.h"

#include "base/memory.h"
#include "math/special.h"
#include "par/grid.h"
#include "par/message.h"
#include "topics/lda_tokens.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums of gamma variates are added as integers in units of 2^-32, which holds topics of up to 2^31
 * tokens. */
#define GAMMA_UNIT   0x1p-32
#define SMALLEST_PHI 1e-30F
#define MOST_BETA    0.03125 /* for a larger beta there are more jumps than topics */

/* The term of a word with n tokens in a topic comes from a table if n is small. */
enum { TABLE = 64 };

em_lda_words em_lda_own_words(int64_t n_word, int64_t shard, int64_t n_shard)
{
    return (em_lda_words){em_partition_first(n_word, n_shard, shard),
                          em_partition_first(n_word, n_shard, shard + 1)};
}

/* ---------------------------------------------------------------- word distributions */

/* Draws the weights of a word in all topics, one by one. */
static void draw_each(const em_lda_shape *shape, int64_t v, const em_stream *stream, double beta,
                      const int32_t *count, double *room, int64_t *total, float *row)
{
    for (int64_t k = 0; k < shape->n_topic; k++)
        room[k] = beta + count[k];
    em_gammas(stream, (uint64_t)(v * shape->stride), shape->n_topic, room, room);
    for (int64_t k = 0; k < shape->n_topic; k++) {
        row[k] = (float)room[k];
        total[k] += (int64_t)(room[k] * (1 / GAMMA_UNIT));
    }
}

/* Draws Gamma(n_k, 1) for the topics that have the word. */
static void draw_counted(const em_lda_shape *shape, int64_t v, const em_stream *stream,
                         const int32_t *count, double *room, int64_t *total, float *row)
{
    uint16_t topic[EM_TOPIC_LANES * 8];
    int64_t n_drawn = 0;

    for (int64_t k = 0; k < shape->n_topic;) {
        int64_t n = 0;
        for (; k < shape->n_topic && n < (int64_t)(sizeof topic / sizeof *topic); k++)
            if (count[k] > 0) {
                topic[n] = (uint16_t)k;
                room[n++] = count[k];
            }
        em_gammas(stream, (uint64_t)(v * shape->stride + n_drawn), n, room, room);
        for (int64_t i = 0; i < n; i++) {
            row[topic[i]] = (float)room[i];
            total[topic[i]] += (int64_t)(room[i] * (1 / GAMMA_UNIT));
        }
        n_drawn += n;
    }
}

/* Adds Gamma(beta, 1) to the weight of every topic by drawing the jumps of a gamma process. Topics
 * lie side by side on a line, and each has length beta. Jumps that are smaller than the unit in
 * which weights are added are left out. */
static void add_jumps(const em_lda_shape *shape, int64_t v, const em_stream *stream, double beta,
                      int64_t *total, float *row)
{
    const em_stream jumps = {stream->seed, stream->chain, stream->iteration, EM_RNG_JUMPS};
    const float per_topic = (float)(1 / beta), end = (float)shape->n_topic;
    float gap[EM_JUMPS] __attribute__((aligned(64))), size[EM_JUMPS] __attribute__((aligned(64)));
    float at = 0;

    for (uint32_t batch = 0; at < end; batch++) {
        em_gamma_jumps(&jumps, (uint32_t)v, batch, gap, size);
        for (int i = 0; i < EM_JUMPS; i++) {
            at += gap[i] * per_topic;
            if (at >= end)
                break;
            const int32_t k = (int32_t)at;
            row[k] += size[i];
            total[k] += (int64_t)(size[i] * (float)(1 / GAMMA_UNIT));
        }
    }
}

void em_lda_draw_weights(const em_lda_shape *shape, em_lda_words words, const em_stream *stream,
                         double beta, const int32_t *count, double *room, int64_t *total,
                         float *phi)
{
    memset(total, 0, (size_t)shape->n_topic * sizeof *total);
    for (int64_t v = words.first; v < words.end; v++) {
        const int32_t *of = count + (v - words.first) * shape->stride;
        float *row = phi + v * shape->stride;
        if (!(shape->jumps && beta <= MOST_BETA)) {
            draw_each(shape, v, stream, beta, of, room, total, row);
            continue;
        }
        memset(row, 0, (size_t)shape->stride * sizeof *row);
        draw_counted(shape, v, stream, of, room, total, row);
        add_jumps(shape, v, stream, beta, total, row);
    }
}

void em_lda_scale(const em_lda_shape *shape, em_lda_words words, const int64_t *total, double *room,
                  float *phi)
{
    for (int64_t k = 0; k < shape->n_topic; k++)
        room[k] = 1 / (GAMMA_UNIT * (double)(total[k] > 0 ? total[k] : 1));
    for (int64_t v = words.first; v < words.end; v++)
        for (int64_t k = 0; k < shape->n_topic; k++) {
            const float x = (float)(phi[v * shape->stride + k] * room[k]);
            phi[v * shape->stride + k] = x > SMALLEST_PHI ? x : SMALLEST_PHI;
        }
}

/* ---------------------------------------------------------------- sums over counts */

/* Counts of a word are examined for sixteen topics at a time, because most are 0. */
enum { PIECE = EM_TOPIC_LANES };

static bool has_any(const int32_t *count)
{
    int32_t any = 0;

    for (int k = 0; k < PIECE; k++)
        any |= count[k];
    return any != 0;
}

void em_lda_total(const em_lda_shape *shape, em_lda_words words, const int32_t *restrict count,
                  int64_t *restrict total)
{
    memset(total, 0, (size_t)shape->n_topic * sizeof *total);
    for (int64_t v = words.first; v < words.end; v++)
        for (int64_t k = 0; k < shape->n_topic; k += PIECE) {
            const int32_t *of = count + (v - words.first) * shape->stride + k;
            const int64_t left = shape->n_topic - k, n = left < PIECE ? left : PIECE;
            if (has_any(of))
                for (int64_t j = 0; j < n; j++)
                    total[k + j] += of[j];
        }
}

void em_lda_mean_phi(const em_lda_shape *shape, em_lda_words words, double beta,
                     const int32_t *restrict count, const int64_t *total, double *restrict room,
                     float *restrict phi)
{
    for (int64_t k = 0; k < shape->n_topic; k++)
        room[k] = 1 / ((double)shape->n_word * beta + (double)total[k]);
    for (int64_t v = words.first; v < words.end; v++)
        for (int64_t k = 0; k < shape->n_topic; k++)
            phi[v * shape->stride + k] =
                (float)((beta + count[(v - words.first) * shape->stride + k]) * room[k]);
}

/* beta times the derivative of log Gamma(beta + n) / Gamma(beta). For a small beta the derivative
 * itself could be of any size. */
static int64_t slope_of(double beta, int64_t n)
{
    return em_topic_in_units(beta * (em_digamma(beta + (double)n) - em_digamma(beta)));
}

static int64_t sum_terms(const em_lda_shape *shape, em_lda_words words, double beta,
                         int64_t (*term)(double beta, int64_t n), const int32_t *count)
{
    int64_t sum = 0, table[TABLE];

    for (int64_t n = 0; n < TABLE; n++)
        table[n] = term(beta, n);
    for (int64_t v = words.first; v < words.end; v++)
        for (int64_t k = 0; k < shape->n_topic; k += PIECE) {
            const int32_t *of = count + (v - words.first) * shape->stride + k;
            if (has_any(of))
                for (int64_t j = 0; j < PIECE; j++)
                    sum += of[j] < TABLE ? table[of[j]] : term(beta, of[j]);
        }
    return sum;
}

int64_t em_lda_log_words(const em_lda_shape *shape, em_lda_words words, double beta,
                         const int32_t *count)
{
    return sum_terms(shape, words, beta, em_topic_density, count);
}

int64_t em_lda_log_total(const em_lda_shape *shape, double beta, const int64_t *total)
{
    const double all = beta * (double)shape->n_word;
    int64_t sum = 0;

    for (int64_t k = 0; k < shape->n_topic; k++)
        sum += em_topic_in_units(lgamma(all) - lgamma(all + (double)total[k]));
    return sum;
}

static double within_bounds(double x)
{
    return fmin(fmax(x, 1e-6), 1e3);
}

void em_lda_learn_alpha(int64_t n_topic, const int64_t *sums, double *alpha)
{
    for (int64_t k = 0; k < n_topic; k++)
        if (sums[EM_LDA_TOTAL_SLOPE] > 0)
            alpha[k] = within_bounds(alpha[k] * (double)sums[EM_LDA_SLOPES + k] /
                                     (double)sums[EM_LDA_TOTAL_SLOPE]);
}

int64_t em_lda_slope(const em_lda_shape *shape, em_lda_words words, double beta,
                     const int32_t *count)
{
    return sum_terms(shape, words, beta, slope_of, count);
}

double em_lda_learn_beta(const em_lda_shape *shape, const int64_t *total, int64_t slope,
                         double beta)
{
    const double all = beta * (double)shape->n_word;
    double total_slope = 0;

    for (int64_t k = 0; k < shape->n_topic; k++)
        total_slope += em_digamma(all + (double)total[k]) - em_digamma(all);
    return total_slope > 0 ? within_bounds((double)slope * EM_TOPIC_UNIT /
                                           ((double)shape->n_word * total_slope))
                           : beta;
}

/* ---------------------------------------------------------------- priors of all chains */

#define LOG_UNIT 0x1p-32 /* of the logarithms of priors, in sums over chains */

typedef struct topic {
    int64_t number, tokens;
    double log_alpha;
} topic;

/* Orders topics by size, the largest first. Of topics of the same size, the one with the larger
 * alpha comes first. */
static int by_size(const void *a, const void *b)
{
    const topic *x = a, *y = b;

    if (x->tokens != y->tokens)
        return x->tokens > y->tokens ? -1 : 1;
    if (x->log_alpha != y->log_alpha)
        return x->log_alpha > y->log_alpha ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static void sort_topics(const em_lda_learned *learned, int64_t c, const double *theta, topic *out)
{
    for (int64_t k = 0; k < learned->n_topic; k++)
        out[k] =
            (topic){k, learned->tokens[c * learned->n_topic + k], theta[c * learned->stride + k]};
    qsort(out, (size_t)learned->n_topic, sizeof *out, by_size);
}

/* Adds the learned numbers of a chain to `sum` [n_topic + 2]: log alpha by the rank of the topic,
 * log beta, and the number of chains. */
static void add_chain(const em_lda_learned *learned, double log_beta, const topic *sorted,
                      int64_t *sum)
{
    for (int64_t k = 0; k < learned->n_topic; k++)
        sum[k] += llround(sorted[k].log_alpha / LOG_UNIT);
    sum[learned->n_topic] += llround(log_beta / LOG_UNIT);
    sum[learned->n_topic + 1] += 1;
}

static void take_means(const em_lda_learned *learned, const int64_t *sum, const topic *sorted,
                       double *theta)
{
    const int64_t n = learned->n_topic;
    const double scale = LOG_UNIT / (double)sum[n + 1];

    for (int64_t k = 0; learned->alpha && k < n; k++)
        theta[sorted[k].number] = (double)sum[k] * scale;
    if (learned->beta)
        theta[n] = (double)sum[n] * scale;
}

em_status em_lda_pool_priors(const em_lda_learned *learned, double *theta)
{
    const int64_t n = learned->n_topic;
    EM_SCOPED topic *sorted = NULL; /* [n_chain][n] */
    EM_SCOPED int64_t *sum = NULL;
    em_status status = em_agree_first(
        em_allocate_all(EM_ARRAY(sorted, learned->n_chain * n), EM_ARRAY(sum, n + 2)), 0);

    for (int64_t c = 0; !status && c < learned->n_chain; c++) {
        sort_topics(learned, c, theta, sorted + c * n);
        if (learned->is_first)
            add_chain(learned, theta[c * learned->stride + n], sorted + c * n, sum);
    }
    if (!status)
        em_world_sum(n + 2, sum);
    for (int64_t c = 0; !status && c < learned->n_chain; c++)
        take_means(learned, sum, sorted + c * n, theta + c * learned->stride);
    return status;
}
