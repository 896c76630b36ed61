/* Writes tables of topics and of the mixtures of topics in new documents to files. */
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/corpus/corpus_table.h"
#include "data/reader/readers.h"
#include "io/draws/reader.h"
#include "io/hdf5/numbers.h"
#include "math/simd/tokens.h"
#include "topics/command/topics_command.h"
#include "topics/lda_tokens.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define ALPHA 0.1 /* of EM, if the file has none */

enum { GATHERED = 16 }; /* topics at a time: a cache line of phi of a word */

/* ---------------------------------------------------------------- a table in a new file */

/* A table that has a temporary name until it is complete. */
typedef struct table_file {
    const char *path;
    char *part;
    em_numbers_writer *writer;
} table_file;

static em_status refuse_file(const char *path)
{
    return em_fail(EM_EUSAGE, "%s: found a file, expected a new name for --output", path);
}

static em_status open_table(const char *path, int64_t n_row, int64_t n_column, uint64_t hash,
                            char *const *name, const char *source, table_file *out)
{
    const em_numbers_form form = {
        .n_row = n_row, .n_column = n_column, .n_entry = -1, .hashed = true, .hash = hash};

    *out = (table_file){.path = path};
    if (access(path, F_OK) == 0)
        return refuse_file(path);
    em_status status = em_file_check_folder(path);
    status =
        status ? status : em_format_text(&out->part, "%s.%lld.part", path, (long long)getpid());
    return status ? status : em_numbers_create(out->part, &form, name, source, &out->writer);
}

static em_status close_table(table_file *file, em_status status)
{
    status = em_numbers_finish(&file->writer, status);
    if (!status && link(file->part, file->path) != 0 && errno == EEXIST)
        status = refuse_file(file->path); /* another program has made it meanwhile */
    else if (!status && access(file->path, F_OK) != 0 && rename(file->part, file->path) != 0)
        status = em_fail(EM_EIO, "%s: cannot be written: %s", file->path, strerror(errno));
    if (file->part)
        unlink(file->part);
    em_release(&file->part);
    return status;
}

static em_status put_row(const table_file *file, int64_t row, int64_t n, const float *value,
                         double *room)
{
    for (int64_t j = 0; j < n; j++)
        room[j] = value[j];
    return em_numbers_write(file->writer, EM_NUMBERS_VALUE, row, 1, room);
}

em_status em_topics_write_topics(const em_topics *t)
{
    const uint64_t hash = XXH3_64bits(t->mean, (size_t)(t->n_topic * t->n_word) * sizeof *t->mean);
    table_file file;
    EM_SCOPED double *room = NULL;
    em_status status = open_table(t->output, t->n_topic, t->n_word, hash, t->word, t->path, &file);

    status = status ? status : em_allocate(t->n_word, sizeof *room, &room);
    for (int64_t k = 0; !status && k < t->n_topic; k++)
        status = put_row(&file, k, t->n_word, t->mean + k * t->n_word, room);
    return close_table(&file, status);
}

/* ---------------------------------------------------------------- folding in */

/* Work space to fold in documents one after the other, and the file for their mixtures. */
typedef struct folding {
    em_owner memory; /* of its arrays */
    const em_topics *topics;
    int64_t stride, widest, longest; /* words and tokens of the largest documents */
    em_fold_in *gibbs;               /* NULL: EM */
    float *rows, *count, *mixture;
    double *alpha; /* [n_topic] */
    char **name;   /* [n_name] of the documents; NULL: they have numbers */
    int64_t n_name;
    table_file file; /* no writer: mixtures are printed */
    double *room;
} folding;

static em_status measure(void *to, int64_t d, em_document of)
{
    folding *f = to;

    (void)d;
    f->widest = em_most(f->widest, of.n);
    f->longest = em_most(f->longest, em_document_length(of));
    return EM_OK;
}

/* Sets rows [of.n][stride] to phi of the document's words. Some topics at a time, because t->mean
 * is by topic: reads of all topics of one word after another would be far apart. */
static void gather_phi(const folding *f, em_document of)
{
    const em_topics *t = f->topics;

    for (int64_t first = 0; first < t->n_topic; first += GATHERED) {
        const int64_t end = em_least(first + GATHERED, t->n_topic);
        for (int64_t i = 0; i < of.n; i++)
            for (int64_t k = first; k < end; k++)
                f->rows[i * f->stride + k] = em_topic_floored(t->mean[k * t->n_word + of.word[i]]);
    }
}

/* Folds in document d. Topics are numbered as in the first chain, so alpha is that of the first
 * chain. */
static void fold_in(const folding *f, int64_t d, em_document of)
{
    const em_topics *t = f->topics;
    const em_folded document = {.number = d, .n = of.n, .count = f->count, .phi = f->rows};
    const em_stream stream = em_fold_in_stream(0, 0, 0);

    for (int64_t i = 0; i < of.n; i++)
        f->count[i] = (float)of.count[i];
    gather_phi(f, of);
    if (f->gibbs)
        em_fold_in_gibbs(f->gibbs, &stream, &document, f->alpha, f->mixture);
    else
        em_fold_in_em(t->n_topic, &document, f->alpha, f->mixture);
}

/* The file is read again for the mixtures. A document of the wrong size would not fit. */
static em_status check_size(const folding *f, em_document of)
{
    folding again = {0};

    (void)measure(&again, 0, of);
    return again.widest <= f->widest && again.longest <= f->longest
               ? EM_OK
               : em_corpus_refuse_change(f->topics->documents);
}

