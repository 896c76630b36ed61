/* `emass topics`: what the topics of a run are about. */
#include "base/memory.h"
#include "io/draws/reader.h"
#include "par/message.h"
#include "par/world.h"
#include "topics/command/topics_page.h"
#include "topics/lda_held_out.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const em_model_commands em_topics_commands; /* at the end */

/* ---------------------------------------------------------------- command line */

typedef struct topics_options {
    int64_t words;
    char *documents, *html, *output, *folder;
    int fold_in;
    bool csv;
} topics_options;

static const char *const fold_in_names[] = {"em", "gibbs", NULL};
static const em_field fields[] = {
    EM_INT(topics_options, words, .minimum = 2, .maximum = EM_TOPICS_MOST_TOP, .fallback = "10",
           .doc = "words of a topic"),
    EM_TEXT(topics_options, documents, .fallback = "", .doc = "new documents"),
    EM_ROW_AS("fold-in", topics_options, fold_in, EM_FIELD_CHOICE, int, .choices = fold_in_names,
              .fallback = "", .doc = "of new documents"),
    EM_TEXT(topics_options, html, .fallback = "", .doc = "a page"),
    EM_TEXT(topics_options, output, .fallback = "",
            .doc = "HDF5 of the mixtures, or of the topics"),
    EM_BOOL(topics_options, csv, .fallback = "false", .doc = "comma-separated"),
    EM_TEXT(topics_options, folder, .fallback = "", .doc = "folder of the config"),
    {0}};

static const char help[] =
    "usage: emass topics FILE.h5 [--words N] [--folder DIR] [--csv | --html PAGE | --output T.h5]\n"
    "       emass topics FILE.h5 --documents FILE [--fold-in em|gibbs] [--output MIXTURES.h5]\n"
    "       emass topics FILE.h5 FILE.h5 ... [--csv]\n"
    "\n"
    "A line for each topic of a run of model lda, the largest first: its share of the tokens, its\n"
    "coherence (NPMI of its words over the documents of the run's corpus), how many chains found\n"
    "it, and its most probable words; and the perplexity of the test documents. Topics of the\n"
    "chains are matched before they are averaged.\n"
    "\n"
    "Of several files, such as runs with different numbers of topics, a line each: perplexity, "
    "mean\n"
    "coherence, the share of junk topics (coherence of 0 or less), the share of topics that all\n"
    "chains found, and seconds of sampling.\n"
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
    "  --csv                   instead, a line for each word of each topic, comma-separated:\n"
    "                          topic, share, npmi, chains, word, probability\n"
    "  --output FILE.h5        instead, a new HDF5 file: /table/value has a row of each topic "
    "with\n"
    "                          the probabilities of all words (/table/name); with --documents, a\n"
    "                          row of each document with its mixture\n"
    "  --folder DIR            where relative paths of the config start (default: where they\n"
    "                          did in the run, else the folder of FILE.h5, else the current one)\n"
    "\n"
    "example:\n"
    "  emass topics news.h5 --documents new.ldac > mixtures.csv\n"
    "  emass topics news.topics*.h5\n"
    "\n";

/* ---------------------------------------------------------------- the file */

static em_status read_averages(em_reader *reader, int64_t i, int64_t n_chain, double **out)
{
    const int64_t size = em_reader_variable_at(reader, i)->size;
    em_status status = em_allocate(n_chain * size, sizeof **out, out);

    return status ? status : em_reader_draws(reader, i, 0, n_chain, 0, 1, *out);
}

