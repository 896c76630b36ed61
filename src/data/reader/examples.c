#include "data/reader/examples.h"

#include "base/file.h"
#include "data/design/public_data.h"
#include "data/reader/idx.h"
#include "data/reader/same_file.h"
#include "data/shard/shard_assignment.h"
#include "data/table/table.h"
#include "math/simd/panel.h"
#include "par/message.h"
#include "par/node_shared_array.h"
#include "par/world.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The most classes where their number is not given. */
enum { MOST_CLASSES = 10000 };

/* Parts of names by which files of images and files of labels are recognised. */
static const char images_mark[] = "images-idx", labels_mark[] = "labels-idx";

/* ---------------------------------------------------------------- finding the files, by rank 0 */

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The one file of a folder whose name has the mark. */
static em_status find_marked(const char *folder, const char *mark, char **out)
{
    DIR *listing = opendir(folder);
    int64_t n = 0;
    em_status status = EM_OK;

    for (const struct dirent *entry; !status && listing && (entry = readdir(listing));)
        if (strstr(entry->d_name, mark) && n++ == 0)
            status = em_format_text(out, "%s/%s", folder, entry->d_name);
    if (listing)
        closedir(listing);
    if (!status && n != 1)
        status =
            em_fail(EM_EDATA,
                    "%s: found %" PRId64 " files with %s in their names, expected one; choose one "
                    "of several by the beginning of its name (%s/train)",
                    folder, n, mark, folder);
    return status;
}

/* Finds PATH-images-idx3-ubyte, compressed or not; NULL: there is none. */
static em_status find_begun(const char *path, const char *rest, char **out)
{
    static const char *const packed[] = {"", ".gz"};
    em_status status = EM_OK;

    for (int i = 0; !status && !*out && i < 2; i++) {
        status = em_format_text(out, "%s-%s-ubyte%s", path, rest, packed[i]);
        if (!status && !is_there(*out))
            em_release(out);
    }
    return status;
}

/* Finds the file of labels for a file of images. For train-images-idx3-ubyte.gz it is
 * train-labels-idx1-ubyte, with or without .gz. */
static em_status find_beside(const char *images, char **out)
{
    const char *mark = strstr(images, images_mark);
    EM_SCOPED char *start = NULL;
    em_status status = EM_OK;

    if (mark && mark > images)
        status = em_format_text(&start, "%.*s", (int)(mark - 1 - images), images);
    if (!status && start)
        status = find_begun(start, "labels-idx1", out);
    if (!status && !*out)
        status = em_fail(
            EM_EDATA,
            "%s: found images without labels, expected a file with the corresponding name in the "
            "same folder (x-labels-idx1-ubyte for x-images-idx3-ubyte), or model.labels",
            images);
    return status;
}

static em_status find_labels(const em_examples_source *source, const char *images, char **out)
{
    if (source->unlabelled)
        return EM_OK;
    return source->labels ? em_copy_text(source->labels, out) : find_beside(images, out);
}

/* Finds the files of images and labels. *images NULL: the data are a table. */
static em_status find_files(const em_examples_source *source, char **images, char **labels)
{
    em_status status = EM_OK;

    if (em_file_is_folder(source->path)) {
        status = find_marked(source->path, images_mark, images);
        return status || source->unlabelled ? status
                                            : find_marked(source->path, labels_mark, labels);
    }
    if (is_there(source->path) && em_idx_is(source->path))
        status = em_copy_text(source->path, images);
    else if (!is_there(source->path))
        status = find_begun(source->path, "images-idx3", images);
    if (!status && !*images && !is_there(source->path) && !strstr(source->path, ":/"))
        status = em_fail(EM_EDATA,
                         "%s: found neither this file nor %s-images-idx3-ubyte[.gz], expected a "
                         "table or images",
                         source->path, source->path);
    return status || !*images ? status : find_labels(source, *images, labels);
}

/* Collective. */
static em_status choose_files(const em_examples_source *source, char **images, char **labels)
{
    em_status status = em_world_rank() == 0 ? find_files(source, images, labels) : EM_OK;

    status = em_agree(status);
    bool is_table = !*images;
    em_broadcast(&is_table, sizeof is_table);
    if (!status && !is_table)
        status = em_share_text(EM_OK, images);
    if (!status && !is_table && !source->unlabelled)
        status = em_share_text(EM_OK, labels);
    if (!status && is_table && source->labels && !source->unlabelled)
        status = em_fail(EM_EDATA,
                         "%s: found a table and model.labels, expected images, or the response "
                         "among the columns",
                         source->path);
    return status;
}

