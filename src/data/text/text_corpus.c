#include "data/text/text_corpus.h"

#include "base/memory.h"
#include "base/text.h"
#include "data/corpus/document_rows.h"
#include "data/reader/lines.h"
#include "data/text/vocabulary.h"
#include "data/text/words.h"
#include "io/hdf5/numbers.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* The separator between the words of a phrase; it occurs in no word. */
#define BETWEEN ' '

struct em_text_corpus {
    const em_text_options *options;
    em_vocabulary *stop;
    em_vocabulary *word;   /* counted in the first pass; NULL: the words are those of `like` */
    em_vocabulary *phrase; /* neighbours: all that were counted, then those that are phrases; NULL:
                              there are none */
    em_vocabulary *term;   /* words and phrases of the corpus, in the order of its columns */
    em_text_scanned scanned;
    int64_t n_document;
    bool is_read;  /* by a pass, which has set the hash */
    uint64_t hash; /* of the documents */
};

/* A pass over the documents. */
typedef struct pass {
    em_text_corpus *corpus;
    em_words_take *take;
    em_vocabulary *counted;
    em_document_rows *rows;
    int64_t document; /* its number */
    char previous[2 * EM_LONGEST_WORD + 1];
    size_t length; /* of the previous word; 0: there is none */
} pass;

/* ---------------------------------------------------------------- passes */

/* Calls `one` with each document, and checks that they are those of the passes before. */
static em_status for_each(pass *p, em_status (*one)(pass *p, const em_text_document *document))
{
    em_text_corpus *corpus = p->corpus;
    em_documents *documents = NULL;
    uint64_t hash = 0;
    em_text_document document = {.text = NULL};
    em_status status = em_documents_open(&corpus->options->documents, &documents);

    p->document = 0;
    status = status ? status : em_documents_next(documents, &document);
    for (; !status && document.text; p->document++) {
        hash = XXH3_64bits_withSeed(document.text, document.length, hash);
        status = one(p, &document);
        status = status ? status : em_documents_next(documents, &document);
    }
    em_documents_close(&documents);
    if (!status && corpus->is_read && hash != corpus->hash)
        status = em_corpus_refuse_change(corpus->options->documents.path);
    corpus->is_read = true;
    corpus->hash = hash;
    return status;
}

static em_status count(void *to, const char *word, size_t length)
{
    pass *p = to;
    int64_t number;
    const em_status status = em_vocabulary_add(p->counted, word, length, &number);

    if (status == EM_EDATA)
        return em_fail(status, "%s: %s", p->corpus->options->documents.path, em_error_text());
    if (status)
        return status;
    em_vocabulary_count(p->counted, number, p->document);
    return EM_OK;
}

/* ---------------------------------------------------------------- phrases */

/* Appends a word to the previous one; returns the length of both. */
static size_t join(pass *p, const char *word, size_t length)
{
    p->previous[p->length] = BETWEEN;
    memcpy(p->previous + p->length + 1, word, length);
    return p->length + 1 + length;
}

static void remember(pass *p, const char *word, size_t length)
{
    memcpy(p->previous, word, length);
    p->length = length;
}

static bool may_be_in_phrases(const em_text_corpus *corpus, const char *word, size_t length)
{
    const int64_t number = em_vocabulary_find(corpus->word, word, length);

    return number >= 0 && em_vocabulary_find(corpus->stop, word, length) < 0 &&
           em_vocabulary_counts(corpus->word, number).documents >= corpus->options->least_documents;
}

/* Counts a pair of neighbouring words in the second pass. */
static em_status count_pair(void *to, const char *word, size_t length)
{
    pass *p = to;
    em_status status = EM_OK;

    if (!may_be_in_phrases(p->corpus, word, length)) {
        p->length = 0;
        return EM_OK;
    }
    if (p->length > 0)
        status = count(p, p->previous, join(p, word, length));
    remember(p, word, length);
    return status;
}

static em_status end_phrases(pass *p, em_words_take *give)
{
    const size_t length = p->length;

    p->length = 0;
    return length > 0 ? give(p, p->previous, length) : EM_OK;
}

/* Passes a word on, or the phrase that it forms with its neighbour. If phrases overlap, the first
 * one is used. */
static em_status give_joined(pass *p, const char *word, size_t length, em_words_take *give)
{
    em_status status = EM_OK;

    if (!p->corpus->phrase)
        return give(p, word, length);
    if (p->length > 0) {
        const size_t both = join(p, word, length);
        if (em_vocabulary_find(p->corpus->phrase, p->previous, both) >= 0) {
            p->length = 0;
            return give(p, p->previous, both);
        }
        status = give(p, p->previous, p->length);
    }
    remember(p, word, length);
    return status;
}

