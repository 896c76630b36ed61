#include "app/command/command.h"

#include "app/summary/command_arguments.h"
#include "base/file.h"
#include "base/text.h"
#include "data/corpus/corpus_table.h"
#include "data/reader/readers.h"
#include "data/shard/redistribute_rows.h"
#include "data/table/column_moments.h"
#include "data/text/text_corpus.h"
#include "io/hdf5/numbers.h"
#include "par/message.h"
#include "par/world.h"
#include "run/transaction/atomic_file.h"

#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SHOWN = 40 }; /* columns of the summary */

/* The defaults of the options that choose words. */
enum { LEAST_DOCUMENTS = 5, MOST_WORDS = 50000 };
static const double most_share = 0.5;

/* What a pass over the documents of a corpus has found so far. */
typedef struct counts {
    int64_t n_row, n_entry, n_token, n_empty;
    uint64_t hash;
} counts;

typedef struct conversion {
    em_table_options options; /* .data: what is read */
    em_corpus_options corpus; /* the same, of a corpus */
    em_text_options text;     /* the same, of documents in text */
    bool is_corpus, is_text;
    const char *output;
    int overwrite;
    em_atomic_file *file;      /* of the output */
    FILE *found;               /* rank 0: what was read, printed when the output is complete */
    em_numbers_writer *writer; /* of rank 0 */
    em_text_corpus *documents; /* of rank 0, of documents in text */
    int64_t n_entry;           /* written so far */
    counts counted, written;   /* of a corpus: all documents, and those written so far */
} conversion;

/* ---------------------------------------------------------------- the command line */

/* Decides what the input is. With a format of a corpus or with a vocabulary it is a corpus. With a
 * column of text, or with one document a line, it is text. */
static em_status take_format(const char *format, const char *vocabulary, conversion *c)
{
    c->is_text = c->text.documents.text || (format && strcmp(format, "text") == 0);
    if (c->is_text && vocabulary)
        return em_fail(EM_EUSAGE, "convert: found --vocabulary with a corpus of text, expected "
                                  "--like FILE.h5, whose words it uses, or a corpus of counts");
    if (c->is_text)
        return EM_OK;
    c->is_corpus = vocabulary || em_text_ends_with(c->text.documents.path, ".mtx") ||
                   em_text_ends_with(c->text.documents.path, ".mtx.gz") ||
                   (format && em_text_find(format, em_corpus_format_names) > EM_CORPUS_AUTO);
    if (!c->is_corpus)
        return em_command_choice("convert", "format", format, em_table_format_names,
                                 &c->options.format);
    const em_status status =
        em_command_choice("convert", "format", format, em_corpus_format_names, &c->corpus.format);
    c->corpus.vocabulary = (char *)vocabulary;
    return status;
}

static bool asks_words(const em_text_options *t)
{
    return t->like || t->phrases != 0 || t->least_documents != LEAST_DOCUMENTS ||
           t->most_share != most_share || t->most_words != MOST_WORDS ||
           strcmp(t->stop_words, "english") != 0;
}

static em_status check_text_options(const conversion *c)
{
    const em_text_options *t = &c->text;

    if (!c->is_text && (t->documents.name || t->documents.label || asks_words(t)))
        return em_fail(EM_EUSAGE, "convert: found an option of documents in text, expected --text "
                                  "COLUMN or --format text with it");
    if (!t->documents.text && (t->documents.name || t->documents.label))
        return em_fail(EM_EUSAGE, "convert: found --name or --label, expected --text COLUMN too");
    if (t->least_documents < 1)
        return em_fail(EM_EUSAGE, "convert: found --min-documents=%lld, expected at least 1",
                       (long long)t->least_documents);
    if (t->most_words < 1 || t->most_words > EM_MOST_WORDS)
        return em_fail(EM_EUSAGE, "convert: found --max-words=%lld, expected 1 to %d",
                       (long long)t->most_words, EM_MOST_WORDS);
    if (!(t->most_share > 0 && t->most_share <= 1))
        return em_fail(EM_EUSAGE,
                       "convert: found --max-share=%g, expected a share above 0, at most 1",
                       t->most_share);
    if (!(t->phrases >= 0))
        return em_fail(EM_EUSAGE, "convert: found --phrases=%g, expected a threshold above 0",
                       t->phrases);
    return EM_OK;
}

