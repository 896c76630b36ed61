#include "diagnostics/distributed.h"

#include "base/memory.h"

#include <math.h>

em_status em_share_agree(const em_subcommunicator *comm, em_status status)
{
    double failed = status != 0;

    em_subcommunicator_maximum(comm, 1, &failed);
    return status || failed == 0 ? status : em_fail(EM_EMEMORY, "out of memory on another rank");
}

/* The state of a sample sort. Each member receives the draws of all members between two splitters,
 * with equal draws together, and sorts them. The draws of the members are then in order from member
 * to member. */
typedef struct pile {
    em_among among;
    int64_t n;
    em_sorted *sorted;       /* [n] index: the place in `received` */
    em_sorted *scratch;      /* [n] */
    double *sent, *received; /* [own], [n] */
    int64_t *send, *receive; /* [size] to and from each member */
} pile;

static void release_pile(pile *p)
{
    em_release_all(&p->sorted, &p->scratch, &p->sent, &p->received, &p->send);
}

/* Computes how many draws to send to each member. The regular samples of the sorted draws of all
 * members are cut into equal parts. */
static em_status split(const em_subcommunicator *comm, int64_t n, const em_sorted *sorted, pile *p)
{
    const int64_t size = em_subcommunicator_size(comm), member = em_subcommunicator_member(comm),
                  all = size * size;
    EM_SCOPED double *sample = NULL;
    EM_SCOPED em_sorted *ordered = NULL;
    em_status status = em_allocate_doubles(all, &sample);

    status = status ? status : em_allocate(2 * all, sizeof *ordered, &ordered);
    status = em_share_agree(comm, status);
    if (!status) {
        for (int64_t i = 0; i < size; i++) {
            sample[member * size + i] = sorted[(2 * i + 1) * n / (2 * size)].value;
            p->receive[i] = size;
        }
        em_subcommunicator_gather(comm, sizeof *sample, p->receive, sample);
        em_sort(all, sample, ordered, ordered + all);
        for (int64_t i = 0, to = 0; i < n; i++) {
            while (to < size - 1 && sorted[i].value >= ordered[(to + 1) * size].value)
                to++;
            p->send[to]++;
        }
    }
    return status;
}

/* Tells all members how many draws are sent. Sets the numbers of draws received from each member,
 * and the number of draws before them. */
static em_status tell(const em_subcommunicator *comm, pile *p)
{
    const int64_t size = em_subcommunicator_size(comm), member = em_subcommunicator_member(comm);
    EM_SCOPED int64_t *sent = NULL; /* [from][to] */
    em_status status = em_share_agree(comm, em_allocate(size * size, sizeof *sent, &sent));

    for (int64_t i = 0; !status && i < size; i++)
        sent[member * size + i] = p->send[i];
    if (!status)
        em_subcommunicator_gather(comm, sizeof *sent, p->receive, sent);
    for (int64_t from = 0; !status && from < size; from++) {
        p->receive[from] = sent[from * size + member];
        p->n += p->receive[from];
        for (int64_t to = 0; to < size; to++) {
            p->among.total += sent[from * size + to];
            p->among.before += to < member ? sent[from * size + to] : 0;
        }
    }
    return status;
}

static em_status make_pile(const em_subcommunicator *comm, int64_t n, const em_sorted *sorted,
                           pile *p)
{
    const int64_t size = em_subcommunicator_size(comm);
    em_status status = em_allocate(2 * size, sizeof *p->send, &p->send);

    p->receive = p->send + size;
    status = status ? status : em_allocate_doubles(n, &p->sent);
    status = em_share_agree(comm, status);
    status = status ? status : split(comm, n, sorted, p);
    status = status ? status : tell(comm, p);
    if (status)
        return status;
    status = em_allocate_doubles(p->n, &p->received);
    if (!status)
        status = em_allocate_all(EM_ARRAY(p->sorted, p->n), EM_ARRAY(p->scratch, p->n));
    status = em_share_agree(comm, status);
    if (status)
        return status;
    for (int64_t i = 0; i < n; i++)
        p->sent[i] = sorted[i].value;
    em_subcommunicator_exchange(comm, sizeof *p->sent, p->send, p->sent, p->receive, p->received);
    em_sort(p->n, p->received, p->sorted, p->scratch);
    return EM_OK;
}

