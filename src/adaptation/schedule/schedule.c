#include "adaptation/schedule/schedule.h"

#include "base/memory.h"

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Writes the ends of the windows up to `last` into `out` and returns how many; NULL: only counts.
 */
static int64_t lay_windows(const em_schedule *schedule, int64_t size, int64_t *out)
{
    int64_t count = 0;

    for (int64_t end = schedule->first; end < schedule->last; size *= 2) {
        end += size;
        if (end + 2 * size > schedule->last)
            end = schedule->last;
        if (out)
            out[count] = end;
        count++;
    }
    return count;
}

em_status em_schedule_create(int64_t warmup, int64_t adapt_every, int64_t init_buffer,
                             int64_t term_buffer, int64_t s_count, int64_t n_chain,
                             em_schedule *out)
{
    const int64_t size = (s_count + n_chain - 1) / n_chain;
    em_status status;

    if (init_buffer == INT64_MIN)
        init_buffer = at_most(75, warmup * 15 / 100);
    if (term_buffer == INT64_MIN)
        term_buffer = at_most(50, warmup / 10);
    *out = (em_schedule){.warmup = warmup, .adapt_every = adapt_every};
    out->first = at_most(init_buffer, warmup);
    out->last = warmup - at_most(term_buffer, warmup - out->first);
    out->n_window = lay_windows(out, size, NULL);
    status = em_allocate(out->n_window, sizeof *out->window_end, &out->window_end);
    if (!status)
        lay_windows(out, size, out->window_end);
    return status;
}

void em_schedule_destroy(em_schedule *schedule)
{
    em_release(&schedule->window_end);
}

bool em_schedule_window_ends(const em_schedule *schedule, int64_t n)
{
    for (int64_t i = 0; i < schedule->n_window; i++)
        if (schedule->window_end[i] == n)
            return true;
    return false;
}

int64_t em_schedule_last_window(const em_schedule *schedule, int64_t n_chain)
{
    const int64_t n = schedule->n_window;

    if (n == 0)
        return 0;
    return n_chain *
           (schedule->window_end[n - 1] - (n > 1 ? schedule->window_end[n - 2] : schedule->first));
}
