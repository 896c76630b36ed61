#include "support/test_files.h"

#include <dirent.h>
#include <stdlib.h>
#include <zlib.h>

char test_folder[64];

void open_test_folder(void)
{
    strcpy(test_folder, "/tmp/emass-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(test_folder));
}

void close_test_folder(void)
{
    DIR *directory = opendir(test_folder);
    char path[sizeof test_folder + 257];

    for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", test_folder, entry->d_name);
        unlink(path);
    }
    if (directory)
        closedir(directory);
    rmdir(test_folder);
}

void enter_test_folder(void)
{
    open_test_folder();
    ck_assert_int_eq(chdir(test_folder), 0);
}

void leave_test_folder(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    close_test_folder();
}

void path_in_folder(const char *name, test_path path)
{
    snprintf(path, sizeof(test_path), "%s/%s", test_folder, name);
}

void write_file(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

void write_bytes(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");

    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

void write_gzip(const char *path, const void *bytes, size_t length)
{
    gzFile file = gzopen(path, "wb");

    ck_assert_int_eq(gzwrite(file, bytes, (unsigned)length), (int)length);
    gzclose(file);
}

size_t read_bytes(const char *path, size_t most, void *bytes)
{
    FILE *file = fopen(path, "rb");
    const size_t length = fread(bytes, 1, most, file);

    fclose(file);
    ck_assert_uint_lt(length, most);
    return length;
}

void check_failed(em_status status, em_status expected, const char *text)
{
    ck_assert_int_eq(status, expected);
    ck_assert_msg(strstr(em_error_text(), text) != NULL, "'%s' is not in: %s", text,
                  em_error_text());
}
