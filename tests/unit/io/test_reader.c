/* Files that `emass summary` may be handed: damaged ones, and such as others write. */
#include "base/memory.h"
#include "io/draws/reader.h"
#include "support/tap.h"
#include "support/test_files.h"

#include <check.h>
#include <hdf5_hl.h>

static test_path path;

static void set_up(void)
{
    open_test_folder();
    path_in_folder("draws.h5", path);
    write_bytes(path, "", 0);
}

/* ---- files made with HDF5 ---- */

static hid_t text_type(size_t size)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    H5Tset_size(type, size);
    return type;
}

static void put_scale(hid_t group, const char *name, hid_t type, hsize_t extent, const void *value,
                      hid_t dataset, unsigned axis)
{
    hid_t space = H5Screate_simple(1, &extent, NULL);
    hid_t scale = H5Dcreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

    if (value)
        ck_assert_int_ge(H5Dwrite(scale, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value), 0);
    H5DSset_scale(scale, name);
    ck_assert_int_ge(H5DSattach_scale(dataset, scale, axis), 0);
    H5Dclose(scale);
    H5Sclose(space);
}

/* posterior/theta (chain, draw, school) with 0, 1, 2, ... in it where it is small. */
static hid_t create(const hsize_t extent[3], hid_t label_type, const void *label)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t group = H5Gcreate2(file, "posterior", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(3, extent, NULL);
    hid_t theta =
        H5Dcreate2(group, "theta", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    double value[64];

    for (int i = 0; i < 64; i++)
        value[i] = i;
    if (H5Sget_simple_extent_npoints(space) <= 64)
        H5Dwrite(theta, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value);
    put_scale(group, "chain", H5T_NATIVE_INT64, extent[0], NULL, theta, 0);
    put_scale(group, "draw", H5T_NATIVE_INT64, extent[1], NULL, theta, 1);
    put_scale(group, "school", label_type, extent[2], label, theta, 2);
    H5Dclose(theta);
    H5Sclose(space);
    H5Gclose(group);
    return file;
}

static const hsize_t small[3] = {2, 3, 2};

static hid_t create_small(void)
{
    const int64_t number[2] = {1, 2};

    return create(small, H5T_NATIVE_INT64, number);
}

static void put_attribute(hid_t file, const char *name, hid_t type, hsize_t count,
                          const void *value)
{
    hid_t space = H5Screate_simple(1, &count, NULL);
    hid_t attribute = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);

    ck_assert_int_ge(H5Awrite(attribute, type, value), 0);
    H5Aclose(attribute);
    H5Sclose(space);
}

static em_reader *open_reader(void)
{
    em_reader *reader;

    ck_assert_msg(em_reader_open(path, "posterior", &reader) == EM_OK, "%s", em_error_text());
    return reader;
}

static void refuses(const char *what)
{
    em_reader *reader;

    ck_assert_int_eq(em_reader_open(path, "posterior", &reader), EM_EDATA);
    ck_assert_ptr_null(reader);
    ck_assert_msg(strstr(em_error_text(), what), "no '%s' in '%s'", what, em_error_text());
    ck_assert_ptr_nonnull(strstr(em_error_text(), path));
}

/* ---- what is understood ---- */

START_TEST(test_draws)
{
    double draws[12];
    em_reader *reader;

    H5Fclose(create_small());
    reader = open_reader();
    ck_assert_int_eq(em_reader_n_chain(reader), 2);
    ck_assert_int_eq(em_reader_n_draw(reader), 3);
    ck_assert_int_eq(em_reader_n_variable(reader), 1);
    ck_assert_str_eq(em_reader_label(em_reader_variable_at(reader, 0), 1), "theta[2]");
    ck_assert_int_eq(em_reader_elements(reader, 0, 0, 2, draws), EM_OK);
    for (int i = 0; i < 6; i++) {
        ck_assert_double_eq(draws[i], 2 * i);
        ck_assert_double_eq(draws[6 + i], 2 * i + 1);
    }
    em_reader_close(&reader);
}
END_TEST

/* Texts of fixed length without a NUL, and longer than a label may be. */
START_TEST(test_long_labels)
{
    enum { LENGTH = 300 };
    char label[2 * LENGTH];
    hid_t type = text_type(LENGTH);
    em_reader *reader;

    memset(label, 'a', sizeof label);
    H5Fclose(create(small, type, label));
    H5Tclose(type);
    reader = open_reader();
    ck_assert_uint_eq(strlen(em_reader_label(em_reader_variable_at(reader, 0), 1)),
                      strlen("theta[]") + 255);
    em_reader_close(&reader);
}
END_TEST