/* Replaces the neighbours that were counted by the phrases among them. */
static em_status choose_phrases(em_text_corpus *corpus, em_vocabulary *pairs)
{
    const em_text_options *options = corpus->options;
    const double n_words = (double)em_vocabulary_size(corpus->word);
    em_status status = em_vocabulary_create(&corpus->phrase);

    for (int64_t i = 0; !status && i < em_vocabulary_size(pairs); i++) {
        const char *both = em_vocabulary_word(pairs, i), *second = strchr(both, BETWEEN) + 1;
        const em_word_count of = em_vocabulary_counts(pairs, i);
        double each = 1;
        each *=
            (double)em_vocabulary_counts(
                corpus->word, em_vocabulary_find(corpus->word, both, (size_t)(second - both - 1)))
                .tokens;
        each *= (double)em_vocabulary_counts(
                    corpus->word, em_vocabulary_find(corpus->word, second, strlen(second)))
                    .tokens;
        if (of.documents >= options->least_documents &&
            (double)(of.tokens - options->least_documents) * n_words / each > options->phrases)
            status = em_vocabulary_add(corpus->phrase, both, strlen(both), NULL);
    }
    return status;
}

/* ---------------------------------------------------------------- choice of words */

/* A word that may be kept. */
typedef struct candidate {
    const char *word;
    int64_t tokens;
} candidate;

static int by_tokens(const void *a, const void *b)
{
    const candidate *x = a, *y = b;

    return x->tokens != y->tokens ? (x->tokens < y->tokens) - (x->tokens > y->tokens)
                                  : strcmp(x->word, y->word);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const candidate *)a)->word, ((const candidate *)b)->word);
}

static bool is_kept(const em_text_corpus *corpus, const em_vocabulary *all, int64_t number)
{
    const em_text_options *options = corpus->options;
    const char *word = em_vocabulary_word(all, number);
    const int64_t documents = em_vocabulary_counts(all, number).documents;

    return documents >= options->least_documents &&
           (double)documents <= options->most_share * (double)corpus->n_document &&
           em_vocabulary_find(corpus->stop, word, strlen(word)) < 0;
}

/* Chooses the words of the corpus from all words that were counted. */
static em_status choose_words(em_text_corpus *corpus, const em_vocabulary *all)
{
    const em_text_options *options = corpus->options;
    EM_SCOPED candidate *kept = NULL;
    int64_t n = 0;
    em_status status = em_allocate(em_vocabulary_size(all), sizeof *kept, &kept);

    for (int64_t i = 0; !status && i < em_vocabulary_size(all); i++)
        if (is_kept(corpus, all, i))
            kept[n++] =
                (candidate){em_vocabulary_word(all, i), em_vocabulary_counts(all, i).tokens};
    if (!status && n == 0)
        status = em_fail(EM_EDATA,
                         "%s: found no word in %lld or more and in at most %g%% of %lld documents, "
                         "expected some (--min-documents, --max-share, --stop-words)",
                         options->documents.path, (long long)options->least_documents,
                         100 * options->most_share, (long long)corpus->n_document);
    if (!status && n > options->most_words) {
        qsort(kept, (size_t)n, sizeof *kept, by_tokens);
        n = options->most_words;
    }
    if (!status)
        qsort(kept, (size_t)n, sizeof *kept, by_name);
    status = status ? status : em_vocabulary_create(&corpus->term);
    for (int64_t i = 0; !status && i < n; i++)
        status = em_vocabulary_add(corpus->term, kept[i].word, strlen(kept[i].word), NULL);
    return status;
}

/* ---------------------------------------------------------------- passes that count words */

static em_status count_joined(void *to, const char *word, size_t length)
{
    return give_joined(to, word, length, count);
}

static em_status count_document(pass *p, const em_text_document *document)
{
    em_status status = em_words_each(document->text, document->length, p->take, p);

    if (!status && p->take == count_joined)
        status = end_phrases(p, count);
    p->length = 0;
    return status;
}

static em_status count_by(em_text_corpus *corpus, em_words_take *take, em_vocabulary **out)
{
    pass p = {.corpus = corpus, .take = take};
    em_status status = em_vocabulary_create(out);

    p.counted = *out;
    status = status ? status : for_each(&p, count_document);
    corpus->n_document = p.document;
    return status;
}

