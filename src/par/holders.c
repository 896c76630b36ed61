/*
 * Memory that several ranks see is an unnamed file in memory (memfd_create), which the others open
 * by way of /proc. An MPI window would do as well, but for two things: to free it takes all of its
 * ranks, and a rank that gives up after an error is alone; and it may lie in /dev/shm, which
 * containers keep small. This one is freed by each rank for itself, leaves no name behind however a
 * run ends, and its pages are there before anybody writes.
 */
#include "par/holders.h"

#include "base/fault.h"
#include "base/memory.h"
#include "par/message.h"
#include "par/mpi_world.h"
#include "par/world.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Below this, a copy in each core's own cache is worth more. */
enum { LEAST_SHARED = 1 << 18, TAG = 1 };

/* The ranks count from the writer on, which is the first. There is no communicator of their own,
 * which it would take all of them to free. */
struct em_holders {
    int n, rank;
    int *member; /* [n] ranks of the node */
};

/* What stands before the memory that is given out, which begins the next line. */
typedef struct header {
    int64_t bytes; /* of the memory */
    bool shared;
} header;

em_status em_holders_create(int64_t key, em_holders **out)
{
    int64_t *all = NULL;
    int size = 1, rank = 0;
    em_status status = em_allocate(1, sizeof **out, out);

    if (em_world_size() > 1) {
        MPI_Comm_size(em_world_node(), &size);
        MPI_Comm_rank(em_world_node(), &rank);
    }
    if (!status)
        status = em_allocate(size, sizeof *(*out)->member, &(*out)->member);
    if (!status)
        status = em_allocate(size, sizeof *all, &all);
    status = em_agree_first(status, 0);
    if (!status && em_world_size() > 1)
        MPI_Allgather(&key, 1, MPI_INT64_T, all, 1, MPI_INT64_T, em_world_node());
    for (int i = 0; !status && i < size; i++) {
        if (i == rank)
            (*out)->rank = (*out)->n;
        if (i == rank || all[i] == key)
            (*out)->member[(*out)->n++] = i;
    }
    em_release(&all);
    if (status)
        em_holders_destroy(out);
    return status;
}

void em_holders_destroy(em_holders **holders)
{
    if (!*holders)
        return;
    em_release(&(*holders)->member);
    em_release(holders);
}

bool em_holders_writes(const em_holders *holders)
{
    return holders->rank == 0;
}

/* ---------------------------------------------------------------- between them */

/* The writer's bytes become everybody's. */
static void spread(const em_holders *h, void *data, int64_t bytes)
{
    for (char *at = data; h->n > 1 && bytes > 0; bytes -= INT_MAX, at += INT_MAX) {
        const int count = bytes < INT_MAX ? (int)bytes : INT_MAX;
        if (h->rank > 0)
            MPI_Recv(at, count, MPI_BYTE, h->member[0], TAG, em_world_node(), MPI_STATUS_IGNORE);
        for (int i = 1; h->rank == 0 && i < h->n; i++)
            MPI_Send(at, count, MPI_BYTE, h->member[i], TAG, em_world_node());
    }
}

/* The smallest of their numbers; all have come here before any goes on. */
static int smallest(const em_holders *h, int mine)
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

static em_status agree(const em_holders *h, em_status status)
{
    const em_status least = smallest(h, status < 0 ? status : EM_OK);

    return status < 0 || least == EM_OK
               ? status
               : em_fail(least, "out of memory on another rank of this node");
}

/* ---------------------------------------------------------------- memory */

/* Where the writer's unnamed file is to be found. */
typedef struct place {
    int process, descriptor; /* descriptor -1: there is none */
    int64_t bytes;
} place;

static void *map(int descriptor, int64_t bytes, int protection)
{
    void *memory = descriptor < 0
                       ? MAP_FAILED
                       : mmap(NULL, (size_t)bytes, protection, MAP_SHARED, descriptor, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

/* The writer's part: pages are taken up here, so that none is missing when it is written. */
static header *make(place *where)
{
    header *made;

    where->process = (int)getpid();
    where->descriptor = em_fault("data-shared") ? -1 : memfd_create("emass data", MFD_CLOEXEC);
    if (where->descriptor < 0 || posix_fallocate(where->descriptor, 0, where->bytes) != 0)
        return NULL;
    made = map(where->descriptor, where->bytes, PROT_READ | PROT_WRITE);
    if (made)
        *made = (header){where->bytes - EM_ALIGNMENT, true};
    return made;
}

static header *find(const place *where)
{
    char path[64];
    int descriptor;
    header *found;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", where->process, where->descriptor);
    descriptor = where->descriptor < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    found = map(descriptor, where->bytes, PROT_READ);
    if (descriptor >= 0)
        close(descriptor);
    return found;
}

/* NULL on all where one of them has none. */
static header *share(const em_holders *h, int64_t bytes)
{
    place where = {0, -1, bytes};
    header *found = em_holders_writes(h) ? make(&where) : NULL;

    spread(h, &where, sizeof where);
    if (!em_holders_writes(h))
        found = find(&where);
    if (!smallest(h, found != NULL) && found) {
        munmap(found, (size_t)bytes);
        found = NULL;
    }
    if (em_holders_writes(h) && where.descriptor >= 0)
        close(where.descriptor);
    return found;
}

em_status em_holders_allocate(em_holders *h, int64_t count, size_t size, void *out)
{
    header *found = NULL;
    void *memory = NULL;
    int64_t bytes = 0;
    em_status status = EM_OK;

    if (em_holders_writes(h) && (count < 0 || __builtin_mul_overflow(count, (int64_t)size, &bytes)))
        bytes = -1;
    spread(h, &bytes, sizeof bytes);
    if (bytes < 0 || bytes > INT64_MAX - EM_ALIGNMENT)
        status = em_fail(EM_EMEMORY, "out of memory: more than can be addressed");
    else if (h->n > 1 && bytes >= LEAST_SHARED)
        found = share(h, bytes + EM_ALIGNMENT);
    if (!status && !found) {
        status = agree(h, em_allocate(bytes + EM_ALIGNMENT, 1, &found));
        if (!status)
            *found = (header){bytes, false};
    }
    if (!status)
        memory = (char *)found + EM_ALIGNMENT;
    else
        em_release(&found);
    memcpy(out, &memory, sizeof memory);
    return status;
}

static header *header_of(void *memory)
{
    return (header *)((char *)memory - EM_ALIGNMENT);
}

void em_holders_publish(em_holders *h, void *memory)
{
    if (!memory || h->n == 1)
        return;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    smallest(h, 0);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!header_of(memory)->shared)
        spread(h, memory, header_of(memory)->bytes);
}

void em_holders_release(void *pointer)
{
    header *found;
    void *memory;

    memcpy(&memory, pointer, sizeof memory);
    if (!memory)
        return;
    found = header_of(memory);
    if (found->shared)
        munmap(found, (size_t)(found->bytes + EM_ALIGNMENT));
    else
        em_release(&found);
    memory = NULL;
    memcpy(pointer, &memory, sizeof memory);
}
