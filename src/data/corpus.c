#include "data/corpus.h"

#include "base/fault.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/array.h"
#include "data/lines.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A wild id must not become a table that fills the memory, nor may a count. */
enum { MOST_WORDS = 10000000, LONGEST_DOCUMENT = 50000000 };

const char *const em_corpus_format_names[] = {"auto", "lda-c", "docword", NULL};

/* A file being read: what is expected of it, and whose documents are kept. */
typedef struct reader {
    em_lines *lines;
    em_corpus *corpus;
    int64_t n_word;    /* ids are below it */
    const char *whose; /* words they are */
    int64_t shard, n_shard;
    int64_t total;  /* tokens of the corpus; 0: to be counted, nothing is kept */
    int64_t length; /* tokens of the document being read */
    int64_t used;   /* entries kept */
} reader;

/* ---------------------------------------------------------------- documents */

/* The shard of a document is told by the tokens before it. */
static bool keeps(const reader *r)
{
    const int64_t shard = r->total ? r->corpus->n_token * r->n_shard / r->total : -1;

    return (shard < r->n_shard ? shard : r->n_shard - 1) == r->shard;
}

static em_status add_entry(reader *r, int64_t word, int64_t count)
{
    em_corpus *corpus = r->corpus;
    const int64_t used = r->used;
    em_status status;

    r->length += count;
    if (r->length > LONGEST_DOCUMENT)
        return em_fail(EM_EDATA, "%s:%lld: found a document of more than %d words, expected fewer",
                       r->lines->path, (long long)r->lines->number, LONGEST_DOCUMENT);
    if (word >= corpus->n_word)
        corpus->n_word = word + 1;
    if (!keeps(r))
        return EM_OK;
    status = em_array_reserve(&corpus->word, &corpus->word_capacity, used, used + 1,
                              sizeof *corpus->word);
    if (!status)
        status = em_array_reserve(&corpus->count, &corpus->count_capacity, used, used + 1,
                                  sizeof *corpus->count);
    if (status)
        return status;
    corpus->word[used] = (int32_t)word;
    corpus->count[used] = (int32_t)count;
    r->used++;
    return EM_OK;
}

static em_status end_document(reader *r)
{
    em_corpus *corpus = r->corpus;
    const int64_t n = corpus->n_local;
    em_status status = EM_OK;

    if (keeps(r)) {
        status = em_array_reserve(&corpus->start, &corpus->start_capacity, n + 1, n + 2,
                                  sizeof *corpus->start);
        if (status)
            return status;
        if (n == 0) {
            corpus->first_document = corpus->n_document;
            corpus->first_token = corpus->n_token;
        }
        corpus->start[n + 1] = r->used;
        corpus->n_local++;
    }
    corpus->n_token += r->length;
    r->length = 0;
    corpus->n_document++;
    return status;
}

/* ---------------------------------------------------------------- numbers */

/* Skips blanks; true at the end of the line. */
static bool at_end(const char **at)
{
    while (**at == ' ' || **at == '\t')
        ++*at;
    return **at == '\0';
}

/* The word of text that begins here, for messages. */
static em_excerpt token_at(const char *at)
{
    char token[80];
    const size_t length = strcspn(at, " \t");

    snprintf(token, sizeof token, "%.*s", (int)(length < 79 ? length : 79), at);
    return em_excerpt_of(token);
}

/* An integer of least .. most, followed by `stop` (a blank stands for the end of the line too). */
static em_status parse(const reader *r, const char **at, char stop, int64_t least, int64_t most,
                       const char *what, const char *why, int64_t *out)
{
    const char *digit = *at;
    int64_t value = 0;

    while (*digit >= '0' && *digit <= '9' && digit - *at < 15)
        value = 10 * value + (*digit++ - '0');
    const bool ends =
        stop == ' ' ? *digit == ' ' || *digit == '\t' || *digit == '\0' : *digit == stop;
    if (digit == *at || !ends || value < least || value > most)
        return em_fail(EM_EDATA, "%s:%lld: found '%s', expected %s%san integer from %lld to %lld%s",
                       r->lines->path, (long long)r->lines->number, token_at(*at).text, what,
                       *what ? ", " : "", (long long)least, (long long)most, why);
    *at = digit + (stop != ' ');
    *out = value;
    return EM_OK;
}

static em_status parse_count(const reader *r, const char **at, int64_t *count)
{
    return parse(r, at, ' ', 1, LONGEST_DOCUMENT, "a count", "", count);
}

static em_status parse_word(const reader *r, const char **at, char stop, int64_t first,
                            int64_t *word)
{
    em_status status =
        parse(r, at, stop, first, first + r->n_word - 1,
              stop == ':' ? "id:count with a word's id" : "a word's id", r->whose, word);

    *word -= first;
    return status;
}

