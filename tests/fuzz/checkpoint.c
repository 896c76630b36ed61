/*
 * What --resume reads: the input is either the bytes to change in a small checkpoint, or a recipe
 * for an HDF5 file of unusual arrays, well-formed as far as HDF5 is concerned. Mostly the trailer
 * is then made valid, so that what stands behind the hash is reached. Numbers must come out, or a
 * message.
 */
#include "fuzz/fuzz.h"

#include "base/memory.h"
#include "io/checkpoint/archive.h"
#include "par/world.h"

#include <hdf5.h>
#include <math.h>
#include <sanitizer/allocator_interface.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { N_CHAIN = 3, N_SHARED = 4, DIM = 2, MOST_NUMBERS = 128, MOST_RANK = 4, TRAILER = 24 };

/* Called once by libFuzzer. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* The checkpoint that is changed, as the program writes it. */
static struct {
    em_grid *grid;
    uint8_t *bytes;
    size_t size;
} sample;

/* ---------------------------------------------------------------- a state, saved and restored */

typedef struct state {
    double shared[N_SHARED], theta[N_CHAIN * DIM];
    char *config, *hash;
} state;

static em_status visit(const em_visitor *visitor, state *s)
{
    em_status status = visitor->shared(visitor->context, "position", N_SHARED, s->shared);

    if (!status)
        status = visitor->chains(visitor->context, "theta", DIM, s->theta);
    return status ? status : visitor->chains(visitor->context, "empty", 0, s->theta);
}

static void save(const char *path)
{
    state s = {.shared = {1, 2, 3, 4}, .theta = {.5}};
    em_archive *archive;

    REQUIRE(em_archive_open(sample.grid, path, true, &archive) == EM_OK);
    REQUIRE(em_archive_put_text(archive, "config", "model:\n  name: gaussian\n") == EM_OK);
    REQUIRE(em_archive_put_text(archive, "data_hash", "0123") == EM_OK);
    REQUIRE(visit(em_archive_visitor(archive), &s) == EM_OK);
    REQUIRE(em_archive_close(&archive, true) == EM_OK);
}

static em_status restore(const char *path, state *s)
{
    em_archive *archive;
    em_status status = em_archive_open(sample.grid, path, false, &archive);

    if (!status)
        status = em_archive_get_text(archive, "config", &s->config);
    if (!status)
        status = em_archive_get_text(archive, "data_hash", &s->hash);
    if (!status)
        status = visit(em_archive_visitor(archive), s);
    REQUIRE(em_archive_close(&archive, false) == EM_OK);
    return status;
}

/* ---------------------------------------------------------------- files */

/* The trailer that belongs to the bytes before it, as in io/checkpoint/archive.c: a name, their
 * number, their hash. */
static void add_checksum(uint8_t *bytes, size_t size)
{
    const uint64_t length = size, hash = XXH64(bytes, size, 0);

    memcpy(bytes + size, sample.bytes + sample.size - TRAILER, 8);
    memcpy(bytes + size + 8, &length, sizeof length);
    memcpy(bytes + size + 16, &hash, sizeof hash);
}

/* Perhaps another trailer, a lost end, or bytes too many. */
static const char *write_with_checksum(recipe *r, uint8_t *bytes, size_t size)
{
    const unsigned damage = next(r, 32);
    size_t written = size + TRAILER;

    add_checksum(bytes, size);
    if (damage == 31)
        bytes[size + next(r, TRAILER)] ^= (uint8_t)(1 + next(r, 255));
    else if (damage == 30)
        written = written * next(r, 256) / 256;
    return fuzz_file(bytes, written);
}

/* The sample with some of its bytes changed. The hash has to notice: HDF5, on damaged bytes, is no
 * match for them. */
static const char *change(recipe *r, bool *changed)
{
    uint8_t *bytes = malloc(sample.size);
    const char *path;

    memcpy(bytes, sample.bytes, sample.size);
    while (r->left > 2) {
        const size_t at = (size_t)next(r, 256) << 8 | next(r, 256);
        bytes[at % sample.size] ^= (uint8_t)next(r, 256);
    }
    *changed = memcmp(bytes, sample.bytes, sample.size) != 0;
    path = fuzz_file(bytes, sample.size);
    free(bytes);
    return path;
}

static hid_t some_type(recipe *r)
{
    hid_t text;

    switch (next(r, 8)) {
    case 1:
        return H5Tcopy(H5T_STD_I64BE);
    case 2:
        return H5Tcopy(H5T_IEEE_F32LE);
    case 3:
        return H5Tcopy(H5T_STD_U8LE);
    case 4:
        text = H5Tcopy(H5T_C_S1);
        H5Tset_size(text, 1 + next(r, 16));
        return text;
    case 5:
        text = H5Tcopy(H5T_C_S1);
        H5Tset_size(text, H5T_VARIABLE);
        return text;
    default:
        return H5Tcopy(H5T_IEEE_F64LE);
    }
}

