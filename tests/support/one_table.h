/* One table in a folder of its own, which tests write and read. */
#ifndef TESTS_SUPPORT_ONE_TABLE_H
#define TESTS_SUPPORT_ONE_TABLE_H

#include "base/memory.h"
#include "data/table/table.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of the table of a test. */
extern char table_path[256];

/* The fixture: they make and remove the folder. */
void make_folder(void);
void remove_folder(void);

/* These write the table. */
void write_bytes(const char *text, size_t length);
void write_text(const char *text);

/* How read_text reads; a failure ends the test. */
em_table_options options_of(char *data);
em_table *read_table(const em_table_options *options);
em_table *read_text(const char *text);

/* The last error names the file, and has all that is expected in its one line. */
void check_message(const char *const *expected, int n);

#endif
