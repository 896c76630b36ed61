#include "run/convergence/convergence_monitor.h"

#include "base/memory.h"
#include "diagnostics/diagnoses.h"
#include "diagnostics/growth.h"
#include "par/world.h"

#include <limits.h>
#include <math.h>
#include <string.h>

struct em_monitor {
    const em_grid *grid;
    const em_stop_options *stop;
    em_diag *diag;
    em_subcommunicator *comm; /* of the n_part ranks that check a number together; NULL: one does */
    int64_t n_part;
    em_monitored plan;
    int64_t first, width; /* the numbers of those monitored that this shard has */
    int64_t n_local_chain, n_superchain;
    int64_t times_met;         /* in a row */
    int64_t end;               /* a check takes the numbers before this one */
    int64_t suspect;           /* the number that missed the thresholds last time, on this rank */
    double *history;           /* [n_local_chain][plan.n_row][width] */
    double *visit;             /* [n_local_chain][plan.n_row] of tempered draws, else NULL */
    int64_t n_local, n_column; /* room in: */
    double *local, *column;    /* buffers of a check; NULL between checks */
    em_diagnoses *known;       /* the diagnoses of the first `known_row` rows so far */
    int64_t known_row;
};

/* BATCH: the doubles that a rank examines at once. Ranks exchange them, so this limits the memory
 * of a check. OWN_BATCH: the doubles that one rank copies for itself, which stay in its cache. */
enum { BATCH = 1 << 22, OWN_BATCH = 1 << 16 };

/* PART: from this number of draws on, ranks share the check of one number. MOST_PARTS: the most
 * ranks that share one. With more, messages would take most of the time. */
enum { PART = 1 << 14, MOST_PARTS = 64 };

/* The largest number of monitored numbers on a shard. All shards gather as many batches as that
 * shard. */
static int64_t widest(const em_monitor *monitor)
{
    return em_partition_first(monitor->plan.width, em_grid_n_shard(monitor->grid), 1);
}

/* The number of parts into which the chains of a number are divided if there are more ranks than
 * numbers. Each rank has at least one chain. */
static int64_t parts_of(const em_monitor *monitor)
{
    const int64_t n_chain = em_grid_n_chain(monitor->grid), width = widest(monitor);
    const int64_t idle =
        width > 0 && width <= INT_MAX / n_chain ? em_grid_n_group(monitor->grid) / width : 1;
    const int64_t worth = n_chain * monitor->plan.n_row / PART;
    const int64_t most = worth < MOST_PARTS ? worth : MOST_PARTS;

    return monitor->n_superchain > 0 || monitor->plan.visits || most < 2 || idle < 2 ? 1
           : idle < most                                                             ? idle
                                                                                     : most;
}

em_status em_monitor_create(const em_grid *grid, const em_stop_options *stop,
                            const em_monitored *monitored, int64_t n_superchain, em_monitor **out)
{
    const int64_t n_shard = em_grid_n_shard(grid), shard = em_grid_shard(grid);
    em_status status = em_allocate(1, sizeof **out, out);
    em_monitor *monitor = *out;

    if (!status) {
        monitor->grid = grid;
        monitor->stop = stop;
        monitor->n_superchain = n_superchain;
        monitor->plan = *monitored;
        monitor->first = em_partition_first(monitored->width, n_shard, shard);
        monitor->width = em_partition_first(monitored->width, n_shard, shard + 1) - monitor->first;
        monitor->n_local_chain = em_grid_n_local_chain(grid);
        status = em_allocate_doubles(monitor->n_local_chain * monitored->n_row * monitor->width,
                                     &monitor->history);
    }
    if (!status && monitored->visits)
        status = em_allocate_doubles(monitor->n_local_chain * monitored->n_row, &monitor->visit);
    status = status ? status : em_diag_create(&monitor->diag);
    status = status ? status : em_diagnoses_create(&monitor->known);
    status = em_agree(status);
    if (!status) {
        monitor->n_part = parts_of(monitor);
        if (monitor->n_part > 1)
            status =
                em_subcommunicator_create(grid, monitor->width, monitor->n_part, &monitor->comm);
    }
    if (status)
        em_monitor_destroy(out);
    return status;
}

