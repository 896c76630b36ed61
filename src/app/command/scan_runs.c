#include "app/command/scan_runs.h"

#include "app/summary/model_commands.h"
#include "base/memory.h"
#include "par/mpi_world.h"

#include <inttypes.h>

/* ---------------------------------------------------------------- assignment of runs */

/* The assignment of runs to sets of ranks. */
typedef struct rank_sets {
    int64_t n_set, n_unit; /* a unit: ranks that advance the same chains together */
    int64_t *set;          /* [count] of each run */
    int64_t *order;        /* [count] runs, the longest first */
    double *load;          /* [n_set] the cost of its runs so far */
} rank_sets;

static int64_t units_of(const rank_sets *t, int64_t set)
{
    return em_partition_first(t->n_unit, t->n_set, set + 1) -
           em_partition_first(t->n_unit, t->n_set, set);
}

static void sort_runs(const em_config_scan *scan, int64_t *order)
{
    for (int64_t i = 0; i < scan->count; i++) {
        int64_t at = i;
        for (; at > 0 && scan->value[i] > scan->value[order[at - 1]]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

/* Assigns the runs, the longest first, each to the set that will then finish first. */
static void assign_runs(const em_config_scan *scan, rank_sets *t)
{
    sort_runs(scan, t->order);
    for (int64_t i = 0; i < scan->count; i++) {
        const int64_t run = t->order[i];
        double soonest = 0;
        for (int64_t set = 0; set < t->n_set; set++) {
            const int64_t n = units_of(t, set);
            const int64_t turns = (scan->n_chain + n - 1) / n; /* chains of a unit */
            /* The cost of a token grows with the number of topics (src/topics/README.md). */
            const double end = t->load[set] + (1000 + (double)scan->value[run]) * (double)turns;
            if (set == 0 || end < soonest) {
                soonest = end;
                t->set[run] = set;
            }
        }
        t->load[t->set[run]] = soonest;
    }
}

/* Makes the sets of ranks, at most as many as runs. In a set with more groups of ranks than chains,
 * the further groups would be idle, so they are left out. If shards do not divide the ranks, there
 * is one set, and its first run reports the error. */
static em_status make_sets(const em_config_scan *scan, rank_sets *t)
{
    const int64_t n_rank = em_world_size(), most = scan->count * scan->n_chain;

    t->n_unit = n_rank % scan->group_size == 0 ? n_rank / scan->group_size : 1;
    t->n_unit = t->n_unit < most ? t->n_unit : most;
    t->n_set = t->n_unit < scan->count ? t->n_unit : scan->count;
    const em_status status =
        em_allocate_all(EM_ARRAY(t->set, scan->count), EM_ARRAY(t->order, scan->count),
                        EM_ARRAY(t->load, t->n_set));
    if (!status)
        assign_runs(scan, t);
    return status;
}

/* n_set: of none. */
static int64_t own_set(const em_config_scan *scan, const rank_sets *t)
{
    const int64_t unit = em_world_rank() / scan->group_size;

    if (em_world_size() % scan->group_size != 0)
        return 0;
    return unit < t->n_unit ? em_partition_of(t->n_unit, t->n_set, unit) : t->n_set;
}

/* ---------------------------------------------------------------- the runs */

typedef struct scanning {
    const em_config_scan *scan;
    const rank_sets *sets;
    em_scan_run *run;
    void *to;
    em_scan_stop *stop; /* NULL: in turn */
} scanning;

/* Messages about the request are the same in all runs; other messages name their run. */
static em_status say_run(const em_config_scan *scan, int64_t i, em_status status)
{
    if (status >= 0 || status == EM_EUSAGE || status == EM_ECONFIG || status == EM_EDATA)
        return status;
    return em_fail(status, "model.%s %" PRId64 ": %s", scan->option, scan->value[i],
                   em_error_text());
}

/* Makes run number i with the ranks of its set. */
static em_status run_one(const scanning *s, int64_t i, int64_t set)
{
    return say_run(s->scan, i, s->run(s->to, i, set == 0, s->stop));
}

/* Makes the runs of this set one after the other. */
static em_status run_own(const scanning *s, int64_t set)
{
    em_status first = EM_OK;

    for (int64_t k = 0; k < s->scan->count && first != EM_ESTOPPED; k++) {
        const int64_t i = s->sets->order[k];
        const em_status status = s->sets->set[i] == set ? run_one(s, i, set) : EM_OK;
        first = status == EM_ESTOPPED || !first ? status : first;
    }
    return first;
}

/* Makes runs in a world of the ranks with the same `part`. `only`: the number of the one run; -1:
 * all runs of set `part`. */
static em_status run_in_parallel(scanning *s, int64_t part, int64_t only)
{
    em_world *own = NULL, *all;
    MPI_Comm ranks;

    MPI_Comm_split(em_world_ranks(), (int)part, em_world_rank(), &ranks);
    em_status status =
        em_agree(em_world_create(ranks, &(em_world_options){.may_abort = true}, &own));
    if (!status) {
        all = em_world_enter(own);
        if (only < 0)
            status = run_own(s, part);
        else if (part == 0)
            status = run_one(s, only, 0);
        em_world_enter(all);
    }
    em_world_destroy(&own);
    MPI_Comm_free(&ranks);
    em_scan_stop_wait(&s->stop);
    return em_agree(status);
}

/* Makes all runs, each set at the same time as the others. */
static em_status run_at_once(scanning *s)
{
    const rank_sets *t = s->sets;
    EM_SCOPED int *first = NULL;
    em_status status = em_agree(em_allocate(t->n_set, sizeof *first, &first));

    for (int64_t set = 0; !status && set < t->n_set; set++)
        first[set] = (int)(em_partition_first(t->n_unit, t->n_set, set) * s->scan->group_size);
    status = status ? status : em_scan_stop_create(t->n_set, first, &s->stop);
    return status ? status : run_in_parallel(s, own_set(s->scan, t), -1);
}

/* Makes all runs one after the other, each by as many of the first ranks as its set has. */
static em_status run_in_turn(scanning *s)
{
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < s->scan->count; i++) {
        const int64_t n = units_of(s->sets, s->sets->set[i]) * s->scan->group_size;
        const bool is_whole = em_world_size() % s->scan->group_size == 0;
        status = run_in_parallel(s, is_whole && em_world_rank() >= n, i);
    }
    return status;
}

em_status em_scan_all(const em_config_scan *scan, em_scan_run *run, void *to, bool in_turn)
{
    rank_sets t = {0};
    em_world *all = NULL, *before; /* all: a world in which sets wait for the slowest one */
    em_status status = em_agree(make_sets(scan, &t));

    em_return_freed_memory();
    status = status ? status : em_world_create(em_world_ranks(), &(em_world_options){NULL}, &all);
    if (!status) {
        before = em_world_enter(all);
        scanning all_runs = {scan, &t, run, to, NULL};
        status = in_turn ? run_in_turn(&all_runs) : run_at_once(&all_runs);
        em_world_enter(before);
        em_world_destroy(&all);
    }
    em_release_all(&t.set, &t.order, &t.load);
    return status;
}

/* ---------------------------------------------------------------- comparing the runs */

/* Rank 0 reads the files alone, while the others wait. */
em_status em_scan_compare(const em_config_scan *scan, bool prints)
{
    em_status status = EM_OK;

    if (em_world_rank() == 0) {
        EM_SCOPED_BY(em_world_return) em_world *before = em_world_enter(NULL);
        status = em_model_compare(scan->model, scan->count, (const char *const *)scan->file, prints,
                                  scan->page);
    }
    return em_agree(status);
}
