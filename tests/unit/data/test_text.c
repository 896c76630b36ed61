/* Documents in text: what a word is, how documents are found in files, and which words are kept. */
#include "base/memory.h"
#include "data/text/documents.h"
#include "data/text/text_corpus.h"
#include "data/text/vocabulary.h"
#include "data/text/words.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/tap.h"
#include "support/test_files.h"

static test_path path;

static void set_up(void)
{
    open_test_folder();
    path_in_folder("text", path);
}

/* ---------------------------------------------------------------- words */

static em_status append(void *to, const char *word, size_t length)
{
    char *all = to;

    sprintf(all + strlen(all), "%.*s|", (int)length, word);
    return EM_OK;
}

static const struct {
    const char *text, *words;
} sentences[] = {
    {"", ""},
    {"The Cat sat.", "the|cat|sat|"},
    {"don't 'quoted' dogs' it\xe2\x80\x99s", "don't|quoted|dogs|it's|"},
    {"rock'n'roll ''x'' a'", "rock'n'roll|"},
    {"a 1 22 1998 covid19 4th", "covid19|4th|"},
    {"e-mail snake_case x=y", "mail|snake|case|"},
    {"\xc3\x89"
     "COLE e\xcc\x81"
     "cole",
     "\xc3\xa9"
     "cole|\xc3\xa9"
     "cole|"},
    {"\xce\x91\xce\x92\xce\x93 \xd0\x9c\xd0\x98\xd0\xa0",
     "\xce\xb1\xce\xb2\xce\xb3|\xd0\xbc\xd0\xb8\xd1\x80|"},
    {"bad\xff"
     "bytes\xc3",
     "bad|bytes|"},
    {"\xcc\x81mark", "mark|"},
};

START_TEST(words_of_texts)
{
    char all[512] = "";

    ck_assert_int_eq(em_words_each(sentences[_i].text, strlen(sentences[_i].text), append, all),
                     EM_OK);
    ck_assert_str_eq(all, sentences[_i].words);
}
END_TEST

START_TEST(long_runs_are_no_words)
{
    char text[EM_LONGEST_WORD + 8], all[512] = "";

    memset(text, 'x', sizeof text);
    memcpy(text + sizeof text - 4, " yes", 4);
    ck_assert_int_eq(em_words_each(text, sizeof text, append, all), EM_OK);
    ck_assert_str_eq(all, "yes|");
}
END_TEST

START_TEST(a_vocabulary_counts)
{
    em_vocabulary *v;
    int64_t number;
    char word[16];

    ck_assert_int_eq(em_vocabulary_create(&v), EM_OK);
    for (int i = 0; i < 30000; i++) {
        const int length = sprintf(word, "w%d", i % 10000);
        ck_assert_int_eq(em_vocabulary_add(v, word, (size_t)length, &number), EM_OK);
        ck_assert_int_eq(number, i % 10000);
        em_vocabulary_count(v, number, i / 20000);
    }
    ck_assert_int_eq(em_vocabulary_size(v), 10000);
    ck_assert_int_eq(em_vocabulary_counts(v, 17).tokens, 3);
    ck_assert_int_eq(em_vocabulary_counts(v, 17).documents, 2);
    ck_assert_int_eq(em_vocabulary_find(v, "w9999", 5), 9999);
    ck_assert_int_eq(em_vocabulary_find(v, "w99999", 6), -1);
    em_vocabulary_destroy(&v);
}
END_TEST

/* ---------------------------------------------------------------- documents */

static void see_all(const em_documents_options *options, char *all)
{
    em_documents *documents;
    em_text_document one;

    ck_assert_msg(em_documents_open(options, &documents) == EM_OK, "%s", em_error_text());
    while (em_documents_next(documents, &one) == EM_OK && one.text)
        sprintf(all + strlen(all), "[%s;%s;%.*s]", one.name ? one.name : "-",
                one.label ? one.label : "-", (int)one.length, one.text);
    em_documents_close(&documents);
}

static const struct {
    const char *content, *text, *name, *label, *found;
} files[] = {
    {"one\n\ntwo words\n", NULL, NULL, NULL, "[-;-;one][-;-;two words]"},
    {"id,text\n1,\"a, \"\"b\"\"\nc\"\n2,d\n", "text", "id", NULL, "[1;-;a, \"b\"\nc][2;-;d]"},
    {"text;class\nx;\"y;z\"\n;w\n", "text", NULL, "class", "[-;y;z;x][-;w;]"},
    {"a\ttext\n1,2\tcomma\n", "text", "a", NULL, "[1,2;-;comma]"},
    {"{\"t\": \"x\\n\\u00e9\", \"n\": \"k\"}\n{\"n\": 3, \"t\": \"z\"}\n", "t", "n", NULL,
     "[k;-;x\n\xc3\xa9][3;-;z]"},
};