void em_monitor_destroy(em_monitor **monitor)
{
    if (*monitor) {
        em_diag_destroy(&(*monitor)->diag);
        em_diagnoses_destroy(&(*monitor)->known);
        em_subcommunicator_destroy(&(*monitor)->comm);
        em_release_all(&(*monitor)->history, &(*monitor)->visit);
    }
    em_release(monitor);
}

int64_t em_monitor_times_met(const em_monitor *monitor)
{
    return monitor->times_met;
}

void em_monitor_set_times_met(em_monitor *monitor, int64_t times)
{
    monitor->times_met = times;
}

void em_monitor_keep(em_monitor *monitor, int64_t chain, int64_t draw, const double *value)
{
    const int64_t row = (draw + 1) / monitor->plan.every - 1;

    if ((draw + 1) % monitor->plan.every == 0 && row < monitor->plan.n_row)
        memcpy(monitor->history + (chain * monitor->plan.n_row + row) * monitor->width,
               value + monitor->first, (size_t)monitor->width * sizeof *value);
}

void em_monitor_thin(em_monitor *monitor)
{
    const int64_t n_row = monitor->plan.n_row, width = monitor->width;

    for (int64_t c = 0; c < monitor->n_local_chain; c++)
        for (int64_t r = 0; 2 * r + 1 < n_row; r++)
            memcpy(monitor->history + (c * n_row + r) * width,
                   monitor->history + (c * n_row + 2 * r + 1) * width,
                   (size_t)width * sizeof *monitor->history);
    for (int64_t c = 0; monitor->visit && c < monitor->n_local_chain; c++)
        for (int64_t r = 0; 2 * r + 1 < n_row; r++)
            monitor->visit[c * n_row + r] = monitor->visit[c * n_row + 2 * r + 1];
}

void em_monitor_keep_visit(em_monitor *monitor, int64_t chain, int64_t draw, double visit)
{
    const int64_t row = (draw + 1) / monitor->plan.every - 1;

    if (monitor->visit && (draw + 1) % monitor->plan.every == 0 && row < monitor->plan.n_row)
        monitor->visit[chain * monitor->plan.n_row + row] = visit;
}

/* Gathers the visits of all chains, if draws have visits. The diagnosis of every number uses them.
 * Collective. */
static em_status gather_visits(em_monitor *monitor, int64_t n_row, em_visits **out)
{
    const int64_t n_chain = em_grid_n_chain(monitor->grid);
    EM_SCOPED double *own = NULL, *all = NULL;

    *out = NULL;
    if (!monitor->visit || n_row == 0)
        return EM_OK;
    em_status status = em_allocate_doubles(monitor->n_local_chain * n_row, &own);
    status = status ? status : em_allocate_doubles(n_chain * n_row, &all);
    status = em_agree(status);
    for (int64_t c = 0; !status && c < monitor->n_local_chain; c++)
        memcpy(own + c * n_row, monitor->visit + c * monitor->plan.n_row,
               (size_t)n_row * sizeof *own);
    status = status ? status : em_grid_gather_chains(monitor->grid, n_row, own, all);
    return status ? status : em_agree(em_visits_create(n_chain, n_row, all, out));
}

/* Updates {r_hat, -ess} by one number. Numbers that are constant and equal in all chains have no
 * R-hat and are skipped; any other NaN counts as the worst value. */
