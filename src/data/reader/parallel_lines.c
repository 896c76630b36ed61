#include "data/reader/parallel_lines.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/memory.h"
#include "par/message.h"
#include "par/world.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The sizes of blocks in bytes. Each block is twice as large as the one before, so that short files
 * are distributed too, up to a size that keeps a parser busy. */
enum { FIRST_BLOCK = 1 << 12, LARGEST_BLOCK = 1 << 22 };

/* The message that precedes a block from rank 0. */
typedef struct notice {
    int64_t length; /* -1: there are no more */
    int64_t number, order;
} notice;

struct em_parallel_lines {
    em_lines *lines;            /* of this rank */
    em_lines *packed;           /* the whole file, on the rank that unpacks and distributes it */
    em_parallel_lines_key *key; /* NULL: lines are distributed one by one */
    bool plain, ended;
    int64_t n_block; /* distributed so far */
};

/* ---------------------------------------------------------------- the first line */

static em_status read_first_line(const char *path, em_parallel_lines_head *head)
{
    EM_SCOPED_BY(em_lines_close) em_lines *lines = NULL;
    char *line;
    em_status status = em_lines_open(path, &lines);

    if (status)
        return status;
    status = em_lines_next(lines, &line);
    if (!status && line)
        status = em_copy_text(line, &head->line);
    head->number = lines->number;
    head->offset = em_lines_offset(lines);
    head->plain = em_lines_is_plain(lines);
    return status;
}

em_status em_parallel_lines_read_head(const char *path, em_parallel_lines_head *head)
{
    *head = (em_parallel_lines_head){NULL, 0, 0, false};
    em_status status =
        em_agree_first(em_world_rank() == 0 ? read_first_line(path, head) : EM_OK, 0);
    if (!status) {
        char *line = head->line;
        em_broadcast(head, sizeof *head);
        const bool has_line = head->line;
        head->line = line;
        status = has_line ? em_share_text(EM_OK, &head->line) : EM_OK;
    }
    if (status)
        em_release(&head->line);
    return status;
}

/* ---------------------------------------------------------------- plain files */

static em_status file_length(const char *path, int64_t *length)
{
    struct stat info;
    EM_SCOPED_BY(em_file_close) int descriptor = -1;
    em_status status = em_file_open(path, O_RDONLY, &descriptor);

    if (status)
        return status;
    if (fstat(descriptor, &info) != 0)
        status = em_fail(EM_EDATA, "%s: found an unreadable file, expected text", path);
    *length = info.st_size;
    return status;
}

/* Moves `first` to the next line whose key differs from that of the line before it. If lines there
 * cannot be read, no error is returned here: the rank that will read these lines reports it. */
static em_status move_to_key(const char *path, em_parallel_lines_key *key, int64_t *first)
{
    EM_SCOPED_BY(em_lines_close) em_lines *lines = NULL;
    char *line = NULL;
    int64_t at = *first, last = 0;
    em_status status = em_lines_open_range(path, *first, INT64_MAX, 0, &lines);

    if (status)
        return status;
    status = em_lines_next(lines, &line);
    do {
        at = em_lines_offset(lines);
        last = !status && line ? key(line) : 0;
        if (!status && line)
            status = em_lines_next(lines, &line);
    } while (!status && line && key(line) == last);
    *first = at;
    return status == EM_EMEMORY ? status : EM_OK;
}

/* Computes the range of this rank, which ends at the begin of the next rank's range. */
static em_status find_range(const char *path, int64_t offset, em_parallel_lines_key *key,
                            int64_t *first, int64_t *limit)
{
    const int64_t size = em_world_size(), rank = em_world_rank();
    int64_t length = 0, n, *all = NULL;
    em_status status = file_length(path, &length);
    const int64_t each = (length - offset) / size, rest = (length - offset) % size;

    *first = offset + rank * each + (rank < rest ? rank : rest);
    *limit = *first + each + (rank < rest);
    if (!key || size == 1)
        return status;
    if (!status && rank > 0)
        status = move_to_key(path, key, first);
    status = em_agree_first(status, 0);
    status = status ? status : em_world_gather(1, sizeof *first, first, &n, &all);
    if (!status)
        *limit = rank + 1 < size ? all[rank + 1] : length;
    em_release(&all);
    return status;
}

/* Opens the range of this rank. The range is read twice: first to count newlines, because messages
 * name the number of a line. */
static em_status open_range(const char *path, int64_t offset, int64_t number,
                            em_parallel_lines *input)
{
    int64_t first, limit, newlines = 0;
    em_status status = find_range(path, offset, input->key, &first, &limit);

    if (!status && em_world_size() > 1)
        status = em_lines_count(path, first, limit, &newlines);
    status = em_agree_first(status, 0);
    if (status)
        return status;
    newlines = em_world_sum_before(newlines);
    return em_agree_first(em_lines_open_range(path, first, limit, number + newlines, &input->lines),
                          0);
}

/* ---------------------------------------------------------------- packed files */

