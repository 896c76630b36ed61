/* One table in a folder of its own, which tests write and read. */
#ifndef TESTS_UNIT_ONE_TABLE_H
#define TESTS_UNIT_ONE_TABLE_H

#include "base/memory.h"
#include "data/table/table.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/emass-data-XXXXXX", path[256];

static void set_up(void)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/table", folder);
}

static void tear_down(void)
{
    unlink(path);
    rmdir(folder);
}

static void write_bytes(const char *text, size_t length)
{
    FILE *file = fopen(path, "wb");

    ck_assert_uint_eq(fwrite(text, 1, length, file), length);
    fclose(file);
}

static void write_text(const char *text)
{
    write_bytes(text, strlen(text));
}

static em_table_options options_of(char *data)
{
    return (em_table_options){.data = data, .columns = INT64_MIN, .intercept = true};
}

static em_table *read_table(const em_table_options *options)
{
    em_table *table;

    ck_assert_msg(em_table_read(options, &table) == EM_OK, "%s", em_error_text());
    return table;
}

static em_table *read_text(const char *text)
{
    const em_table_options options = options_of(path);

    write_text(text);
    return read_table(&options);
}

/* The last error names the file, and has all that is expected in its one line. */
static void check_message(const char *const *expected, int n)
{
    const char *text = em_error_text();

    ck_assert_msg(strncmp(text, path, strlen(path)) == 0, "the file is not named in: %s", text);
    for (int i = 0; i < n; i++)
        ck_assert_msg(strstr(text, expected[i]) != NULL, "'%s' is not in: %s", expected[i], text);
    ck_assert_ptr_null(strchr(text, '\n'));
}

#endif
