/* Reading corpora: both formats, packed or not, any number of shards, every kind of bad input. */
#include "base/memory.h"
#include "data/corpus/corpus.h"

#include <check.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/tap.h"
#include "support/test_files.h"

static test_path path, words;

static void set_up(void)
{
    open_test_folder();
    path_in_folder("corpus", path);
    path_in_folder("words", words);
}

static void write_packed(bool xz, const char *text)
{
    uint8_t packed[4096];
    size_t length = 0;

    if (!xz) {
        write_gzip(path, text, strlen(text));
        return;
    }
    ck_assert_int_eq(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, (const uint8_t *)text,
                                             strlen(text), packed, &length, sizeof packed),
                     LZMA_OK);
    write_bytes(path, packed, length);
}

static em_corpus *read_shard(bool vocabulary, int64_t shard, int64_t n_shard)
{
    const em_corpus_options options = {.data = path, .vocabulary = vocabulary ? words : NULL};
    em_corpus *corpus = NULL;

    ck_assert_msg(em_corpus_read(&options, 0, 0, shard, n_shard, &corpus) == EM_OK, "%s",
                  em_error_text());
    return corpus;
}

/* Three documents, the second one empty. */
static const char lda_c[] = "2 0:3 4:1\n0\n3 1:1 2:2 3:1\n";
static const char docword[] = "3\n5\n5\n1 1 3\n1 5 1\n3 2 1\n3 3 2\n3 4 1\n";

static void is_the_sample(em_corpus *corpus)
{
    static const int32_t word[] = {0, 4, 1, 2, 3}, count[] = {3, 1, 1, 2, 1};

    ck_assert_int_eq(corpus->n_document, 3);
    ck_assert_int_eq(corpus->n_token, 8);
    ck_assert_int_eq(corpus->n_word, 5);
    ck_assert_int_eq(corpus->n_local, 3);
    ck_assert_int_eq(corpus->start[1], 2);
    ck_assert_int_eq(corpus->start[2], 2);
    ck_assert_int_eq(corpus->start[3], 5);
    ck_assert_int_eq(corpus->first_document, 0);
    ck_assert_mem_eq(corpus->word, word, sizeof word);
    ck_assert_mem_eq(corpus->count, count, sizeof count);
    em_corpus_destroy(&corpus);
}

START_TEST(both_formats_packed_or_not)
{
    const char *const text[] = {lda_c, docword};

    for (int i = 0; i < 2; i++) {
        write_bytes(path, text[i], strlen(text[i]));
        is_the_sample(read_shard(false, 0, 1));
        write_packed(false, text[i]);
        is_the_sample(read_shard(false, 0, 1));
        write_packed(true, text[i]);
        is_the_sample(read_shard(false, 0, 1));
    }
}
END_TEST

/* Documents that are passed in order, beside the same corpus in memory. */
typedef struct beside {
    em_corpus *held;
    int64_t n, n_other;
} beside;

static em_status see_the_same(void *to, int64_t d, em_document of)
{
    beside *b = to;
    const int64_t first = b->held->start[d], n = b->held->start[d + 1] - first;
    const size_t bytes = (size_t)n * sizeof *of.word;

    b->n_other += d != b->n++ || of.n != n ||
                  (n > 0 && (memcmp(of.word, b->held->word + first, bytes) != 0 ||
                             memcmp(of.count, b->held->count + first, bytes) != 0));
    return EM_OK;
}

/* Opens the corpus at `path`, and passes through it twice. */
static em_corpus *open_beside(const em_corpus_options *options, int64_t n_word)
{
    em_corpus *corpus = NULL;
    beside b = {0};

    ck_assert_int_eq(em_corpus_read(options, n_word, 0, 0, 1, &b.held), EM_OK);
    ck_assert_msg(em_corpus_open(options, n_word, see_the_same, &b, &corpus) == EM_OK, "%s",
                  em_error_text());
    ck_assert_int_eq(b.n, b.held->n_document);
    b.n = 0;
    ck_assert_msg(em_corpus_each(corpus, see_the_same, &b) == EM_OK, "%s", em_error_text());
    ck_assert_int_eq(b.n, b.held->n_document);
    ck_assert_int_eq(b.n_other, 0);
    ck_assert_int_eq(corpus->n_document, b.held->n_document);
    ck_assert_int_eq(corpus->n_token, b.held->n_token);
    ck_assert_int_eq(corpus->n_word, b.held->n_word);
    ck_assert_uint_eq(corpus->hash, b.held->hash);
    ck_assert_ptr_null(corpus->start);
    em_corpus_destroy(&b.held);
    return corpus;
}

