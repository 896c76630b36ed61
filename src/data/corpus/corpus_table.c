#include "data/corpus/corpus_table.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/text.h"
#include "data/reader/readers.h"
#include "data/reader/same_file.h"
#include "par/message.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

#define KNOWN_WORDS " (the words of the vocabulary, or else those found in the corpus trained on)"

em_status em_corpus_check_counts(const em_table *table, int64_t row)
{
    for (int64_t i = 0; i < table->n_row; i++) {
        double length = 0;
        for (int64_t k = table->start[i]; k < table->start[i + 1]; k++) {
            const double count = table->value[k];
            if (!(count >= 1) || count > EM_LONGEST_DOCUMENT || count != floor(count))
                return em_fail(
                    EM_EDATA,
                    "%s:%lld: found %g for word %d, expected a count, an integer from 1 to %d%s",
                    table->path, (long long)(row + i + 1), count, table->column[k],
                    EM_LONGEST_DOCUMENT,
                    em_text_ends_with(table->path, ".h5ad")
                        ? " (of a layer: emass convert FILE.h5ad:/layers/counts COUNTS.h5)"
                        : "");
            length += count;
        }
        if (length > EM_LONGEST_DOCUMENT)
            return em_fail(EM_EDATA, "%s:%lld: found a document of %lld words, expected at most %d",
                           table->path, (long long)(row + i + 1), (long long)length,
                           EM_LONGEST_DOCUMENT);
    }
    return EM_OK;
}

int64_t em_corpus_tokens(const em_table *table, int64_t first, int64_t count)
{
    int64_t n = 0;

    for (int64_t k = table->start[first]; k < table->start[first + count]; k++)
        n += (int64_t)table->value[k];
    return n;
}

em_status em_corpus_refuse_table(const char *path)
{
    return em_fail(EM_EDATA,
                   "%s: found a table, expected a corpus (of dense AnnData: adata.X = "
                   "scipy.sparse.csr_matrix(adata.X); of text: emass convert --text COLUMN)",
                   path);
}

em_status em_corpus_refuse_change(const char *path)
{
    return em_fail(EM_EDATA,
                   "%s: found other documents when it was read again, expected an input that "
                   "nothing changes meanwhile",
                   path);
}

const char *em_corpus_same_words(const char *path)
{
    return em_text_ends_with(path, ".h5ad")
               ? " (adata[:, names] selects the genes of the corpus trained on)"
               : " (emass convert --like CORPUS.h5 makes one of text with the words of another)";
}

em_status em_corpus_check_words(const char *path, int64_t found, int64_t most)
{
    return most && found > most
               ? em_fail(EM_EDATA, "%s: found a corpus of %lld words, expected at most %lld%s",
                         path, (long long)found, (long long)most, em_corpus_same_words(path))
               : EM_OK;
}

em_status em_corpus_check_hash(const char *path, uint64_t found, uint64_t written)
{
    return found == written
               ? EM_OK
               : em_fail(EM_EDATA,
                         "%s: found words of hash %016llx, expected those of %016llx that were "
                         "written: the file is damaged or was changed",
                         path, (unsigned long long)found, (unsigned long long)written);
}

static em_status refuse_no_words(const char *path, const em_table *table)
{
    int64_t n[2] = {table->n_value, table->n_row};

    em_world_sum(2, n);
    return n[0] > 0 ? EM_OK
                    : em_fail(EM_EDATA, "%s: found no words in %lld documents, expected some", path,
                              (long long)n[1]);
}

