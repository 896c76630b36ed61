/* Files that tests write: plain, gzipped, cut short. All paths are of a folder that one test has.
 */
#ifndef TESTS_SUPPORT_TEST_FILES_H
#define TESTS_SUPPORT_TEST_FILES_H

#include "emass/status.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef char test_path[96];

/* Makes a folder, and removes it with the files in it. */
void open_test_folder(void);
void close_test_folder(void);
extern char test_folder[];

/* The same, and makes it the working folder. */
void enter_test_folder(void);
void leave_test_folder(void);

void path_in_folder(const char *name, test_path path);

void write_file(const char *path, const char *text);
void write_bytes(const char *path, const void *bytes, size_t length);
void write_gzip(const char *path, const void *bytes, size_t length);

/* The length of the file, which is less than `most`. */
size_t read_bytes(const char *path, size_t most, void *bytes);

/* Checks that a call failed with this status, and a message that has the text in it. */
void check_failed(em_status status, em_status expected, const char *text);

#endif
