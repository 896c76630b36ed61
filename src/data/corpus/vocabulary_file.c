/* The words of a corpus, one a line. */
#include "base/memory.h"
#include "base/text.h"
#include "data/corpus/corpus_table.h"
#include "data/reader/lines.h"
#include "io/hdf5/numbers.h"

#include <inttypes.h>
#include <string.h>

/* Adds the word in a line. */
static em_status add_word(const em_lines *lines, const char *line, int64_t *capacity, char ***name,
                          int64_t *n_word)
{
    if (lines->number != *n_word + 1) /* the reader of lines skips blank ones */
        return em_fail(EM_EDATA,
                       "%s:%" PRId64 ": found a blank line before '%s', expected one word a line",
                       lines->path, *n_word + 1, em_excerpt_of(line).text);
    if (*n_word == EM_MOST_WORDS)
        return em_fail(EM_EDATA, "%s:%lld: found %d or more words, expected at most %d",
                       lines->path, (long long)lines->number, EM_MOST_WORDS + 1, EM_MOST_WORDS);
    if (strlen(line) > EM_WIDEST_NAME)
        return em_fail(EM_EDATA, "%s:%lld: found a word of %zu bytes, expected at most %d",
                       lines->path, (long long)lines->number, strlen(line), EM_WIDEST_NAME);
    em_status status = em_lines_check_utf8(lines, line);
    status = status ? status : em_reserve(name, capacity, *n_word, *n_word + 1);
    status = status ? status : em_text_valid(line + strspn(line, " \t"), &(*name)[*n_word]);
    *n_word += !status;
    return status;
}

/* Fails if two lines have the same word. The message names the first line that repeats one. */
static em_status refuse_twins(const char *path, char *const *name, int64_t n_word)
{
    int64_t twin;
    const em_status status = em_text_find_twin(n_word, (const char *const *)name, &twin);

    if (status || twin < 0)
        return status;
    return em_fail(EM_EDATA, "%s:%" PRId64 ": found '%s' again, expected every word once", path,
                   twin + 1, name[twin]);
}

/* One word a line. */
em_status em_corpus_read_words(const char *path, char ***name, int64_t *n_word)
{
    EM_SCOPED_BY(em_lines_close) em_lines *lines = NULL;
    char *line = NULL;
    int64_t capacity = 0;
    em_status status = em_lines_open(path, &lines);

    status = status ? status : em_lines_next(lines, &line);
    while (!status && line) {
        status = add_word(lines, line, &capacity, name, n_word);
        status = status ? status : em_lines_next(lines, &line);
    }
    if (!status && *n_word == 0)
        status = em_fail(EM_EDATA, "%s:1: found an empty file, expected one word a line", path);
    return status ? status : refuse_twins(path, *name, *n_word);
}
