/* The mass from the later half of a window, whose sums are kept by segments. */
#include "base/memory.h"
#include "exchange/engine.h"
#include "par/world.h"

#include <string.h>

/* out[n_local_chain][n_accumulator] = the sums over the later half, of chains that are not flagged.
 * Local. */
static void add_later_half(const em_adapt *adapt, int64_t done, double *out)
{
    const em_course *course = &adapt->course;
    const int64_t first_chain = em_grid_first_chain(adapt->grid), n = adapt->n_accumulator;
    const int64_t from = em_course_later_half(done);

    memset(out, 0, (size_t)(adapt->n_local_chain * n) * sizeof *out);
    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        for (int64_t k = 0; !course->flagged[first_chain + c] && k <= course->segment; k++) {
            const double *x = em_accumulators(adapt, c, k);
            for (int64_t i = 0; course->segment_from[k] >= from && i < n; i++)
                out[c * n + i] += x[i];
        }
}

/* What is measured from the centre follows it to where publish has moved it: the mean of the pooled
 * positions. Local. */
static void recentre(em_adapt *adapt)
{
    const double n = adapt->pooled[0], *position = adapt->pooled + adapt->n_estimator;

    for (int64_t i = 0; i < adapt->dim; i++)
        adapt->sample[i] = position[i] / n;
    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        for (int64_t k = 0; k <= adapt->course.segment; k++) {
            double *x = em_accumulators(adapt, c, k);
            for (int64_t i = 0; i < adapt->dim; i++)
                x[adapt->n_estimator + i] -= x[0] * adapt->sample[i];
            em_estimator_recentre(adapt->estimator, &adapt->form, adapt->sample, x);
        }
}

/* The mass from the sums over the later half, and a step size for it. Collective. */
em_status em_learn_from_half(em_adapt *adapt, int64_t done)
{
    em_pool *pool = adapt->pools;
    double *half = NULL;
    bool refused = false;
    em_status status =
        em_agree(em_allocate(adapt->n_local_chain * adapt->n_accumulator, sizeof *half, &half));

    if (!status) {
        add_later_half(adapt, done, half);
        adapt->s_count = em_grid_n_chain(adapt->grid) * (done - em_course_later_half(done));
        status = em_pooled_m_step(adapt, half, done, &refused);
    }
    if (!status && !refused) {
        recentre(adapt);
        if (adapt->adapts_step)
            em_dual_averaging_start(&pool->averaging, pool->step_size, 2);
    }
    em_release(&half);
    return status;
}

/* Forgets the segments that windows to come do not look back on. Local. */
void em_drop_segments(em_adapt *adapt)
{
    em_course *course = &adapt->course;
    const int64_t from = em_course_later_half(course->window), size = adapt->n_accumulator;
    int64_t first = 0;

    while (first < course->segment && course->segment_from[first] < from)
        first++;
    course->segment -= first;
    memmove(course->segment_from, course->segment_from + first,
            (size_t)(course->segment + 1) * sizeof *course->segment_from);
    for (int64_t c = 0; first > 0 && c < adapt->n_local_chain; c++) {
        memmove(em_accumulators(adapt, c, 0), em_accumulators(adapt, c, first),
                (size_t)((course->segment + 1) * size) * sizeof(double));
        memset(em_accumulators(adapt, c, course->segment + 1), 0,
               (size_t)((adapt->n_segment - course->segment - 1) * size) * sizeof(double));
    }
}
