/* `emass topics`: what the topics of a run are about. */
#include "base/memory.h"
#include "io/draws/reader.h"
#include "math/assignment.h"
#include "math/simd/tokens.h"
#include "par/message.h"
#include "topics/command/topics_page.h"
#include "topics/lda_held_out.h"

#include <math.h>
#include <string.h>

extern const em_model_commands em_topics_commands; /* at the end */

enum { EM_STEPS = 100 };

/* ---------------------------------------------------------------- command line */

typedef struct topics_options {
    int64_t words;
    char *documents, *html, *folder;
    int fold_in;
} topics_options;

static const char *const fold_in_names[] = {"em", "gibbs", NULL};
static const em_field fields[] = {
    EM_INT(topics_options, words, .minimum = 2, .maximum = EM_TOPICS_MOST_TOP, .fallback = "10",
           .doc = "words of a topic"),
    EM_TEXT(topics_options, documents, .fallback = "", .doc = "new documents"),
    EM_ROW_AS("fold-in", topics_options, fold_in, EM_FIELD_CHOICE, int, .choices = fold_in_names,
              .fallback = "", .doc = "of new documents"),
    EM_TEXT(topics_options, html, .fallback = "", .doc = "a page"),
    EM_TEXT(topics_options, folder, .fallback = "", .doc = "folder of the config"),
    {0}};

static const char help[] =
    "usage: emass topics FILE.h5 [--words N] [--folder DIR] [--html PAGE]\n"
    "       emass topics FILE.h5 --documents FILE [--fold-in em|gibbs]\n"
    "\n"
    "A line for each topic of a run of model lda, the largest first: its share of the tokens, its\n"
    "coherence (NPMI of its words over the documents of the run's corpus), how many chains found\n"
    "it, and its most probable words; and the perplexity of the test documents. Topics of the\n"
    "chains are matched before they are averaged.\n"
    "\n"
    "options:\n"
    "  --words N               words of a topic (default 10)\n"
    "  --documents FILE        instead, the mixture of topics of each document of a corpus of the\n"
    "                          same words, comma-separated\n"
    "  --fold-in em|gibbs      of those: from the topics alone by EM with alpha 0.1 (default), or "
    "by\n"
    "                          the model's own Gibbs, with alpha of the first chain\n"
    "  --html PAGE             instead, one page that needs no other file: the traces, and of "
    "each\n"
    "                          topic size, coherence, words and nearest topics\n"
    "  --folder DIR            where relative paths of the config start (default: where they\n"
    "                          did in the run, else the folder of FILE.h5, else the current one)\n"
    "\n"
    "example:\n"
    "  emass topics news.h5 --documents new.ldac > mixtures.csv\n"
    "\n";

/* ---------------------------------------------------------------- the file */

static em_status read_averages(em_reader *reader, int64_t i, int64_t n_chain, double **out)
{
    const int64_t size = em_reader_variable_at(reader, i)->size;
    em_status status = em_allocate(n_chain * size, sizeof **out, out);

    return status ? status : em_reader_draws(reader, i, 0, n_chain, 0, 1, *out);
}

/* Of phi[3,word], what is behind the comma. */
static em_status copy_word(const char *label, char **out)
{
    const char *comma = strchr(label, ',');
    em_status status = em_copy_text(comma ? comma + 1 : label, out);

    if (!status && comma)
        (*out)[strlen(*out) - 1] = '\0';
    return status;
}

/* What is not there is left NULL. */
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
        if (!status)
            status = read_if_any(reader, name[i][1], t->n_chain, &t->score[i].pooled);
    }
    return status;
}

static em_status read_topics(em_topics *t, em_reader *reader)
{
    const int64_t phi = em_reader_find(reader, "phi"),
                  share = em_reader_find(reader, "topic_share");
    em_status status;

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
    status = em_allocate(t->n_word, sizeof *t->word, &t->word);
    for (int64_t v = 0; !status && v < t->n_word; v++)
        status = copy_word(variable->label[v], &t->word[v]);
    if (!status)
        status = read_averages(reader, phi, t->n_chain, &t->phi);
    if (!status)
        status = read_averages(reader, share, t->n_chain, &t->share);
    if (!status)
        status = read_if_any(reader, "alpha", t->n_chain, &t->alpha);
    return status ? status : read_scores(t, reader);
}