/* ---------------------------------------------------------------- images */

/* The items of a file that a rank needs. */
typedef struct wish {
    int64_t first, count;
} wish;

/* A file of images or labels, and the items that each rank needs. Of the ranks of a node that share
 * items, one reads them. */
typedef struct supply {
    const char *path;
    em_idx *idx;
    em_idx_shape shape;
    wish *wish; /* [em_world_size()] */
    uint64_t hash;
} supply;

static em_status open_supply(const char *path, int n_axis, supply *out)
{
    em_status status = em_same_file(path, (int64_t)strlen(path));

    *out = (supply){.path = path};
    if (status)
        return status;
    status = em_idx_open(path, &out->idx);
    if (!status) {
        out->shape = *em_idx_shape_of(out->idx);
        if (out->shape.n_axis != n_axis)
            status = em_fail(EM_EDATA, "%s: found an array of %d axes, expected %d: %s", path,
                             out->shape.n_axis, n_axis,
                             n_axis == 3 ? "images, rows, columns" : "labels");
    }
    return em_agree_first(status, 0);
}

static void close_supply(supply *s)
{
    em_idx_close(&s->idx);
    em_release(&s->wish);
}

static const wish *own_wish(const supply *s)
{
    return &s->wish[em_world_rank()];
}

/* Whether this rank adds the hash of its items. The first of the ranks with the same items does. */
static bool counts(const supply *s)
{
    for (int rank = 0; rank < em_world_rank(); rank++)
        if (s->wish[rank].first == own_wish(s)->first && s->wish[rank].count > 0)
            return false;
    return true;
}

/* Reads this rank's own part of an uncompressed file. Local. */
static em_status read_own(supply *s, uint8_t *out)
{
    uint64_t hash = 0;
    const em_status status =
        em_idx_read(s->idx, own_wish(s)->first, own_wish(s)->count, out, &hash);

    s->hash += counts(s) ? hash : 0;
    return status;
}

/* Sends items first .. first + count - 1, in the reader's `piece`, to the ranks that need them. */
static void distribute(const supply *s, int reader, int64_t first, int64_t count,
                       const uint8_t *piece, uint8_t *out)
{
    const int64_t item = em_idx_item(s->idx), end = first + count;
    const int me = em_world_rank();

    for (int rank = 0; rank < em_world_size(); rank++) {
        const wish *w = &s->wish[rank];
        const int64_t from = w->first > first ? w->first : first;
        const int64_t until = w->first + w->count < end ? w->first + w->count : end;
        const int64_t bytes = (until - from) * item;
        if (bytes <= 0 || (me != reader && me != rank))
            continue;
        const uint8_t *of = piece ? piece + (from - first) * item : NULL;
        uint8_t *to = me == rank ? out + (from - w->first) * item : NULL;
        if (rank == reader)
            memcpy(to, of, (size_t)bytes);
        else if (me == reader)
            em_send(rank, bytes, of);
        else
            em_receive(reader, bytes, to);
    }
}

/* Rank 0 unpacks a compressed file and sends its parts; after an error their content is undefined.
 * Collective. */
static em_status read_and_distribute(supply *s, uint8_t *out)
{
    enum { READER = 0, PIECE_BYTES = 1 << 20 };
    const bool reads = em_world_rank() == READER;
    const int64_t item = em_idx_item(s->idx), n = s->shape.length[0];
    const int64_t step = item < PIECE_BYTES ? PIECE_BYTES / item : 1;
    EM_SCOPED uint8_t *piece = NULL;
    em_status status = em_agree_first(reads ? em_allocate(step * item, 1, &piece) : EM_OK, 0);

    if (status)
        return status;
    for (int64_t first = 0; first < n; first += step) {
        const int64_t count = n - first < step ? n - first : step;
        if (reads && !status)
            status = em_idx_read(s->idx, first, count, piece, &s->hash);
        distribute(s, READER, first, count, piece, out);
    }
    return status;
}

