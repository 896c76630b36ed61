/* Lays out tokens in memory, and stores the layout (lda_tokens.h). */
#include "base/file.h"
#include "base/memory.h"
#include "topics/lda_tokens.h"
#include "topics/lda_topics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sizes of blocks. The counts of a block's documents stay in a second-level cache, beside the rows
 * of words. Lists are prefetched and leave most of their room unused, so their blocks are larger,
 * with fewer runs: rows of phi are then read less often. */
enum {
    BLOCK_BYTES = 1 << 19,
    LIST_BYTES = 1 << 23,
    BLOCK_TOKENS = 1 << 17,
    LIST_TOKENS = 1 << 20,
    MOST_DOCUMENTS = 65536
};

/* The lowest level has about this many tokens in all, and this many documents for each topic. */
enum { FIRST_TOKENS = 1 << 15, FIRST_DOCUMENTS = 4, MOST_LEVELS = 9 };

int64_t em_topic_list_capacity(int64_t n_topic, int64_t length)
{
    const int64_t most = length < n_topic ? length : n_topic;

    return (most + EM_TOPIC_LANES) / EM_TOPIC_LANES * EM_TOPIC_LANES;
}

/* ---------------------------------------------------------------- entries by word */

int64_t em_document_length(em_document document)
{
    int64_t length = 0;

    for (int64_t k = 0; k < document.n; k++)
        length += document.count[k];
    return length;
}

int64_t em_sort_entries(int64_t n_word, int64_t n, const em_document *document, int64_t *start,
                        em_token_entry *entry)
{
    int64_t n_run = 0, slot = 0;

    memset(start, 0, (size_t)(n_word + 2) * sizeof *start);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < document[i].n; k++)
            start[document[i].word[k] + 2] +=
                (document[i].count[k] + EM_ENTRY_TOKENS - 1) / EM_ENTRY_TOKENS;
    for (int64_t v = 2; v <= n_word + 1; v++) {
        n_run += start[v] > 0;
        start[v] += start[v - 1];
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t at = slot;
        for (int64_t k = 0; k < document[i].n; k++)
            for (int64_t left = document[i].count[k]; left > 0;) {
                const em_token_entry next = em_next_entry(left, at, i);
                entry[start[document[i].word[k] + 1]++] = next;
                left -= next.count;
                at += next.count;
            }
        slot += em_padded_length(at - slot);
    }
    return n_run;
}

void em_draw_token_bits(const em_stream *stream, int64_t n, const int64_t *number,
                        const int32_t *length, uint64_t *item, uint32_t *bits)
{
    int64_t at = 0;

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < em_padded_length(length[i]) / 4; j++)
            item[at++] = (uint64_t)number[i] << 24 | (uint64_t)j;
    while (at % 8 != 0)
        item[at++] = UINT64_MAX;
    em_item_bits(stream, at, item, bits);
}

/* ---------------------------------------------------------------- levels */

static int level_of(const em_tokens *tokens, int64_t number)
{
    int level = tokens->n_level - 1;

    while (level > 0 && number % 2 == 0) {
        number /= 2;
        level--;
    }
    return level;
}

static void choose_levels(em_tokens *tokens, const em_corpus *corpus)
{
    int64_t n_token = corpus->n_token / 2, n_document = corpus->n_document / 2;

    tokens->n_level = 1;
    for (; n_token >= FIRST_TOKENS && n_document >= FIRST_DOCUMENTS * tokens->n_topic &&
           tokens->n_level < MOST_LEVELS;
         n_token /= 2, n_document /= 2)
        tokens->n_level++;
}

/* ---------------------------------------------------------------- scratch files */

static const char SCRATCH[] = "the scratch file of streamed topics";

/* Opens a file without a name. If the system has no such files, it creates a file and removes its
 * name at once. */
static em_status open_scratch(const char *folder, int *out)
{
    EM_SCOPED char *path = NULL;

    *out = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (*out >= 0)
        return EM_OK;
    em_status status = em_format_text(&path, "%s/emass-XXXXXX", folder);
    if (!status)
        *out = mkstemp(path);
    if (*out >= 0)
        unlink(path);
    else if (!status)
        status = em_fail(EM_ECONFIG, "%s: no scratch file can be made here: %s", folder,
                         strerror(errno));
    return status;
}

