/* Opening what others have put there, and copying in every way that a file system may leave. */
#include "base/fault.h"
#include "base/file.h"
#include "run/initial.h"
#include "tap.h"

#include <check.h>
#include <fcntl.h>
#include <hdf5_hl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/emass-file-XXXXXX";

static void set_up(void)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void tear_down(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    const char *const names[] = {"a", "b", "c", "fifo", "link"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* `n` bytes that differ from place to place. */
static void fill(const char *path, int n)
{
    FILE *file = fopen(path, "wb");

    for (int i = 0; i < n; i++)
        fputc((i * 7 + i / 251) & 255, file);
    fclose(file);
}

static bool same(const char *path, const char *other)
{
    FILE *a = fopen(path, "rb"), *b = fopen(other, "rb");
    int x, y;

    do {
        x = fgetc(a);
        y = fgetc(b);
    } while (x == y && x != EOF);
    fclose(a);
    fclose(b);
    return x == y;
}

static bool refuses(const char *path, int flags, const char *kind)
{
    int descriptor;

    alarm(20); /* what blocks must not block the tests */
    const bool denied = em_file_open(path, flags, &descriptor) == EM_EDATA && descriptor == -1;
    alarm(0);
    return denied && strstr(em_error_text(), kind);
}

START_TEST(test_kinds)
{
    ck_assert_int_eq(mkfifo("fifo", 0600), 0);
    ck_assert_int_eq(symlink("fifo", "link"), 0);
    ck_assert(refuses("fifo", O_RDONLY, "found a FIFO"));
    ck_assert(refuses("fifo", O_WRONLY, "found a FIFO"));
    ck_assert(refuses("link", O_RDONLY, "found a FIFO"));
    ck_assert(refuses("link", O_RDONLY | O_NOFOLLOW, "found a symbolic link"));
    ck_assert(refuses(".", O_RDONLY, "found a folder"));
    ck_assert(refuses("/dev/zero", O_RDONLY, "found a device"));
    ck_assert(refuses("none", O_RDONLY, "No such file"));
    ck_assert(refuses("none/a", O_RDWR | O_CREAT, "No such file"));
}
END_TEST

static const char *const refused[] = {"none:0", "file-clone:0", "file-copy-range:0",
                                      "file-copy-range:0:2"};

START_TEST(test_copy)
{
    fill("a", 300001);
    fill("c", 10);
    ck_assert_int_eq(symlink("c", "b"), 0); /* is replaced, and not followed */
    setenv("EMASS_FAULT", refused[_i], 1);
    em_fault_start(0);
    ck_assert_int_eq(em_file_copy("a", "b"), EM_OK);
    ck_assert(same("a", "b"));
    ck_assert_int_eq(em_file_copy("c", "b"), EM_OK);
    ck_assert(same("c", "b"));
    ck_assert_int_eq(em_file_copy("none", "b"), EM_EDATA);
    ck_assert(same("c", "b"));
    ck_assert_int_eq(em_file_copy("a", "none/b"), EM_EDATA);
}
END_TEST

/* unconstrained_posterior/theta of (chain, draw, 2), without any chain. */
static void write_no_chains(void)
{
    const hsize_t extent[3] = {0, 5, 2};
    hid_t file = H5Fcreate("a", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t group =
        H5Gcreate2(file, "unconstrained_posterior", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(3, extent, NULL);
    hid_t theta =
        H5Dcreate2(group, "theta", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const char *const names[] = {"chain", "draw"};

    for (unsigned axis = 0; axis < 2; axis++) {
        hid_t line = H5Screate_simple(1, &extent[axis], NULL);
        hid_t scale = H5Dcreate2(group, names[axis], H5T_NATIVE_INT64, line, H5P_DEFAULT,
                                 H5P_DEFAULT, H5P_DEFAULT);
        H5DSset_scale(scale, names[axis]);
        H5DSattach_scale(theta, scale, axis);
        H5Dclose(scale);
        H5Sclose(line);
    }
    H5Dclose(theta);
    H5Sclose(space);
    H5Gclose(group);
    H5Fclose(file);
}

START_TEST(test_positions_of_no_chains)
{
    double theta[8];

    write_no_chains();
    ck_assert_int_eq(em_initial_positions("a", 0, 2, 2, 4, theta), EM_EDATA);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file");
    TCase *tests = tcase_create("file");

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, test_kinds);
    tcase_add_loop_test(tests, test_copy, 0, sizeof refused / sizeof *refused);
    tcase_add_test(tests, test_positions_of_no_chains);
    suite_add_tcase(suite, tests);
    return run_suite(suite, CK_FORK);
}
