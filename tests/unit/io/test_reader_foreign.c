/* The reader on what other programs write: compressed, of other types, with other coordinates. */
#include "base/memory.h"
#include "io/draws/reader.h"
#include "support/tap.h"

#include <hdf5.h>
#include <hdf5_hl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { N_CHAIN = 2, N_DRAW = 5, N_THETA = 3 };

static char path[64];
static hid_t file, group;

static void start_file(void)
{
    snprintf(path, sizeof path, "/tmp/emass_test_reader_%d.h5", getpid());
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    group = H5Gcreate2(file, "posterior", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
}

static void end_file(void)
{
    H5Gclose(group);
    H5Fclose(file);
}

static void remove_file(void)
{
    unlink(path);
}

static hid_t make(const char *name, hid_t type, int rank, const hsize_t *extent, bool compressed)
{
    const hsize_t chunk[] = {1, 2, 2, 1};
    hid_t space = H5Screate_simple(rank, extent, NULL), list = H5Pcreate(H5P_DATASET_CREATE);

    if (compressed) {
        H5Pset_chunk(list, rank, chunk);
        H5Pset_deflate(list, 4);
    }
    const hid_t id = H5Dcreate2(group, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    H5Sclose(space);
    H5Pclose(list);
    return id;
}

static hid_t make_scale(const char *name, hid_t type, hsize_t extent, const void *value)
{
    hid_t id = make(name, type, 1, &extent, false);

    if (value)
        H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value);
    H5DSset_scale(id, name);
    return id;
}

/* Attaches a scale to each axis in turn, and closes the variable. */
static void attach(hid_t id, int rank, const hid_t *scale)
{
    for (int i = 0; i < rank; i++)
        H5DSattach_scale(id, scale[i], (unsigned)i);
    H5Dclose(id);
}

/* theta: compressed float32 with names of variable length; beta: int64, one axis numbered from 10,
 * the other without coordinate; constant: no draws. */
static void write_foreign(void)
{
    static const char *const names[] = {"Choate", "Deerfield", "x y"};
    static const int64_t tens[] = {10, 20};
    const hsize_t theta_extent[] = {N_CHAIN, N_DRAW, N_THETA},
                  beta_extent[] = {N_CHAIN, N_DRAW, 2, 2};
    hid_t text = H5Tcopy(H5T_C_S1), id;
    float theta[N_CHAIN * N_DRAW * N_THETA];
    int64_t beta[N_CHAIN * N_DRAW * 4];

    for (int i = 0; i < N_CHAIN * N_DRAW * N_THETA; i++)
        theta[i] = (float)i / 4;
    for (int i = 0; i < N_CHAIN * N_DRAW * 4; i++)
        beta[i] = 1000 + i;
    H5Tset_size(text, H5T_VARIABLE);
    start_file();
    const hid_t scale[] = {make_scale("chain", H5T_NATIVE_INT64, N_CHAIN, NULL),
                           make_scale("draw", H5T_NATIVE_INT64, N_DRAW, NULL),
                           make_scale("school", text, N_THETA, names)};
    const hid_t beta_scale[] = {scale[0], scale[1], make_scale("ten", H5T_NATIVE_INT64, 2, tens)};
    id = make("theta", H5T_NATIVE_FLOAT, 3, theta_extent, true);
    H5Dwrite(id, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, theta);
    attach(id, 3, scale);
    id = make("beta", H5T_NATIVE_INT64, 4, beta_extent, false);
    H5Dwrite(id, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, beta);
    attach(id, 3, beta_scale);
    attach(make("constant", H5T_NATIVE_DOUBLE, 1, &theta_extent[2], false), 1, scale + 2);
    for (int i = 0; i < 3; i++)
        H5Dclose(scale[i]);
    H5Dclose(beta_scale[2]);
    H5Tclose(text);
    end_file();
}

START_TEST(test_foreign)
{
    static const char *const beta_labels[] = {"beta[10,0]", "beta[10,1]", "beta[20,0]",
                                              "beta[20,1]"};
    em_reader *reader = NULL;
    double value[4 * N_CHAIN * N_DRAW];

    write_foreign();
    ck_assert_msg(em_reader_open(path, "posterior", &reader) == EM_OK, "%s", em_error_text());
    ck_assert(em_reader_n_chain(reader) == N_CHAIN && em_reader_n_draw(reader) == N_DRAW);
    ck_assert_int_eq(em_reader_n_variable(reader), 2);
    const em_reader_variable *beta = em_reader_variable_at(reader, 0);
    const em_reader_variable *theta = em_reader_variable_at(reader, 1);
    ck_assert_str_eq(em_reader_label(theta, 1), "theta[Deerfield]");
    ck_assert_str_eq(em_reader_label(theta, 2), "theta[x y]");
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(em_reader_label(beta, i), beta_labels[i]);
    ck_assert(em_reader_elements(reader, 1, 1, 2, value) == EM_OK);
    for (int i = 0; i < 2 * N_CHAIN * N_DRAW; i++)
        ck_assert_double_eq(value[i], (i % 10 * N_THETA + 1 + i / 10) / 4.0);
    ck_assert(em_reader_elements(reader, 0, 1, 3, value) == EM_OK); /* from one row into the next */
    for (int i = 0; i < 3 * N_CHAIN * N_DRAW; i++)
        ck_assert_double_eq(value[i], 1000 + i % 10 * 4 + 1 + i / 10);
    ck_assert(em_reader_has(reader, "posterior", "constant"));
    ck_assert(!em_reader_has(reader, "prior", "theta"));
    em_reader_close(&reader);
    remove_file();
}
END_TEST

/* ---------------------------------------------------------------- what must be refused */

/* Opening must fail, naming the file and, in one line, what is wrong. */
static void refuses(const char *name, const char *where, const char *reason)
{
    em_reader *reader = (em_reader *)1;

    ck_assert_int_eq(em_reader_open(name, where, &reader), EM_EDATA);
    ck_assert_ptr_null(reader);
    ck_assert_msg(strstr(em_error_text(), name) && strstr(em_error_text(), reason), "%s",
                  em_error_text());
    ck_assert_ptr_null(strchr(em_error_text(), '\n'));
}

static void write_axes(const char *first, const char *second)
{
    const hsize_t extent[] = {N_CHAIN, N_DRAW};

    start_file();
    const hid_t scale[] = {make_scale(first, H5T_NATIVE_INT64, N_CHAIN, NULL),
                           make_scale(second, H5T_NATIVE_INT64, N_DRAW, NULL)};
    attach(make("mu", H5T_NATIVE_DOUBLE, 2, extent, false), 2, scale);
    H5Dclose(scale[0]);
    H5Dclose(scale[1]);
    end_file();
}

START_TEST(test_refused)
{
    write_axes("draw", "chain");
    refuses(path, "posterior", "(draw, chain)");
    refuses(path, "prior", "no group prior");
    write_axes("a", "b");
    refuses(path, "posterior", "no (chain, draw, ...) variable");
    remove_file();
    refuses(path, "posterior", "No such file");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("reader_foreign");

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    tcase_add_test(tests, test_foreign);
    tcase_add_test(tests, test_refused);
    return run_case(tests, CK_FORK);
}