/* ---------------------------------------------------------------- rows */

static em_status write_sparse(conversion *c, const em_row_block *piece)
{
    const int64_t n = piece->start[piece->count] - piece->start[0];
    EM_SCOPED int64_t *start = NULL;
    em_status status = em_allocate(piece->count, sizeof *start, &start);

    for (int64_t i = 0; !status && i < piece->count; i++)
        start[i] = c->n_entry + piece->start[i + 1] - piece->start[0];
    if (!status)
        status = em_numbers_write(c->writer, EM_NUMBERS_START, piece->row + 1, piece->count, start);
    if (!status)
        status = em_numbers_write(c->writer, EM_NUMBERS_COLUMN, c->n_entry, n, piece->column);
    if (!status)
        status = em_numbers_write(c->writer, EM_NUMBERS_VALUE, c->n_entry, n, piece->value);
    c->n_entry += n;
    return status;
}

static em_status take(void *to, const em_row_block *piece)
{
    conversion *c = to;
    em_status status = piece->start ? write_sparse(c, piece)
                                    : em_numbers_write(c->writer, EM_NUMBERS_VALUE, piece->row,
                                                       piece->count, piece->value);

    if (!status && piece->response)
        status = em_numbers_write(c->writer, EM_NUMBERS_RESPONSE, piece->row, piece->count,
                                  piece->response);
    return status;
}

/* Rank 0. */
static em_status create(const em_table *table, conversion *c)
{
    const char *slash = strrchr(c->options.data, '/');
    const em_numbers_form form = {.n_row = table->total,
                                  .n_column = table->n_column,
                                  .n_entry = table->column ? table->total_entries : -1,
                                  .labelled = table->response != NULL,
                                  .hash = table->hash};
    const int64_t zero = 0;

    em_status status = em_numbers_create(em_atomic_file_part(c->file), &form, table->name,
                                         slash ? slash + 1 : c->options.data, &c->writer);
    if (!status && table->column)
        status = em_numbers_write(c->writer, EM_NUMBERS_START, 0, 1, &zero);
    return status;
}

/* Writes the row names of an AnnData file. Rank 0. */
static em_status write_row_names(const conversion *c)
{
    const char *path = c->options.data, *colon = strstr(path, ":/");
    EM_SCOPED_BY(em_numbers_close) em_numbers *numbers = NULL;
    char **name = NULL;
    int64_t n = 0;

    if (!colon && !em_numbers_is_hdf5(path))
        return EM_OK;
    em_status status = em_numbers_open(path, colon ? colon + 1 : EM_NUMBERS_PLACE, &numbers);
    if (!status && em_numbers_form_of(numbers).index[true]) {
        n = em_numbers_form_of(numbers).n_row;
        status = em_read_index(numbers, path, true, &name);
        status = status ? status : em_numbers_write_texts(c->writer, "document", n, name);
    }
    em_release_texts(n, &name);
    return status;
}

static em_status write_table(const em_table *table, conversion *c)
{
    const bool writes = em_world_rank() == 0;
    em_status status = em_agree_first(writes ? create(table, c) : EM_OK, 0);
    const bool created = !status;

    if (created)
        status = em_redistribute_rows(table, 0, writes ? table->total : 0, take, c);
    if (!status && writes)
        status = write_row_names(c);
    return em_agree_first(writes ? em_numbers_finish(&c->writer, status) : status, 0);
}

/* ---------------------------------------------------------------- corpora */

static void count_rows(counts *n, const em_table *table)
{
    n->hash += em_table_hash_rows(table, 0, table->n_row, n->n_row);
    n->n_row += table->n_row;
    n->n_entry += table->n_value;
    n->n_token += em_corpus_tokens(table, 0, table->n_row);
    for (int64_t i = 0; i < table->n_row; i++)
        n->n_empty += table->start[i] == table->start[i + 1];
}

static em_status count_documents(void *to, const em_table *table)
{
    count_rows(to, table);
    return EM_OK;
}