/* Attributes of one value, as netCDF writes them, or of none or several. */
START_TEST(test_attributes)
{
    const int64_t number[64] = {7, 8};
    const char text[64] = "seven\0\0\0eight\0\0";
    hid_t file = create_small(), type = text_type(8);
    int64_t value = -1;
    em_reader *reader;
    char *copy;

    put_attribute(file, "one", H5T_NATIVE_INT64, 1, number);
    put_attribute(file, "many", H5T_NATIVE_INT64, 64, number);
    put_attribute(file, "word", type, 1, text);
    put_attribute(file, "words", type, 8, text);
    H5Tclose(type);
    H5Fclose(file);
    reader = open_reader();
    ck_assert(em_reader_int(reader, "one", &value) && value == 7);
    ck_assert(!em_reader_int(reader, "many", &value) && value == 7);
    ck_assert(!em_reader_int(reader, "word", &value) && !em_reader_int(reader, "none", &value));
    ck_assert(em_reader_text(reader, "word", &copy));
    ck_assert_str_eq(copy, "seven");
    em_release(&copy);
    ck_assert(!em_reader_text(reader, "words", &copy) && !copy);
    ck_assert(!em_reader_text(reader, "one", &copy) && !copy);
    em_reader_close(&reader);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(test_not_hdf5)
{
    write_bytes(path, "age,y\n1,0\n", 10);
    refuses("expected an HDF5 file: file signature not found");
}
END_TEST

START_TEST(test_truncated)
{
    static char bytes[1 << 16];
    size_t size;

    H5Fclose(create_small());
    size = read_bytes(path, sizeof bytes, bytes);
    ck_assert_uint_gt(size, 1000);
    for (size_t cut = 0; cut < size; cut += 61) {
        write_bytes(path, bytes, cut);
        refuses("expected an HDF5 file: ");
    }
}
END_TEST

/* The characters of netCDF, with controls among them; the last label is as long as there is room.
 */
START_TEST(test_character_labels)
{
    const hsize_t extent[2] = {2, 6};
    const char label[2][6] = {"a\n\033c", {'b', '\xc3', '\xa9', '\xff', 'b', 'b'}};
    hid_t file = create_small(), type = text_type(1), space = H5Screate_simple(2, extent, NULL);
    hid_t theta = H5Dopen2(file, "posterior/theta", H5P_DEFAULT), school;
    em_reader *reader;

    school = H5Dopen2(file, "posterior/school", H5P_DEFAULT);
    ck_assert_int_ge(H5DSdetach_scale(theta, school, 2), 0);
    H5Dclose(school);
    school = H5Dcreate2(file, "posterior/text", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(school, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, label);
    H5DSset_scale(school, "text");
    ck_assert_int_ge(H5DSattach_scale(theta, school, 2), 0);
    H5Dclose(school);
    H5Dclose(theta);
    H5Sclose(space);
    H5Tclose(type);
    H5Fclose(file);
    reader = open_reader();
    ck_assert_str_eq(em_reader_label(em_reader_variable_at(reader, 0), 0), "theta[a\\n\\x1bc]");
    ck_assert_str_eq(em_reader_label(em_reader_variable_at(reader, 0), 1),
                     "theta[b\xc3\xa9\\xffbb]");
    em_reader_close(&reader);
}
END_TEST

/* Extents that nothing stored stands behind must not become allocations. */
START_TEST(test_claims)
{
    static const hsize_t draws[3] = {1 << 20, 1 << 30, 2}, elements[3] = {1, 0, 1 << 30},
                         none[3] = {0, 3, 2}, sum[3] = {4, 1 << 20, 1};

    H5Fclose(create(draws, H5T_NATIVE_INT64, NULL));
    refuses("has 2251799813685248 numbers");
    H5Fclose(create(elements, H5T_NATIVE_INT64, NULL));
    refuses("in 1073741824 elements");
    H5Fclose(create(none, H5T_NATIVE_INT64, NULL));
    refuses("has no chains");
    H5Fclose(create(sum, H5T_NATIVE_INT64, NULL));
    refuses("more than the");
}
END_TEST

int main(void)
{
    TCase *files = tcase_create("reader");

    tcase_add_checked_fixture(files, set_up, close_test_folder);
    tcase_add_test(files, test_draws);
    tcase_add_test(files, test_long_labels);
    tcase_add_test(files, test_attributes);
    tcase_add_test(files, test_not_hdf5);
    tcase_add_test(files, test_truncated);
    tcase_add_test(files, test_character_labels);
    tcase_add_test(files, test_claims);
    return run_case(files, CK_FORK);
}