static em_status put_mixture(void *to, int64_t d, em_document of)
{
    folding *f = to;
    const int64_t n = f->topics->n_topic;
    const em_status status = check_size(f, of);
    double sum = 0;

    if (status)
        return status;
    fold_in(f, d, of);
    for (int64_t k = 0; k < n; k++)
        sum += f->mixture[k];
    for (int64_t k = 0; k < n; k++)
        f->room[k] = f->mixture[k] / sum;
    if (f->file.writer)
        return em_numbers_write(f->file.writer, EM_NUMBERS_VALUE, d, 1, f->room);
    if (f->name)
        em_print_quoted(stdout, f->name[d]);
    else
        printf("%lld", (long long)d);
    for (int64_t k = 0; k < n; k++)
        printf(",%.6g", f->room[k]);
    printf("\n");
    return EM_OK;
}

/* Memory for the largest document. */
static em_status start_folding(const em_topics *t, folding *f)
{
    f->stride = em_topic_stride(t->n_topic);
    em_status status =
        em_own_all(&f->memory, EM_ARRAY(f->rows, f->widest * f->stride),
                   EM_ARRAY(f->count, f->widest), EM_ARRAY(f->mixture, EM_FOLD_IN_ROOM * f->stride),
                   EM_ARRAY(f->alpha, t->n_topic), EM_ARRAY(f->room, t->n_topic));
    for (int64_t k = 0; !status && k < t->n_topic; k++)
        f->alpha[k] = t->alpha ? t->alpha[k] : ALPHA;
    return !status && t->by_gibbs ? em_fold_in_create(&f->memory, t->n_topic, f->longest, &f->gibbs)
                                  : status;
}

/* ---------------------------------------------------------------- new documents */

/* Reads the names of the rows of an AnnData file; other files have none. */
static em_status read_row_names(const char *path, char ***name)
{
    EM_SCOPED_BY(em_numbers_close) em_numbers *numbers = NULL;
    em_status status = em_numbers_open(path, EM_NUMBERS_PLACE, &numbers);

    if (!status && em_numbers_form_of(numbers).index[true])
        status = em_read_index(numbers, path, true, name);
    return status;
}

/* Reads the names of the documents, if the corpus has names. */
static em_status read_names(const em_topics *t, const em_corpus *corpus, folding *f)
{
    int64_t n = 0;

    if (!em_numbers_is_hdf5(t->documents))
        return EM_OK;
    if (!em_read_labels(t->documents, "table/document", &n, &f->name)) {
        f->n_name = n;
        if (n != corpus->n_document)
            em_release_texts(n, &f->name);
        return EM_OK;
    }
    f->n_name = corpus->n_document;
    return read_row_names(t->documents, &f->name);
}

/* Starts the file. Its columns have the names of the topics. */
static em_status start_file(const em_topics *t, const em_corpus *corpus, folding *f)
{
    const uint64_t hash = XXH3_64bits_withSeed(
        t->mean, (size_t)(t->n_topic * t->n_word) * sizeof *t->mean, corpus->hash);
    char **name = NULL;
    em_status status = em_allocate(t->n_topic, sizeof *name, &name);

    for (int64_t k = 0; !status && k < t->n_topic; k++)
        status = em_format_text(&name[k], "topic%lld", (long long)k);
    if (!status)
        status =
            open_table(t->output, corpus->n_document, t->n_topic, hash, name, t->path, &f->file);
    if (!status && f->name)
        status = em_numbers_write_texts(f->file.writer, "document", f->n_name, f->name);
    em_release_texts(t->n_topic, &name);
    return status;
}

static em_status mix(const em_topics *t, em_corpus *corpus, folding *f)
{
    em_status status = start_folding(t, f);

    status = status ? status : read_names(t, corpus, f);
    if (!status && t->output) {
        status = start_file(t, corpus, f);
    } else if (!status) {
        printf("document");
        for (int64_t k = 0; k < t->n_topic; k++)
            printf(",topic%lld", (long long)k);
        printf("\n");
    }
    status = status ? status : em_corpus_each(corpus, put_mixture, f);
    return t->output ? close_table(&f->file, status) : status;
}

/* Whether words have names. Words without names are called by their numbers. */
bool em_topics_are_named(const em_topics *t)
{
    char number[24];
    bool named = false;

    for (int64_t v = 0; t->word && v < t->n_word && !named; v++) {
        snprintf(number, sizeof number, "%lld", (long long)v);
        named = strcmp(t->word[v], number) != 0;
    }
    return named;
}

em_status em_topics_mix_documents(const em_topics *t)
{
    const em_corpus_options options = {.data = (char *)t->documents};
    folding f = {.topics = t};
    EM_SCOPED_BY(em_corpus_destroy) em_corpus *corpus = NULL;
    em_status status =
        t->by_gibbs && !t->alpha
            ? em_fail(EM_EDATA, "%s: found no averages/alpha, expected it for --fold-in gibbs",
                      t->path)
            : em_corpus_open(&options, t->n_word, measure, &f, &corpus);

    if (!status && em_topics_are_named(t))
        status = em_corpus_check_names(corpus, t->word, t->path);
    status = status ? status : mix(t, corpus, &f);
    em_release_texts(f.n_name, &f.name);
    em_release_owned(&f.memory);
    return status;
}