/* ---------------------------------------------------------------- blocks at hand */

static int64_t layout_bytes(const em_token_block *block)
{
    return block->n_entry * (int64_t)sizeof(em_token_entry) + 4 * (3 * block->n_run + 2);
}

static void view_layout(const em_token_block *block, char *layout, em_block_view *view)
{
    em_token_entry *entry = (em_token_entry *)(void *)layout;
    uint32_t *run_entry = (uint32_t *)(entry + block->n_entry);
    uint32_t *run_token = run_entry + block->n_run + 1;

    *view = (em_block_view){.block = block,
                            .entry = entry,
                            .run_entry = run_entry,
                            .run_token = run_token,
                            .run_word = (int32_t *)(run_token + block->n_run + 1)};
}

static void read_ahead(const em_tokens *tokens, const em_token_block *block,
                       const em_token_topics *topics)
{
    posix_fadvise(tokens->scratch, block->place, layout_bytes(block), POSIX_FADV_WILLNEED);
    posix_fadvise(tokens->scratch, topics->place + 2 * block->first_token, 2 * block->n_token,
                  POSIX_FADV_WILLNEED);
}

em_status em_block_open(em_tokens *tokens, int64_t b, const em_token_topics *topics,
                        em_block_view *view)
{
    const em_token_block *block = &tokens->block[b];
    em_status status = EM_OK;

    if (tokens->scratch >= 0) {
        if (b + 1 < tokens->n_block)
            read_ahead(tokens, block + 1, topics);
        status = em_file_read_at(tokens->scratch, SCRATCH, block->place, tokens->layout_room,
                                 (size_t)layout_bytes(block));
        if (!status)
            status =
                em_file_read_at(tokens->scratch, SCRATCH, topics->place + 2 * block->first_token,
                                tokens->topic_room, 2 * (size_t)block->n_token);
    }
    view_layout(block, block->layout ? block->layout : tokens->layout_room, view);
    view->topic = topics->held ? topics->held + block->first_token : tokens->topic_room;
    return status;
}

em_status em_block_close(em_tokens *tokens, const em_token_topics *topics,
                         const em_block_view *view)
{
    return topics->held ? EM_OK
                        : em_file_write_at(tokens->scratch, SCRATCH,
                                           topics->place + 2 * view->block->first_token,
                                           view->topic, 2 * (size_t)view->block->n_token);
}

em_status em_tokens_add_chain(em_tokens *tokens, em_token_topics *topics)
{
    *topics = (em_token_topics){.place = tokens->scratch_used};
    if (tokens->scratch < 0)
        return em_allocate(tokens->n_token, sizeof *topics->held, &topics->held);
    tokens->scratch_used += 2 * tokens->n_token;
    return ftruncate(tokens->scratch, tokens->scratch_used) == 0
               ? EM_OK
               : em_fail(EM_EIO, "%s: cannot be written: %s", SCRATCH, strerror(errno));
}

/* ---------------------------------------------------------------- layout */

/* A document of a block that is being filled. */
typedef struct placed {
    int64_t number, first, n_token; /* in the corpus; tokens of this shard before it; its own */
    int64_t entry, n_entry;
} placed;

/* A block of one level that is being filled. */
typedef struct filling {
    em_token_block block;
    int64_t bytes; /* taken up so far */
    int64_t n_entry, word_capacity, count_capacity, document_capacity;
    int32_t *word, *count; /* [n_entry] */
    placed *document;      /* as they came; sorted in the end */
} filling;

typedef struct layout {
    em_tokens *tokens;
    int64_t first_document; /* of this shard, in the corpus */
    filling level[MOST_LEVELS];
    em_document *document; /* of a block that ends */
    em_token_entry *entry;
    int64_t *start; /* [n_word + 2] of em_sort_entries */
    int64_t layout_capacity, sorted_capacity, entry_capacity;
    int64_t block_capacity, number_capacity, length_capacity, first_capacity;
    int64_t most_tokens, most_items, most_documents, most_listed; /* of a block */
    int64_t most_bytes;
} layout;