static em_status write_documents(void *to, const em_table *table)
{
    conversion *c = to;
    const em_row_block piece = {.row = c->written.n_row,
                                .count = table->n_row,
                                .value = table->value,
                                .start = table->start,
                                .column = table->column};

    count_rows(&c->written, table);
    return c->written.n_row > c->counted.n_row || c->written.n_entry > c->counted.n_entry
               ? em_corpus_refuse_change(c->options.data)
               : take(c, &piece);
}

static void print_corpus(const em_table *table, const conversion *c)
{
    const counts *n = &c->counted;

    fprintf(c->found, "# read       %s\n", c->options.data);
    fprintf(c->found, "# documents  %lld, %lld of them empty\n", (long long)n->n_row,
            (long long)n->n_empty);
    fprintf(c->found, "# words      %lld\n", (long long)table->n_column);
    fprintf(c->found, "# tokens     %lld, %lld entries\n", (long long)n->n_token,
            (long long)n->n_entry);
    if (c->documents)
        fprintf(c->found, "# dropped    %lld of %lld tokens of the text%s\n",
                (long long)em_text_corpus_scanned(c->documents)->n_dropped,
                (long long)em_text_corpus_scanned(c->documents)->n_token,
                c->text.like ? ", because the file of --like does not have their words" : "");
    fprintf(c->found, "# hash       %016llx\n", (unsigned long long)table->hash);
    fprintf(c->found, "# written    %s:%s\n", c->output, EM_NUMBERS_PLACE);
}

static em_status scan(conversion *c, em_corpus_take *take_rows, void *to, em_table **out)
{
    return c->documents ? em_text_corpus_scan(c->documents, take_rows, to, out)
                        : em_corpus_scan(&c->corpus, 0, take_rows, to, out);
}

/* Writes the names and labels of the documents of a text. */
static em_status write_documents_texts(const conversion *c)
{
    const em_text_scanned *of = em_text_corpus_scanned(c->documents);
    em_status status = EM_OK;

    if (of->names.given)
        status = em_numbers_write_texts(c->writer, "document", of->names.n, of->names.text);
    return !status && of->labels.given
               ? em_numbers_write_texts(c->writer, "label", of->labels.n, of->labels.text)
               : status;
}

/* Converts a corpus in two passes over the documents. Only some documents are in memory at a time.
 * Rank 0. */
static em_status convert_corpus(conversion *c)
{
    counts *n = &c->counted;
    EM_SCOPED_BY(em_table_destroy) em_table *table = NULL, *again = NULL;
    em_status status = c->is_text ? em_text_corpus_create(&c->text, &c->documents) : EM_OK;

    status = status ? status : scan(c, count_documents, n, &table);
    if (!status) {
        table->total = n->n_row;
        table->total_entries = n->n_entry;
        em_world *world = em_world_enter(NULL);
        em_table_hash(table, n->hash);
        em_world_enter(world);
        status = create(table, c);
    }
    status = status ? status : scan(c, write_documents, c, &again);
    if (!status && (c->written.n_row != n->n_row || c->written.hash != n->hash))
        status = em_corpus_refuse_change(c->options.data);
    if (!status && c->documents)
        status = write_documents_texts(c);
    status = em_numbers_finish(&c->writer, status);
    if (!status)
        print_corpus(table, c);
    em_text_corpus_destroy(&c->documents);
    return status;
}

/* ---------------------------------------------------------------- what was found */

static void print_columns(const em_table *table, const em_moments *m, const conversion *c)
{
    fprintf(c->found, "# %-20s %12s %12s %12s\n", "column", "smallest", "mean", "largest");
    for (int64_t j = 0; j < table->n_column && j < MOST_SHOWN; j++) {
        const bool zeros = m->count[j] < table->total; /* that are not stored */
        fprintf(c->found, "  %-20s %12.5g %12.5g %12.5g%s\n", em_excerpt_of(table->name[j]).text,
                zeros ? fmin(m->smallest[j], 0) : m->smallest[j], m->mean[j],
                zeros ? fmax(m->largest[j], 0) : m->largest[j],
                em_moments_constant(table, m, j) ? "  all values are equal" : "");
    }
    if (table->n_column > MOST_SHOWN)
        fprintf(c->found, "  and %lld more\n", (long long)table->n_column - MOST_SHOWN);
}