static hsize_t some_extent(recipe *r, hsize_t usual)
{
    const unsigned n = next(r, 16);

    return n < 12 ? usual : n < 15 ? next(r, 40) : (hsize_t)1 << next(r, 40);
}

/* The usual value, or a strange one. */
static void pour(recipe *r, hid_t dataset, double usual)
{
    static const double strange[] = {0,   -1,     .5,    21,     255, 256,
                                     1e9, 0x1p63, 1e300, -1e300, NAN, INFINITY};
    hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
    const hssize_t n = H5Sget_simple_extent_npoints(space);
    double value[MOST_NUMBERS];

    for (hssize_t i = 0; i < n && i < MOST_NUMBERS; i++)
        value[i] = next(r, 8) < 7 ? usual : strange[next(r, sizeof strange / sizeof *strange)];
    if (n > 0 && n <= MOST_NUMBERS && H5Tget_class(type) != H5T_STRING)
        H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value);
    H5Sclose(space);
    H5Tclose(type);
}

static void put_array(recipe *r, hid_t file, const char *name, hsize_t rows, hsize_t n,
                      double value)
{
    const int rank = next(r, 8) == 7 ? (int)next(r, MOST_RANK) : 2;
    hsize_t extent[MOST_RANK] = {some_extent(r, rows), some_extent(r, n), 1, 1};
    hid_t type = some_type(r), space = H5Screate_simple(rank, extent, NULL), dataset;

    dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (dataset >= 0) {
        pour(r, dataset, value);
        H5Dclose(dataset);
    }
    H5Sclose(space);
    H5Tclose(type);
}

/* Makes the file in memory. */
static const char *bake(recipe *r)
{
    static const struct {
        const char *name;
        hsize_t rows, n;
        double value;
    } arrays[] = {{"config_length", 1, 1, 20},   {"config", 1, 20, 'a'},
                  {"data_hash_length", 1, 1, 4}, {"data_hash", 1, 4, '0'},
                  {"position", 1, N_SHARED, 1},  {"theta", N_CHAIN, DIM, .5},
                  {"empty", N_CHAIN, 0, 0}};
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file;
    const char *path;
    uint8_t *image;
    size_t size;

    H5Pset_fapl_core(access, 1 << 16, false);
    file = H5Fcreate("recipe", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (next(r, 32) < 31)
            put_array(r, file, arrays[i].name, arrays[i].rows, arrays[i].n, arrays[i].value);
        else
            H5Gclose(H5Gcreate2(file, arrays[i].name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    size = (size_t)H5Fget_file_image(file, NULL, 0);
    image = malloc(size + TRAILER);
    H5Fget_file_image(file, image, size);
    path = write_with_checksum(r, image, size);
    free(image);
    H5Fclose(file);
    H5Pclose(access);
    return path;
}

/* ---------------------------------------------------------------- the fuzzer's calls */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char path[] = "sample";
    FILE *file;

    setenv("OMPI_MCA_io", "ompio", 1); /* ROMIO loses 8 bytes at each open: see loses_memory */
    setenv("OMPI_MCA_sharedfp", "individual", 1);
    REQUIRE(em_world_start(argc, argv) == EM_OK);
    REQUIRE(em_grid_create(N_CHAIN, 1, &sample.grid) == EM_OK);
    save(path);
    REQUIRE((file = fopen(path, "rb")) && fseek(file, 0, SEEK_END) == 0);
    sample.size = (size_t)ftell(file);
    sample.bytes = malloc(sample.size);
    rewind(file);
    REQUIRE(fread(sample.bytes, 1, sample.size, file) == sample.size && fclose(file) == 0);
    unlink(path);
    return 0;
}

static void release(state *s)
{
    em_release(&s->config);
    em_release(&s->hash);
}

/* LeakSanitizer does not stand MPI's threads. What a file makes lost it makes lost every time, and
 * neither they nor HDF5's caches grow three times in a row. */
static bool loses_memory(const char *path)
{
    for (int i = 0; i < 3; i++) {
        const size_t before = __sanitizer_get_current_allocated_bytes();
        state s = {.config = NULL};

        restore(path, &s);
        release(&s);
        if (__sanitizer_get_current_allocated_bytes() <= before)
            return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    recipe r = {data, size};
    state s = {.config = NULL};
    bool bakes = next(&r, 4) < 3, changed = false;
    const char *path = bakes ? bake(&r) : change(&r, &changed);
    const em_status status = restore(path, &s);

    REQUIRE(bakes || status == (changed ? EM_EDATA : EM_OK));
    REQUIRE(size > 0 || status == EM_OK);
    REQUIRE(status == EM_OK || status == EM_EDATA || status == EM_EMEMORY || status == EM_EIO);
    REQUIRE(!status || *em_error_text());
    REQUIRE(status || (s.config && s.hash));
    release(&s);
    REQUIRE(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL) == 0);
    REQUIRE(!loses_memory(path));
    return 0;
}
