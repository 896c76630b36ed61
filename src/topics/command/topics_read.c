/* Reads the topics of a finished run from its file. */
#include "base/memory.h"
#include "io/draws/reader.h"
#include "topics/command/topics_command.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- the file */

static em_status read_averages(em_reader *reader, int64_t i, int64_t n_chain, double **out)
{
    const int64_t size = em_reader_variable_at(reader, i)->size;
    em_status status = em_allocate(n_chain * size, sizeof **out, out);

    return status ? status : em_reader_draws(reader, i, 0, n_chain, 0, 1, *out);
}

/* Copies the words. Words without names are called by their numbers. */
static em_status copy_words(em_topics *t, const em_reader_variable *phi)
{
    em_status status = em_allocate(t->n_word, sizeof *t->word, &t->word);

    for (int64_t v = 0; !status && v < t->n_word; v++)
        status = phi->axis_label[1] ? em_copy_text(phi->axis_label[1][v], &t->word[v])
                                    : em_format_text(&t->word[v], "%lld", (long long)v);
    return status;
}

/* Reads an array if the file has it; otherwise the pointer stays NULL. */
static em_status read_if_any(em_reader *reader, const char *name, int64_t n_chain, double **out)
{
    const int64_t i = em_reader_find(reader, name);

    return i < 0 ? EM_OK : read_averages(reader, i, n_chain, out);
}

static em_status read_scores(em_topics *t, em_reader *reader)
{
    static const char *const name[EM_TOPIC_SCORES][2] = {
        {"perplexity", "perplexity_of_all_chains"},
        {"perplexity_gibbs", "perplexity_gibbs_of_all_chains"}};
    em_status status = EM_OK;

    for (int i = 0; !status && i < EM_TOPIC_SCORES; i++) {
        status = read_if_any(reader, name[i][0], t->n_chain, &t->score[i].perplexity);
        status = status ? status : read_if_any(reader, name[i][1], t->n_chain, &t->score[i].pooled);
    }
    return status;
}

static em_status read_topics(em_topics *t, em_reader *reader)
{
    const int64_t phi = em_reader_find(reader, "phi"),
                  share = em_reader_find(reader, "topic_share");
    int64_t complete;

    if (em_reader_int(reader, "complete", &complete) && !complete)
        return em_fail(EM_EDATA,
                       "%s: group averages has no draws yet: its run has not ended; emass run "
                       "--resume continues a stopped run",
                       t->path);
    if (phi < 0 || share < 0 || em_reader_variable_at(reader, phi)->n_axes != 2 ||
        em_reader_n_draw(reader) < 1)
        return em_fail(EM_EDATA,
                       "%s: found no topics in averages, expected a finished run of a "
                       "topic model",
                       t->path);
    const em_reader_variable *variable = em_reader_variable_at(reader, phi);
    t->n_chain = em_reader_n_chain(reader);
    t->n_topic = variable->shape[0];
    t->n_word = variable->shape[1];
    if (em_reader_variable_at(reader, share)->size != t->n_topic)
        return em_fail(EM_EDATA, "%s: found %lld topic_share, expected %lld", t->path,
                       (long long)em_reader_variable_at(reader, share)->size,
                       (long long)t->n_topic);
    em_status status = copy_words(t, variable);
    status = status ? status : em_allocate(variable->size, sizeof *t->mean, &t->mean);
    status = status ? status : em_reader_floats(reader, phi, 0, 0, variable->size, t->mean);
    status = status ? status : read_averages(reader, share, t->n_chain, &t->share);
    status = status ? status : read_if_any(reader, "alpha", t->n_chain, &t->alpha);
    status = status ? status : read_scores(t, reader);
    return status ? status : em_topics_match_chains(t, reader, phi);
}

/* The value of an option of the config; NULL: the config does not have it. */
static const char *value_of(const char *config, const char *name)
{
    const char *at = config ? strstr(config, name) : NULL;

    return at ? at + strlen(name) : NULL;
}

/* Sets how documents are scored, from the config in the file. Files without fold_in_alpha were
 * written before that option existed, with the value 0.1. */
