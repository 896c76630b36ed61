/* The public view of a table: rows of numbers (emass/data.h). */
#include "data/design/public_data.h"

#include "base/memory.h"
#include "data/shard/redistribute_rows.h"
#include "data/shard/shard_assignment.h"
#include "math/simd/panel.h"
#include "par/message.h"
#include "par/node_shared_array.h"

#include <string.h>

/* The struct whose first member is em_data. */
typedef struct holding {
    em_data data;
    char **name;
    double *value;
    em_node_array *node_array;
} holding;

static em_status take(void *to, const em_row_block *piece)
{
    holding *h = to;
    const int64_t n = h->data.n_column, n_left = n - (piece->response != NULL);

    for (int64_t i = 0; i < piece->count; i++) {
        double *row = h->value + (piece->row + i) * n;
        if (!piece->start && n_left > 0)
            memcpy(row, piece->value + i * n_left, (size_t)n_left * sizeof *row);
        for (int64_t k = 0; piece->start && k < piece->start[i + 1] - piece->start[i]; k++) {
            const int64_t from = piece->start[i] - piece->start[0] + k;
            row[piece->column[from]] = piece->value[from];
        }
        if (piece->response)
            row[n_left] = piece->response[i];
    }
    return EM_OK;
}

static em_status copy_names(const em_table *table, holding *h)
{
    em_status status = em_allocate(h->data.n_column, sizeof *h->name, &h->name);

    for (int64_t j = 0; !status && j < h->data.n_column; j++)
        status = em_copy_text(j < table->n_column ? table->name[j] : "label", &h->name[j]);
    h->data.name = (const char *const *)h->name;
    return status;
}

/* Collective. */
static em_status hold(const em_table *table, holding *h)
{
    em_status status = em_agree_first(copy_names(table, h), 0);

    if (!status)
        status = em_agree_first(em_node_array_allocate(h->node_array,
                                                       h->data.rows.count * h->data.n_column,
                                                       sizeof *h->value, &h->value),
                                0);
    if (!status)
        status = em_redistribute_rows(table, h->data.rows.first,
                                      em_node_array_writes(h->node_array) ? h->data.rows.count : 0,
                                      take, h);
    if (!status)
        em_node_array_publish(h->node_array, h->value);
    h->data.value = h->value;
    return status;
}

em_status em_data_read_by(const em_table_options *options, const em_model_context *context,
                          em_data **out)
{
    em_table *table = NULL;
    holding *h = NULL;
    em_status status = em_table_read(options, &table);

    *out = NULL;
    status = status ? status : em_agree_first(em_allocate(1, sizeof *h, &h), 0);
    if (!status) {
        h->data = (em_data){
            .rows = em_shard_rows(table->total, EM_TILE_ROWS, context->shard, context->n_shard),
            .n_column = table->n_column + (table->response != NULL),
            .hash = table->hash};
        status = em_node_array_create(context->shard, &h->node_array);
    }
    status = status ? status : hold(table, h);
    if (!status)
        em_table_say_guess(table);
    em_table_destroy(&table);
    *out = h ? &h->data : NULL;
    if (status)
        em_data_destroy(out);
    return status;
}

em_status em_data_read(const char *path, const em_model_context *context, em_data **out)
{
    const em_table_options options = {.data = (char *)path, .columns = INT64_MIN};

    return em_data_read_by(&options, context, out);
}

em_status em_data_read_all(const char *path, em_data **out)
{
    return em_data_read(path, &(em_model_context){.n_shard = 1}, out);
}

void em_data_destroy(em_data **data)
{
    holding *h = (holding *)*data;

    if (!h)
        return;
    em_release_texts(h->data.n_column, &h->name);
    em_node_array_release(&h->value);
    em_node_array_destroy(&h->node_array);
    em_release(&h);
    *data = NULL;
}

int64_t em_data_column(const em_data *data, const char *name)
{
    for (int64_t j = 0; j < data->n_column; j++)
        if (strcmp(data->name[j], name) == 0)
            return j;
    return -1;
}