static em_status read_hdf5(const em_corpus_options *options, int64_t n_word, em_table *table)
{
    uint64_t hash = 0;

    if (options->vocabulary)
        return em_fail(EM_EDATA,
                       "%s: found a vocabulary together with an HDF5 file, expected the words in "
                       "that file: pass the vocabulary to emass convert",
                       options->vocabulary);
    em_status status = em_read_hdf5(options->data, NULL, false, false, table, &hash);
    if (status)
        return status;
    if (!table->column || table->response)
        status = em_corpus_refuse_table(options->data);
    status = status ? status : em_corpus_check_words(options->data, table->n_column, n_word);
    if (!status) {
        const int64_t row = em_world_sum_before(table->n_row);
        status = em_agree_first(em_corpus_check_counts(table, row), row);
    }
    status = status ? status : refuse_no_words(options->data, table);
    status = status ? status : em_table_finish(table);
    return status || hash == 0 ? status : em_corpus_check_hash(options->data, table->hash, hash);
}

/* Reads a corpus from text. The names come from the vocabulary, if there is one, which must not
 * have more words than are known. */
static em_status read_text(const em_corpus_options *options, int64_t n_word, em_corpus_take *take,
                           void *to, em_table *table)
{
    const char *whose = n_word ? KNOWN_WORDS : "";
    char **name = NULL;
    int64_t n = 0;
    em_status status = EM_OK;

    if (options->vocabulary) {
        status = em_agree_first(em_corpus_read_words(options->vocabulary, &name, &n), 0);
        whose = " (the words of the vocabulary)";
    }
    if (!status)
        status =
            em_corpus_read_text(options, n_word ? n_word : n, n && !n_word, whose, take, to, table);
    if (status) {
        em_release_texts(n, &name);
        return status;
    }
    if (n || n_word)
        table->n_column = n ? n : n_word;
    table->name = name;
    return EM_OK;
}

static em_status see_files(const em_corpus_options *options)
{
    em_status status = EM_OK;

    if (em_fault("data"))
        status = em_fail(EM_EDATA, "%s:1: found a fault injected by EMASS_FAULT, expected data",
                         options->data);
    else if (em_file_is_folder(options->data))
        status = em_fail(EM_EDATA,
                         "%s: found a folder, expected a corpus (emass convert --format text makes "
                         "one of a folder of documents)",
                         options->data);
    status = em_agree(status);
    status = status ? status : em_same_file(options->data, (int64_t)strlen(options->data));
    if (!status && options->vocabulary)
        status = em_same_file(options->vocabulary, (int64_t)strlen(options->vocabulary));
    return status;
}

em_status em_corpus_table_read(const em_corpus_options *options, int64_t n_word, em_table **out)
{
    em_status status = see_files(options);

    *out = NULL;
    status = status ? status : em_agree_first(em_table_create(options->data, out), 0);
    if (status)
        return status;
    (*out)->unnamed = true;
    if (em_same_is_hdf5(options->data)) {
        status = read_hdf5(options, n_word, *out);
    } else {
        status = read_text(options, n_word, NULL, NULL, *out);
        status = status ? status : em_table_finish(*out);
    }
    if (status)
        em_table_destroy(out);
    return status;
}

static em_status scan(const em_corpus_options *options, int64_t n_word, em_corpus_take *take,
                      void *to, em_table **out)
{
    em_status status = see_files(options);

    if (!status && em_same_is_hdf5(options->data))
        status =
            em_fail(EM_EDATA, "%s: found an HDF5 file, expected a corpus in text", options->data);
    status = status ? status : em_table_create(options->data, out);
    status = status ? status : read_text(options, n_word, take, to, *out);
    if (status)
        em_table_destroy(out);
    return status;
}

em_status em_corpus_scan(const em_corpus_options *options, int64_t n_word, em_corpus_take *take,
                         void *to, em_table **out)
{
    EM_SCOPED_BY(em_world_return) em_world *all = em_world_enter(NULL);

    *out = NULL;
    return scan(options, n_word, take, to, out);
}

em_status em_corpus_check_stream(const em_corpus_options *options)
{
    em_status status = see_files(options);

    if (!status && !em_same_is_hdf5(options->data))
        status = em_fail(EM_EDATA,
                         "%s: found text, expected the HDF5 file that emass convert makes of it, "
                         "because only that can be streamed",
                         options->data);
    return status;
}