static em_status count_with_phrases(em_text_corpus *corpus)
{
    EM_SCOPED_BY(em_vocabulary_destroy) em_vocabulary *joined = NULL;
    em_vocabulary *pairs = NULL;
    em_status status = count_by(corpus, count_pair, &pairs);

    status = status ? status : choose_phrases(corpus, pairs);
    em_vocabulary_destroy(&pairs);
    status = status ? status : count_by(corpus, count_joined, &joined);
    return status ? status : choose_words(corpus, joined);
}

static em_status count_and_choose(em_text_corpus *corpus)
{
    em_status status = count_by(corpus, count, &corpus->word);

    if (!status && corpus->n_document == 0)
        status = em_fail(EM_EDATA, "%s: found no documents, expected some",
                         corpus->options->documents.path);
    if (!status)
        status = corpus->options->phrases > 0 ? count_with_phrases(corpus)
                                              : choose_words(corpus, corpus->word);
    em_vocabulary_destroy(&corpus->word);
    return status;
}

/* ---------------------------------------------------------------- given words */

/* Common English words, which say nothing about the topic of a text. */
static const char english[] =
    "a about above after again against ain't all also am an and any are aren't as at be because "
    "been before being below between both but by can can't cannot could couldn't did didn't do "
    "does doesn't doing don't down during each either else ever every few for from further had "
    "hadn't has hasn't have haven't having he he'd he'll he's her here here's hers herself him "
    "himself his how how's however i i'd i'll i'm i've if in into is isn't it it'd it'll it's its "
    "itself just let's may me might mightn't more most must mustn't my myself needn't neither no "
    "nor not now of off on once one only or other others ought our ours ourselves out over own "
    "rather same shall shan't she she'd she'll she's should shouldn't since so some still such "
    "than that that'd that'll that's the their theirs them themselves then there there's these "
    "they they'd they'll they're they've this those though through thus to too under until up upon "
    "us very was wasn't we we'd we'll we're we've were weren't what what's when when's where "
    "where's whether which while who who's whom whose why why's will with within without won't "
    "would wouldn't yet you you'd you'll you're you've your yours yourself yourselves";

static em_status add_stop_word(void *to, const char *word, size_t length)
{
    return em_vocabulary_add(to, word, length, NULL);
}

/* Reads the list of stop words. Its words are split as those of documents are. */
static em_status read_stop_words(em_text_corpus *corpus)
{
    const char *from = corpus->options->stop_words;
    EM_SCOPED_BY(em_lines_close) em_lines *lines = NULL;
    char *line = NULL;
    em_status status = em_vocabulary_create(&corpus->stop);

    if (status || strcmp(from, "none") == 0)
        return status;
    if (strcmp(from, "english") == 0)
        return em_words_each(english, strlen(english), add_stop_word, corpus->stop);
    status = em_lines_open(from, &lines);
    status = status ? status : em_lines_next(lines, &line);
    while (!status && line) {
        status = em_lines_check_utf8(lines, line);
        status = status ? status : em_words_each(line, strlen(line), add_stop_word, corpus->stop);
        status = status ? status : em_lines_next(lines, &line);
    }
    return status;
}

static em_status add_given(em_text_corpus *corpus, const char *word)
{
    em_status status = em_vocabulary_add(corpus->term, word, strlen(word), NULL);

    if (!status && strchr(word, BETWEEN))
        status = em_vocabulary_add(corpus->phrase, word, strlen(word), NULL);
    return status;
}

/* Reads the words of another corpus. Those that contain a blank are phrases. */
static em_status read_like(em_text_corpus *corpus)
{
    const char *like = corpus->options->like;
    EM_SCOPED_BY(em_numbers_close) em_numbers *numbers = NULL;
    char **name = NULL;
    em_status status = em_numbers_open(like, EM_NUMBERS_PLACE, &numbers);

    status = status ? status : em_numbers_names(numbers, &name);
    if (!status && (!name || em_numbers_form_of(numbers).n_entry < 0))
        status = em_fail(EM_EDATA, "%s: found no words, expected a corpus with a vocabulary", like);
    const int64_t n = status ? 0 : em_numbers_form_of(numbers).n_column;
    status = status ? status : em_vocabulary_create(&corpus->term);
    status = status ? status : em_vocabulary_create(&corpus->phrase);
    for (int64_t j = 0; !status && j < n; j++)
        status = add_given(corpus, name[j]);
    if (!status && em_vocabulary_size(corpus->term) != n)
        status = em_fail(EM_EDATA, "%s: found a word twice, expected each once", like);
    em_release_texts(n, &name);
    return status;
}

