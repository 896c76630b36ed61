#include "par/node_shared_array.h"

#include "base/memory.h"
#include "par/mapped.h"
#include "par/message.h"
#include "par/mpi_world.h"
#include "par/world.h"

#include <limits.h>
#include <string.h>

/* LEAST_SHARED: smaller arrays are not shared, because a copy in the cache of each core is faster.
 */
enum { LEAST_SHARED = 1 << 18, TAG = 1 };

/* Ranks are numbered from the writer on. They have no communicator of their own, because all of
 * them would have to free it together. */
struct em_node_array {
    int n, rank;
    int *member; /* [n] ranks of the node */
};

em_status em_node_array_create(int64_t key, em_node_array **out)
{
    EM_SCOPED int64_t *all = NULL;
    int size = 1, rank = 0;
    em_status status = em_allocate(1, sizeof **out, out);

    if (em_world_size() > 1) {
        MPI_Comm_size(em_world_node(), &size);
        MPI_Comm_rank(em_world_node(), &rank);
    }
    status = status ? status : em_allocate(size, sizeof *(*out)->member, &(*out)->member);
    status = status ? status : em_allocate(size, sizeof *all, &all);
    status = em_agree_first(status, 0);
    if (!status && em_world_size() > 1)
        MPI_Allgather(&key, 1, MPI_INT64_T, all, 1, MPI_INT64_T, em_world_node());
    for (int i = 0; !status && i < size; i++) {
        if (i == rank)
            (*out)->rank = (*out)->n;
        if (i == rank || all[i] == key)
            (*out)->member[(*out)->n++] = i;
    }
    if (status)
        em_node_array_destroy(out);
    return status;
}

void em_node_array_destroy(em_node_array **node_array)
{
    if (!*node_array)
        return;
    em_release_all(&(*node_array)->member, node_array);
}

bool em_node_array_writes(const em_node_array *node_array)
{
    return node_array->rank == 0;
}

/* ---------------------------------------------------------------- copies to other ranks */

/* Copies the writer's bytes to the other ranks. */
static void spread(const em_node_array *h, void *data, int64_t bytes)
{
    for (char *at = data; h->n > 1 && bytes > 0; bytes -= INT_MAX, at += INT_MAX) {
        const int count = bytes < INT_MAX ? (int)bytes : INT_MAX;
        if (h->rank > 0)
            MPI_Recv(at, count, MPI_BYTE, h->member[0], TAG, em_world_node(), MPI_STATUS_IGNORE);
        for (int i = 1; h->rank == 0 && i < h->n; i++)
            MPI_Send(at, count, MPI_BYTE, h->member[i], TAG, em_world_node());
    }
}

/* The smallest of the numbers of all ranks of the node. This is also a barrier. */
static int smallest(const em_node_array *h, int mine)
{
    int least = mine;

    if (h->rank > 0)
        MPI_Send(&mine, 1, MPI_INT, h->member[0], TAG, em_world_node());
    for (int i = 1; h->rank == 0 && i < h->n; i++) {
        int other;
        MPI_Recv(&other, 1, MPI_INT, h->member[i], TAG, em_world_node(), MPI_STATUS_IGNORE);
        least = other < least ? other : least;
    }
    spread(h, &least, sizeof least);
    return least;
}

static em_status agree(const em_node_array *h, em_status status)
{
    const em_status least = smallest(h, status < 0 ? status : EM_OK);

    return status < 0 || least == EM_OK
               ? status
               : em_fail(least, "out of memory on another rank of this node");
}

/* ---------------------------------------------------------------- memory */

/* Shares memory of the writer. If one rank has no memory for it, all ranks get NULL. */
static em_mapped_header *share(const em_node_array *h, int64_t bytes)
{
    em_mapped_place where = {.descriptor = -1, .bytes = bytes};
    em_mapped_header *found = em_node_array_writes(h) ? em_mapped_make(&where) : NULL;

    if (found)
        *found = (em_mapped_header){bytes - EM_ALIGNMENT, 1, bytes, true};
    spread(h, &where, sizeof where);
    if (!em_node_array_writes(h))
        found = em_mapped_find(&where, false);
    if (!smallest(h, found != NULL)) {
        em_mapped_release(found, bytes);
        found = NULL;
    }
    if (em_node_array_writes(h))
        em_mapped_close(&where);
    return found;
}

em_status em_node_array_allocate(em_node_array *h, int64_t count, size_t size, void *out)
{
    em_mapped_header *found = NULL;
    void *memory = NULL;
    int64_t bytes = 0;
    em_status status = EM_OK;

    if (em_node_array_writes(h) &&
        (count < 0 || __builtin_mul_overflow(count, (int64_t)size, &bytes)))
        bytes = -1;
    spread(h, &bytes, sizeof bytes);
    if (bytes < 0 || bytes > INT64_MAX - EM_ALIGNMENT)
        status = em_fail(EM_EMEMORY, "out of memory: more than can be addressed");
    else if (h->n > 1 && bytes >= LEAST_SHARED)
        found = share(h, bytes + EM_ALIGNMENT);
    if (!status && !found) {
        status = agree(h, em_allocate(bytes + EM_ALIGNMENT, 1, &found));
        if (!status)
            *found = (em_mapped_header){bytes, 1, bytes + EM_ALIGNMENT, false};
    }
    if (!status)
        memory = (char *)found + EM_ALIGNMENT;
    else
        em_release(&found);
    memcpy(out, &memory, sizeof memory);
    return status;
}

void em_node_array_publish(em_node_array *h, void *memory)
{
    if (!memory || h->n == 1)
        return;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    smallest(h, 0);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!em_mapped_header_of(memory)->shared)
        spread(h, memory, em_mapped_header_of(memory)->n);
}

void em_node_array_release(void *pointer)
{
    em_mapped_free(pointer);
}