START_TEST(documents_of_files)
{
    char all[512] = "";

    write_file(path, files[_i].content);
    see_all(&(em_documents_options){path, files[_i].text, files[_i].name, files[_i].label}, all);
    ck_assert_str_eq(all, files[_i].found);
}
END_TEST

START_TEST(documents_of_a_folder)
{
    char below[300], one[320], all[512] = "";

    snprintf(below, sizeof below, "%s/sport", test_folder);
    ck_assert_int_eq(mkdir(below, 0700), 0);
    snprintf(one, sizeof one, "%s/b", below);
    write_file(one, "goal");
    write_file(path, "zero");
    see_all(&(em_documents_options){.path = test_folder}, all);
    unlink(one);
    rmdir(below);
    ck_assert_str_eq(all, "[sport/b;sport;goal][text;-;zero]");
}
END_TEST

static const struct {
    const char *content, *text, *said;
} bad_files[] = {
    {"a,b\n1,2\n", "c", ":1: found no column 'c' among 2 columns from 'a' to 'b'"},
    {"a,b\n1\n", "a", ":2: found 1 columns, expected 2 as in the first line"},
    {"a,b\n1,\"x\n", "a", ":2: found an open quote at the end of the file"},
    {"{\"a\": 1}\n", "a", ":1: found a number as member 'a', expected a text"},
    {"{\"a\": \"x\"}\n{\"a\": null}\n", "a", ":2: found null as member 'a', expected a text"},
    {"{\"a\": \"x\"}\n{\"b\": \"x\"}\n", "a", ":2: found nothing as member 'a', expected a text"},
    {"{\"a\": \"x\"}\n[1]\n", "a", ":2: found other JSON, expected a JSON object in each line"},
    {"{\"a\": \"x\"}\n{\"a\"\n", "a", ":2: found "},
    {"", "a", ":1: found an empty file"},
    {"a,b,a\n1,2,3\n", "a", ":1: found two columns called 'a', expected one"},
    {"[{\"a\": \"x\"}]\n", "a", ":1: found a JSON array, expected a JSON object in each line"},
    {"[\n{\"a\": \"x\"}]\n", "a", ":1: found a JSON array"},
    {"plain\ncaf\xe9 au lait\n", NULL,
     ":2: found the byte 0xE9, expected text in UTF-8 (the file is not UTF-8"},
    {"words enough for more than eight bytes \xff\n", NULL, ":1: found the byte 0xFF"},
    {"cut \xc3\n", NULL, ":1: found the byte 0xC3"},
    {"a,b\nx,\"y\n\nz\xe9\n\"\n", "b", ":4: found the byte 0xE9"},
    {"caf\xe9,b\nx,y\n", "b", ":1: found the byte 0xE9"},
    {"{\"a\": \"x\"}\n{\"a\": \"\xe9\"}\n", "a", ":2: found the byte 0xE9"},
    {"\xff\xfe"
     "a\n",
     NULL, ":1: found text in UTF-16"},
};

START_TEST(bad_documents)
{
    const em_documents_options options = {.path = path, .text = bad_files[_i].text};
    em_documents *documents = NULL;
    em_text_document one = {.text = NULL};
    em_status status;

    write_file(path, bad_files[_i].content);
    status = em_documents_open(&options, &documents);
    do
        status = status ? status : em_documents_next(documents, &one);
    while (!status && one.text);
    em_documents_close(&documents);
    ck_assert_int_eq(status, EM_EDATA);
    ck_assert_msg(strstr(em_error_text(), bad_files[_i].said), "%s", em_error_text());
}
END_TEST

/* All files of a folder are read, so that the message says how many are not in UTF-8. */
START_TEST(files_of_another_encoding)
{
    char name[4][320];
    const em_documents_options options = {.path = test_folder};
    em_documents *documents = NULL;
    em_text_document one = {.text = NULL};
    em_status status;

    for (int i = 0; i < 4; i++) {
        snprintf(name[i], sizeof name[i], "%s/%d", test_folder, i);
        write_file(name[i], i % 2 ? "one\ncaf\xe9" : "caf\xc3\xa9");
    }
    status = em_documents_open(&options, &documents);
    do
        status = status ? status : em_documents_next(documents, &one);
    while (!status && one.text);
    em_documents_close(&documents);
    for (int i = 0; i < 4; i++)
        unlink(name[i]);
    ck_assert_int_eq(status, EM_EDATA);
    ck_assert_msg(strstr(em_error_text(),
                         "/1:2: found the byte 0xE9, expected text in UTF-8, as in "
                         "2 of 4 files (the file is not UTF-8"),
                  "%s", em_error_text());
}
END_TEST

/* ---------------------------------------------------------------- which words are kept */

static em_status take_rows(void *to, const em_table *table)
{
    char *all = to;

    for (int64_t i = 0; i < table->n_row; i++) {
        for (int64_t k = table->start[i]; k < table->start[i + 1]; k++)
            sprintf(all + strlen(all), "%d:%g ", table->column[k], table->value[k]);
        strcat(all, "/ ");
    }
    return EM_OK;
}