/* What a document takes up in a block. */
static int64_t bytes_of(const em_tokens *tokens, int64_t length)
{
    const int64_t own = (length < tokens->n_topic ? length : tokens->n_topic) + EM_TOPIC_LANES;

    return tokens->sparse ? own * 8 : tokens->stride * 4;
}

/* Orders documents by length, the longest first. Neighbours then take about as long, which helps
 * branch prediction. */
static int by_length(const void *a, const void *b)
{
    const placed *x = a, *y = b;

    if (x->n_token != y->n_token)
        return x->n_token > y->n_token ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Sorts the entries of a block by word, and counts entries and runs. */
static em_status sort_entries(layout *l, filling *f)
{
    const int64_t n = f->block.n_document, n_word = l->tokens->n_word;
    em_status status = em_reserve(&l->document, &l->sorted_capacity, 0, n);

    if (!status)
        status = em_reserve(&l->entry, &l->entry_capacity, 0,
                            em_most_entries(f->n_entry, f->block.n_token));
    if (status)
        return status;
    qsort(f->document, (size_t)n, sizeof *f->document, by_length);
    for (int64_t i = 0; i < n; i++) {
        const placed *of = &f->document[i];
        l->document[i] = (em_document){of->n_entry, f->word + of->entry, f->count + of->entry};
    }
    f->block.n_run = em_sort_entries(n_word, n, l->document, l->start, l->entry);
    f->block.n_entry = l->start[n_word];
    return EM_OK;
}

/* Writes the layout of a block whose entries are sorted. */
static void lay_out_block(const layout *l, const em_token_block *block, char *room)
{
    em_block_view view;
    uint32_t *run_entry, *run_token, token = 0;

    view_layout(block, room, &view);
    int32_t *run_word = (int32_t *)view.run_word;
    run_entry = (uint32_t *)view.run_entry;
    run_token = (uint32_t *)view.run_token;
    memcpy(room, l->entry, (size_t)block->n_entry * sizeof *l->entry);
    for (int64_t v = 0; v < l->tokens->n_word; v++) {
        if (l->start[v] == l->start[v + 1])
            continue;
        *run_word++ = (int32_t)v;
        *run_entry++ = (uint32_t)l->start[v];
        *run_token++ = token;
        for (int64_t i = l->start[v]; i < l->start[v + 1]; i++)
            token += l->entry[i].count;
    }
    *run_entry = (uint32_t)block->n_entry;
    *run_token = token;
}

static void note_sizes(layout *l, const filling *f)
{
    int64_t listed = 0, items = 0;

    for (int64_t i = 0; i < f->block.n_document; i++) {
        listed += em_topic_list_capacity(l->tokens->n_topic, f->document[i].n_token);
        items += em_padded_length(f->document[i].n_token) / 4;
    }
    l->most_tokens = em_most(l->most_tokens, f->block.n_token);
    l->most_items = em_most(l->most_items, items);
    l->most_documents = em_most(l->most_documents, f->block.n_document);
    l->most_listed = em_most(l->most_listed, listed);
    l->most_bytes = em_most(l->most_bytes, layout_bytes(&f->block));
}

/* Makes room for n documents in all. It is first called with the number of documents of the shard,
 * because an array that grows is in memory twice for a moment. */
static em_status reserve_documents(layout *l, int64_t n)
{
    em_tokens *t = l->tokens;
    const int64_t used = t->n_document;
    em_status status = em_reserve(&t->number, &l->number_capacity, used, n);

    status = status ? status : em_reserve(&t->length, &l->length_capacity, used, n);
    return status ? status : em_reserve(&t->first, &l->first_capacity, used, n);
}

/* Appends the documents of a block after those of earlier blocks. */
static em_status keep_documents(layout *l, const filling *f)
{
    em_tokens *t = l->tokens;
    const int64_t n = t->n_document, more = n + f->block.n_document;
    const em_status status = reserve_documents(l, more);

    if (status)
        return status;
    for (int64_t i = 0; i < f->block.n_document; i++) {
        t->number[n + i] = f->document[i].number;
        t->length[n + i] = (int32_t)f->document[i].n_token;
        t->first[n + i] = f->document[i].first;
    }
    t->n_document = more;
    return EM_OK;
}

static em_status keep_layout(layout *l, em_token_block *block)
{
    em_tokens *t = l->tokens;
    const int64_t bytes = layout_bytes(block);
    char **room = t->scratch >= 0 ? &t->layout_room : &block->layout;
    em_status status = t->scratch >= 0 ? em_reserve(room, &l->layout_capacity, 0, bytes)
                                       : em_own(&t->memory, em_allocate(bytes, 1, room), room);

    if (status)
        return status;
    lay_out_block(l, block, *room);
    if (t->scratch < 0)
        return EM_OK;
    block->place = t->scratch_used;
    t->scratch_used += (bytes + 7) / 8 * 8;
    return em_file_write_at(t->scratch, SCRATCH, block->place, *room, (size_t)bytes);
}

/* Ends a block that is full: lays it out, and begins the next block of its level. */
static em_status end_block(layout *l, filling *f)
{
    em_tokens *t = l->tokens;
    em_status status = em_reserve(&t->block, &l->block_capacity, t->n_block, t->n_block + 1);

    status = status ? status : sort_entries(l, f);
    if (status)
        return status;
    f->block.first_document = t->n_document;
    note_sizes(l, f);
    em_token_block *block = &t->block[t->n_block++];
    *block = f->block;
    status = keep_documents(l, f);
    status = status ? status : keep_layout(l, block);
    f->block = (em_token_block){.level = f->block.level};
    f->n_entry = f->bytes = 0;
    return status;
}

static int64_t most_tokens(const em_tokens *tokens)
{
    return tokens->sparse ? LIST_TOKENS : BLOCK_TOKENS;
}

static bool is_full(const em_tokens *tokens, const filling *f)
{
    return f->bytes > (tokens->sparse ? LIST_BYTES : BLOCK_BYTES) ||
           f->block.n_token > most_tokens(tokens) || f->block.n_document == MOST_DOCUMENTS;
}

static em_status reserve_entries(filling *f, int64_t n_entry)
{
    const int64_t n = f->block.n_document, used = f->n_entry, all = used + n_entry;
    em_status status = em_reserve(&f->word, &f->word_capacity, used, all);

    status = status ? status : em_reserve(&f->count, &f->count_capacity, used, all);
    return status ? status : em_reserve(&f->document, &f->document_capacity, n, n + 1);
}

static em_status add_document(void *to, int64_t d, em_document of)
{
    layout *l = to;
    em_tokens *t = l->tokens;
    const int64_t number = l->first_document + d;
    filling *f = &l->level[level_of(t, number)];
    const int64_t length = em_document_length(of);
    em_status status = is_full(t, f) ? end_block(l, f) : EM_OK;

    status = status ? status : reserve_entries(f, of.n);
    if (status)
        return status;
    memcpy(f->word + f->n_entry, of.word, (size_t)of.n * sizeof *of.word);
    memcpy(f->count + f->n_entry, of.count, (size_t)of.n * sizeof *of.count);
    if (f->block.n_document == 0)
        f->block.begin = t->n_token;
    f->document[f->block.n_document++] = (placed){number, t->n_token, length, f->n_entry, of.n};
    f->n_entry += of.n;
    f->bytes += bytes_of(t, length);
    f->block.n_token += length;
    t->n_token += length;
    f->block.end = t->n_token;
    return EM_OK;
}

static em_status add_documents(layout *l, em_corpus *corpus)
{
    em_status status = em_corpus_each_once(corpus, add_document, l);

    for (int i = 0; !status && i < l->tokens->n_level; i++)
        if (l->level[i].block.n_document > 0)
            status = end_block(l, &l->level[i]);
    return status;
}

static int by_level(const void *a, const void *b)
{
    const em_token_block *x = a, *y = b;

    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    return (x->first_document > y->first_document) - (x->first_document < y->first_document);
}

static em_status allocate_layout(em_tokens *t, const layout *l)
{
    const int64_t n = em_most(l->most_items, l->most_documents), items = (n + 7) / 8 * 8;
    const bool streams = t->scratch >= 0;
    em_status status = EM_OK;

    em_release(&t->layout_room);
    if (streams)
        status = em_allocate(l->most_bytes, 1, &t->layout_room);
    if (!status)
        status = em_own_all(
            &t->memory, EM_ARRAY(t->item, items), EM_ARRAY(t->bits, 4 * items),
            EM_ARRAY(t->table, t->n_topic), EM_ARRAY(t->table_alpha, t->n_topic),
            EM_ARRAY(t->alpha, t->stride), EM_ARRAY(t->room, em_token_workspace(t->n_topic)),
            EM_ARRAY(t->tokens, t->sparse ? 0 : l->most_documents * t->stride),
            EM_ARRAY(t->list, t->sparse ? l->most_documents : 0),
            EM_ARRAY(t->list_topic, t->sparse ? l->most_listed : 0),
            EM_ARRAY(t->list_count, t->sparse ? l->most_listed : 0),
            EM_ARRAY(t->place, t->sparse ? t->n_topic + 1 : 0),
            EM_ARRAY(t->groups, t->sparse ? t->n_word * em_topic_groups(t->n_topic) : 0),
            EM_ARRAY(t->grouped, t->sparse ? t->n_word : 0), EM_ARRAY(t->state, 4 * items),
            EM_ARRAY(t->drawn, l->most_tokens),
            EM_ARRAY(t->topic_room, streams ? l->most_tokens : 0));
    for (int64_t k = 0; !status && t->sparse && k <= t->n_topic; k++)
        t->place[k] = INT32_MAX;
    return status;
}

static void release_layout(layout *l)
{
    for (int i = 0; i < MOST_LEVELS; i++)
        em_release_all(&l->level[i].word, &l->level[i].count, &l->level[i].document);
    em_release_all(&l->document, &l->entry, &l->start);
}

static em_status lay_out(em_tokens *t, em_corpus *corpus)
{
    EM_SCOPED_BY(release_layout)
    layout l = {.tokens = t, .first_document = corpus->first_document};
    int64_t token = 0;
    em_status status = em_allocate(t->n_word + 2, sizeof *l.start, &l.start);

    for (int i = 0; i < t->n_level; i++)
        l.level[i].block.level = i;
    status = status ? status : reserve_documents(&l, corpus->n_local);
    status = status ? status : add_documents(&l, corpus);
    if (!status && t->n_block > 0)
        qsort(t->block, (size_t)t->n_block, sizeof *t->block, by_level);
    for (int64_t b = 0; !status && b < t->n_block; b++) {
        t->block[b].first_token = token;
        token += t->block[b].n_token;
    }
    return status ? status : allocate_layout(t, &l);
}

em_status em_tokens_create(em_corpus *corpus, int64_t n_topic, int sparse, const char *scratch,
                           em_tokens **out)
{
    em_status status = em_allocate(1, sizeof **out, out);
    em_tokens *tokens = *out;

    if (status)
        return status;
    tokens->n_topic = n_topic;
    tokens->stride = em_topic_stride(n_topic);
    tokens->n_word = corpus->n_word;
    tokens->n_all = corpus->n_token;
    tokens->first_token = corpus->first_token;
    tokens->sparse = sparse < 0 ? n_topic >= EM_MANY_TOPICS : sparse > 0;
    tokens->scratch = -1;
    choose_levels(tokens, corpus);
    if (scratch)
        status = open_scratch(scratch, &tokens->scratch);
    status = status ? status : lay_out(tokens, corpus);
    if (status)
        em_tokens_destroy(out);
    return status;
}

void em_tokens_destroy(em_tokens **out)
{
    em_tokens *tokens = *out;

    if (!tokens)
        return;
    if (tokens->scratch >= 0)
        close(tokens->scratch);
    em_release_all(&tokens->block, &tokens->number, &tokens->length, &tokens->first,
                   &tokens->layout_room);
    em_release_owner(out);
}