/* Whether the config in the file names tokens to be scored. */
static bool scores_given_tokens(em_reader *reader)
{
    static const char name[] = "test_scored: ";
    char *text = NULL;
    const char *at;
    bool given = false;

    if (em_reader_text(reader, "config", &text)) {
        at = strstr(text, name);
        given = at && strncmp(at + sizeof name - 1, "null", 4) != 0;
    }
    em_release(&text);
    return given;
}

static em_status read_file(em_topics *t)
{
    em_reader *reader = NULL;
    em_status status = em_reader_open(t->path, NULL, &reader);

    if (!status)
        t->score[0].doc = scores_given_tokens(reader) ? EM_HELD_OUT_GIVEN_DOC : EM_HELD_OUT_DOC;
    t->score[1].doc = EM_HELD_OUT_GIBBS_DOC;
    if (!status && !em_reader_has(reader, "averages", "phi"))
        status = em_fail(EM_EDATA,
                         "%s: found no averages/phi, expected the output of a finished "
                         "run of a topic model",
                         t->path);
    em_reader_close(&reader);
    if (!status)
        status = em_reader_open(t->path, "averages", &reader);
    if (!status)
        status = read_topics(t, reader);
    em_reader_close(&reader);
    return status;
}

/* ---------------------------------------------------------------- topics of all chains */

/* Adds the topics of chain c to those of the first one that they are. */
static em_status match_chain(em_topics *t, int64_t c, double *cost, int64_t *column)
{
    const int64_t n = t->n_topic, size = n * t->n_word;
    em_status status;

    for (int64_t a = 0; a < n; a++)
        for (int64_t b = 0; b < n; b++)
            cost[a * n + b] = -em_topic_overlap(t->n_word, t->phi + a * t->n_word,
                                                t->phi + c * size + b * t->n_word);
    status = em_assign(n, cost, column);
    for (int64_t a = 0; !status && a < n; a++) {
        const int64_t b = column[a];
        if (-cost[a * n + b] < EM_LEAST_OVERLAP)
            continue;
        t->n_found[a]++;
        t->mean_share[a] += t->share[c * n + b];
        for (int64_t v = 0; v < t->n_word; v++)
            t->mean[a * t->n_word + v] += t->phi[c * size + b * t->n_word + v];
    }
    return status;
}

static em_status match_chains(em_topics *t)
{
    const int64_t n = t->n_topic, size = n * t->n_word;
    double *cost = NULL;
    int64_t *column = NULL;
    em_status status = em_allocate(size, sizeof(double), &t->mean);

    if (!status)
        status = em_allocate_all(EM_ARRAY(t->mean_share, n), EM_ARRAY(t->n_found, n),
                                 EM_ARRAY(cost, n * n), EM_ARRAY(column, n));
    if (!status) {
        memcpy(t->mean, t->phi, (size_t)size * sizeof(double));
        memcpy(t->mean_share, t->share, (size_t)n * sizeof(double));
        for (int64_t k = 0; k < n; k++)
            t->n_found[k] = 1;
    }
    for (int64_t c = 1; !status && c < t->n_chain; c++)
        status = match_chain(t, c, cost, column);
    for (int64_t k = 0; !status && k < n; k++) {
        t->mean_share[k] /= (double)t->n_found[k];
        for (int64_t v = 0; v < t->n_word; v++)
            t->mean[k * t->n_word + v] /= (double)t->n_found[k];
    }
    em_release_all(&cost, &column);
    return status;
}

/* ---------------------------------------------------------------- the largest ones */

/* The `n` largest of x[size], by insertion: n is small. */
static void largest(int64_t size, const double *x, long n, int32_t *out)
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

static em_status rank_topics(em_topics *t)
{
    em_status status = em_allocate(t->n_topic, sizeof *t->order, &t->order);

    if (t->n_top > t->n_word)
        t->n_top = (long)t->n_word;
    if (!status)
        status = em_allocate(t->n_topic * t->n_top, sizeof *t->top, &t->top);
    for (int64_t k = 0; !status && k < t->n_topic; k++) {
        int64_t at = k;
        for (; at > 0 && t->mean_share[k] > t->mean_share[t->order[at - 1]]; at--)
            t->order[at] = t->order[at - 1];
        t->order[at] = k;
        largest(t->n_word, t->mean + k * t->n_word, t->n_top, t->top + k * t->n_top);
    }
    return status;
}

