/* Opening what others have put there, be it a file or memory, and bringing back a file that was
 * changed. */
#include "base/file.h"
#include "io/checkpoint/rollback_journal.h"
#include "par/mapped.h"
#include "run/loop/earlier_mass.h"
#include "support/tap.h"
#include "support/test_files.h"

#include <check.h>
#include <fcntl.h>
#include <hdf5_hl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Where containers count processes each from one, the number of the one that made the memory may be
 * one's own, and the descriptor that of any file. */
START_TEST(test_memory_of_another)
{
    enum { BYTES = 4096 };
    em_mapped_place where = {.descriptor = -1, .bytes = BYTES}, other;
    char *made = em_mapped_make(&where), *found = em_mapped_find(&where, true);

    ck_assert_ptr_nonnull(made);
    ck_assert_ptr_nonnull(found);
    found[BYTES - 1] = 'x';
    ck_assert_int_eq(made[BYTES - 1], 'x');
    other = where;
    other.descriptor = open("a", O_RDWR | O_CREAT, 0600);
    ck_assert_int_eq(ftruncate(other.descriptor, BYTES), 0);
    ck_assert_ptr_null(em_mapped_find(&other, true));
    close(other.descriptor);
    ck_assert_ptr_null(em_mapped_find(&other, false));
    em_mapped_release(found, BYTES);
    em_mapped_release(made, BYTES);
    em_mapped_close(&where);
    ck_assert_ptr_null(em_mapped_find(&where, false));
}
END_TEST

enum { CHAINS = 2, DRAWS = 40000, KEPT = 15000 };

static double value_of(int i)
{
    return 0.5 * i;
}

/* a: x of (chain, draw), in chunks. */
static void write_draws(void)
{
    const hsize_t extent[2] = {CHAINS, DRAWS}, chunk[2] = {1, 10000};
    static double x[CHAINS * DRAWS];
    hid_t file = H5Fcreate("a", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(2, extent, extent), list = H5Pcreate(H5P_DATASET_CREATE);

    for (int i = 0; i < CHAINS * DRAWS; i++)
        x[i] = value_of(i);
    H5Pset_chunk(list, 2, chunk);
    hid_t set = H5Dcreate2(file, "x", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, x);
    H5LTset_attribute_int(file, "/", "complete", (const int[]){0}, 1);
    H5Dclose(set);
    H5Pclose(list);
    H5Sclose(space);
    H5Fclose(file);
}

/* What the end of a run does: draws are cut, and more is written beside them. */
static void finish_file(void)
{
    hid_t file = H5Fopen("a", H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, "x", H5P_DEFAULT);
    static const double more[3000];

    H5Dset_extent(set, (const hsize_t[]){CHAINS, KEPT});
    H5LTmake_dataset_double(file, "more", 1, (const hsize_t[]){3000}, more);
    H5LTset_attribute_int(file, "/", "complete", (const int[]){1}, 1);
    H5Dclose(set);
    H5Fclose(file);
}

/* Whether a is what it was, as far as it had to be kept. */
static bool is_as_it_was(void)
{
    static double x[CHAINS * DRAWS];
    hid_t file = H5Fopen("a", H5F_ACC_RDONLY, H5P_DEFAULT);
    int complete = -1;
    bool same = H5LTget_attribute_int(file, "/", "complete", &complete) >= 0 && complete == 0 &&
                H5LTread_dataset_double(file, "x", x) >= 0 &&
                H5Lexists(file, "more", H5P_DEFAULT) == 0;

    for (int c = 0; c < CHAINS; c++)
        for (int i = 0; i < KEPT; i++)
            same = same && x[c * DRAWS + i] == value_of(c * DRAWS + i);
    H5Fclose(file);
    return same;
}

static long bytes_of(const char *path)
{
    struct stat file;

    return stat(path, &file) == 0 ? (long)file.st_size : -1;
}

START_TEST(test_undo)
{
    write_draws();
    ck_assert_int_eq(symlink("c", "b"), 0); /* is replaced, and not followed */
    ck_assert_int_eq(em_rollback_journal_keep("a", "this", "b"), EM_OK);
    ck_assert_int_eq(bytes_of("c"), -1);
    ck_assert_int_lt(bytes_of("b"), bytes_of("a") / 50);
    ck_assert(is_as_it_was());
    finish_file();
    ck_assert(!is_as_it_was());
    ck_assert_int_eq(em_rollback_journal_apply("b", "this", "a"), EM_OK);
    ck_assert(is_as_it_was());
    finish_file();
    ck_assert_int_eq(em_rollback_journal_apply("b", NULL, "a"), EM_OK);
    ck_assert_int_eq(em_rollback_journal_apply("b", "this", "a"),
                     EM_OK); /* as if it had been begun before */
    ck_assert(is_as_it_was());
}
END_TEST

/* Of another file, or torn: the file stays. */
START_TEST(test_undo_refused)
{
    long bytes;

    write_draws();
    ck_assert_int_eq(em_rollback_journal_keep("a", "this", "b"), EM_OK);
    finish_file();
    bytes = bytes_of("a");
    ck_assert_int_eq(em_rollback_journal_apply("b", "that", "a"), EM_EDATA);
    ck_assert_int_eq(em_rollback_journal_apply("none", "this", "a"), EM_EDATA);
    ck_assert_int_eq(truncate("b", bytes_of("b") - 1), 0);
    ck_assert_int_eq(em_rollback_journal_apply("b", "this", "a"), EM_EDATA);
    ck_assert_int_eq(bytes_of("a"), bytes);
    ck_assert(!is_as_it_was());
    ck_assert_int_eq(em_rollback_journal_keep("none", "this", "c"), EM_EIO);
    ck_assert_int_eq(bytes_of("c"), -1);
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
    TCase *tests = tcase_create("file");

    tcase_add_checked_fixture(tests, enter_test_folder, leave_test_folder);
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, test_kinds);
    tcase_add_test(tests, test_memory_of_another);
    tcase_add_test(tests, test_undo);
    tcase_add_test(tests, test_undo_refused);
    tcase_add_test(tests, test_positions_of_no_chains);
    return run_case(tests, CK_FORK);
}