/* Reads the items of this shard into memory that the ranks of a node share. Collective. */
static em_status read_items(em_examples *e, supply *s, uint8_t **out)
{
    const em_share *rows = &e->rows;
    const wish mine = {rows->first, em_node_array_writes(e->node_array) ? rows->count : 0};
    int64_t n;
    em_status status = em_world_gather(1, sizeof mine, &mine, &n, &s->wish);

    if (!status)
        status = em_agree_first(
            em_node_array_allocate(e->node_array, rows->count * em_idx_item(s->idx), 1, out), 0);
    if (status)
        return status;
    status = em_idx_is_plain(s->idx) ? read_own(s, *out) : read_and_distribute(s, *out);
    status = em_agree_first(status, rows->first);
    if (!status)
        em_node_array_publish(e->node_array, *out);
    em_world_sum(1, (int64_t *)&s->hash);
    return status;
}

static em_status read_images(em_examples *e, const char *images, const char *labels,
                             const em_model_context *context)
{
    supply image = {.idx = NULL}, label = {.idx = NULL};
    uint8_t *byte = NULL, *class = NULL;
    em_status status = open_supply(images, 3, &image);

    if (!status && labels)
        status = open_supply(labels, 1, &label);
    if (!status && labels) {
        status =
            label.shape.length[0] == image.shape.length[0]
                ? EM_OK
                : em_fail(EM_EDATA,
                          "%s: found %" PRId64 " labels, expected %" PRId64 ", one for each image "
                          "of %s",
                          label.path, label.shape.length[0], image.shape.length[0], image.path);
    }
    if (!status) {
        e->images = true;
        e->rows =
            em_shard_rows(image.shape.length[0], EM_TILE_ROWS, context->shard, context->n_shard);
        e->shape[0] = image.shape.length[1];
        e->shape[1] = image.shape.length[2];
        e->n_input = e->shape[0] * e->shape[1];
    }
    status = status ? status : read_items(e, &image, &byte);
    if (!status && labels)
        status = read_items(e, &label, &class);
    e->byte = byte;
    e->label = class;
    e->hash = image.hash ^ (label.hash << 1 | label.hash >> 63);
    close_supply(&image);
    close_supply(&label);
    return status ? status : em_agree_first(em_copy_text(labels ? labels : images, &e->path), 0);
}

/* ---------------------------------------------------------------- tables */

static em_status find_response(em_examples *e, const char *response)
{
    const em_data *t = e->table;
    char *end;

    e->response_at = response ? em_data_column(t, response) : t->n_column - 1;
    if (e->response_at < 0) {
        const long long number = strtoll(response, &end, 10);
        if (end != response && *end == '\0' && number >= 1 && number <= t->n_column)
            e->response_at = number - 1;
    }
    if (e->response_at < 0)
        return em_fail(EM_EDATA,
                       "%s:1: found no response column '%s', expected one of %s, ..., %s or a "
                       "number from 1 to %" PRId64,
                       e->path, response, t->name[0], t->name[t->n_column - 1], t->n_column);
    return EM_OK;
}

static em_status find_inputs(em_examples *e, const em_examples_source *source)
{
    for (int64_t j = 0; j < e->n_input; j++) {
        e->column[j] = em_data_column(e->table, source->input[j]);
        if (e->column[j] < 0)
            return em_fail(EM_EDATA, "%s:1: found no column '%s', expected this input of the run",
                           e->path, source->input[j]);
    }
    return EM_OK;
}