/* Words without names are called by their numbers. */
static em_status copy_words(em_topics *t, const em_reader_variable *phi)
{
    em_status status = em_allocate(t->n_word, sizeof *t->word, &t->word);

    for (int64_t v = 0; !status && v < t->n_word; v++)
        status = phi->axis_label[1] ? em_copy_text(phi->axis_label[1][v], &t->word[v])
                                    : em_format_text(&t->word[v], "%lld", (long long)v);
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
    status = copy_words(t, variable);
    if (!status)
        status = em_allocate(variable->size, sizeof *t->mean, &t->mean);
    if (!status)
        status = em_reader_floats(reader, phi, 0, 0, 0, variable->size, t->mean);
    if (!status)
        status = read_averages(reader, share, t->n_chain, &t->share);
    if (!status)
        status = read_if_any(reader, "alpha", t->n_chain, &t->alpha);
    if (!status)
        status = read_scores(t, reader);
    return status ? status : em_topics_match_chains(t, reader, phi);
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

/* ---------------------------------------------------------------- the largest ones */

/* The `n` largest of x[size], by insertion: n is small. */
static void largest(int64_t size, const float *x, long n, int32_t *out)
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
    if (em_topic_is_junk(t, k))
        printf(" (junk)");
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
    int64_t lost = 0, junk = 0;

    printf("%lld topics of %lld words, %lld chain%s\n", (long long)t->n_topic, (long long)t->n_word,
           (long long)t->n_chain, t->n_chain == 1 ? "" : "s");
    printf("topic   share    npmi  chains  words\n");
    for (int64_t i = 0; i < t->n_topic; i++) {
        print_topic(t, t->order[i]);
        lost += t->n_found[t->order[i]] < t->n_chain;
        junk += em_topic_is_junk(t, i);
    }
    printf("Topics are numbered as in the first chain; those of the others are matched to them by "
           "the best\nassignment and averaged where their laws of words overlap by %g or more.",
           EM_LEAST_OVERLAP);
    if (lost > 0)
        printf(" %lld of %lld were not\nfound by all chains.", (long long)lost,
               (long long)t->n_topic);
    printf("\n");
    if (junk > 0)
        printf(
            "junk: the words of %lld topics occur together no more often than by chance (npmi of 0 "
            "or less).\n",
            (long long)junk);
    for (int i = 0; i < EM_TOPIC_SCORES; i++)
        if (t->score[i].perplexity)
            print_score(t, &t->score[i]);
}