static em_status worsen(em_monitor *monitor, int64_t n_row, const double *draws, double worst[2])
{
    const int64_t n_chain = em_grid_n_chain(monitor->grid);
    em_diagnosis diagnosis;
    em_status status =
        monitor->comm
            ? em_diagnose_together(monitor->diag, monitor->comm, n_chain, n_row, draws, &diagnosis)
            : em_diagnose_convergence(monitor->diag, n_chain, n_row, draws, &diagnosis);

    if (status || diagnosis.constant)
        return status;
    if (monitor->n_superchain > 0)
        diagnosis.r_hat = em_nested_r_hat(monitor->n_superchain, n_chain, n_row, draws);
    const double ess = fmin(diagnosis.ess_bulk, diagnosis.ess_tail);
    worst[0] = fmax(worst[0], isnan(diagnosis.r_hat) ? INFINITY : diagnosis.r_hat);
    worst[1] = fmax(worst[1], isnan(ess) ? 0 : -ess);
    return EM_OK;
}

static bool meets(const em_monitor *monitor, const double worst[2])
{
    const em_starts starts = {em_grid_n_chain(monitor->grid), monitor->n_superchain};

    return worst[0] <= em_r_hat_limit(monitor->stop) &&
           -worst[1] >= em_ess_limit(monitor->stop, starts);
}

/* A batch of numbers of this shard that are checked together: `n_column` of them from `first` on.
 * The chains of each are divided into n_part parts. */
typedef struct item_batch {
    int64_t first, n_column, n_row, n_part;
    /* the items of this rank; an item is a number or a part of its chains */
    int64_t own_first, own;
    const double *column; /* [own][chains][n_row] the monitor's */
} item_batch;

static item_batch batch_of(const em_monitor *monitor, int64_t first, int64_t most, int64_t n_row,
                           int64_t n_part)
{
    const int64_t n_group = em_grid_n_group(monitor->grid), group = em_grid_group(monitor->grid);
    const int64_t left = monitor->width > first ? monitor->width - first : 0;
    const int64_t n_column = left < most ? left : most, n_item = n_column * n_part;
    const int64_t own_first = em_partition_first(n_item, n_group, group);

    return (item_batch){first,
                        n_column,
                        n_row,
                        n_part,
                        first * n_part + own_first,
                        em_partition_first(n_item, n_group, group + 1) - own_first,
                        NULL};
}

/* Extracts the columns if this rank has all chains. Numbers of one cache line are copied together.
 */
static void copy_columns(const em_monitor *monitor, const item_batch *b, double *column)
{
    enum { LINE = 8 };
    const int64_t n_chain = monitor->n_local_chain, n_row = b->n_row, size = n_chain * n_row;

    for (int64_t first = 0; first < b->n_column; first += LINE) {
        const int64_t n = b->n_column - first < LINE ? b->n_column - first : LINE;
        for (int64_t c = 0; c < n_chain; c++) {
            const double *from =
                monitor->history + c * monitor->plan.n_row * monitor->width + b->first + first;
            double *to = column + first * size + c * n_row;
            for (int64_t r = 0; r < n_row; r++)
                for (int64_t k = 0; k < n; k++)
                    to[k * size + r] = from[r * monitor->width + k];
        }
    }
}

/* Packs this rank's part of the batch row by row, to be sent. */
static void copy_rows(const em_monitor *monitor, const item_batch *b, double *local)
{
    for (int64_t c = 0; c < monitor->n_local_chain; c++)
        for (int64_t r = 0; r < b->n_row; r++)
            memcpy(local + (c * b->n_row + r) * b->n_column,
                   monitor->history + (c * monitor->plan.n_row + r) * monitor->width + b->first,
                   (size_t)b->n_column * sizeof *local);
}

