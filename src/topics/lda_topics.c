#include "topics/lda_topics.h"

#include "math/special.h"
#include "par/grid.h"
#include "topics/lda_tokens.h"

#include <math.h>
#include <string.h>

/* Sums of gamma variates are added in units of 2^-32, as integers: topics of up to 2^31 tokens. */
#define GAMMA_UNIT   0x1p-32
#define SMALLEST_PHI 1e-30F

/* What a word that has a topic n times adds is looked up where n is small. */
enum { TABLE = 64 };

em_lda_words em_lda_own_words(int64_t n_word, int64_t shard, int64_t n_shard)
{
    return (em_lda_words){em_deal_first(n_word, n_shard, shard),
                          em_deal_first(n_word, n_shard, shard + 1)};
}

void em_lda_draw_weights(const em_lda_shape *shape, em_lda_words words, const em_stream *stream,
                         double beta, const int32_t *count, double *room, int64_t *total,
                         float *phi)
{
    const int64_t n = shape->n_topic, stride = shape->stride;

    memset(total, 0, (size_t)n * sizeof *total);
    for (int64_t v = words.first; v < words.end; v++) {
        for (int64_t k = 0; k < n; k++)
            room[k] = beta + count[v * stride + k];
        em_gammas(stream, (uint64_t)(v * stride), n, room, room);
        for (int64_t k = 0; k < n; k++) {
            phi[v * stride + k] = (float)room[k];
            total[k] += (int64_t)(room[k] * (1 / GAMMA_UNIT));
        }
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

void em_lda_total(const em_lda_shape *shape, em_lda_words words, const int32_t *restrict count,
                  int64_t *restrict total)
{
    memset(total, 0, (size_t)shape->n_topic * sizeof *total);
    for (int64_t v = words.first; v < words.end; v++)
        for (int64_t k = 0; k < shape->n_topic; k++)
            total[k] += count[v * shape->stride + k];
}

void em_lda_mean_phi(const em_lda_shape *shape, em_lda_words words, double beta,
                     const int32_t *restrict count, const int64_t *total, double *restrict room,
                     float *restrict phi)
{
    for (int64_t k = 0; k < shape->n_topic; k++)
        room[k] = 1 / ((double)shape->n_word * beta + (double)total[k]);
    for (int64_t v = words.first; v < words.end; v++)
        for (int64_t k = 0; k < shape->n_topic; k++)
            phi[v * shape->stride + k] = (float)((beta + count[v * shape->stride + k]) * room[k]);
}

static int64_t in_units(double x)
{
    return (int64_t)llround(x / EM_LDA_UNIT);
}

/* log Gamma(beta + n) / Gamma(beta) */
static int64_t density_of(double beta, int64_t n)
{
    return in_units(lgamma(beta + (double)n) - lgamma(beta));
}

/* beta times its derivative, which for a small beta would be of any size */
static int64_t slope_of(double beta, int64_t n)
{
    return in_units(beta * (em_digamma(beta + (double)n) - em_digamma(beta)));
}

static int64_t sum_terms(const em_lda_shape *shape, em_lda_words words, double beta,
                         int64_t (*term)(double beta, int64_t n), const int32_t *count)
{
    int64_t sum = 0, table[TABLE];

    for (int64_t n = 0; n < TABLE; n++)
        table[n] = term(beta, n);
    for (int64_t v = words.first; v < words.end; v++)
        for (int64_t k = 0; k < shape->n_topic; k++) {
            const int32_t n = count[v * shape->stride + k];
            sum += n < TABLE ? table[n] : term(beta, n);
        }
    return sum;
}

int64_t em_lda_log_words(const em_lda_shape *shape, em_lda_words words, double beta,
                         const int32_t *count)
{
    return sum_terms(shape, words, beta, density_of, count);
}

double em_lda_log_total(const em_lda_shape *shape, double beta, const int64_t *total)
{
    const double all = beta * (double)shape->n_word;
    double sum = 0;

    for (int64_t k = 0; k < shape->n_topic; k++)
        sum += lgamma(all) - lgamma(all + (double)total[k]);
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
    return total_slope > 0
               ? within_bounds((double)slope * EM_LDA_UNIT / ((double)shape->n_word * total_slope))
               : beta;
}
