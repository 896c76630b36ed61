/* Computes the summary of all rows that a model may have. */
#include "base/memory.h"
#include "emass/model/summary.h"
#include "math/binned.h"
#include "posterior/inside.h"

static em_status summarise_chunk(em_model *model, const em_grid *grid, int64_t chunk,
                                 const em_sums *all)
{
    const em_sums s = em_sums_begin(all, model->chunk_size, false);

    for (int64_t first = 0; first < model->rows.count; first += model->rows.part) {
        const em_rows rows = em_part_at(&model->rows, first);
        model->ops->summary->add(model, chunk, &rows, s.part);
        em_binned_add(s.n, s.part, s.bins);
    }
    em_status status = em_sums_end(&s, grid, EM_OK);
    if (!status)
        model->ops->summary->take(model, chunk, s.part);
    return status;
}

/* Checks the division of the data over shards, which may be wrong in a model by another author. */
static em_status check_share(const em_model *model)
{
    const em_share *own = &model->rows;
    const int64_t most = EM_BINNED_TERMS / 2 * own->part;

    if (own->total == 0 || em_model_finishes_counts(model) ||
        (own->part > 0 && own->total <= most && own->first >= 0 && own->count >= 0 &&
         own->first + own->count <= own->total && (own->count == 0 || own->first % own->part == 0)))
        return EM_OK;
    return em_fail(EM_EMODEL,
                   "model %s: a shard holds %lld observations from number %lld of %lld, in parts "
                   "of %lld: expected whole parts, %d at most",
                   model->ops->name, (long long)own->count, (long long)own->first,
                   (long long)own->total, (long long)own->part, EM_BINNED_TERMS / 2);
}

em_status em_model_summarise(em_model *model, const em_grid *grid)
{
    EM_SCOPED_BY(em_sums_release) em_sums s = {0, NULL, NULL};
    em_status status = check_share(model);

    if (!status && model->n_chunk > 0)
        status = em_sums_create(model->chunk_size, &s);
    if (grid)
        status = em_grid_share_failure(grid, status);
    for (int64_t chunk = 0; !status && chunk < model->n_chunk; chunk++)
        status = summarise_chunk(model, grid, chunk, &s);
    return status;
}