/* A word may have a comma or a quote in it (RFC 4180). */
static void print_quoted(const char *text)
{
    if (!strpbrk(text, ",\"\n")) {
        printf("%s", text);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static void print_csv(const em_topics *t)
{
    printf("topic,share,npmi,chains,word,probability\n");
    for (int64_t r = 0; r < t->n_topic; r++)
        for (long i = 0; i < t->n_top; i++) {
            const int64_t k = t->order[r], v = t->top[k * t->n_top + i];
            printf("%lld,%.9g,", (long long)k, t->mean_share[k]);
            if (t->coherence && !isnan(t->coherence[k]))
                printf("%.9g", t->coherence[k]);
            printf(",%lld,", (long long)t->n_found[k]);
            print_quoted(t->word[v]);
            printf(",%.9g\n", (double)t->mean[k * t->n_word + v]);
        }
}

/* ---------------------------------------------------------------- the command */

static void release(em_topics *t)
{
    for (int64_t v = 0; t->word && v < t->n_word; v++)
        em_release(&t->word[v]);
    void *const array[] = {&t->word,    &t->share, &t->alpha, &t->mean,     &t->mean_share,
                           &t->n_found, &t->order, &t->top,   &t->coherence};
    for (int i = 0; i < EM_TOPIC_SCORES; i++) {
        em_release(&t->score[i].perplexity);
        em_release(&t->score[i].pooled);
    }
    for (size_t i = 0; i < sizeof array / sizeof *array; i++)
        em_release(array[i]);
}

static em_status check_options(const topics_options *o)
{
    if (o->fold_in >= 0 && !o->documents)
        return em_fail(EM_EUSAGE, "topics: --fold-in: found no --documents, expected some to be "
                                  "folded in");
    if ((o->csv != 0) + (o->html != NULL) + (o->output != NULL) > 1)
        return em_fail(EM_EUSAGE, "topics: found two of --csv, --html and --output, expected one");
    if (o->documents && (o->csv || o->html))
        return em_fail(EM_EUSAGE, "topics: --documents: found --csv or --html, expected --output "
                                  "or neither: mixtures are printed comma-separated");
    return EM_OK;
}

static em_status show_topics(em_topics *t, const topics_options *o)
{
    em_status status = rank_topics(t);

    if (!status)
        status = em_topics_find_coherence(t);
    if (!status && t->html)
        return em_agree_first(t->host->prints ? em_topics_write_page(t) : EM_OK, 0);
    if (!status && t->host->prints && o->csv)
        print_csv(t);
    else if (!status && t->host->prints)
        print_table(t);
    return status;
}

/* ---------------------------------------------------------------- several runs */

/* What tells one number of topics from another. */
typedef struct run_row {
    int64_t n_topic, n_chain;
    double perplexity, coherence; /* NaN: not known; coherence: mean weighted by share */
    double junk, common;          /* shares of topics: NPMI of 0 or less; found by all chains */
    double seconds;
    uint64_t data; /* hash of the data; 0: not known */
} run_row;

static run_row row_of(const em_topics *t)
{
    const double n = (double)t->n_topic;
    double share = 0, sum = 0;
    run_row row = {t->n_topic, t->n_chain, NAN, NAN, t->coherence ? 0 : NAN, 0, NAN, 0};

    if (t->score[0].pooled)
        row.perplexity = t->score[0].pooled[0];
    else if (t->score[0].perplexity)
        row.perplexity = t->score[0].perplexity[0];
    for (int64_t k = 0; k < t->n_topic; k++) {
        row.common += (double)(t->n_found[k] == t->n_chain) / n;
        if (!t->coherence || isnan(t->coherence[k]))
            continue;
        row.junk += (double)em_topic_is_junk(t, k) / n;
        share += t->mean_share[k];
        sum += t->mean_share[k] * t->coherence[k];
    }
    if (share > 0)
        row.coherence = sum / share;
    return row;
}

static em_status read_row(const em_command_host *host, const topics_options *o, const char *path,
                          run_row *row)
{
    em_topics t = {.host = host, .path = path, .folder = o->folder, .n_top = (long)o->words};
    em_reader *reader = NULL;
    char *hash = NULL;
    em_status status = read_file(&t);

    if (!status)
        status = rank_topics(&t);
    if (!status)
        status = em_topics_find_coherence(&t);
    if (!status) {
        *row = row_of(&t);
        status = em_reader_open(path, NULL, &reader);
    }
    if (!status) {
        em_reader_real(reader, "sampling_time", &row->seconds);
        if (em_reader_text(reader, "data_hash", &hash))
            row->data = strtoull(hash, NULL, 16);
    }
    em_reader_close(&reader);
    em_release(&hash);
    release(&t);
    return status;
}

static void print_rows(const em_command_host *host, const run_row *row, bool csv)
{
    bool alike = true;

    printf(csv ? "file,topics,chains,perplexity,npmi,junk,in_all_chains,seconds\n"
               : "topics  chains  perplexity    npmi    junk  in all chains  seconds  file\n");
    for (int64_t i = 0; i < host->n_file; i++) {
        const run_row *r = &row[i];
        alike = alike && r->data == row[0].data;
        if (csv) {
            print_quoted(host->file[i]);
            printf(",%lld,%lld,%.9g,%.9g,%.9g,%.9g,%.9g\n", (long long)r->n_topic,
                   (long long)r->n_chain, r->perplexity, r->coherence, r->junk, r->common,
                   r->seconds);
        } else {
            printf("%6lld  %6lld  %10.1f  %6.3f  %5.1f%%  %12.1f%%  %7.1f  %s\n",
                   (long long)r->n_topic, (long long)r->n_chain, r->perplexity, r->coherence,
                   100 * r->junk, 100 * r->common, r->seconds, host->file[i]);
        }
    }
    if (!alike)
        em_say("warning: topics: these runs have not the same data, so that their perplexities do "
               "not compare");
    if (!csv)
        printf("Perplexity: of the test documents, averaged over draws and chains; lower is "
               "better. npmi: mean coherence\nof the topics, weighted by their shares. junk: "
               "topics with an npmi of 0 or less.\n");
}

/* A line for each run, in the order of the files. */
static em_status compare(const em_command_host *host, const topics_options *o)
{
    run_row *row = NULL;
    em_status status =
        o->documents || o->html || o->output
            ? em_fail(EM_EUSAGE,
                      "topics: found %lld files with --documents, --html or --output, "
                      "expected one file with these",
                      (long long)host->n_file)
            : em_allocate(host->n_file, sizeof *row, &row);

    for (int64_t i = 0; !status && i < host->n_file; i++)
        status = read_row(host, o, host->file[i], &row[i]);
    if (!status && host->prints)
        print_rows(host, row, o->csv);
    em_release(&row);
    return status;
}

static em_status topics_command(const em_command_host *host, const char *path, const void *given)
{
    const topics_options *o = given;
    em_topics t = {.host = host,
                   .path = path,
                   .folder = o->folder,
                   .documents = o->documents,
                   .html = o->html,
                   .output = o->output,
                   .n_top = (long)o->words,
                   .by_gibbs = o->fold_in == 1};
    em_status status = check_options(o);

    if (!status && host->n_file > 1)
        return compare(host, o);
    if (!status)
        status = read_file(&t);
    if (!status && t.documents)
        status = em_topics_mix_documents(&t);
    else if (!status && t.output)
        status = em_agree_first(host->prints ? em_topics_write_topics(&t) : EM_OK, 0);
    else if (!status)
        status = show_topics(&t, o);
    release(&t);
    return status;
}

static const em_model_command command = {.name = "topics",
                                         .help = help,
                                         .options_size = sizeof(topics_options),
                                         .fields = fields,
                                         .most_files = 1000,
                                         .run = topics_command};

const em_model_commands em_topics_commands = {1, &command};
