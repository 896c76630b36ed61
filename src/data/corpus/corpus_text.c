/* Corpora in text, read as tables whose rows are documents and whose columns are words. Each rank
 * reads a part of the lines. All lines of a document of UCI docword are read by one rank, and
 * documents without lines are rows, too. */
#include "base/memory.h"
#include "base/text.h"
#include "data/corpus/document_rows.h"
#include "data/reader/parallel_lines.h"
#include "par/message.h"
#include "par/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Limits that prevent that a damaged id, count or header exhausts memory. */
enum { LONGEST_DOCUMENT = EM_LONGEST_DOCUMENT, EMPTY_FOR_ENTRY = 1000 };

/* The documents in one run of lines of a docword file. */
typedef struct line_run {
    int64_t order, first, last, line; /* line: of the first */
} line_run;

/* A file being read. */
typedef struct corpus_reading {
    const char *path;
    em_table *table;
    em_document_rows rows;
    bool docword, alone;         /* alone: one rank reads all lines, in their order */
    bool market;                 /* docword with the header of Matrix Market */
    bool by_columns, pattern;    /* Matrix Market: columns are documents; entries have no counts */
    int64_t n_word;              /* ids are below it */
    bool exact;                  /* and a header must say it */
    bool other_words;            /* they are those of another corpus */
    const char *whose;           /* words they are */
    int64_t n_document, n_entry; /* that a docword header says */
    em_lines *lines;             /* of the run being read */
    int64_t document;            /* being read, of docword; 0: none so far */
    line_run *line_run;
    int64_t n_line_run, line_run_capacity;
} corpus_reading;

/* ---------------------------------------------------------------- documents */