/* ---------------------------------------------------------------- what is printed */

static void print_topic(const em_topics *t, int64_t k)
{
    char found[48], coherence[16] = "-";

    snprintf(found, sizeof found, "%lld/%lld", (long long)t->n_found[k], (long long)t->n_chain);
    if (t->coherence && !isnan(t->coherence[k]))
        snprintf(coherence, sizeof coherence, "%.3f", t->coherence[k]);
    printf("%5lld  %6.4f  %6s  %6s ", (long long)k, t->mean_share[k], coherence, found);
    for (long i = 0; i < t->n_top; i++)
        printf(" %s", t->word[t->top[k * t->n_top + i]]);
    printf("\n");
}

static void print_score(const em_topics *t, const em_topic_score *score)
{
    printf("Held-out perplexity of each chain, probabilities averaged over its draws:");
    for (int64_t c = 0; c < t->n_chain; c++)
        printf(" %.1f", score->perplexity[c]);
    if (score->pooled && t->n_chain > 1)
        printf("\nover all chains too: %.1f", score->pooled[0]);
    printf("\n(%s).\n", score->doc);
}

static void print_table(const em_topics *t)
{
    int64_t lost = 0;

    printf("%lld topics of %lld words, %lld chain%s\n", (long long)t->n_topic, (long long)t->n_word,
           (long long)t->n_chain, t->n_chain == 1 ? "" : "s");
    printf("topic   share    npmi  chains  words\n");
    for (int64_t i = 0; i < t->n_topic; i++) {
        print_topic(t, t->order[i]);
        lost += t->n_found[t->order[i]] < t->n_chain;
    }
    printf("Topics are numbered as in the first chain; those of the others are matched to them by "
           "the best\nassignment and averaged where their laws of words overlap by %g or more.",
           EM_LEAST_OVERLAP);
    if (lost > 0)
        printf(" %lld of %lld were not\nfound by all chains.", (long long)lost,
               (long long)t->n_topic);
    printf("\n");
    for (int i = 0; i < EM_TOPIC_SCORES; i++)
        if (t->score[i].perplexity)
            print_score(t, &t->score[i]);
}

/* ---------------------------------------------------------------- new documents */

/* Rows of the document's words, and how often they stand in it. */
static void gather(const em_topics *t, const em_corpus *corpus, int64_t d, int64_t stride,
                   float *rows, float *count)
{
    for (int64_t i = corpus->start[d]; i < corpus->start[d + 1]; i++) {
        const int64_t at = i - corpus->start[d];
        count[at] = (float)corpus->count[i];
        for (int64_t k = 0; k < t->n_topic; k++)
            rows[at * stride + k] = (float)fmax(t->mean[k * t->n_word + corpus->word[i]], 1e-12);
    }
}

static void print_mixture(const em_topics *t, int64_t d, const float *mixture)
{
    double sum = 0;

    for (int64_t k = 0; k < t->n_topic; k++)
        sum += mixture[k];
    printf("%lld", (long long)d);
    for (int64_t k = 0; k < t->n_topic; k++)
        printf(",%.6g", mixture[k] / sum);
    printf("\n");
}

/* Room for the largest document, and what folds in. */
typedef struct folding {
    em_fold_in *gibbs; /* NULL: EM */
    float *rows, *count, *mixture;
} folding;

static em_status start_folding(const em_topics *t, const em_corpus *corpus, folding *f)
{
    const int64_t stride = em_topic_stride(t->n_topic);
    int64_t widest = 0, longest = 0;
    em_status status;

    for (int64_t d = 0; d < corpus->n_local; d++) {
        int64_t length = 0;
        for (int64_t i = corpus->start[d]; i < corpus->start[d + 1]; i++)
            length += corpus->count[i];
        widest = (int64_t)fmax((double)widest, (double)(corpus->start[d + 1] - corpus->start[d]));
        longest = length > longest ? length : longest;
    }
    status = em_allocate(widest * stride, sizeof *f->rows, &f->rows);
    if (!status)
        status = em_allocate_all(EM_ARRAY(f->count, widest), EM_ARRAY(f->mixture, 2 * stride));
    return !status && t->by_gibbs ? em_fold_in_create(t->n_topic, longest, &f->gibbs) : status;
}