static em_status expected_end(const reader *r, const char *at, const char *after)
{
    return em_fail(EM_EDATA, "%s:%lld: found '%s', expected the end of the line after %s",
                   r->lines->path, (long long)r->lines->number, token_at(at).text, after);
}

/* ---------------------------------------------------------------- LDA-C */

/* N id:count ... with ids from 0, N of them. */
static em_status read_lda_c_line(reader *r, const char *line)
{
    int64_t n = 0, found = 0, word = 0, count = 0;
    em_status status;

    at_end(&line);
    status = parse(r, &line, ' ', 0, MOST_WORDS, "the number of words of a document", "", &n);
    while (!status && !at_end(&line)) {
        status = parse_word(r, &line, ':', 0, &word);
        if (!status)
            status = parse_count(r, &line, &count);
        if (!status)
            status = add_entry(r, word, count);
        found++;
    }
    if (!status && found != n)
        status =
            em_fail(EM_EDATA,
                    "%s:%lld: found %lld entries id:count, expected %lld as the "
                    "line says",
                    r->lines->path, (long long)r->lines->number, (long long)found, (long long)n);
    return status ? status : end_document(r);
}

static em_status read_lda_c(reader *r, char *line)
{
    em_status status = EM_OK;

    while (!status && line) {
        status = read_lda_c_line(r, line);
        if (!status)
            status = em_lines_next(r->lines, &line);
    }
    return status;
}

/* ---------------------------------------------------------------- UCI docword */

static em_status ended_early(const reader *r, const char *expected, int64_t n)
{
    return em_fail(EM_EDATA, "%s:%lld: found the end of the file after this line, expected %s %lld",
                   r->lines->path, (long long)r->lines->number, expected, (long long)n);
}

/* A line of the header: one number, and the next line after it. */
static em_status read_header(reader *r, char **line, const char *what, int64_t most, int64_t *n)
{
    const char *at = *line;
    em_status status;

    if (!*line)
        return em_fail(EM_EDATA, "%s:%lld: found the end of the file after this line, expected %s",
                       r->lines->path, (long long)r->lines->number, what);
    at_end(&at);
    status = parse(r, &at, ' ', 1, most, what, "", n);
    if (!status && !at_end(&at))
        status = expected_end(r, at, what);
    return status ? status : em_lines_next(r->lines, line);
}

/* document word count, both numbered from 1; documents ascend, and some may be empty. */
static em_status read_triple(reader *r, const char *line, int64_t n_document)
{
    int64_t document = 0, word = 0, count = 0;
    em_status status;

    at_end(&line);
    status = parse(r, &line, ' ', 1, n_document, "a document's number",
                   " (the documents that the header says)", &document);
    if (!status && document <= r->corpus->n_document)
        status = em_fail(EM_EDATA,
                         "%s:%lld: found document %lld after %lld, expected documents in "
                         "order",
                         r->lines->path, (long long)r->lines->number, (long long)document,
                         (long long)r->corpus->n_document + 1);
    while (!status && r->corpus->n_document < document - 1)
        status = end_document(r);
    if (!status && !at_end(&line))
        status = parse_word(r, &line, ' ', 1, &word);
    if (!status && !at_end(&line))
        status = parse_count(r, &line, &count);
    if (!status && count == 0)
        status = em_fail(EM_EDATA,
                         "%s:%lld: found a line that ends early, expected document, word "
                         "and count",
                         r->lines->path, (long long)r->lines->number);
    if (!status && !at_end(&line))
        status = expected_end(r, line, "the count");
    return status ? status : add_entry(r, word, count);
}

static em_status read_docword(reader *r, char *line)
{
    const int64_t known = r->corpus->name ? r->n_word : 0;
    int64_t n_document = 0, n_word = 0, n_entry = 0, found = 0;
    em_status status = read_header(r, &line, "the number of documents", INT32_MAX, &n_document);

    if (!status)
        status = read_header(r, &line, "the number of words", MOST_WORDS, &n_word);
    if (!status && known && n_word > known)
        status = em_fail(EM_EDATA,
                         "%s:2: found %lld words, expected at most the %lld of the "
                         "vocabulary",
                         r->lines->path, (long long)n_word, (long long)known);
    if (!status && n_word < r->n_word)
        r->n_word = n_word;
    r->whose = " (the words that the header says)";
    if (!status)
        status = read_header(r, &line, "the number of entries", INT64_C(100000000000000), &n_entry);
    for (; !status && line && found < n_entry; found++) {
        status = read_triple(r, line, n_document);
        if (!status)
            status = em_lines_next(r->lines, &line);
    }
    if (!status && line)
        status = em_fail(EM_EDATA,
                         "%s:%lld: found more than the %lld entries that the header says, "
                         "expected the end of the file",
                         r->lines->path, (long long)r->lines->number, (long long)n_entry);
    if (!status && found < n_entry)
        status = ended_early(r, "entries as many as the header says:", n_entry);
    while (!status && r->corpus->n_document < n_document)
        status = end_document(r);
    if (!status && r->corpus->n_word < n_word)
        r->corpus->n_word = n_word;
    return status;
}

