#include "support/one_table.h"

test_path table_path;

void make_folder(void)
{
    open_test_folder();
    path_in_folder("table", table_path);
}

void write_text(const char *text)
{
    write_bytes(table_path, text, strlen(text));
}

em_table_options options_of(char *data)
{
    return (em_table_options){.data = data, .columns = INT64_MIN, .intercept = true};
}

em_table *read_table(const em_table_options *options)
{
    em_table *table;

    ck_assert_msg(em_table_read(options, &table) == EM_OK, "%s", em_error_text());
    return table;
}

em_table *read_text(const char *text)
{
    const em_table_options options = options_of(table_path);

    write_text(text);
    return read_table(&options);
}

void check_message(const char *const *expected, int n)
{
    const char *text = em_error_text();

    ck_assert_msg(strncmp(text, table_path, strlen(table_path)) == 0,
                  "the file is not named in: %s", text);
    for (int i = 0; i < n; i++)
        ck_assert_msg(strstr(text, expected[i]) != NULL, "'%s' is not in: %s", expected[i], text);
    ck_assert_ptr_null(strchr(text, '\n'));
}
