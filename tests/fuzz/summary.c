/*
 * What `emass summary` reads: the input is a recipe for an HDF5 file of unusual variables,
 * coordinates, links, storage and attributes, well-formed as far as HDF5 is concerned (whose own
 * library is no match for damaged bytes), perhaps cut short. Numbers and names that can be printed
 * must come out, or a message.
 */
#include "fuzz/fuzz.h"

#include "base/memory.h"
#include "base/text.h"
#include "io/draws/reader.h"

#include <hdf5_hl.h>
#include <stdbool.h>
#include <string.h>

#define SECRET "/proc/self/maps"
enum { MOST_RANK = 12, MOST_VARIABLES = 4, READ_ELEMENTS = 3, MOST_BYTES = 1024 };

static hid_t text_type(size_t size)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    H5Tset_size(type, size);
    return type;
}

static hid_t enum_type(void)
{
    hid_t type = H5Tenum_create(H5T_NATIVE_INT8);
    const int8_t value[] = {0, 1};

    H5Tenum_insert(type, "FALSE", &value[0]);
    H5Tenum_insert(type, "TRUE", &value[1]);
    return type;
}

static hid_t compound_type(void)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(double));

    H5Tinsert(type, "real", 0, H5T_NATIVE_DOUBLE);
    return type;
}

static hid_t some_type(recipe *r)
{
    switch (next(r, 12)) {
    case 10:
        return H5Tcopy(H5T_NATIVE_INT8);
    case 1:
        return H5Tcopy(H5T_STD_U64BE);
    case 2:
        return H5Tcopy(H5T_NATIVE_INT64);
    case 3:
        return H5Tcopy(H5T_IEEE_F32BE);
    case 4:
        return text_type(1 + next(r, 4));
    case 5:
        return text_type(250 + next(r, 20));
    case 6:
        return text_type(H5T_VARIABLE);
    case 7:
        return enum_type();
    case 8:
        return compound_type();
    case 9:
        return H5Tcopy(H5T_STD_REF_OBJ);
    default:
        return H5Tcopy(H5T_NATIVE_DOUBLE);
    }
}

static hsize_t some_extent(recipe *r)
{
    const unsigned n = next(r, 64);

    return n < 60 ? (n + 2) % 6 : (hsize_t)1 << (n - 59) * 15;
}

static hid_t some_space(recipe *r, int rank)
{
    hsize_t extent[MOST_RANK];

    for (int i = 0; i < rank; i++)
        extent[i] = some_extent(r);
    if (rank == 0 && next(r, 4) == 3)
        return H5Screate(H5S_NULL);
    return H5Screate_simple(rank, extent, NULL);
}

/* Bytes of the recipe for what is small; text of variable length would be addresses. */
static bool pour(recipe *r, hid_t type, hid_t space, uint8_t byte[MOST_BYTES])
{
    const hssize_t n = H5Sget_simple_extent_npoints(space);
    const size_t size = H5Tget_size(type);

    if (n <= 0 || (size_t)n > MOST_BYTES / size || H5Tis_variable_str(type) > 0)
        return false;
    for (size_t i = 0; i < (size_t)n * size; i++)
        byte[i] = (uint8_t)next(r, 256);
    return true;
}

/* How it is stored: as it comes, in chunks that filters go over, or in another file. */
static hid_t some_list(recipe *r, int rank)
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[MOST_RANK];
    const unsigned kind = next(r, 8);

    if (kind == 7)
        H5Pset_external(list, SECRET, 0, H5F_UNLIMITED);
    if (kind < 5 || kind == 7 || rank == 0)
        return list;
    for (int i = 0; i < rank; i++)
        chunk[i] = 1 + some_extent(r);
    H5Pset_chunk(list, rank, chunk);
    for (unsigned i = next(r, 4); i > 0; i--)
        switch (next(r, 4)) {
        case 0:
            H5Pset_shuffle(list);
            break;
        case 1:
            H5Pset_fletcher32(list);
            break;
        case 2:
            H5Pset_scaleoffset(list, H5Z_SO_INT, 0);
            break;
        default:
            H5Pset_deflate(list, 1);
        }
    return list;
}

static hid_t some_dataset(recipe *r, hid_t group, const char *name, int rank)
{
    hid_t type = some_type(r), space = some_space(r, rank), list = some_list(r, rank);
    hid_t dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    uint8_t byte[MOST_BYTES];

    if (dataset >= 0 && next(r, 2) && H5Pget_external_count(list) == 0 &&
        pour(r, type, space, byte))
        H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, byte);
    H5Tclose(type);
    H5Sclose(space);
    H5Pclose(list);
    return dataset;
}

/* Coordinates of a variable: chain and draw first, as a rule. */
static void attach_axes(recipe *r, hid_t dataset, int rank, const hid_t *scale, int n_scale)
{
    for (int i = 0; i < rank; i++) {
        const int usual = i < n_scale ? i : n_scale - 1;
        const int chosen = next(r, 8) == 7 ? (int)next(r, (unsigned)n_scale) : usual;
        if (next(r, 16) < 15)
            H5DSattach_scale(dataset, scale[chosen], (unsigned)i);
    }
}