static void print_summary(const em_table *table, const em_moments *m, const conversion *c)
{
    fprintf(c->found, "# read       %s\n", c->options.data);
    fprintf(c->found, "# rows       %lld\n", (long long)table->total);
    fprintf(c->found, "# columns    %lld\n", (long long)table->n_column);
    if (table->column)
        fprintf(c->found, "# numbers    %lld are not 0, %.3g %% of all\n",
                (long long)table->total_entries,
                100 * (double)table->total_entries /
                    fmax(1, (double)table->total * (double)table->n_column));
    if (table->response)
        fprintf(c->found, "# response   the label, which is not among the columns\n");
    fprintf(c->found, "# hash       %016llx\n", (unsigned long long)table->hash);
    fprintf(c->found, "# written    %s:%s\n", c->output, EM_NUMBERS_PLACE);
    print_columns(table, m, c);
}

/* The option with which the file can be read as documents, chosen by why it is no table; NULL: it
 * is not text. A text fails as a table in its first lines, unless its quotes are the cause. */
static const char *option_for_documents(const char *path, const char *message)
{
    static const struct {
        const char *ending, *option;
    } form[] = {{".txt", "--format text"},
                {".txt.gz", "--format text"},
                {".txt.xz", "--format text"},
                {".json", "--text MEMBER of JSON lines"},
                {".jsonl", "--text MEMBER of JSON lines"}};

    if (strstr(message, "--text"))
        return NULL;
    if (strstr(message, "found a quote"))
        return "--text COLUMN";
    for (size_t i = 0; i < sizeof form / sizeof *form; i++)
        if (em_text_ends_with(path, form[i].ending) &&
            (strstr(message, ":1: ") || strstr(message, ":2: ")))
            return form[i].option;
    return NULL;
}

static em_status advise_documents(const conversion *c, em_status status)
{
    const char *message = em_error_text(),
               *option = status == EM_EDATA ? option_for_documents(c->options.data, message) : NULL;

    return option ? em_fail(status, "%s (documents: %s)", message, option) : status;
}

static em_status convert_table(conversion *c)
{
    EM_SCOPED_BY(em_table_destroy) em_table *table = NULL;
    EM_SCOPED_BY(em_moments_release) em_moments moments = {0};

    c->options.if_text = "documents: --text COLUMN or --format text; a config reads a table as it "
                         "is, with model.factors for columns of categories";
    c->options.if_missing = "a config reads this file as it is, with model.na: drop";
    em_status status = em_table_read(&c->options, &table);
    if (status)
        return advise_documents(c, status);
    status = em_moments_find(table, true, &moments);
    status = status ? status : write_table(table, c);
    if (!status)
        em_table_say_guess(table);
    if (!status && em_world_rank() == 0)
        print_summary(table, &moments, c);
    return status;
}

static em_status refuse_folder(const conversion *c)
{
    return !c->is_text && em_file_is_folder(c->options.data)
               ? em_fail(
                     EM_EDATA,
                     "%s: found a folder, expected a file (a folder of documents: --format text)",
                     c->options.data)
               : EM_OK;
}

/* A folder of documents must not get the output, which would be read as one of them. */
static em_status refuse_output_within(const conversion *c)
{
    EM_SCOPED char *folder = NULL;

    if (!c->is_text || !em_file_is_folder(c->options.data))
        return EM_OK;
    em_status status = em_copy_text(c->output, &folder);
    EM_SCOPED char *from = realpath(c->options.data, NULL);
    EM_SCOPED char *to = status ? NULL : realpath(dirname(folder), NULL);
    const size_t length = from ? strlen(from) : 0;
    if (from && to && strncmp(from, to, length) == 0 && (to[length] == '/' || !to[length]))
        status = em_fail(
            EM_EUSAGE,
            "%s: found an output in the folder that is read, %s, expected one outside of it",
            c->output, c->options.data);
    return status;
}