START_TEST(text_is_passed_through)
{
    static const char list[] = "zero\none\ntwo words\nthree\nfour\nnever\n";
    const char *const text[] = {lda_c, docword};
    em_corpus_options options = {.data = path};
    em_corpus *corpus;

    for (int i = 0; i < 2; i++) {
        write_bytes(path, text[i], strlen(text[i]));
        corpus = open_beside(&options, 0);
        em_corpus_destroy(&corpus);
        corpus = open_beside(&options, 9);
        em_corpus_destroy(&corpus);
        write_packed(false, text[i]);
        corpus = open_beside(&options, 0);
        em_corpus_destroy(&corpus);
    }
    write_bytes(words, list, strlen(list));
    options.vocabulary = words;
    corpus = open_beside(&options, 6);
    ck_assert_str_eq(corpus->name[2], "two words");
    em_corpus_destroy(&corpus);
}
END_TEST

/* More documents than are passed at a time. */
START_TEST(long_text_is_passed_through)
{
    const em_corpus_options options = {.data = path};
    FILE *file = fopen(path, "w");
    em_corpus *corpus;

    for (int d = 0; d < 300000; d++)
        fprintf(file, d % 7 ? "2 %d:1 %d:2\n" : "0\n", d % 50, 50 + d % 11);
    fclose(file);
    corpus = open_beside(&options, 0);
    em_corpus_destroy(&corpus);
}
END_TEST

static em_status see_nothing(void *to, int64_t d, em_document of)
{
    (void)to, (void)d, (void)of;
    return EM_OK;
}

/* A document more, and one word instead of another. */
START_TEST(text_that_changes_meanwhile)
{
    const char *const text[] = {"2 0:3 4:1\n0\n3 1:1 2:2 3:1\n0\n",
                                "2 0:3 3:1\n0\n3 1:1 2:2 3:1\n"};
    const em_corpus_options options = {.data = path};
    em_corpus *corpus;

    for (int i = 0; i < 2; i++) {
        write_bytes(path, lda_c, strlen(lda_c));
        corpus = open_beside(&options, 0);
        write_bytes(path, text[i], strlen(text[i]));
        ck_assert_int_eq(em_corpus_each(corpus, see_nothing, NULL), EM_EDATA);
        ck_assert_ptr_nonnull(strstr(em_error_text(), "corpus: found other documents"));
        em_corpus_destroy(&corpus);
    }
}
END_TEST

START_TEST(a_vocabulary_gives_names)
{
    static const char list[] = "zero\none\ntwo words\nthree\nfour\nnever\n",
                      six_words[] = "2\n6\n2\n1 1 3\n2 5 1\n";
    em_corpus *corpus;

    write_bytes(words, list, strlen(list));
    write_bytes(path, six_words, strlen(six_words));
    corpus = read_shard(true, 0, 1);
    ck_assert_int_eq(corpus->n_word, 6);
    ck_assert_str_eq(corpus->name[2], "two words");
    ck_assert_str_eq(corpus->name[5], "never");
    em_corpus_destroy(&corpus);
}
END_TEST

/* Whatever the shards: together they hold every document once, and know the same of the whole. */
START_TEST(shards_share_the_documents)
{
    enum { N = 100 };
    FILE *file = fopen(path, "w");

    for (int d = 0; d < N; d++)
        fprintf(file, d % 7 ? "1 %d:%d\n" : "0\n", d, d + 1);
    fclose(file);
    for (int64_t n_shard = 1; n_shard <= 9; n_shard += 2) {
        int seen[N] = {0};
        int64_t before = 0;
        for (int64_t shard = 0; shard < n_shard; shard++) {
            em_corpus *corpus = read_shard(false, shard, n_shard);
            ck_assert_int_eq(corpus->n_document, N);
            ck_assert_int_eq(corpus->n_word, N);
            ck_assert(corpus->n_local == 0 || corpus->first_token == before);
            for (int64_t i = 0; i < corpus->n_local; i++) {
                const int64_t d = corpus->first_document + i;
                seen[d]++;
                before += d % 7 ? d + 1 : 0;
                ck_assert_int_eq(corpus->start[i + 1] - corpus->start[i], d % 7 != 0);
                if (d % 7)
                    ck_assert_int_eq(corpus->count[corpus->start[i]], d + 1);
            }
            em_corpus_destroy(&corpus);
        }
        for (int d = 0; d < N; d++)
            ck_assert_int_eq(seen[d], 1);
    }
}
END_TEST