static void put_variables(recipe *r, hid_t group)
{
    static const char *const name[] = {"chain", "draw", "school", "x"};
    static const char *const variable[MOST_VARIABLES] = {"mu", "theta[1]", "\xc3\xa9", "\033[2J"};
    enum { N_SCALE = sizeof name / sizeof *name };
    hid_t scale[N_SCALE];
    const int n_variable = 1 + (int)next(r, MOST_VARIABLES);

    for (int i = 0; i < N_SCALE; i++) {
        const unsigned rank = next(r, 8);
        scale[i] = some_dataset(r, group, name[i], rank == 7 ? (int)next(r, 3) : rank == 6 ? 2 : 1);
        H5DSset_scale(scale[i], name[i]);
    }
    for (int i = 0; i < n_variable; i++) {
        const int rank = next(r, 8) == 7 ? (int)next(r, MOST_RANK) : 2 + (int)next(r, 3);
        hid_t dataset = some_dataset(r, group, variable[i], rank);
        if (dataset < 0)
            continue;
        attach_axes(r, dataset, rank, scale, N_SCALE);
        H5Dclose(dataset);
    }
    for (int i = 0; i < N_SCALE; i++)
        if (scale[i] >= 0)
            H5Dclose(scale[i]);
}

/* Other names for what there is, and ways out. */
static void put_links(recipe *r, hid_t group)
{
    switch (next(r, 16)) {
    case 12:
        H5Lcreate_hard(group, "mu", group, "alias", H5P_DEFAULT, H5P_DEFAULT);
        break;
    case 13:
        H5Lcreate_soft("/posterior/mu", group, "soft", H5P_DEFAULT, H5P_DEFAULT);
        break;
    case 14:
        H5Lcreate_external(SECRET, "/posterior/mu", group, "external", H5P_DEFAULT, H5P_DEFAULT);
        break;
    case 15:
        H5Lcreate_hard(group, "..", group, "ring\n", H5P_DEFAULT, H5P_DEFAULT);
        break;
    default:
        break;
    }
}

/* HDF5 refuses the large ones. */
static void put_attribute(recipe *r, hid_t file, const char *name)
{
    hid_t type = some_type(r), space = some_space(r, (int)next(r, 3));
    hid_t attribute = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    uint8_t byte[MOST_BYTES];

    if (attribute >= 0 && pour(r, type, space, byte))
        H5Awrite(attribute, type, byte);
    if (attribute >= 0)
        H5Aclose(attribute);
    H5Tclose(type);
    H5Sclose(space);
}

/* Makes the file in memory and writes it, or a part of it. */
static const char *bake(recipe *r)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), group_list = H5Pcreate(H5P_GROUP_CREATE), file,
          group;
    const char *path;
    void *image;
    size_t size;

    H5Pset_fapl_core(access, 1 << 16, false);
    if (next(r, 2))
        H5Pset_link_creation_order(group_list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    file = H5Fcreate("recipe", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    group = H5Gcreate2(file, "posterior", H5P_DEFAULT, group_list, H5P_DEFAULT);
    put_attribute(r, file, "config");
    put_attribute(r, file, "complete");
    put_variables(r, group);
    put_links(r, group);
    H5Gclose(group);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    size = (size_t)H5Fget_file_image(file, NULL, 0);
    image = malloc(size);
    H5Fget_file_image(file, image, size);
    path = fuzz_file(image, next(r, 16) == 15 ? size * next(r, 256) / 256 : size);
    free(image);
    H5Fclose(file);
    H5Pclose(access);
    H5Pclose(group_list);
    return path;
}

static void require_printable(const char *name)
{
    char *shown;

    REQUIRE(em_text_printable(name, &shown) == EM_OK && strcmp(shown, name) == 0);
    em_release(&shown);
}

/* The first few elements of every variable, and their names. */
static em_status read_variable(em_reader *reader, int64_t i)
{
    const em_reader_variable *variable = em_reader_variable_at(reader, i);
    const int64_t n = variable->size < READ_ELEMENTS ? variable->size : READ_ELEMENTS;
    double *draws = NULL;
    em_status status =
        em_allocate_doubles(n * em_reader_n_chain(reader) * em_reader_n_draw(reader), &draws);

    for (int64_t k = 0; k < variable->size; k++) {
        REQUIRE(strncmp(em_reader_label(variable, k), variable->name, strlen(variable->name)) == 0);
        require_printable(em_reader_label(variable, k));
    }
    if (!status)
        status = em_reader_elements(reader, i, variable->size - n, n, draws);
    em_release(&draws);
    return status;
}

static em_status read_all(em_reader *reader)
{
    em_status status = EM_OK;
    int64_t number;
    char *text;

    for (int64_t i = 0; !status && i < em_reader_n_variable(reader); i++)
        status = read_variable(reader, i);
    REQUIRE(em_reader_text(reader, "config", &text) == (text != NULL));
    em_release(&text);
    em_reader_int(reader, "complete", &number);
    em_reader_has(reader, "posterior", "mu");
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    recipe r = {data, size};
    em_reader *reader;
    em_status status;

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    status = em_reader_open(bake(&r), "posterior", &reader);
    if (!status)
        status = read_all(reader);
    REQUIRE(!status || *em_error_text());
    em_reader_close(&reader);
    REQUIRE(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL) == 0);
    return 0;
}