/* The draw at a position among the draws of all members; -INFINITY if another member holds it. */
static double draw_at(const pile *p, int64_t place)
{
    const int64_t i = place - p->among.before;

    return i >= 0 && i < p->n ? p->sorted[i].value : -INFINITY;
}

em_status em_share_quantiles(const em_subcommunicator *comm, int64_t n, const em_sorted *sorted,
                             int64_t n_probability, const double *probability, double *out)
{
    EM_SCOPED_BY(release_pile) pile p = {0};
    em_status status = make_pile(comm, n, sorted, &p);

    for (int64_t i = 0; !status && i < n_probability; i++) {
        const em_quantile_position place = em_locate_quantile(p.among.total, probability[i]);
        double at[] = {draw_at(&p, place.low), draw_at(&p, place.high)};
        em_subcommunicator_maximum(comm, 2, at);
        out[i] = em_quantile_between(place, at[0], at[1]);
    }
    return status;
}

em_status em_share_normal_scores(const em_subcommunicator *comm, int64_t n, const em_sorted *sorted,
                                 const int64_t *place, double *z)
{
    EM_SCOPED double *score = NULL, *found = NULL;
    EM_SCOPED_BY(release_pile) pile p = {0};
    em_status status = make_pile(comm, n, sorted, &p);

    if (!status) {
        status = em_allocate_doubles(p.n, &score);
        status = status ? status : em_allocate_doubles(p.n, &found);
        status = em_share_agree(comm, status);
    }
    if (!status) {
        em_normal_score_table(p.among, p.n, score);
        em_normal_scores(p.among, p.n, p.sorted, score, NULL, NULL, found);
        em_subcommunicator_exchange(comm, sizeof *found, p.receive, found, p.send, p.sent);
        for (int64_t i = 0; i < n; i++)
            z[place[sorted[i].index]] = p.sent[i];
    }
    return status;
}

/* Adds rows of numbers over all members: member m adds its columns over all rows. */
em_status em_share_sum(const em_subcommunicator *comm, const int64_t *count, int64_t n_column,
                       const double *x, double *sum)
{
    const int64_t size = em_subcommunicator_size(comm), member = em_subcommunicator_member(comm),
                  n_row = count[member];
    const int64_t first = em_partition_first(n_column, size, member);
    const int64_t own = em_partition_first(n_column, size, member + 1) - first;
    EM_SCOPED int64_t *send = NULL;
    EM_SCOPED double *sent = NULL, *received = NULL;
    int64_t all = 0;
    em_status status = em_allocate(3 * size, sizeof *send, &send);

    for (int64_t m = 0; m < size; m++)
        all += count[m];
    status = status ? status : em_allocate_doubles(n_row * n_column, &sent);
    status = status ? status : em_allocate_doubles(all * own, &received);
    status = em_share_agree(comm, status);
    if (!status) {
        int64_t *receive = send + size, *width = receive + size;
        double *next = sent;
        for (int64_t m = 0; m < size; m++) {
            const int64_t begin = em_partition_first(n_column, size, m);
            width[m] = em_partition_first(n_column, size, m + 1) - begin;
            send[m] = n_row * width[m];
            receive[m] = count[m] * own;
            for (int64_t r = 0; r < n_row; r++)
                for (int64_t k = 0; k < width[m]; k++)
                    *next++ = x[r * n_column + begin + k];
        }
        em_subcommunicator_exchange(comm, sizeof *sent, send, sent, receive, received);
        for (int64_t k = 0; k < own; k++)
            sum[first + k] = 0;
        for (int64_t r = 0; r < all; r++)
            for (int64_t k = 0; k < own; k++)
                sum[first + k] += received[r * own + k];
        em_subcommunicator_gather(comm, sizeof *sum, width, sum);
    }
    return status;
}