typedef struct bad {
    const char *text, *where, *found, *expected;
} bad;

static const bad bads[] = {
    {"", ":1:", "empty file", "a corpus"},
    {"0\n0\n", ":2:", "no words in 2 documents", "some"},
    {"1 0:1\n1 5:1\n", ":2:", "'5:1'", "0 to 4 (the words of the vocabulary)"},
    {"1 -1:1\n", ":1:", "'-1:1'", "an integer from 0"},
    {"1 0:-2\n", ":1:", "'-2'", "an integer from 1"},
    {"1 0:0\n", ":1:", "'0'", "an integer from 1"},
    {"1 0:1.5\n", ":1:", "'1.5'", "a count"},
    {"1 0:1:1\n", ":1:", "'1:1'", "a count"},
    {"1 0 :1\n", ":1:", "'0'", "id:count"},
    {"1 x\n", ":1:", "'x'", "id:count"},
    {"-1 0:1\n", ":1:", "'-1'", "number of words"},
    {"1 99999999999999999999:1\n", ":1:", "'99999999999999999999:1'", "a word's id"},
    {"1 0:99999999999\n", ":1:", "'99999999999'", "a count"},
    {"2 0:50000000 1:1\n", ":1:", "50000001 or more words", "at most 50000000"},
    {"3 0:1 1:1\n", ":1:", "2 entries", "expected 3"},
    {"1 0:1 1:1\n", ":1:", "2 entries", "expected 1"},
    {"1 0:1\n1 0", ":2:", "'0'", "id:count"},
    {"2\n", ":1:", "end of the file", "number of words"},
    {"2\n5\n3\n1 1 1\n", ":4:", "end of the file after 1 entries", "3 as the header says"},
    {"2\n6\n1\n1 1 1\n", ":2:", "6 words", "expected 5 (the words of the vocabulary)"},
    {"2\n3\n1\n1 1 1\n", ":2:", "3 words", "expected 5 (the words of the vocabulary)"},
    {"2\n5\n1\n1 1 1\n2 1 1\n", ":5:", "more lines after 1 entries", "1 as the header says"},
    {"9999\n5\n1\n1 1 1\n", ":3:", "1 entries of 9999 documents", "one of each 1000"},
    {"2\n5\n2\n2 1 1\n1 1 1\n", ":5:", "document 1 after 2", "in order"},
    {"2\n5\n1\n3 1 1\n", ":4:", "'3'", "1 to 2 (the documents that the header says)"},
    {"2\n5\n1\n1 6 1\n", ":4:", "'6'", "1 to 5 (the words that the header says)"},
    {"2\n5\n1\n1 0 1\n", ":4:", "'0'", "1 to 5"},
    {"2\n5\n1\n1 1\n", ":4:", "ends early", "document, word and count"},
    {"2\n5\n1\n1 1 1 1\n", ":4:", "'1'", "the end of the line"},
    {"2\n5 5\n1\n1 1 1\n", ":2:", "'5'", "the end of the line"},
    {"the cat sat\n", ":1:", "'the'", "emass convert makes a corpus of text: --format text"},
    {"%%MatrixMarket matrix coordinate integer general\n2 5 2\n2 1 1\n1 1 1\n",
     ":4:", "document 1 after 2", "M.tocsr()"},
};

START_TEST(bad_corpora)
{
    static const char list[] = "a\nb\nc\nd\ne\n";
    const em_corpus_options options = {.data = path, .vocabulary = words};
    const bad *b = &bads[_i];
    em_corpus *corpus = NULL;

    write_bytes(words, list, strlen(list));
    write_bytes(path, b->text, strlen(b->text));
    for (int64_t shard = 0; shard < 2; shard++) {
        ck_assert_int_eq(em_corpus_read(&options, 0, 0, shard, 2, &corpus), EM_EDATA);
        ck_assert_ptr_null(corpus);
        const char *text = em_error_text(), *rest = strstr(text, b->where);
        ck_assert_msg(strncmp(text, path, strlen(path)) == 0 && rest && strstr(rest, b->found) &&
                          strstr(rest, "expected") && strstr(rest, b->expected),
                      "%s", text);
    }
}
END_TEST

