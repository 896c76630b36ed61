#include "model/lda_topics.h"

#include "math/digamma.h"
#include "math/rng.h"
#include "model/lda_tokens.h"

#include <math.h>
#include <string.h>

/* Sums of gamma variates are added in units of 2^-32, as integers: topics of up to 2^31 tokens. */
#define GAMMA_UNIT   0x1p-32
#define SMALLEST_PHI 1e-30F

static void scale(const em_lda_shape *shape, const double *factor, float *phi)
{
    for (int64_t v = 0; v < shape->n_word; v++)
        for (int64_t k = 0; k < shape->n_topic; k++) {
            const float x = (float)(phi[v * shape->stride + k] * factor[k]);
            phi[v * shape->stride + k] = x > SMALLEST_PHI ? x : SMALLEST_PHI;
        }
}

void em_lda_draw_phi(const em_lda_shape *shape, uint64_t seed, int64_t chain, int64_t iteration,
                     double beta, const int32_t *count, double *room, int64_t *total, float *phi)
{
    const em_stream stream = {.seed = seed,
                              .chain = (uint64_t)chain,
                              .iteration = (uint64_t)iteration,
                              .purpose = EM_RNG_TOPICS};
    const int64_t n = shape->n_topic, stride = shape->stride;

    memset(total, 0, (size_t)n * sizeof *total);
    for (int64_t v = 0; v < shape->n_word; v++) {
        for (int64_t k = 0; k < n; k++)
            room[k] = beta + count[v * stride + k];
        em_gammas(&stream, (uint64_t)(v * stride), n, room, room);
        for (int64_t k = 0; k < n; k++) {
            phi[v * stride + k] = (float)room[k];
            total[k] += (int64_t)(room[k] * (1 / GAMMA_UNIT));
        }
    }
    for (int64_t k = 0; k < n; k++)
        room[k] = 1 / (GAMMA_UNIT * (double)(total[k] > 0 ? total[k] : 1));
    scale(shape, room, phi);
}

static void sum_words(const em_lda_shape *shape, const int32_t *count, int64_t *total)
{
    memset(total, 0, (size_t)shape->n_topic * sizeof *total);
    for (int64_t v = 0; v < shape->n_word; v++)
        for (int64_t k = 0; k < shape->n_topic; k++)
            total[k] += count[v * shape->stride + k];
}

void em_lda_mean_phi(const em_lda_shape *shape, double beta, const int32_t *count, int64_t *total,
                     float *phi)
{
    sum_words(shape, count, total);
    for (int64_t v = 0; v < shape->n_word; v++)
        for (int64_t k = 0; k < shape->n_topic; k++)
            phi[v * shape->stride + k] = (float)((beta + count[v * shape->stride + k]) /
                                                 ((double)shape->n_word * beta + (double)total[k]));
}

double em_lda_log_words(const em_lda_shape *shape, double beta, const int32_t *count,
                        int64_t *total)
{
    enum { TABLE = 64 };
    const double all = beta * (double)shape->n_word, none = lgamma(beta);
    double sum = 0, table[TABLE];

    sum_words(shape, count, total);
    for (int n = 0; n < TABLE; n++)
        table[n] = lgamma(beta + n) - none;
    for (int64_t v = 0; v < shape->n_word; v++)
        for (int64_t k = 0; k < shape->n_topic; k++) {
            const int32_t n = count[v * shape->stride + k];
            sum += n < TABLE ? table[n] : lgamma(beta + n) - none;
        }
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

double em_lda_learn_beta(const em_lda_shape *shape, const int32_t *count, int64_t *total,
                         double beta)
{
    const double all = beta * (double)shape->n_word, none = em_digamma(beta);
    double slope = 0, total_slope = 0;

    sum_words(shape, count, total);
    for (int64_t v = 0; v < shape->n_word; v++)
        for (int64_t k = 0; k < shape->n_topic; k++)
            if (count[v * shape->stride + k] > 0)
                slope += em_digamma(beta + count[v * shape->stride + k]) - none;
    for (int64_t k = 0; k < shape->n_topic; k++)
        total_slope += em_digamma(all + (double)total[k]) - em_digamma(all);
    return total_slope > 0 ? within_bounds(beta * slope / ((double)shape->n_word * total_slope))
                           : beta;
}