/* ---------------------------------------------------------------- files */

/* One number above 0, and nothing else: no line of LDA-C is that. */
static bool is_count_alone(const char *line)
{
    char *end;

    return strtoll(line, &end, 10) > 0 && end[strspn(end, " \t")] == '\0';
}

static em_status read_documents(reader *r, const em_corpus_options *options)
{
    char *line = NULL;
    em_status status = em_lines_next(r->lines, &line);
    const bool docword = options->format == EM_CORPUS_DOCWORD ||
                         (options->format == EM_CORPUS_AUTO && line && is_count_alone(line));

    if (!status && !line)
        status = em_fail(EM_EDATA, "%s:1: found an empty file, expected a corpus", options->data);
    if (!status)
        status = docword ? read_docword(r, line) : read_lda_c(r, line);
    if (!status && r->corpus->n_token == 0)
        status =
            em_fail(EM_EDATA, "%s:%lld: found no words in %lld documents, expected some",
                    options->data, (long long)r->lines->number, (long long)r->corpus->n_document);
    return status;
}

/* One word a line. */
static em_status read_vocabulary(const char *path, em_corpus *corpus)
{
    em_lines *lines = NULL;
    char *line = NULL;
    int64_t capacity = 0;
    em_status status = em_lines_open(path, &lines);

    while (!status && !(status = em_lines_next(lines, &line)) && line) {
        if (corpus->n_word == MOST_WORDS)
            status = em_fail(EM_EDATA, "%s:%lld: found more than %d words, expected fewer", path,
                             (long long)lines->number, MOST_WORDS);
        else
            status = em_array_reserve(&corpus->name, &capacity, corpus->n_word, corpus->n_word + 1,
                                      sizeof *corpus->name);
        if (!status)
            status = em_text_valid(line + strspn(line, " \t"), &corpus->name[corpus->n_word]);
        corpus->n_word += !status;
    }
    if (!status && corpus->n_word == 0)
        status = em_fail(EM_EDATA, "%s:1: found an empty file, expected one word a line", path);
    if (!status)
        corpus->hash = em_lines_hash(lines);
    em_lines_close(&lines);
    return status;
}

/* All documents once: counts them, and keeps those of the shard when it is known which these are.
 */
static em_status read_once(const em_corpus_options *options, reader *r)
{
    em_corpus *corpus = r->corpus;
    em_status status = em_lines_open(options->data, &r->lines);

    corpus->n_document = corpus->n_token = 0;
    if (!status)
        status = read_documents(r, options);
    if (!status && r->total)
        corpus->hash ^= em_lines_hash(r->lines);
    em_lines_close(&r->lines);
    return status;
}

static em_status read_corpus(const em_corpus_options *options, int64_t n_word, reader *r)
{
    em_corpus *corpus = r->corpus;
    int64_t n_known;
    em_status status =
        em_array_reserve(&corpus->start, &corpus->start_capacity, 0, 1, sizeof *corpus->start);

    if (!status && em_fault("data"))
        status = em_fail(EM_EDATA, "%s:1: found a fault injected by EMASS_FAULT, expected data",
                         options->data);
    if (!status && options->vocabulary)
        status = read_vocabulary(options->vocabulary, corpus);
    n_known = n_word ? n_word : corpus->n_word;
    r->n_word = n_known ? n_known : MOST_WORDS;
    r->whose = corpus->name ? " (the words of the vocabulary)" : n_word ? " (the words known)" : "";
    r->total = r->n_shard == 1;
    if (!status)
        status = read_once(options, r);
    if (!status && r->n_shard > 1) {
        r->total = corpus->n_token;
        status = read_once(options, r);
    }
    if (!status && n_known)
        corpus->n_word = n_known;
    return status ? status : em_copy_text(options->data, &corpus->path);
}

em_status em_corpus_read(const em_corpus_options *options, int64_t n_word, int64_t shard,
                         int64_t n_shard, em_corpus **out)
{
    em_status status = em_allocate(1, sizeof **out, out);

    if (!status)
        status = read_corpus(options, n_word,
                             &(reader){.corpus = *out, .shard = shard, .n_shard = n_shard});
    if (status)
        em_corpus_destroy(out);
    return status;
}

void em_corpus_destroy(em_corpus **out)
{
    em_corpus *corpus = *out;

    if (!corpus)
        return;
    for (int64_t i = 0; corpus->name && i < corpus->n_word; i++)
        em_release(&corpus->name[i]);
    em_release(&corpus->name);
    em_release(&corpus->path);
    em_release(&corpus->start);
    em_release(&corpus->word);
    em_release(&corpus->count);
    em_release(out);
}
