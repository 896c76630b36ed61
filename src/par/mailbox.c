#include "par/mailbox.h"

#include "base/memory.h"
#include "par/mpi_world.h"
#include "par/world.h"

#include <sched.h>
#include <string.h>

/* A row that is being sent to another group, or that this group has sent to itself. */
typedef struct letter {
    struct letter *next;
    MPI_Request request;
    int64_t key, n;
    double row[];
} letter;

struct em_mailbox {
    MPI_Comm peers;
    int64_t group, n_group;
    letter *sent;           /* to other groups, not yet gone */
    letter *own, **own_end; /* to this group, in the order they were sent */
};

em_status em_mailbox_create(const em_grid *grid, em_mailbox **out)
{
    em_status status = em_agree(em_allocate(1, sizeof **out, out));
    em_mailbox *mailbox = *out;

    if (status)
        return status;
    mailbox->group = em_grid_group(grid);
    mailbox->n_group = em_grid_n_group(grid);
    mailbox->own_end = &mailbox->own;
    MPI_Comm_dup(em_grid_peers(grid), &mailbox->peers);
    return EM_OK;
}

/* Frees the letters that their receivers have received. `all`: waits until all are received. */
static void collect_sent(em_mailbox *mailbox, bool all)
{
    letter **at = &mailbox->sent;

    while (*at) {
        letter *one = *at;
        int gone = 1;
        if (all)
            MPI_Wait(&one->request, MPI_STATUS_IGNORE);
        else
            MPI_Test(&one->request, &gone, MPI_STATUS_IGNORE);
        if (gone) {
            *at = one->next;
            em_release(&one);
        } else
            at = &one->next;
    }
}

void em_mailbox_destroy(em_mailbox **out)
{
    em_mailbox *mailbox = *out;

    if (!mailbox)
        return;
    collect_sent(mailbox, true);
    while (mailbox->own) {
        letter *one = mailbox->own;
        mailbox->own = one->next;
        em_release(&one);
    }
    MPI_Comm_free(&mailbox->peers);
    em_release(out);
}

em_status em_mailbox_put(em_mailbox *mailbox, int64_t group, int64_t key, int64_t n,
                         const double *x)
{
    letter *one = NULL;
    em_status status = em_allocate(1, sizeof *one + (size_t)n * sizeof *x, &one);

    if (status)
        return status;
    one->key = key;
    one->n = n;
    memcpy(one->row, x, (size_t)n * sizeof *x);
    if (group == mailbox->group) {
        *mailbox->own_end = one;
        mailbox->own_end = &one->next;
        return EM_OK;
    }
    collect_sent(mailbox, false);
    one->next = mailbox->sent;
    mailbox->sent = one;
    MPI_Isend(one->row, (int)n, MPI_DOUBLE, (int)group, (int)key, mailbox->peers, &one->request);
    return EM_OK;
}

/* The first of this group's own letters with that key. */
static bool take_own(em_mailbox *mailbox, int64_t key, int64_t n, double *x)
{
    for (letter **at = &mailbox->own; *at; at = &(*at)->next) {
        letter *one = *at;
        if (one->key != key)
            continue;
        memcpy(x, one->row, (size_t)n * sizeof *x);
        *at = one->next;
        if (!*at)
            mailbox->own_end = at;
        em_release(&one);
        return true;
    }
    return false;
}

void em_mailbox_take(em_mailbox *mailbox, int64_t key, int64_t n, double *x)
{
    MPI_Status from;
    int there = 0;

    if (take_own(mailbox, key, n, x))
        return;
    while (MPI_Iprobe(MPI_ANY_SOURCE, (int)key, mailbox->peers, &there, &from), !there)
        sched_yield(); /* ranks may outnumber processors */
    MPI_Recv(x, (int)n, MPI_DOUBLE, from.MPI_SOURCE, (int)key, mailbox->peers, MPI_STATUS_IGNORE);
}