static em_status convert(conversion *c)
{
    const char *const input[] = {c->options.data, c->is_text ? c->text.like : c->corpus.vocabulary};
    EM_SCOPED char *found = NULL;
    size_t length = 0;
    em_status status = em_agree(refuse_folder(c));

    status = status ? status : em_agree(refuse_output_within(c));
    if (!status)
        status = em_atomic_file_take(c->output, c->overwrite, input[1] ? 2 : 1, input, &c->file);

    c->found = open_memstream(&found, &length);
    if (!status && !c->found)
        status = em_fail(EM_EMEMORY, "out of memory");
    status = em_agree(status);
    if (!status && (c->is_corpus || c->is_text))
        status = em_agree_first(em_world_rank() == 0 ? convert_corpus(c) : EM_OK, 0);
    else if (!status)
        status = convert_table(c);
    status = em_atomic_file_publish(&c->file, status);
    if (c->found)
        fclose(c->found);
    if (!status && em_world_rank() == 0)
        fputs(found, stdout);
    return status;
}

em_status em_convert_command(int argc, const char **argv)
{
    char *format = NULL, *header = NULL, *decimal = NULL, *vocabulary = NULL;
    long long columns = -1;
    char *stop_words = NULL;
    conversion c = {.text = {.least_documents = LEAST_DOCUMENTS,
                             .most_share = most_share,
                             .most_words = MOST_WORDS}};
    em_documents_options *documents = &c.text.documents;
    const struct poptOption options[] = {
        {"format", 0, POPT_ARG_STRING, &format, 0, "of a text file", "FORMAT"},
        {"vocabulary", 0, POPT_ARG_STRING, &vocabulary, 0, "words of a corpus", "FILE"},
        {"header", 0, POPT_ARG_STRING, &header, 0, "whether the first line names", "HEADER"},
        {"decimal", 0, POPT_ARG_STRING, &decimal, 0, "what parts digits", "DECIMAL"},
        {"columns", 0, POPT_ARG_LONGLONG, &columns, 0, "features of a LIBSVM file", "N"},
        {"text", 0, POPT_ARG_STRING, &documents->text, 0, "column of the text", "COLUMN"},
        {"name", 0, POPT_ARG_STRING, &documents->name, 0, "column of the names of documents",
         "COLUMN"},
        {"label", 0, POPT_ARG_STRING, &documents->label, 0, "column of the labels of documents",
         "COLUMN"},
        {"stop-words", 0, POPT_ARG_STRING, &stop_words, 0, "words to leave out", "FILE"},
        {"min-documents", 0, POPT_ARG_LONG, &c.text.least_documents, 0, "with each word", "N"},
        {"max-share", 0, POPT_ARG_DOUBLE, &c.text.most_share, 0, "of documents with a word", "P"},
        {"max-words", 0, POPT_ARG_LONG, &c.text.most_words, 0, "words to keep", "N"},
        {"phrases", 0, POPT_ARG_DOUBLE, &c.text.phrases, 0, "threshold of phrases", "X"},
        {"like", 0, POPT_ARG_STRING, &c.text.like, 0, "corpus with the words to use", "FILE"},
        {"overwrite", 0, POPT_ARG_NONE, &c.overwrite, 0, "replace an output", NULL},
        POPT_TABLEEND};
    EM_SCOPED_BY(em_command_line_end) em_command_line line;
    em_status status = em_command_line_read(argc, argv, options, "IN OUT.h5", 2, 2, &line);

    if (!status) {
        documents->path = line.argument[0];
        c.text.stop_words = stop_words ? stop_words : "english";
        status = take_format(format, vocabulary, &c);
    }
    status = status ? status : check_text_options(&c);
    if (!status)
        status = em_command_choice("convert", "header", header, em_table_header_names,
                                   &c.options.header);
    if (!status)
        status = em_command_choice("convert", "decimal", decimal, em_table_decimal_names,
                                   &c.options.decimal);
    if (!status) {
        c.options.asks_header = c.options.dense_names = true;
        c.options.columns = columns < 0 ? INT64_MIN : columns;
        c.options.data = c.corpus.data = (char *)line.argument[0];
        c.output = line.argument[1];
        status = convert(&c);
    }
    return status;
}