static void define_scores(em_topics *t, em_reader *reader)
{
    EM_SCOPED char *config = NULL;

    (void)em_reader_text(reader, "config", &config);
    const char *scored = value_of(config, " test_scored: "),
               *alpha = value_of(config, " fold_in_alpha: ");
    em_held_out_define(scored && strncmp(scored, "null", 4) != 0,
                       !alpha                            ? 0.1
                       : strncmp(alpha, "model", 5) == 0 ? NAN
                                                         : atof(alpha),
                       t->score[0].doc);
    snprintf(t->score[1].doc, sizeof t->score[1].doc, "%s", EM_HELD_OUT_GIBBS_DOC);
}

/* ---------------------------------------------------------------- the largest ones */

/* By insertion, because n is small. */
void em_topics_largest(int64_t size, const float *x, long n, int32_t *out)
{
    long held = 0;

    for (int64_t v = 0; v < size; v++) {
        long at = held;
        if (held == n && !(x[v] > x[out[n - 1]]))
            continue;
        if (held == n)
            at = n - 1;
        else
            held++;
        for (; at > 0 && x[v] > x[out[at - 1]]; at--)
            out[at] = out[at - 1];
        out[at] = (int32_t)v;
    }
}

/* A topic of a small corpus may prefer fewer words than are shown; the others are there by chance.
 */
static int64_t count_preferred(const em_topics *t, int64_t k)
{
    const float *mean = t->mean + k * t->n_word;
    int64_t n = 0;

    while (n < t->n_top && (double)mean[t->top[k * t->n_top + n]] * (double)t->n_word > 1)
        n++;
    return n;
}

static em_status rank_topics(em_topics *t)
{
    if (t->n_top > t->n_word)
        t->n_top = (long)t->n_word;
    em_status status =
        em_allocate_all(EM_ARRAY(t->order, t->n_topic), EM_ARRAY(t->top, t->n_topic * t->n_top),
                        EM_ARRAY(t->n_preferred, t->n_topic));
    for (int64_t k = 0; !status && k < t->n_topic; k++) {
        int64_t at = k;
        for (; at > 0 && t->mean_share[k] > t->mean_share[t->order[at - 1]]; at--)
            t->order[at] = t->order[at - 1];
        t->order[at] = k;
        em_topics_largest(t->n_word, t->mean + k * t->n_word, t->n_top, t->top + k * t->n_top);
        t->n_preferred[k] = count_preferred(t, k);
    }
    return status;
}

/* ---------------------------------------------------------------- the whole run */

em_status em_topics_read(em_topics *t)
{
    em_reader *reader = NULL;
    em_status status = em_reader_open(t->path, NULL, &reader);

    t->seconds = NAN;
    if (!status) {
        define_scores(t, reader);
        (void)em_reader_text(reader, "verdict", &t->verdict);
        (void)em_reader_text(reader, "data_hash", &t->data);
        em_reader_real(reader, "sampling_time", &t->seconds);
    }
    if (!status && !em_reader_has(reader, "averages", "phi"))
        status = em_fail(EM_EDATA,
                         "%s: found no averages/phi, expected the output of a finished "
                         "run of a topic model",
                         t->path);
    em_reader_close(&reader);
    status = status ? status : em_reader_open(t->path, "averages", &reader);
    status = status ? status : read_topics(t, reader);
    em_reader_close(&reader);
    return status ? status : rank_topics(t);
}

void em_topics_release_words(em_topics *t)
{
    em_release_texts(t->n_word, &t->word);
    em_release_all(&t->share, &t->alpha, &t->mean);
}

void em_topics_release(em_topics *t)
{
    em_topics_release_words(t);
    for (int i = 0; i < EM_TOPIC_SCORES; i++)
        em_release_all(&t->score[i].perplexity, &t->score[i].pooled);
    em_release_all(&t->mean_share, &t->n_found, &t->order, &t->top, &t->n_preferred, &t->coherence,
                   &t->verdict, &t->data);
}
