/* Reading IDX files, plain and packed, and every way in which one can be wrong. */
#include "base/memory.h"
#include "data/reader/idx.h"

#include <check.h>
#include <stdlib.h>

#include "support/tap.h"
#include "support/test_files.h"

static test_path path;

static void set_up(void)
{
    open_test_folder();
    path_in_folder("idx", path);
}

/* Two images of 2 x 3. */
static const char good[] = "\0\0\10\3\0\0\0\2\0\0\0\2\0\0\0\3abcdefghijkl";
enum { GOOD = sizeof good - 1 };

static em_status read_all(uint8_t *out, uint64_t *hash)
{
    em_idx *idx = NULL;
    em_status status = em_idx_open(path, &idx);

    *hash = 0;
    if (!status)
        status = em_idx_read(idx, 0, em_idx_shape_of(idx)->length[0], out, hash);
    em_idx_close(&idx);
    return status;
}

static void is_refused(const void *bytes, size_t length, const char *why)
{
    uint8_t out[64];
    uint64_t hash;

    write_bytes(path, bytes, length);
    check_failed(read_all(out, &hash), EM_EDATA, why);
    ck_assert_ptr_nonnull(strstr(em_error_text(), path));
}

START_TEST(plain_and_packed_are_alike)
{
    uint8_t out[16];
    uint64_t plain, packed;
    em_idx *idx = NULL;

    write_bytes(path, good, GOOD);
    ck_assert_int_eq(em_idx_open(path, &idx), EM_OK);
    ck_assert_int_eq(em_idx_shape_of(idx)->n_axis, 3);
    ck_assert_int_eq(em_idx_shape_of(idx)->size, 12);
    ck_assert_int_eq(em_idx_shape_of(idx)->length[2], 3);
    em_idx_close(&idx);
    ck_assert_int_eq(read_all(out, &plain), EM_OK);
    ck_assert_int_eq(memcmp(out, "abcdefghijkl", 12), 0);
    write_gzip(path, good, GOOD);
    ck_assert(em_idx_is(path));
    ck_assert_int_eq(read_all(out, &packed), EM_OK);
    ck_assert_uint_eq(plain, packed);
    write_gzip(path, "\0\0\10\1\0\0\0\14abcdefghijkl", 20); /* the same bytes in another shape */
    ck_assert_int_eq(read_all(out, &packed), EM_OK);
    ck_assert_uint_ne(plain, packed);
}
END_TEST

/* The last image before the first: their hashes add up to that of both. */
START_TEST(parts_are_read_alone)
{
    uint8_t out[16];
    uint64_t whole, parts = 0;

    write_bytes(path, good, GOOD);
    ck_assert_int_eq(read_all(out, &whole), EM_OK);
    for (int64_t first = 2; first-- > 0;) {
        em_idx *idx = NULL;
        ck_assert_int_eq(em_idx_open(path, &idx), EM_OK);
        ck_assert(em_idx_is_plain(idx));
        ck_assert_int_eq(em_idx_item(idx), 6);
        ck_assert_int_eq(em_idx_read(idx, first, 1, out, &parts), EM_OK);
        ck_assert_int_eq(memcmp(out, first ? "ghijkl" : "abcdef", 6), 0);
        em_idx_close(&idx);
    }
    ck_assert_uint_eq(whole, parts);
    write_bytes(path, "\0\0\10\3\0\0\0\2\0\0\0\2\0\0\0\3ghijklabcdef", GOOD); /* in another order */
    ck_assert_int_eq(read_all(out, &parts), EM_OK);
    ck_assert_uint_ne(whole, parts);
}
END_TEST

START_TEST(what_is_wrong_is_said)
{
    static const char longer[] = "\0\0\10\1\0\0\0\1ab";

    for (size_t length = 0; length < GOOD; length++)
        is_refused(good, length,
                   length < 4    ? "magic number"
                   : length < 16 ? "in its header"
                                 : "the file is truncated");
    is_refused("\0\0\15\1\0\0\0\1\0\0\0\0", 12, "magic number 00000d01");
    is_refused("\0\0\10\0ab", 6, "magic number 00000800");
    is_refused("\0\0\10\5\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1a", 25, "axes");
    is_refused("a,b\n1,2\n", 8, "magic number 612c620a");
    is_refused("\0\0\10\1\0\0\0\0", 8, "length 0 of axis 1");
    is_refused(longer, sizeof longer - 1, "more than 1 bytes");
    is_refused("\0\0\10\4\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377a", 21,
               "which is too short for it");
}
END_TEST

START_TEST(a_damaged_package_is_refused)
{
    uint8_t out[64];
    uint64_t hash;
    char packed[256];
    const char *said;
    int found, of, last = 0;
    size_t length;

    write_gzip(path, good, GOOD);
    length = read_bytes(path, sizeof packed, packed);
    for (size_t cut = 18; cut < length; cut++) { /* what stands behind gzip's own header */
        write_bytes(path, packed, cut);
        ck_assert_int_eq(read_all(out, &hash), EM_EDATA);
        said = strstr(em_error_text(), "damaged gzip file after");
        ck_assert_msg(said &&
                          sscanf(said, "damaged gzip file after %d of %d bytes", &found, &of) == 2,
                      "%zu: %s", cut, em_error_text());
        ck_assert_int_le(found, of);
        ck_assert_int_ge(found, last);
        ck_assert(of == (found < 4 ? 4 : found < 16 ? 16 : GOOD));
        last = found;
    }
    packed[length - 6] ^= 1; /* of the check sum */
    write_bytes(path, packed, length);
    ck_assert_int_eq(read_all(out, &hash), EM_EDATA);
    unlink(path);
    ck_assert(!em_idx_is(path));
    ck_assert_int_eq(read_all(out, &hash), EM_EDATA);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("idx");

    tcase_add_checked_fixture(tests, set_up, close_test_folder);
    tcase_add_test(tests, plain_and_packed_are_alike);
    tcase_add_test(tests, parts_are_read_alone);
    tcase_add_test(tests, what_is_wrong_is_said);
    tcase_add_test(tests, a_damaged_package_is_refused);
    return run_case(tests, CK_FORK);
}
