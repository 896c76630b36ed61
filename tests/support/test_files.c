#include "support/test_files.h"

#include <dirent.h>
#include <stdlib.h>
#include <zlib.h>

static char folder[64];

void open_test_folder(void)
{
    strcpy(folder, "/tmp/emass-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

void close_test_folder(void)
{
    DIR *directory = opendir(folder);
    char path[sizeof folder + 257];

    for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    if (directory)
        closedir(directory);
    rmdir(folder);
}

void path_in_folder(const char *name, test_path path)
{
    snprintf(path, sizeof(test_path), "%s/%s", folder, name);
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