static em_status read_table(em_examples *e, const em_examples_source *source,
                            const em_model_context *context)
{
    const em_table_options options = {.data = (char *)source->path,
                                      .header = source->header,
                                      .asks_header = !source->input,
                                      .columns = INT64_MIN,
                                      .if_text = "classes as 0, 1, ..., and other categories as "
                                                 "columns of 0 and 1"};
    em_status status = em_data_read_by(&options, context, &e->table);

    e->header = source->header;
    status = status ? status : em_agree_first(em_copy_text(source->path, &e->path), 0);
    if (status)
        return status;
    e->response_at = -1;
    if (!source->input)
        status = find_response(e, source->response);
    if (!status && !source->input && e->table->n_column < 2)
        status =
            em_fail(EM_EDATA, "%s:1: found one column, expected inputs and a response", e->path);
    e->n_column = e->table->n_column;
    e->n_input = source->input ? source->n_input : e->n_column - 1;
    if (!status)
        status = em_agree_first(em_allocate(e->n_input, sizeof *e->column, &e->column), 0);
    if (!status && source->input)
        status = find_inputs(e, source);
    else if (!status)
        for (int64_t j = 0; j < e->n_input; j++)
            e->column[j] = j + (j >= e->response_at);
    e->rows = e->table->rows;
    e->shape[0] = e->n_input;
    e->shape[1] = 1;
    e->value = e->table->value;
    e->hash = e->table->hash + (uint64_t)e->response_at;
    return status;
}

/* ---------------------------------------------------------------- reading the examples */

em_status em_examples_read(const em_examples_source *source, const em_model_context *context,
                           em_examples **out)
{
    EM_SCOPED char *images = NULL, *labels = NULL;
    em_status status = em_agree_first(em_allocate(1, sizeof **out, out), 0);

    status = status ? status : em_node_array_create(context->shard, &(*out)->node_array);
    status = status ? status : choose_files(source, &images, &labels);
    if (!status)
        status =
            images ? read_images(*out, images, labels, context) : read_table(*out, source, context);
    if (status)
        em_examples_destroy(out);
    return status;
}

void em_examples_destroy(em_examples **examples)
{
    em_examples *e = *examples;

    if (!e)
        return;
    em_node_array_release(&e->byte);
    em_node_array_release(&e->label);
    em_node_array_destroy(&e->node_array);
    em_data_destroy(&e->table);
    em_release_all(&e->column, &e->path, examples);
}

double em_examples_response(const em_examples *e, int64_t i)
{
    if (e->images)
        return e->label ? e->label[i] : 0;
    return e->response_at < 0 ? 0 : e->value[i * e->n_column + e->response_at];
}

double em_examples_bytes(const em_examples *e)
{
    const double each = e->images ? (double)(e->n_input + 1) : (double)sizeof(double) * e->n_column;

    return (double)e->rows.count * each;
}

/* The largest label on this rank. *bad: the first invalid label's observation; rows.total: none. */
static double inspect_labels(const em_examples *e, int64_t most, int64_t *bad)
{
    double largest = 0;

    *bad = e->rows.total;
    for (int64_t i = 0; i < e->rows.count; i++) {
        const double label = em_examples_response(e, i);
        if (!(label >= 0 && label < (double)most && label == floor(label))) {
            *bad = e->rows.first + i;
            break;
        }
        largest = fmax(label, largest);
    }
    return largest;
}

/* Fails with a message about the place of an invalid label. In a table the place is a line, for
 * which the table is read again. Collective. */
static em_status fail_label(const em_examples *e, int64_t row, int64_t own, int64_t most)
{
    const em_table_options options = {.data = e->path, .header = e->header, .columns = INT64_MIN};
    const double label = row == own ? em_examples_response(e, row - e->rows.first) : 0;
    EM_SCOPED_BY(em_table_destroy) em_table *table = NULL;
    char place[64];
    em_status status = EM_OK;

    snprintf(place, sizeof place, ": found label %g of observation %" PRId64, label, row + 1);
    if (e->table)
        status = em_table_read(&options, &table);
    if (table)
        snprintf(place, sizeof place, ":%" PRId64 ": found label %g", em_table_line(table, row),
                 label);
    if (!status && row == own)
        status = em_fail(EM_EDATA, "%s%s, expected an integer from 0 to %" PRId64, e->path, place,
                         most - 1);
    return em_agree_first(status, own);
}

em_status em_examples_classes(const em_examples *e, int64_t n_class, int64_t *out)
{
    const int64_t most = n_class > 0 ? n_class : MOST_CLASSES;
    int64_t bad;
    double largest = inspect_labels(e, most, &bad), first = (double)bad;

    em_world_smallest(1, &first);
    if (first < (double)e->rows.total)
        return fail_label(e, (int64_t)first, bad, most);
    em_world_largest(1, &largest);
    *out = n_class > 0 ? n_class : (int64_t)largest + 1;
    return EM_OK;
}
