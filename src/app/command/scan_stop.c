#include "app/command/scan_stop.h"

#include "app/process/signals.h"
#include "base/memory.h"
#include "par/mpi_world.h"

#include <string.h>
#include <time.h>

/* A message has no content: that it comes is what it says. */
struct em_scan_stop {
    MPI_Comm ranks;
    int rank, n_set;
    int *first_rank;      /* [n_set] */
    MPI_Request *sending; /* [n_set] */
    bool is_first, has_told, was_told;
    int64_t n_received;
};

em_status em_scan_stop_create(int64_t n_set, const int *first_rank, em_scan_stop **out)
{
    em_status status = em_allocate(1, sizeof **out, out);
    em_scan_stop *s = *out;

    if (!status)
        status = em_allocate_all(EM_ARRAY(s->first_rank, n_set), EM_ARRAY(s->sending, n_set));
    status = em_agree(status);
    if (status) {
        if (s)
            em_release_all(&s->first_rank, &s->sending);
        em_release(out);
        return status;
    }
    s->n_set = (int)n_set;
    s->rank = em_world_rank();
    memcpy(s->first_rank, first_rank, (size_t)n_set * sizeof *first_rank);
    for (int i = 0; i < s->n_set; i++)
        s->is_first = s->is_first || first_rank[i] == s->rank;
    MPI_Comm_dup(em_world_ranks(), &s->ranks);
    return EM_OK;
}

static void tell_others(em_scan_stop *s)
{
    if (s->has_told || s->was_told)
        return;
    for (int i = 0; i < s->n_set; i++) {
        s->sending[i] = MPI_REQUEST_NULL;
        if (s->first_rank[i] != s->rank)
            MPI_Isend(NULL, 0, MPI_BYTE, s->first_rank[i], 0, s->ranks, &s->sending[i]);
    }
    s->has_told = true;
}

static void receive(em_scan_stop *s)
{
    MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, s->ranks, MPI_STATUS_IGNORE);
    s->n_received++;
    s->was_told = true;
}

bool em_scan_stop_check(em_scan_stop *s, bool is_asked)
{
    int there = 0;

    if (!s || !s->is_first)
        return false;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, s->ranks, &there, MPI_STATUS_IGNORE);
    if (there)
        receive(s);
    if (is_asked)
        tell_others(s);
    return s->was_told;
}

/* Receives what is on its way: every rank that has told did so once. */
static void finish_messages(em_scan_stop *s)
{
    int64_t n_told = s->has_told;

    MPI_Allreduce(MPI_IN_PLACE, &n_told, 1, MPI_INT64_T, MPI_SUM, s->ranks);
    while (s->is_first && s->n_received < n_told - s->has_told)
        receive(s);
    if (s->has_told)
        MPI_Waitall(s->n_set, s->sending, MPI_STATUSES_IGNORE);
}

void em_scan_stop_wait(em_scan_stop **stop)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    em_scan_stop *s = *stop;
    MPI_Request all;
    int done = 0;

    if (!s)
        return;
    em_signals_run_is_made(); /* and ended, or this rank makes none: it may wait for long */
    MPI_Ibarrier(s->ranks, &all);
    while (MPI_Test(&all, &done, MPI_STATUS_IGNORE), !done) {
        if (em_signals_came())
            tell_others(s);
        nanosleep(&pause, NULL);
    }
    finish_messages(s);
    MPI_Comm_free(&s->ranks);
    em_release_all(&s->first_rank, &s->sending, stop);
}
