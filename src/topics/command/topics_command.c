/* `emass topics`: the topics of a run. */
#include "topics/command/topics_command.h"
#include "base/memory.h"
#include "base/text.h"
#include "par/message.h"

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
    "       emass topics FILE.h5 FILE.h5 ... [--csv | --html PAGE]\n"
    "\n"
    "Prints a line for each topic of a run of model lda, the largest first: its share of the\n"
    "tokens, its coherence (normalised pointwise mutual information, NPMI, of its words over the\n"
    "documents of the run's corpus), how many chains found it, and its most probable words. Then\n"
    "prints the perplexity of the test documents. Topics of the chains are matched before they\n"
    "are averaged.\n"
    "\n"
    "For several files, such as runs with different numbers of topics, prints a line for each:\n"
    "perplexity, mean coherence, the share of junk topics (coherence of 0 or less), the share of\n"
    "topics that all chains found, and seconds of sampling. --html writes a page with the table\n"
    "and a figure of each column.\n"
    "\n"
    "options:\n"
    "  --words N               words of a topic (default 10)\n"
    "  --documents FILE        instead, the mixture of topics of each document of a corpus of the\n"
    "                          same words, comma-separated\n"
    "  --fold-in em|gibbs      how new documents are folded in: by EM (default), or by the "
    "model's\n"
    "                          own Gibbs sampler; both use alpha of the first chain\n"
    "  --html PAGE             instead, an HTML page that needs no other file: traces, and the\n"
    "                          size, coherence, words and nearest topics of each topic\n"
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
           (long long)t->n_chain, em_plural(t->n_chain));
    printf("topic   share    npmi  chains  words\n");
    for (int64_t i = 0; i < t->n_topic; i++) {
        print_topic(t, t->order[i]);
        lost += t->n_found[t->order[i]] < t->n_chain;
        junk += em_topic_is_junk(t, i);
    }
    printf(
        "Topics are numbered as in the first chain. The topics of other chains are matched to them "
        "by the\nbest assignment, and averaged if their word distributions overlap by %g or more.",
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
    if (t->verdict && strncmp(t->verdict, "converged", strlen("converged")) != 0)
        printf("%s\n", t->verdict);
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
            em_print_quoted(stdout, t->word[v]);
            printf(",%.9g\n", (double)t->mean[k * t->n_word + v]);
        }
}

/* ---------------------------------------------------------------- the command */

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

static em_status print_topics(em_topics *t, const topics_options *o)
{
    em_status status = em_topics_find_coherence(1, &t);

    if (!status && t->html)
        return em_topics_write_page(t);
    if (!status && o->csv)
        print_csv(t);
    else if (!status)
        print_table(t);
    return status;
}

static em_status compare_files(const em_command_host *host, const topics_options *o)
{
    if (o->documents || o->output)
        return em_fail(EM_EUSAGE,
                       "topics: found %lld files with --documents or --output, expected one file "
                       "with these",
                       (long long)host->n_file);
    return em_topics_compare(host, &(em_topics_comparison){.folder = o->folder,
                                                           .page = o->html,
                                                           .n_top = (long)o->words,
                                                           .csv = o->csv,
                                                           .prints = !o->html});
}

static em_status tell_file(const em_command_host *host, const topics_options *o)
{
    EM_SCOPED_BY(em_topics_release)
    em_topics t = {.host = host,
                   .path = host->file[0],
                   .folder = o->folder,
                   .documents = o->documents,
                   .html = o->html,
                   .output = o->output,
                   .n_top = (long)o->words,
                   .by_gibbs = o->fold_in == 1};
    em_status status = em_topics_read(&t);

    if (!status && t.documents)
        status = em_topics_mix_documents(&t);
    else if (!status && t.output)
        status = em_topics_write_topics(&t);
    else if (!status)
        status = print_topics(&t, o);
    return status;
}

/* One rank does all, while the others wait. */
static em_status topics_command(const em_command_host *host, const char *path, const void *given)
{
    const topics_options *o = given;
    em_status status = check_options(o);

    (void)path;
    if (!status && host->prints)
        status = host->n_file > 1 ? compare_files(host, o) : tell_file(host, o);
    return em_agree_first(status, 0);
}

static const em_model_command command = {.name = "topics",
                                         .help = help,
                                         .options_size = sizeof(topics_options),
                                         .fields = fields,
                                         .most_files = 1000,
                                         .run = topics_command};

/* Prints the table of a scan, and also writes the page. */
static em_status compare_scan(const em_command_host *host, const char *page)
{
    return em_topics_compare(host,
                             &(em_topics_comparison){.page = page, .n_top = 10, .prints = true});
}

/* Writes the part of the report about the topics of a run. */
static em_status report_topics(const em_command_host *host, FILE *out)
{
    EM_SCOPED_BY(em_topics_release)
    em_topics t = {.host = host, .path = host->file[0], .n_top = 10};
    em_topics *const one = &t;
    em_status status = em_topics_read(&t);

    status = status ? status : em_topics_find_coherence(1, &one);
    return status ? status : em_topics_put(out, &t);
}

const em_model_commands em_topics_commands = {.count = 1,
                                              .command = &command,
                                              .scanned = "topics",
                                              .compare = compare_scan,
                                              .page_line = em_topics_page_line,
                                              .report = report_topics};
