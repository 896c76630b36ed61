/* One table in a folder of its own, which tests write and read. */
#ifndef TESTS_SUPPORT_ONE_TABLE_H
#define TESTS_SUPPORT_ONE_TABLE_H

#include "base/memory.h"
#include "data/table/table.h"
#include "support/test_files.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of the table of a test. */
extern test_path table_path;

/* Begins a test; close_test_folder ends it. */
void make_folder(void);

void write_text(const char *text);

/* How read_text reads; a failure ends the test. */
em_table_options options_of(char *data);
em_table *read_table(const em_table_options *options);
em_table *read_text(const char *text);

/* The last error names the file, and has all that is expected in its one line. */
void check_message(const char *const *expected, int n);

#endif