/* "words | documents" of a corpus. */
static void see_corpus(const em_text_options *options, char *all)
{
    char rows[512] = "";
    em_text_corpus *corpus;
    em_table *table;

    ck_assert_msg(em_text_corpus_create(options, &corpus) == EM_OK, "%s", em_error_text());
    ck_assert_msg(em_text_corpus_scan(corpus, take_rows, rows, &table) == EM_OK, "%s",
                  em_error_text());
    for (int64_t j = 0; j < table->n_column; j++)
        sprintf(all + strlen(all), "%s,", table->name[j]);
    sprintf(all + strlen(all), " | %s", rows);
    em_table_destroy(&table);
    em_text_corpus_destroy(&corpus);
}

static const char sample[] =
    "the new york cat\ncat cat dog\nnew york dog rare\nthe the cat new york\n";

static const struct {
    em_text_options options;
    const char *found;
} choices[] = {
    {{.stop_words = "none", .least_documents = 1, .most_share = 1, .most_words = 99},
     "cat,dog,new,rare,the,york, | 0:1 2:1 4:1 5:1 / 0:2 1:1 / 1:1 2:1 3:1 5:1 / 0:1 2:1 4:2 5:1 "
     "/ "},
    {{.stop_words = "english", .least_documents = 2, .most_share = 1, .most_words = 99},
     "cat,dog,new,york, | 0:1 2:1 3:1 / 0:2 1:1 / 1:1 2:1 3:1 / 0:1 2:1 3:1 / "},
    {{.stop_words = "english", .least_documents = 2, .most_share = 0.5, .most_words = 99},
     "dog, | / 0:1 / 0:1 / / "},
    {{.stop_words = "none", .least_documents = 1, .most_share = 1, .most_words = 2},
     "cat,new, | 0:1 1:1 / 0:2 / 1:1 / 0:1 1:1 / "},
    {{.stop_words = "english",
      .least_documents = 2,
      .most_share = 1,
      .most_words = 99,
      .phrases = 0.5},
     "cat,dog,new york, | 0:1 2:1 / 0:2 1:1 / 1:1 2:1 / 0:1 2:1 / "},
};

START_TEST(words_that_are_kept)
{
    em_text_options options = choices[_i].options;
    char all[512] = "";

    write_file(path, sample);
    options.documents = (em_documents_options){.path = path};
    see_corpus(&options, all);
    ck_assert_str_eq(all, choices[_i].found);
}
END_TEST

START_TEST(no_word_is_left)
{
    const em_text_options options = {.documents = {.path = path},
                                     .stop_words = "none",
                                     .least_documents = 9,
                                     .most_share = 1,
                                     .most_words = 9};
    em_text_corpus *corpus;

    write_file(path, sample);
    ck_assert_int_eq(em_text_corpus_create(&options, &corpus), EM_EDATA);
    ck_assert_ptr_nonnull(strstr(em_error_text(), "found no word in 9 or more"));
}
END_TEST

/* As many documents and words, but others. */
START_TEST(a_file_that_changes)
{
    const em_text_options options = {.documents = {.path = path},
                                     .stop_words = "none",
                                     .least_documents = 1,
                                     .most_share = 1,
                                     .most_words = 9};
    char rows[512] = "";
    em_text_corpus *corpus;
    em_table *table;

    write_file(path, sample);
    ck_assert_int_eq(em_text_corpus_create(&options, &corpus), EM_OK);
    write_file(path, "the new york dog\ncat cat dog\nnew york cat rare\nthe the cat new york\n");
    ck_assert_int_eq(em_text_corpus_scan(corpus, take_rows, rows, &table), EM_EDATA);
    ck_assert_ptr_nonnull(strstr(em_error_text(), "found other documents when it was read again"));
    em_text_corpus_destroy(&corpus);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("text");

    tcase_add_checked_fixture(tests, set_up, close_test_folder);
    tcase_add_loop_test(tests, words_of_texts, 0, (int)(sizeof sentences / sizeof *sentences));
    tcase_add_test(tests, long_runs_are_no_words);
    tcase_add_test(tests, a_vocabulary_counts);
    tcase_add_loop_test(tests, documents_of_files, 0, (int)(sizeof files / sizeof *files));
    tcase_add_test(tests, documents_of_a_folder);
    tcase_add_loop_test(tests, bad_documents, 0, (int)(sizeof bad_files / sizeof *bad_files));
    tcase_add_test(tests, files_of_another_encoding);
    tcase_add_loop_test(tests, words_that_are_kept, 0, (int)(sizeof choices / sizeof *choices));
    tcase_add_test(tests, no_word_is_left);
    tcase_add_test(tests, a_file_that_changes);
    return run_case(tests, CK_FORK);
}