static em_status end_document(corpus_reading *r)
{
    return em_document_rows_end(&r->rows, r->lines ? r->lines->number : 0);
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

/* Reads an integer of least .. most that ends at `stop`. A blank as `stop` also stands for the end
 * of the line. */
static em_status parse(const em_lines *lines, const char **at, char stop, int64_t least,
                       int64_t most, const char *what, const char *why, int64_t *out)
{
    const char *digit = *at;
    int64_t value = 0;

    while (*digit >= '0' && *digit <= '9' && digit - *at < 15)
        value = 10 * value + (*digit++ - '0');
    const bool ends =
        stop == ' ' ? *digit == ' ' || *digit == '\t' || *digit == '\0' : *digit == stop;
    if (digit == *at || !ends || value < least || value > most)
        return em_fail(EM_EDATA, "%s:%lld: found '%s', expected %s%san integer from %lld to %lld%s",
                       lines->path, (long long)lines->number, token_at(*at).text, what,
                       *what ? ", " : "", (long long)least, (long long)most, why);
    *at = digit + (stop != ' ');
    *out = value;
    return EM_OK;
}

static em_status parse_count(const corpus_reading *r, const char **at, int64_t *count)
{
    return parse(r->lines, at, ' ', 1, LONGEST_DOCUMENT, "a count", "", count);
}

static em_status parse_word(const corpus_reading *r, const char **at, char stop, int64_t first,
                            int64_t *word)
{
    em_status status =
        parse(r->lines, at, stop, first, first + r->n_word - 1,
              stop == ':' ? "id:count with a word's id" : "a word's id", r->whose, word);

    *word -= first;
    return status;
}

static em_status expected_end(const em_lines *lines, const char *at, const char *after)
{
    return em_fail(EM_EDATA, "%s:%lld: found '%s', expected the end of the line after %s",
                   lines->path, (long long)lines->number, token_at(at).text, after);
}

/* ---------------------------------------------------------------- LDA-C */

/* What to do about a file of text, for messages. */
static const char *advice_on_text(const corpus_reading *r)
{
    return r->other_words
               ? " (emass convert --like CORPUS.h5 makes a corpus of text, with the words of that "
                 "one: --format text, or --text COLUMN of a table)"
               : " (emass convert makes a corpus of text: --format text, or --text COLUMN of a "
                 "table)";
}

/* Reads a line "N id:count ..." of LDA-C: N pairs with ids from 0. */
static em_status read_lda_c_line(corpus_reading *r, const char *line)
{
    int64_t n = 0, found = 0, word = 0, count = 0;

    at_end(&line);
    em_status status =
        parse(r->lines, &line, ' ', 0, EM_MOST_WORDS, "the number of words of a document",
              *line >= '0' && *line <= '9' ? "" : advice_on_text(r), &n);
    while (!status && !at_end(&line)) {
        status = parse_word(r, &line, ':', 0, &word);
        status = status ? status : parse_count(r, &line, &count);
        status = status ? status : em_document_rows_add(&r->rows, r->lines->number, word, count);
        found++;
    }
    if (!status && found != n)
        status = em_fail(EM_EDATA,
                         "%s:%lld: found %lld entries id:count, expected %lld as the line says",
                         r->path, (long long)r->lines->number, (long long)found, (long long)n);
    return status ? status : end_document(r);
}

/* ---------------------------------------------------------------- UCI docword */

static em_status out_of_order(const corpus_reading *r, int64_t line, int64_t document,
                              int64_t after)
{
    const char *advice = !r->market      ? ""
                         : r->by_columns ? " (scipy.io.mmwrite(FILE, M.tocsc()) writes them so)"
                                         : " (scipy.io.mmwrite(FILE, M.tocsr()) writes them so; "
                                           "mtx-columns: columns are documents)";

    return em_fail(EM_EDATA,
                   "%s:%lld: found document %lld after %lld, expected documents in order%s",
                   r->path, (long long)line, (long long)document, (long long)after, advice);
}

/* Advances to the document of this line. Documents that are skipped have no words. */
static em_status go_to(corpus_reading *r, int64_t document)
{
    em_status status = EM_OK;

    if (document < r->document)
        return out_of_order(r, r->lines->number, document, r->document);
    if (r->document == 0 && !r->alone)
        r->line_run[r->n_line_run - 1].first = document;
    else
        for (int64_t d = r->document > 0 ? r->document : 1; !status && d < document; d++)
            status = end_document(r);
    r->document = document;
    return status;
}

static em_status parse_document(corpus_reading *r, const char **line)
{
    int64_t document = 0;
    const em_status status = parse(r->lines, line, ' ', 1, r->n_document, "a document's number",
                                   " (the documents that the header says)", &document);

    return status ? status : go_to(r, document);
}

/* Reads a count of a Matrix Market file, which may be written as a real number (3 or 3.0e+00). A
 * file of kind pattern has no counts. */
static em_status parse_entry(const corpus_reading *r, const char **line, int64_t *count)
{
    const size_t length = strcspn(*line, " \t");
    char token[64];
    double value = 0;

    *count = 1;
    if (r->pattern)
        return EM_OK;
    if (!r->market)
        return parse_count(r, line, count);
    snprintf(token, sizeof token, "%.*s", (int)(length < 63 ? length : 63), *line);
    const em_status status = em_lines_number(r->lines, token, "the count", &value);
    if (!status && !(value >= 1 && value <= LONGEST_DOCUMENT && value == (double)(int64_t)value))
        return em_fail(EM_EDATA, "%s:%lld: found '%s', expected a count, an integer from 1 to %d",
                       r->path, (long long)r->lines->number, token_at(*line).text,
                       LONGEST_DOCUMENT);
    *count = (int64_t)value;
    *line += length;
    return status;
}

/* Reads a line "document word count", both numbered from 1, or "word document count". */
static em_status read_triple(corpus_reading *r, const char *line)
{
    int64_t word = 0, count = 0;
    em_status status = EM_OK;

    at_end(&line);
    if (!r->by_columns)
        status = parse_document(r, &line);
    if (!status && !at_end(&line))
        status = parse_word(r, &line, ' ', 1, &word);
    if (!status && r->by_columns && !at_end(&line))
        status = parse_document(r, &line);
    if (!status && !at_end(&line))
        status = parse_entry(r, &line, &count);
    else if (!status)
        count = r->pattern;
    if (!status && count == 0)
        status = em_fail(EM_EDATA,
                         "%s:%lld: found a line that ends early, expected document, word and count",
                         r->path, (long long)r->lines->number);
    if (!status && !at_end(&line))
        status = expected_end(r->lines, line, "the count");
    return status ? status : em_document_rows_add(&r->rows, r->lines->number, word, count);
}

static int64_t document_of(const char *line)
{
    line += strspn(line, " \t\r");
    return *line == '\n' || *line == '\0' ? -1 : strtoll(line, NULL, 10);
}

/* The document of a line in a matrix whose columns are documents: its second number. */
static int64_t second_number_of(const char *line)
{
    line += strspn(line, " \t\r");
    return document_of(line + strspn(line, "0123456789"));
}

static em_status begin_line_run(corpus_reading *r, int64_t order)
{
    em_status status =
        em_reserve(&r->line_run, &r->line_run_capacity, r->n_line_run, r->n_line_run + 1);

    if (!status)
        r->line_run[r->n_line_run++] = (line_run){order, 0, 0, r->lines->number + 1};
    r->document = 0;
    return status;
}

static em_status end_line_run(corpus_reading *r)
{
    line_run *own = &r->line_run[r->n_line_run - 1];

    own->last = r->document;
    if (r->document > 0)
        return end_document(r);
    r->n_line_run--; /* there was no line in it */
    return EM_OK;
}

/* Documents without words between two runs of lines, or after the last run, are held by the rank of
 * the run before them. */
static em_status fill_gaps(corpus_reading *r, int64_t n, const line_run *all)
{
    const line_run begin = {.order = -1}, end = {.first = r->n_document + 1};
    int64_t own = 0; /* of this rank's, the next one */
    em_status status = EM_OK;

    for (int64_t i = -1; !status && i < n; i++) {
        const line_run *before = i < 0 ? &begin : &all[i], *next = i + 1 < n ? &all[i + 1] : &end;
        const bool holds = i < 0 ? em_world_rank() == 0
                                 : own < r->n_line_run && r->line_run[own].order == before->order;
        own += holds && i >= 0;
        if (next->first <= before->last)
            return out_of_order(r, next->line, next->first, before->last);
        if (holds && next->first - before->last > 1)
            status = em_table_begin_run(r->table, 2 * before->order + 1);
        for (int64_t d = before->last + 1; !status && holds && d < next->first; d++)
            status = em_table_end_row(r->table, 0);
    }
    return status;
}

/* Collective. `line` is the last one of the file. */
static em_status finish_docword(corpus_reading *r, int64_t line)
{
    int64_t n, found = r->rows.found;
    EM_SCOPED line_run *all = NULL;
    em_status status = EM_OK;

    em_world_sum(1, &found);
    r->lines = NULL; /* they are closed */
    if (found != r->n_entry)
        return em_fail(
            EM_EDATA, "%s:%lld: found %s after %lld entries, expected %lld as the header says",
            r->path, (long long)line, found < r->n_entry ? "the end of the file" : "more lines",
            (long long)(found < r->n_entry ? found : r->n_entry), (long long)r->n_entry);
    if (r->alone) {
        for (; !status && r->document <= r->n_document; r->document++)
            status = end_document(r);
        return status;
    }
    status = em_world_gather(r->n_line_run, sizeof *all, r->line_run, &n, &all);
    if (!status) {
        qsort(all, (size_t)n, sizeof *all, em_by_first_integer);
        status = em_agree_first(fill_gaps(r, n, all), 0);
    }
    return status;
}

/* The most documents, words and entries. */
static const int64_t most_in_header[] = {INT32_MAX, EM_MOST_WORDS, INT64_C(100000000000000)};

/* A line of the header: one number. */
static em_status read_header_line(em_lines *lines, const char *what, int64_t most, int64_t *n)
{
    char *line;
    em_status status = em_lines_next(lines, &line);

    if (!status && !line)
        return em_fail(EM_EDATA, "%s:%lld: found the end of the file after this line, expected %s",
                       lines->path, (long long)lines->number, what);
    const char *at = line;
    if (!status && !at_end(&at))
        status = parse(lines, &at, ' ', 1, most, what, "", n);
    if (!status && !at_end(&at))
        status = expected_end(lines, at, what);
    return status;
}

/* Reads the header of a Matrix Market file: comments, and a line with the numbers of rows, columns
 * and entries. */
static em_status read_market_header(const corpus_reading *r, em_lines *lines, int64_t header[3])
{
    static const char *const what[] = {"the number of rows", "the number of columns",
                                       "the number of entries"};
    char *line = NULL;
    em_status status = em_lines_next(lines, &line);

    while (!status && line && *line == '%')
        status = em_lines_next(lines, &line);
    if (!status && !line)
        return em_fail(EM_EDATA, "%s:%lld: found the end of the file, expected %s", lines->path,
                       (long long)lines->number, what[0]);
    const char *at = line;
    for (int i = 0; !status && i < 3; i++) {
        const int to = i < 2 && r->by_columns ? 1 - i : i;
        at_end(&at);
        status = parse(lines, &at, ' ', 1, most_in_header[to], what[i], "", &header[to]);
    }
    return !status && !at_end(&at) ? expected_end(lines, at, what[2]) : status;
}

static em_status read_docword_header(em_lines *lines, int64_t header[3])
{
    static const char *const what[] = {"the number of documents", "the number of words",
                                       "the number of entries"};
    em_status status = EM_OK;

    for (int i = 0; !status && i < 3; i++)
        status = read_header_line(lines, what[i], most_in_header[i], &header[i]);
    return status;
}

static em_status read_header(const corpus_reading *r, em_lines *lines, int64_t header[3])
{
    em_status status =
        r->market ? read_market_header(r, lines, header) : read_docword_header(lines, header);

    if (!status && r->n_word < EM_MOST_WORDS &&
        (header[1] > r->n_word || (r->exact && header[1] < r->n_word)))
        status = em_fail(EM_EDATA, "%s:%lld: found %lld words, expected %s%lld%s", r->path,
                         (long long)(r->market ? lines->number : 2), (long long)header[1],
                         r->exact ? "" : "at most ", (long long)r->n_word, r->whose);
    if (!status && header[0] / EMPTY_FOR_ENTRY > header[2])
        status = em_fail(
            EM_EDATA,
            "%s:%lld: found %lld entries of %lld documents, expected one of each %d at least",
            r->path, (long long)lines->number, (long long)header[2], (long long)header[0],
            EMPTY_FOR_ENTRY);
    return status;
}

/* Rank 0 reads the header for all ranks. Collective. */
static em_status begin_docword(corpus_reading *r, em_parallel_lines_head *head)
{
    em_lines *lines = NULL;
    int64_t header[5] = {0};
    em_status status = EM_OK;

    if (em_world_rank() == 0) {
        status = em_lines_open(r->path, &lines);
        status = status ? status : read_header(r, lines, header);
        if (!status) {
            header[3] = lines->number;
            header[4] = em_lines_offset(lines);
        }
        em_lines_close(&lines);
    }
    status = em_agree_first(status, 0);
    em_broadcast(header, sizeof header);
    r->n_document = header[0];
    r->n_entry = header[2];
    head->number = header[3];
    head->offset = header[4];
    r->table->n_column = header[1];
    r->n_word = em_least(r->n_word, header[1]);
    r->whose = " (the words that the header says)";
    return status;
}

/* ---------------------------------------------------------------- files */

static em_status read_run(corpus_reading *r)
{
    char *line = NULL;
    em_status status = em_lines_next(r->lines, &line);

    while (!status && line) {
        status = r->docword ? read_triple(r, line) : read_lda_c_line(r, line);
        status = status ? status : em_lines_next(r->lines, &line);
    }
    return status;
}

/* Reads runs of lines while other ranks read others. Runs of rows have even orders, so that runs
 * without words can come between them. Local. */
static em_status read_runs(em_parallel_lines *input, corpus_reading *r)
{
    int64_t order;
    em_status status = em_parallel_lines_next(input, &r->lines, &order);

    while (!status && r->lines) {
        status = em_table_begin_run(r->table, 2 * order);
        if (!status && r->docword && !r->alone)
            status = begin_line_run(r, order);
        status = status ? status : read_run(r);
        if (!status && r->docword && !r->alone)
            status = end_line_run(r);
        status = status ? status : em_parallel_lines_next(input, &r->lines, &order);
    }
    return status;
}

static em_status read_documents(corpus_reading *r, const em_parallel_lines_head *head)
{
    em_parallel_lines *input;
    int64_t counts[2] = {0};
    em_status status = em_parallel_lines_open(r->path, head, r->docword,
                                              !r->docword     ? NULL
                                              : r->by_columns ? second_number_of
                                                              : document_of,
                                              &input);

    if (status)
        return status;
    status = read_runs(input, r);
    double line = (double)em_parallel_lines_line(input);
    em_parallel_lines_close(&input);
    status = em_agree_first(status, (int64_t)line);
    if (status)
        return status;
    em_world_largest(1, &line);
    if (r->docword)
        status = finish_docword(r, (int64_t)line);
    counts[0] = r->rows.found;
    counts[1] = r->rows.n_row;
    em_world_sum(2, counts);
    status = status ? status : em_document_rows_finish(&r->rows);
    if (!status && counts[0] == 0)
        status = em_fail(EM_EDATA, "%s:%lld: found no words in %lld documents, expected some",
                         r->path, (long long)line, (long long)counts[1]);
    return status;
}

/* Whether the line consists of one number above 0. No line of LDA-C does. */
static bool is_count_alone(const char *line)
{
    char *end;

    return strtoll(line, &end, 10) > 0 && end[strspn(end, " \t")] == '\0';
}

/* Checks the first line of a Matrix Market file, which names the kind of the entries. */
static em_status check_market_kind(corpus_reading *r, const em_corpus_options *options,
                                   const char *line)
{
    char kind[32] = "", symmetry[16] = "";
    const int n = sscanf(line, "%%%%MatrixMarket matrix coordinate %31s %15s", kind, symmetry);

    r->pattern = strcasecmp(kind, "pattern") == 0;
    if (n == 2 && strcasecmp(symmetry, "general") == 0 && strcasecmp(kind, "complex") != 0 &&
        options->format != EM_CORPUS_LDA_C && options->format != EM_CORPUS_DOCWORD)
        return EM_OK;
    return em_fail(EM_EDATA, "%s:1: found '%s', expected %s", r->path, em_excerpt_of(line).text,
                   options->format == EM_CORPUS_LDA_C || options->format == EM_CORPUS_DOCWORD
                       ? "a corpus of another format"
                       : "%%MatrixMarket matrix coordinate, integer, real or pattern, general");
}

static em_status read_after(const em_corpus_options *options, em_parallel_lines_head *head,
                            corpus_reading *r)
{
    em_status status = EM_OK;

    if (!head->line)
        return em_fail(EM_EDATA, "%s:1: found an empty file, expected a corpus", r->path);
    r->market = strncmp(head->line, "%%MatrixMarket", strlen("%%MatrixMarket")) == 0;
    r->by_columns = options->format == EM_CORPUS_MARKET_COLUMNS;
    if (r->market || r->by_columns || options->format == EM_CORPUS_MARKET)
        status = check_market_kind(r, options, head->line);
    r->docword = r->market || options->format == EM_CORPUS_DOCWORD ||
                 (options->format == EM_CORPUS_AUTO && is_count_alone(head->line));
    if (!status && r->docword)
        status = begin_docword(r, head);
    status = status ? status : read_documents(r, head);
    if (status)
        return status;
    double n_word = (double)r->table->n_column;
    em_world_largest(1, &n_word);
    r->table->n_column = (int64_t)n_word;
    return EM_OK;
}

em_status em_corpus_read_text(const em_corpus_options *options, int64_t n_word, bool exact,
                              const char *whose, em_corpus_take *take, void *to, em_table *table)
{
    corpus_reading r = {.path = options->data,
                        .table = table,
                        .rows = {.path = options->data, .table = table, .take = take, .to = to},
                        .alone = em_world_size() == 1,
                        .n_word = n_word ? n_word : EM_MOST_WORDS,
                        .exact = exact,
                        .other_words = n_word && !options->vocabulary,
                        .whose = whose};
    em_parallel_lines_head head;
    em_status status = em_agree_first(em_table_make_sparse(table), 0);

    status = status ? status : em_parallel_lines_read_head(options->data, &head);
    if (!status) {
        status = read_after(options, &head, &r);
        em_release(&head.line);
    }
    em_document_rows_release(&r.rows);
    em_release(&r.line_run);
    return status;
}