/* ---------------------------------------------------------------- scan */

static em_status add_token(void *to, const char *word, size_t length)
{
    pass *p = to;
    const int64_t number = em_vocabulary_find(p->corpus->term, word, length);

    p->corpus->scanned.n_token++;
    p->corpus->scanned.n_dropped += number < 0;
    return number < 0 ? EM_OK : em_document_rows_add(p->rows, p->document + 1, number, 1);
}

static em_status add_joined(void *to, const char *word, size_t length)
{
    return give_joined(to, word, length, add_token);
}

/* Keeps the name or the label of a document. */
static em_status keep(const pass *p, em_document_texts *to, const char *what, const char *text)
{
    if (text && strlen(text) > EM_WIDEST_NAME)
        return em_fail(EM_EDATA,
                       "%s: found a %s of %zu bytes of document %lld, expected at most %d",
                       p->corpus->options->documents.path, what, strlen(text),
                       (long long)p->document + 1, EM_WIDEST_NAME);
    em_status status = em_reserve(&to->text, &to->capacity, to->n, to->n + 1);

    status = status ? status : em_text_printable(text ? text : "", &to->text[to->n]);
    to->n += !status;
    to->given |= text != NULL;
    return status;
}

static em_status add_document(pass *p, const em_text_document *document)
{
    em_status status = em_words_each(document->text, document->length, add_joined, p);

    status = status ? status : end_phrases(p, add_token);
    p->length = 0;
    status = status ? status : em_document_rows_end(p->rows, p->document + 1);
    status = status ? status : keep(p, &p->corpus->scanned.names, "name", document->name);
    return status ? status : keep(p, &p->corpus->scanned.labels, "label", document->label);
}

static void forget(em_text_scanned *s)
{
    em_release_texts(s->names.n, &s->names.text);
    em_release_texts(s->labels.n, &s->labels.text);
    *s = (em_text_scanned){.n_token = 0};
}

static em_status name_columns(const em_text_corpus *corpus, em_table *table)
{
    const int64_t n = em_vocabulary_size(corpus->term);
    em_status status = em_allocate(n, sizeof *table->name, &table->name);

    table->n_column = status ? 0 : n;
    for (int64_t j = 0; !status && j < n; j++)
        status = em_copy_text(em_vocabulary_word(corpus->term, j), &table->name[j]);
    return status;
}

static em_status scan(pass *p, em_table *table)
{
    em_status status = em_table_make_sparse(table);

    status = status ? status : em_table_begin_run(table, 0);
    status = status ? status : for_each(p, add_document);
    status = status ? status : em_document_rows_finish(p->rows);
    if (!status && p->rows->found == 0)
        status = em_fail(EM_EDATA,
                         "%s: found no words of the vocabulary in %lld documents, expected some",
                         p->corpus->options->documents.path, (long long)p->document);
    return status ? status : name_columns(p->corpus, table);
}

em_status em_text_corpus_scan(em_text_corpus *corpus, em_corpus_take *take, void *to,
                              em_table **out)
{
    const char *path = corpus->options->documents.path;
    EM_SCOPED_BY(em_document_rows_release)
    em_document_rows rows = {.path = path, .take = take, .to = to};
    pass p = {.corpus = corpus, .rows = &rows};
    em_status status = em_table_create(path, out);

    forget(&corpus->scanned);
    if (!status) {
        rows.table = *out;
        (*out)->unnamed = true;
        status = scan(&p, *out);
    }
    if (status)
        em_table_destroy(out);
    return status;
}

/* ---------------------------------------------------------------- all */

em_status em_text_corpus_create(const em_text_options *options, em_text_corpus **out)
{
    em_status status = em_allocate(1, sizeof **out, out);

    if (status)
        return status;
    (*out)->options = options;
    status = read_stop_words(*out);
    status = status ? status : options->like ? read_like(*out) : count_and_choose(*out);
    if (status)
        em_text_corpus_destroy(out);
    return status;
}

void em_text_corpus_destroy(em_text_corpus **out)
{
    em_text_corpus *corpus = *out;

    if (!corpus)
        return;
    em_vocabulary_destroy(&corpus->stop);
    em_vocabulary_destroy(&corpus->word);
    em_vocabulary_destroy(&corpus->phrase);
    em_vocabulary_destroy(&corpus->term);
    forget(&corpus->scanned);
    em_release(out);
}

const em_text_scanned *em_text_corpus_scanned(const em_text_corpus *corpus)
{
    return &corpus->scanned;
}