START_TEST(a_word_stands_once)
{
    static const char list[] = "a\nb\nc\nb\na\n";
    const em_corpus_options options = {.data = path, .vocabulary = words};
    em_corpus *corpus = NULL;

    write_bytes(words, list, strlen(list));
    write_bytes(path, docword, strlen(docword));
    ck_assert_int_eq(em_corpus_read(&options, 0, 0, 0, 1, &corpus), EM_EDATA);
    ck_assert_ptr_null(corpus);
    ck_assert_ptr_nonnull(strstr(em_error_text(), ":4: found 'b' again, expected every word once"));
}
END_TEST

/* A line without a word would give all later words the ids of others; at the end there are none. */
START_TEST(a_vocabulary_has_no_gaps)
{
    static const char *const gap[] = {"a\n\nb\nc\nd\ne\n", "\na\nb\nc\nd\ne\n",
                                      "a\nb\nc\nd\n \t\r\ne\n"};
    static const char *const said[] = {":2: found a blank line before 'b', expected one word",
                                       ":1: found a blank line before 'a'",
                                       ":5: found a blank line before 'e'"};
    static const char ends[] = "a\nb\nc\nd\ne\n\n\n";
    const em_corpus_options options = {.data = path, .vocabulary = words};
    em_corpus *corpus = NULL;

    write_bytes(path, docword, strlen(docword));
    for (int i = 0; i < 3; i++) {
        write_bytes(words, gap[i], strlen(gap[i]));
        ck_assert_int_eq(em_corpus_read(&options, 0, 0, 0, 1, &corpus), EM_EDATA);
        ck_assert_msg(strstr(em_error_text(), said[i]), "%s", em_error_text());
    }
    write_bytes(words, ends, strlen(ends));
    corpus = read_shard(true, 0, 1);
    ck_assert_int_eq(corpus->n_word, 5);
    em_corpus_destroy(&corpus);
}
END_TEST

START_TEST(packed_files_cut_short)
{
    const em_corpus_options options = {.data = path};
    em_corpus *corpus = NULL;
    char bytes[4096];
    size_t length;

    for (int xz = 0; xz < 2; xz++) {
        write_packed(xz, docword);
        length = read_bytes(path, sizeof bytes, bytes);
        write_bytes(path, bytes, length - 9);
        ck_assert_int_eq(em_corpus_read(&options, 0, 0, 0, 1, &corpus), EM_EDATA);
        ck_assert_ptr_nonnull(strstr(em_error_text(), xz ? "damaged xz" : "damaged gzip"));
    }
    bytes[20] ^= 0x55;
    write_bytes(path, bytes, length);
    ck_assert_int_eq(em_corpus_read(&options, 0, 0, 0, 1, &corpus), EM_EDATA);
}
END_TEST

START_TEST(real_corpora)
{
    const char *data = getenv("EMASS_DATA");
    em_corpus_options options = {.data = NULL};
    em_corpus *corpus;

    if (!data || !*data)
        return;
    ck_assert_int_eq(em_format_text(&options.data, "%s/20news/nvdm2000.train.ldac.gz", data), 0);
    ck_assert_int_eq(em_format_text(&options.vocabulary, "%s/20news/nvdm2000.vocab", data), 0);
    if (access(options.data, R_OK) == 0) {
        ck_assert_msg(em_corpus_read(&options, 0, 0, 1, 3, &corpus) == EM_OK, "%s",
                      em_error_text());
        ck_assert_int_eq(corpus->n_document, 11314);
        ck_assert_int_eq(corpus->n_token, 1138254);
        ck_assert_int_eq(corpus->n_word, 2000);
        em_corpus_destroy(&corpus);
    }
    em_release(&options.data);
    em_release(&options.vocabulary);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("corpus");
    TCase *tests = tcase_create("corpus");

    tcase_add_checked_fixture(tests, set_up, close_test_folder);
    tcase_add_test(tests, both_formats_packed_or_not);
    tcase_add_test(tests, text_is_passed_through);
    tcase_add_test(tests, long_text_is_passed_through);
    tcase_add_test(tests, text_that_changes_meanwhile);
    tcase_add_test(tests, a_vocabulary_gives_names);
    tcase_add_test(tests, a_word_stands_once);
    tcase_add_test(tests, a_vocabulary_has_no_gaps);
    tcase_add_test(tests, shards_share_the_documents);
    tcase_add_loop_test(tests, bad_corpora, 0, (int)(sizeof bads / sizeof *bads));
    tcase_add_test(tests, packed_files_cut_short);
    tcase_add_test(tests, real_corpora);
    suite_add_tcase(suite, tests);
    return run_suite(suite, CK_FORK);
}
