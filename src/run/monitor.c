#include "run/monitor.h"

#include "base/memory.h"
#include "diag/diag.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

struct em_monitor {
    const em_grid *grid;
    const em_stop_options *stop;
    em_diag *diag;
    int64_t n_draw, width, n_local_chain;
    int64_t times_met; /* in a row */
    int64_t suspect;   /* the number that missed the thresholds last time, on this rank */
    double *history;   /* [n_local_chain][n_draw][width] */
};

/* Numbers exchanged at once, to bound the memory of a check. */
enum { BATCH = 1 << 22 };

double em_monitor_r_hat_limit(const em_stop_options *stop)
{
    return isnan(stop->r_hat) ? 1.01 : stop->r_hat;
}

double em_monitor_ess_limit(const em_stop_options *stop)
{
    return isnan(stop->ess) ? 400 : stop->ess;
}

em_status em_monitor_create(const em_grid *grid, const em_stop_options *stop, int64_t n_draw,
                            int64_t width, int64_t bytes, em_monitor **out)
{
    /* Counted for the fullest rank, so that all ranks watch the same numbers; by chain, not by
     * rank, the limit would let a stop rule depend on the number of ranks. */
    const int64_t fit = bytes / ((int64_t)sizeof(double) * n_draw);
    em_monitor *monitor = NULL;
    em_status status = em_allocate(1, sizeof *monitor, &monitor);

    *out = NULL;
    if (!status) {
        monitor->grid = grid;
        monitor->stop = stop;
        monitor->n_draw = n_draw;
        monitor->width = width < fit ? width : fit;
        monitor->n_local_chain = em_grid_n_local_chain(grid);
        status = em_allocate(monitor->n_local_chain * n_draw * monitor->width, sizeof(double),
                             &monitor->history);
    }
    if (!status)
        status = em_diag_create(&monitor->diag);
    status = em_agree(status);
    if (status)
        em_monitor_destroy(&monitor);
    *out = monitor;
    return status;
}

void em_monitor_destroy(em_monitor **monitor)
{
    if (*monitor) {
        em_diag_destroy(&(*monitor)->diag);
        em_release(&(*monitor)->history);
    }
    em_release(monitor);
}

int64_t em_monitor_width(const em_monitor *monitor)
{
    return monitor->width;
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
    memcpy(monitor->history + (chain * monitor->n_draw + draw) * monitor->width, value,
           (size_t)monitor->width * sizeof *value);
}

static bool is_constant(int64_t n, const double *x)
{
    for (int64_t i = 1; i < n; i++)
        if (x[i] != x[0])
            return false;
    return true;
}

/* One number's contribution to {r_hat, -ess}. Numbers that never change, the same in all chains,
 * have no R-hat and are passed over; any other NaN is as bad as can be. */
static em_status worsen(em_monitor *monitor, int64_t n_draw, const double *draws, double worst[2])
{
    const int64_t n_chain = em_grid_n_chain(monitor->grid);
    em_diagnosis diagnosis;
    em_status status;

    if (is_constant(n_chain * n_draw, draws))
        return EM_OK;
    status = em_diagnose_convergence(monitor->diag, n_chain, n_draw, draws, &diagnosis);
    if (status)
        return status;
    const double ess = fmin(diagnosis.ess_bulk, diagnosis.ess_tail);
    worst[0] = fmax(worst[0], isnan(diagnosis.r_hat) ? INFINITY : diagnosis.r_hat);
    worst[1] = fmax(worst[1], isnan(ess) ? 0 : -ess);
    return EM_OK;
}

static bool meets(const em_monitor *monitor, const double worst[2])
{
    return worst[0] <= em_monitor_r_hat_limit(monitor->stop) &&
           -worst[1] >= em_monitor_ess_limit(monitor->stop);
}

/* The worst of columns first .. first + n_column, which this rank was dealt; the suspect first. */
static em_status worst_of(em_monitor *monitor, int64_t first, int64_t n_column, int64_t n_draw,
                          const double *column, bool thorough, double worst[2])
{
    const int64_t size = em_grid_n_chain(monitor->grid) * n_draw;
    const int64_t start = monitor->suspect >= first && monitor->suspect < first + n_column
                              ? monitor->suspect - first
                              : 0;
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < n_column && (thorough || i == 0 || meets(monitor, worst));
         i++) {
        const int64_t k = (start + i) % n_column;
        status = worsen(monitor, n_draw, column + k * size, worst);
        if (!meets(monitor, worst) && !thorough)
            monitor->suspect = first + k;
    }
    return status;
}

static em_status check_batch(em_monitor *monitor, int64_t first, int64_t n_column, int64_t n_draw,
                             bool thorough, double worst[2])
{
    const int64_t n_group = em_grid_n_group(monitor->grid), group = em_grid_group(monitor->grid);
    const int64_t own_first = em_deal_first(n_column, n_group, group);
    const int64_t own = em_deal_first(n_column, n_group, group + 1) - own_first;
    const int64_t n_local = monitor->n_local_chain;
    double *local = NULL, *column = NULL;
    em_status status = em_allocate(n_local * n_draw * n_column, sizeof *local, &local);

    if (!status)
        status =
            em_allocate(own * em_grid_n_chain(monitor->grid) * n_draw, sizeof *column, &column);
    status = em_agree(status);
    for (int64_t c = 0; !status && c < n_local; c++)
        for (int64_t r = 0; r < n_draw; r++)
            memcpy(local + (c * n_draw + r) * n_column,
                   monitor->history + (c * monitor->n_draw + r) * monitor->width + first,
                   (size_t)n_column * sizeof *local);
    if (!status)
        status = em_grid_transpose(monitor->grid, n_draw, n_column, local, column);
    if (!status)
        status =
            em_agree(worst_of(monitor, first + own_first, own, n_draw, column, thorough, worst));
    em_release(&local);
    em_release(&column);
    return status;
}

em_status em_monitor_check(em_monitor *monitor, int64_t n_draw, bool thorough, em_convergence *out)
{
    const int64_t rows = em_grid_n_chain(monitor->grid) * n_draw;
    const int64_t batch = rows < BATCH ? BATCH / rows : 1;
    const bool rule = !isnan(monitor->stop->r_hat) || !isnan(monitor->stop->ess);
    double worst[2] = {-INFINITY, -INFINITY};
    em_status status = EM_OK;

    for (int64_t first = 0; !status && first < monitor->width; first += batch) {
        const int64_t left = monitor->width - first;
        status = check_batch(monitor, first, left < batch ? left : batch, n_draw, thorough, worst);
    }
    em_grid_maximum(monitor->grid, 2, worst);
    *out = (em_convergence){.n_draw = n_draw,
                            .thorough = thorough || meets(monitor, worst),
                            .r_hat = isfinite(worst[0]) || worst[0] > 0 ? worst[0] : NAN,
                            .ess = isfinite(worst[1]) ? -worst[1] : NAN};
    out->met = meets(monitor, worst) && !isnan(out->r_hat);
    monitor->times_met = out->met ? monitor->times_met + 1 : 0;
    out->stop = rule && monitor->times_met >= monitor->stop->consecutive;
    return status;
}