/* Fills in b->column, valid until the next call. Collective. */
static em_status gather_batch(em_monitor *monitor, item_batch *b)
{
    const int64_t n_local = monitor->n_local_chain, n_column = b->n_column, n_row = b->n_row;
    const int64_t n_chain = (em_grid_n_chain(monitor->grid) + b->n_part - 1) / b->n_part;
    const bool alone = em_grid_n_group(monitor->grid) == 1;
    em_status status =
        em_renew_doubles(b->own * n_chain * n_row, &monitor->n_column, &monitor->column);

    if (!status && !alone)
        status = em_renew_doubles(n_local * n_row * n_column, &monitor->n_local, &monitor->local);
    status = em_agree(status);
    b->column = monitor->column;
    if (!status && alone)
        copy_columns(monitor, b, monitor->column);
    if (!status && !alone) {
        copy_rows(monitor, b, monitor->local);
        status = em_grid_transpose(monitor->grid, n_row, n_column, b->n_part, monitor->local,
                                   monitor->column);
    }
    return status;
}

/* The number of columns of a batch: as many as fit in memory, at least one for each group, and at
 * most as many as MPI can count. The same on all ranks. */
static int64_t most_columns(const em_monitor *monitor, int64_t n_row)
{
    const int64_t n_chain = em_grid_n_chain(monitor->grid), size = n_chain * n_row;
    const int64_t room = em_grid_n_group(monitor->grid) == 1 ? OWN_BATCH : BATCH;
    const int64_t each = size > 0 && size < room ? room / size : 1;
    const int64_t fit = em_grid_n_group(monitor->grid) * each, counted = INT_MAX / n_chain;

    return fit < counted ? fit : counted > 0 ? counted : 1;
}

/* Finds the worst of this rank's numbers in a batch. The suspect, which missed the limits last
 * time, is checked first. */
static em_status worst_of(em_monitor *monitor, const item_batch *b, bool thorough, double worst[2])
{
    const int64_t size = em_grid_n_chain(monitor->grid) * b->n_row;
    const int64_t start =
        monitor->suspect >= b->own_first && monitor->suspect < b->own_first + b->own
            ? monitor->suspect - b->own_first
            : 0;
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < b->own && (thorough || i == 0 || meets(monitor, worst));
         i++) {
        const int64_t k = (start + i) % b->own;
        const int64_t number = monitor->first + (b->own_first + k) / b->n_part;
        if (number >= monitor->end)
            continue;
        status = worsen(monitor, b->n_row, b->column + k * size, worst);
        if (!meets(monitor, worst) && !thorough)
            monitor->suspect = b->own_first + k;
    }
    return status;
}

/* Finds the worst of the numbers `first` ... `end` - 1 of all shards. All ranks get it. */
static em_status check_columns(em_monitor *monitor, int64_t first, int64_t end, int64_t n_row,
                               bool thorough, double worst[2])
{
    const int64_t most = most_columns(monitor, n_row);
    em_status status = EM_OK;

    for (; !status && first < end; first += most) {
        item_batch b =
            batch_of(monitor, first, em_least(most, end - first), n_row, monitor->n_part);
        status = gather_batch(monitor, &b);
        status = status ? status : em_agree(worst_of(monitor, &b, thorough, worst));
    }
    em_grid_maximum(monitor->grid, 2, worst);
    return status;
}

/* Frees the buffers of a check, so that the run can use this memory between checks. */
static void end_check(em_monitor *monitor)
{
    em_release_all(&monitor->local, &monitor->column);
    monitor->n_local = monitor->n_column = 0;
}

em_diagnoses *em_monitor_diagnoses(em_monitor *monitor)
{
    return monitor->known;
}

