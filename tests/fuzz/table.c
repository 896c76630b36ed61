/*
 * Tables in text, plain or packed, up to the design matrix of one shard: the input is N_OPTION
 * bytes of options and the file. What is accepted is a table of finite numbers.
 */
#include "fuzz/fuzz.h"

#include "data/design/design.h"

#include <math.h>

enum { FORMAT, HEADER, RESPONSE, COLUMNS, DESIGN, LABEL, N_OPTION };

/* Never all of EM_TABLE_AUTO_COLUMNS, which take time. */
static em_table_options options_of(const uint8_t *option, const char *path, char *response)
{
    const bool named = option[RESPONSE] % 4 == 0;

    snprintf(response, 8, "%d", option[RESPONSE] / 4);
    return (em_table_options){.data = (char *)path,
                              .format = option[FORMAT] % EM_N_TABLE_FORMAT,
                              .header = option[HEADER] % (EM_HEADER_NO + 1),
                              .asks_header = option[HEADER] / 32 % 2,
                              .response = named ? response : NULL,
                              .na = option[HEADER] / 16 % 2,
                              .columns = 1 + option[COLUMNS] % 63,
                              .intercept = option[DESIGN] & 1,
                              .standardise = option[DESIGN] & 2};
}

static void is_sound(const em_table *table)
{
    REQUIRE(table->n_row > 0 && table->total == table->n_row);
    REQUIRE(table->column || table->n_value == table->n_row * table->n_column);
    REQUIRE(!table->column ||
            (table->start[0] == 0 && table->start[table->n_row] == table->n_value));
    for (int64_t j = 0; j < table->n_column; j++)
        REQUIRE(table->name[j]);
    for (int64_t i = 0; i < table->n_row; i++) {
        REQUIRE(em_table_row(table, i) == i);
        REQUIRE(em_table_line(table, i) > (i ? em_table_line(table, i - 1) : 0));
        REQUIRE(!table->response || isfinite(table->response[i]));
        REQUIRE(!table->column || table->start[i] <= table->start[i + 1]);
    }
    for (int64_t k = 0; k < table->n_value; k++) {
        REQUIRE(isfinite(table->value[k]));
        REQUIRE(!table->column || (table->column[k] >= 0 && table->column[k] < table->n_column));
    }
}

static void is_finite(int64_t n, const double *x)
{
    for (int64_t i = 0; i < n; i++)
        REQUIRE(isfinite(x[i]));
}

static em_status make_design(em_table *table, const em_table_options *options,
                             const uint8_t *option)
{
    const int64_t n_shard = 1 + option[DESIGN] / 64;
    em_design *design;
    em_status status = em_table_take_response(table, options);

    if (status)
        return status;
    is_sound(table);
    status = em_table_binary_response(table, option[LABEL] % 4 ? NAN : option[LABEL] / 4);
    if (!status)
        status = em_design_create(table, options, NULL, (option[DESIGN] >> 4) % n_shard, n_shard,
                                  &design);
    if (!status) {
        const em_tiled *x = &design->dense;
        is_finite(x->n_tile * x->n_column * EM_TILE_ROWS, x->tile);
        em_design_destroy(&design);
    }
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    em_table_options options;
    em_table *table = NULL;
    char response[8];
    em_status status;

    if (size < N_OPTION)
        return 0;
    options = options_of(data, fuzz_file(data + N_OPTION, size - N_OPTION), response);
    status = em_table_read(&options, &table);
    if (!status) {
        is_sound(table);
        status = make_design(table, &options, data);
    }
    REQUIRE(!status || *em_error_text());
    em_table_destroy(&table);
    return 0;
}