/* Topics are numbered as in the first chain: alpha is that chain's. */
static void fold_in(const em_topics *t, const em_corpus *corpus, int64_t d, const folding *f)
{
    const int64_t stride = em_topic_stride(t->n_topic), n = corpus->start[d + 1] - corpus->start[d];
    const em_folded document = {.number = d, .n = n, .count = f->count, .phi = f->rows};
    const em_stream stream = em_fold_in_stream(0, 0, 0);

    gather(t, corpus, d, stride, f->rows, f->count);
    if (f->gibbs)
        em_fold_in_gibbs(f->gibbs, &stream, &document, t->alpha, f->mixture);
    else
        em_token_kernels_best()->fold_in(n, f->rows, f->count, t->n_topic, stride, 0.1F, EM_STEPS,
                                         f->mixture);
}

static em_status print_mixtures(const em_topics *t, const em_corpus *corpus)
{
    folding f = {0};
    em_status status = start_folding(t, corpus, &f);

    if (!status) {
        printf("document");
        for (int64_t k = 0; k < t->n_topic; k++)
            printf(",topic%lld", (long long)k);
        printf("\n");
    }
    for (int64_t d = 0; !status && d < corpus->n_local; d++) {
        fold_in(t, corpus, d, &f);
        print_mixture(t, d, f.mixture);
    }
    em_fold_in_destroy(&f.gibbs);
    em_release_all(&f.rows, &f.count, &f.mixture);
    return status;
}

/* Words that had no names are called by their numbers. */
static bool is_named(const em_topics *t)
{
    char number[24];
    bool named = false;

    for (int64_t v = 0; v < t->n_word && !named; v++) {
        snprintf(number, sizeof number, "%lld", (long long)v);
        named = strcmp(t->word[v], number) != 0;
    }
    return named;
}

static em_status mix_documents(const em_topics *t)
{
    const em_corpus_options options = {.data = (char *)t->documents};
    em_corpus *corpus = NULL;
    em_status status =
        t->by_gibbs && !t->alpha
            ? em_fail(EM_EDATA, "%s: found no averages/alpha, expected it for --fold-in gibbs",
                      t->path)
            : em_corpus_read(&options, t->n_word, 0, 0, 1, &corpus);

    if (!status && is_named(t))
        status = em_corpus_check_names(corpus, t->word, t->path);
    if (!status && t->host->prints)
        status = print_mixtures(t, corpus);
    em_corpus_destroy(&corpus);
    return status;
}

/* ---------------------------------------------------------------- the command */

static void release(em_topics *t)
{
    for (int64_t v = 0; t->word && v < t->n_word; v++)
        em_release(&t->word[v]);
    for (int i = 0; i < EM_TOPIC_SCORES; i++)
        em_release_all(&t->score[i].perplexity, &t->score[i].pooled);
    em_release_all(&t->word, &t->phi, &t->share, &t->alpha, &t->mean, &t->mean_share, &t->n_found,
                   &t->order, &t->top, &t->coherence);
}

static em_status topics_command(const em_command_host *host, const char *path, const void *given)
{
    const topics_options *options = given;
    em_topics t = {.host = host,
                   .path = path,
                   .folder = options->folder,
                   .documents = options->documents,
                   .html = options->html,
                   .n_top = (long)options->words,
                   .by_gibbs = options->fold_in == 1};
    em_status status = EM_OK;

    if (options->fold_in >= 0 && !t.documents)
        status = em_fail(EM_EUSAGE, "topics: --fold-in: found no --documents, expected some to be "
                                    "folded in");
    if (!status)
        status = read_file(&t);
    if (!status)
        status = match_chains(&t);
    if (!status && t.documents) {
        status = mix_documents(&t);
    } else if (!status) {
        status = rank_topics(&t);
        if (!status)
            status = em_topics_find_coherence(&t);
        if (!status && host->prints && !t.html)
            print_table(&t);
        if (!status && t.html)
            status = em_agree_first(host->prints ? em_topics_write_page(&t) : EM_OK, 0);
    }
    release(&t);
    return status;
}

static const em_model_command command = {.name = "topics",
                                         .help = help,
                                         .options_size = sizeof(topics_options),
                                         .fields = fields,
                                         .run = topics_command};

const em_model_commands em_topics_commands = {1, &command};