em_status em_monitor_check(em_monitor *monitor, int64_t n_draw, bool thorough, bool may_end,
                           em_convergence *out)
{
    const int64_t n_row = n_draw / monitor->plan.every, all = widest(monitor);
    const int64_t n_first = monitor->n_part > 1 ? all : em_least(monitor->plan.n_parameter, all);
    const bool rule = em_has_stop_rule(monitor->stop);
    const bool ends = may_end && monitor->times_met + 1 >= monitor->stop->consecutive;
    double worst[2] = {-INFINITY, -INFINITY};
    EM_SCOPED_BY(em_release_owner) em_visits *visits = NULL;
    em_status status = gather_visits(monitor, n_row, &visits);

    monitor->end =
        thorough || ends || !monitor->stop->until_done ? INT64_MAX : monitor->plan.n_parameter;
    if (monitor->known_row != n_row)
        em_diagnoses_clear(monitor->known); /* they are of other draws */
    monitor->known_row = n_row;
    em_diag_set_visits(monitor->diag, visits);
    em_diag_set_known(monitor->diag, monitor->known);
    status = status ? status : check_columns(monitor, 0, n_first, n_row, thorough, worst);
    const bool rest = thorough || (rule && meets(monitor, worst) && monitor->end == INT64_MAX);
    if (!status && rest)
        status = check_columns(monitor, n_first, all, n_row, thorough, worst);
    end_check(monitor);
    em_diag_set_visits(monitor->diag, NULL);
    em_diag_set_known(monitor->diag, NULL);
    *out = (em_convergence){.n_draw = n_draw,
                            .thorough = thorough || (rest && meets(monitor, worst)),
                            .r_hat = isfinite(worst[0]) || worst[0] > 0 ? worst[0] : NAN,
                            .ess = isfinite(worst[1]) ? 0 - worst[1] : NAN};
    out->met = meets(monitor, worst) && !isnan(out->r_hat);
    if (!thorough)
        monitor->times_met = out->met && rule ? monitor->times_met + 1 : 0;
    out->stop = !thorough && rule && may_end && monitor->times_met >= monitor->stop->consecutive;
    return status;
}

/* Whether the draws of one number grow while its chains do not agree. */
static em_status does_grow(em_monitor *monitor, int64_t n_row, const double *draws, bool *grows)
{
    const int64_t n_chain = em_grid_n_chain(monitor->grid);
    em_diagnosis diagnosis;
    em_status status = EM_OK;

    *grows = em_grows(n_chain, n_row, draws);
    if (*grows) {
        status = em_diagnose_convergence(monitor->diag, n_chain, n_row, draws, &diagnosis);
        *grows = diagnosis.r_hat > em_r_hat_limit(monitor->stop);
    }
    return status;
}

/* Adds the results of the numbers of a batch that are assigned to this rank. */
static em_status find_modes(em_monitor *monitor, const item_batch *b, em_mode_finder *finder,
                            uint64_t *n_growing)
{
    const int64_t size = em_grid_n_chain(monitor->grid) * b->n_row;
    em_status status = EM_OK;

    for (int64_t k = 0; !status && k < b->own; k++) {
        const double *draws = b->column + k * size;
        bool grows;
        em_mode_finder_examine(finder, draws);
        status = does_grow(monitor, b->n_row, draws, &grows);
        *n_growing += grows;
    }
    return status;
}

em_status em_monitor_find_modes(em_monitor *monitor, int64_t n_draw, em_modes *modes,
                                int64_t *n_growing)
{
    const int64_t n_row = n_draw / monitor->plan.every, most = most_columns(monitor, n_row);
    const int64_t n_chain = em_grid_n_chain(monitor->grid);
    EM_SCOPED_BY(em_release_owner) em_mode_finder *finder = NULL;
    uint64_t count = 0;
    em_status status = em_agree(em_mode_finder_create(n_chain, n_row, &finder));

    *modes = (em_modes){0};
    for (int64_t first = 0; !status && n_row > 0 && first < widest(monitor); first += most) {
        item_batch b = batch_of(monitor, first, most, n_row, 1);
        status = gather_batch(monitor, &b);
        status = status ? status : em_agree(find_modes(monitor, &b, finder, &count));
    }
    end_check(monitor);
    if (!status) {
        em_grid_sum_keys(monitor->grid, em_mode_finder_width(finder), em_mode_finder_sums(finder));
        em_grid_sum_keys(monitor->grid, 1, &count);
        status = em_agree(em_mode_finder_count(finder, modes));
    }
    *n_growing = (int64_t)count;
    return status;
}