static em_status open_packed(const char *path, int64_t offset, em_parallel_lines *input)
{
    em_status status = em_lines_open_blocks(path, &input->lines);

    if (!status && em_world_rank() == 0)
        status = em_lines_open(path, &input->packed);
    while (!status && input->packed && em_lines_offset(input->packed) < offset) {
        char *line; /* none of them is longer than the head was */
        status = em_lines_next(input->packed, &line);
    }
    return em_agree_first(status, 0);
}

/* The end of the complete keys in a block. The lines of the last key go into the next block if the
 * lines after them may have the same key. */
static int64_t end_of_keys(em_parallel_lines_key *key, const char *block, int64_t length)
{
    const char *at = block + length;
    int64_t last = -1;

    for (int64_t next; at > block; last = next < 0 ? last : next) {
        const char *newline = memrchr(block, '\n', (size_t)(at - 1 - block));
        const char *line = newline ? newline + 1 : block;
        next = key(line);
        if (next >= 0 && last >= 0 && next != last)
            break;
        at = line;
    }
    return at - block;
}

/* Returns at least `least` bytes of whole lines, without dividing the lines of a key. */
static em_status next_block(em_parallel_lines *input, int64_t least, const char **block,
                            int64_t *length)
{
    em_lines *lines = input->packed;
    int64_t before = -1, end = 0;
    em_status status = em_lines_next_block(lines, least, block, length);

    while (!status && input->key && !em_lines_are_over(lines) && *length > before) {
        end = end_of_keys(input->key, *block, *length);
        em_lines_give_back(lines, *length - end);
        if (end > 0) {
            *length = end;
            break;
        }
        before = *length;
        status = em_lines_next_block(lines, 2 * before, block, length);
    }
    return status;
}

static void send_the_end(em_parallel_lines *input)
{
    const notice none = {-1, 0, 0};

    for (int rank = 1; !input->ended && rank < em_world_size(); rank++)
        em_send(rank, sizeof none, &none);
    input->ended = true;
}

/* Rank 0: sends blocks to the other ranks until the next block is for rank 0. */
static em_status distribute(em_parallel_lines *input, int64_t *order)
{
    while (!input->ended) {
        const notice next = {0, input->packed->number, input->n_block};
        const int whose = (int)(input->n_block % em_world_size());
        const int64_t turn = input->n_block++ / em_world_size();
        const char *block;
        char *room;
        int64_t length = 0;
        em_status status =
            next_block(input, turn < 10 ? FIRST_BLOCK << turn : LARGEST_BLOCK, &block, &length);

        if (status || length == 0) {
            send_the_end(input);
            return status;
        }
        if (whose == em_world_rank()) {
            status = em_lines_block(input->lines, length, next.number, &room);
            if (!status)
                memcpy(room, block, (size_t)length);
            *order = next.order;
            return status;
        }
        em_send(whose, sizeof next, &(notice){length, next.number, next.order});
        em_send(whose, length, block);
    }
    return EM_OK;
}

/* Other ranks: receive a block. Without memory for it the block is received and dropped. */
static em_status receive(em_parallel_lines *input, int64_t *order)
{
    notice next;
    char *room = NULL;

    if (input->ended)
        return EM_OK;
    em_receive(0, sizeof next, &next);
    input->ended = next.length < 0;
    if (input->ended)
        return EM_OK;
    const em_status status = em_lines_block(input->lines, next.length, next.number, &room);
    em_receive(0, next.length, room);
    *order = next.order;
    return status;
}

/* ---------------------------------------------------------------- both */

em_status em_parallel_lines_open(const char *path, const em_parallel_lines_head *head,
                                 bool after_head, em_parallel_lines_key *key,
                                 em_parallel_lines **out)
{
    const int64_t offset = after_head ? head->offset : 0, number = after_head ? head->number : 0;
    em_status status = em_agree_first(em_allocate(1, sizeof **out, out), 0);

    if (status) {
        em_release(out);
        return status;
    }
    (*out)->plain = head->plain;
    (*out)->key = key;
    status = head->plain ? open_range(path, offset, number, *out) : open_packed(path, offset, *out);
    (*out)->ended = status < 0; /* no rank distributes lines */
    if (status)
        em_parallel_lines_close(out);
    return status;
}

em_status em_parallel_lines_next(em_parallel_lines *input, em_lines **lines, int64_t *order)
{
    em_status status = EM_OK;

    *order = -1;
    if (em_fault("data-slow"))
        sleep(7);
    if (input->plain) {
        *order = input->ended ? -1 : em_world_rank();
        input->ended = true;
    } else {
        status = input->packed ? distribute(input, order) : receive(input, order);
    }
    *lines = *order >= 0 ? input->lines : NULL;
    return status;
}

int64_t em_parallel_lines_line(const em_parallel_lines *input)
{
    return input->ended && input->packed && input->packed->number > input->lines->number
               ? input->packed->number
               : input->lines->number;
}

void em_parallel_lines_close(em_parallel_lines **out)
{
    em_parallel_lines *input = *out;
    int64_t order;

    if (!input)
        return;
    if (input->packed)
        send_the_end(input);
    while (!input->plain && !input->ended)
        (void)receive(input, &order); /* errors about memory no longer matter */
    em_lines_close(&input->lines);
    em_lines_close(&input->packed);
    em_release(out);
}
