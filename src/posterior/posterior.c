#include "posterior/posterior.h"

#include "base/fault.h"
#include "base/memory.h"
#include "math/binned.h"
#include "math/rng.h"

#include <string.h>

/*
 * Sums over the parts of the data, on all shards, that depend neither on their order nor on how
 * they are dealt (math/binned.h). The last of the n numbers counts the shards that failed, so that
 * one message carries both.
 */
typedef struct sums {
    int64_t n;    /* a multiple of 8 */
    double *part; /* [n] what one part adds; in the end the sums */
    double *bins; /* [em_binned_size(n)] */
} sums;

struct em_posterior {
    em_model *model;
    const em_grid *grid;
    int64_t evaluations;
    sums likelihood; /* room for [n_chain][stride] gradients, then [n_chain] values */
    sums metric;     /* room for a metric and its derivative, since they were asked for */
    int64_t *chosen; /* [em_integers_room(rows.total)] a minibatch */
    uint64_t *taken; /* [rows.total / 64 + 1] bits: those already in it */
    /* Where minibatches are summed part by part: their rows in the order of the parts, and how many
     * rows are in the parts up to each. */
    int64_t *grouped, *end;
    /* Of a part of the parameters, else NULL: */
    em_posterior *whole;
    const em_parameters *block;
    const double *held; /* [n_chain][stride] where the chains stand, from first_chain on */
    int64_t first_chain;
    double *theta, *gradient; /* [n_chain][stride] what is asked of the whole, and its answer */
};

/* ---------------------------------------------------------------- sums over parts and shards */

static em_status sums_create(int64_t n, sums *out)
{
    em_status status;

    out->n = em_stride(n + 1);
    status = em_allocate(out->n, sizeof(double), &out->part);
    if (!status)
        status = em_allocate_doubles(em_binned_size(out->n), &out->bins);
    return status;
}

static void sums_destroy(sums *s)
{
    em_release(&s->part);
    em_release(&s->bins);
}

/* The first n numbers of the room that `whole` has, cleared; no bins for the sum of one part. */
static sums sums_begin(const sums *whole, int64_t n, bool is_one)
{
    const sums s = {em_stride(n + 1), whole->part, whole->bins};

    memset(s.part, 0, (size_t)s.n * sizeof *s.part);
    if (!is_one)
        em_binned_clear(s.n, s.bins);
    return s;
}

/* Leaves the sums of all shards (grid NULL: of this one) in s->part; all of them fail when one has.
 * Collective over the ranks of a group. */
static em_status sums_end(const sums *s, const em_grid *grid, em_status status)
{
    s->part[s->n - 1] = status < 0;
    em_binned_add(s->n, s->part, s->bins);
    if (grid)
        em_grid_sum_binned(grid, s->n, s->bins);
    em_binned_values(s->n, s->bins, s->part);
    return s->part[s->n - 1] != 0 ? em_grid_share_failure(grid, status) : EM_OK;
}

/* What sums_end leaves where all data are one part, on one rank. */
static em_status sums_of_one(const sums *s, em_status status)
{
    em_binned_single(s->n, s->part);
    return status < 0 ? status : EM_OK;
}

static bool is_one_part(const em_posterior *posterior)
{
    return em_grid_n_shard(posterior->grid) == 1 &&
           posterior->model->rows.total <= posterior->model->rows.part;
}

/* The part of this shard that begins at `first`. */
static em_rows part_at(const em_share *share, int64_t first)
{
    const int64_t left = share->count - first;

    return (em_rows){.count = left < share->part ? left : share->part, .first = first};
}

/* ---------------------------------------------------------------- what a model keeps of all rows
 */

static em_status summarise_piece(em_model *model, const em_grid *grid, int64_t piece,
                                 const sums *all)
{
    const sums s = sums_begin(all, model->piece_size, false);
    em_status status;

    for (int64_t first = 0; first < model->rows.count; first += model->rows.part) {
        const em_rows rows = part_at(&model->rows, first);
        model->ops->add_summary(model, piece, &rows, s.part);
        em_binned_add(s.n, s.part, s.bins);
    }
    status = sums_end(&s, grid, EM_OK);
    if (!status)
        model->ops->take_summary(model, piece, s.part);
    return status;
}

/* What a model of somebody else may have wrong. */
static em_status check_share(const em_model *model)
{
    const em_share *own = &model->rows;
    const int64_t most = EM_BINNED_TERMS / 2 * own->part;

    if (own->total == 0 || model->ops->finish_likelihood ||
        (own->part > 0 && own->total <= most && own->first >= 0 && own->count >= 0 &&
         own->first + own->count <= own->total && (own->count == 0 || own->first % own->part == 0)))
        return EM_OK;
    return em_fail(
        EM_EMODEL,
        "model %s: a shard holds %lld observations from number %lld of %lld, in parts of "
        "%lld: expected whole parts, %d at most",
        model->ops->name, (long long)own->count, (long long)own->first, (long long)own->total,
        (long long)own->part, EM_BINNED_TERMS / 2);
}

em_status em_model_summarise(em_model *model, const em_grid *grid)
{
    sums s = {0, NULL, NULL};
    em_status status = check_share(model);

    if (!status && model->n_piece > 0)
        status = sums_create(model->piece_size, &s);
    if (grid)
        status = em_grid_share_failure(grid, status);
    for (int64_t piece = 0; !status && piece < model->n_piece; piece++)
        status = summarise_piece(model, grid, piece, &s);
    sums_destroy(&s);
    return status;
}

/* ---------------------------------------------------------------- the posterior */

em_status em_posterior_create(em_model *model, const em_grid *grid, int64_t n_chain,
                              em_posterior **out)
{
    const int64_t n = model->rows.total;
    em_posterior *posterior = NULL;
    em_status status = em_allocate(1, sizeof *posterior, &posterior);

    *out = NULL;
    if (!status)
        status = sums_create(n_chain * (em_stride(model->dim) + 1), &posterior->likelihood);
    if (!status)
        status = em_allocate(em_integers_room(n), sizeof(int64_t), &posterior->chosen);
    if (!status)
        status = em_allocate(n / 64 + 1, sizeof(uint64_t), &posterior->taken);
    if (status) {
        em_posterior_destroy(&posterior);
        return status;
    }
    posterior->model = model;
    posterior->grid = grid;
    *out = posterior;
    return EM_OK;
}

void em_posterior_destroy(em_posterior **posterior)
{
    if (*posterior) {
        sums_destroy(&(*posterior)->likelihood);
        sums_destroy(&(*posterior)->metric);
        em_release(&(*posterior)->chosen);
        em_release(&(*posterior)->taken);
        em_release(&(*posterior)->grouped);
        em_release(&(*posterior)->end);
        em_release(&(*posterior)->theta);
        em_release(&(*posterior)->gradient);
    }
    em_release(posterior);
}

em_status em_posterior_create_part(em_posterior *whole, const em_parameters *block, int64_t n_chain,
                                   int64_t first_chain, const double *theta, em_posterior **out)
{
    const int64_t panel = n_chain * em_stride(whole->model->dim);
    em_posterior *part = NULL;
    em_status status = em_allocate(1, sizeof *part, &part);

    *out = NULL;
    if (!status)
        status = em_allocate(panel, sizeof(double), &part->theta);
    if (!status)
        status = em_allocate(panel, sizeof(double), &part->gradient);
    if (status) {
        em_posterior_destroy(&part);
        return status;
    }
    part->model = whole->model;
    part->grid = whole->grid;
    part->whole = whole;
    part->block = block;
    part->first_chain = first_chain;
    part->held = theta;
    *out = part;
    return EM_OK;
}

/* Rows [n][stride] of the block's parameters among all others, as their chains hold them. */
static void widen(const em_posterior *part, int64_t n, int64_t stride, const int64_t *chain,
                  const double *theta)
{
    const int64_t wide = em_stride(part->model->dim);

    for (int64_t c = 0; c < n; c++) {
        double *row = part->theta + c * wide;
        memcpy(row, part->held + (chain[c] - part->first_chain) * wide, (size_t)wide * sizeof *row);
        memcpy(row + part->block->first, theta + c * stride,
               (size_t)part->block->count * sizeof *row);
    }
}

/* The block's columns of all parameters, into rows [n][stride] whose padding is 0. */
static void narrow(const em_posterior *part, int64_t n, const double *wide, int64_t stride,
                   double *out)
{
    const int64_t count = part->block->count, width = em_stride(part->model->dim);

    for (int64_t c = 0; c < n; c++) {
        memcpy(out + c * stride, wide + c * width + part->block->first,
               (size_t)count * sizeof *out);
        memset(out + c * stride + count, 0, (size_t)(stride - count) * sizeof *out);
    }
}

/* What is asked of the whole for a question about the part. */
static em_query widen_query(const em_posterior *part, const em_query *query)
{
    em_query wide = *query;

    widen(part, query->n_chain, query->stride, query->chain, query->theta);
    wide.stride = em_stride(part->model->dim);
    wide.theta = part->theta;
    wide.gradient = part->gradient;
    wide.block = part->block;
    return wide;
}

bool em_model_has_likelihood(const em_model *model)
{
    return model->rows.total > 0 && model->ops->add_likelihood;
}

static em_status add_prior(em_posterior *posterior, const em_query *query)
{
    if (em_fault("model"))
        return em_fail(EM_EMODEL, "model %s failed", posterior->model->ops->name);
    posterior->evaluations += query->n_chain;
    memset(query->log_density, 0, (size_t)query->n_chain * sizeof(double));
    memset(query->gradient, 0, (size_t)(query->n_chain * query->stride) * sizeof(double));
    return posterior->model->ops->add_prior(posterior->model, query);
}

static void add_sums(const em_posterior *posterior, double scale, const em_query *query)
{
    const int64_t n = query->n_chain * query->stride;
    const double *sum = posterior->likelihood.part;

    for (int64_t i = 0; i < n; i++)
        query->gradient[i] += scale * sum[i];
    for (int64_t c = 0; c < query->n_chain; c++)
        query->log_density[c] += scale * sum[n + c];
}

/* The same question, whose answer is added to gradients [n_chain][stride] and values [n_chain]. */
static em_query into(const em_query *query, double *gradient, double *value)
{
    em_query other = *query;

    other.gradient = gradient;
    other.log_density = value;
    return other;
}

/* The likelihood of every part of this shard, by itself. */
static em_status add_parts(em_posterior *posterior, em_status status, const em_query *query,
                           const sums *s)
{
    em_model *model = posterior->model;
    em_query part = into(query, s->part, s->part + query->n_chain * query->stride);

    for (int64_t first = 0; status >= 0 && first < model->rows.count; first += model->rows.part) {
        part.rows = part_at(&model->rows, first);
        status = model->ops->add_likelihood(model, &part);
        if (!is_one_part(posterior))
            em_binned_add(s->n, s->part, s->bins);
    }
    return status;
}

/* A model with a summary knows the likelihood of all observations, on every shard. */
static em_status add_whole(em_posterior *posterior, const em_query *query)
{
    em_query whole = *query;

    whole.rows = (em_rows){.all = true};
    const em_status status = posterior->model->ops->add_likelihood(posterior->model, &whole);
    return status < 0 ? status : EM_OK;
}

/* The likelihood made of the counts of all shards, which failed together or not. */
static em_status end_counts(const em_posterior *posterior, em_status status, const em_query *of)
{
    double *sum = posterior->likelihood.part;
    const int64_t size = of->n_chain * (of->stride + 1);

    sum[size] = status < 0;
    em_grid_sum_shards(posterior->grid, size + 1, sum);
    if (sum[size] != 0)
        return em_grid_share_failure(posterior->grid, status);
    if (posterior->model->ops->finish_likelihood)
        posterior->model->ops->finish_likelihood(posterior->model, of);
    return EM_OK;
}

/* Of all rows, for a model whose likelihood depends on counts. */
static em_status sum_all_counts(em_posterior *posterior, em_status status, const em_query *query)
{
    const int64_t n = query->n_chain * query->stride, size = n + query->n_chain;
    double *sum = posterior->likelihood.part;
    em_query all = into(query, sum, sum + n);

    memset(sum, 0, (size_t)size * sizeof *sum);
    all.rows = (em_rows){.count = posterior->model->rows.count};
    if (status >= 0)
        status = posterior->model->ops->add_likelihood(posterior->model, &all);
    return end_counts(posterior, status, &all);
}

/* Prior and likelihood of all rows. */
static em_status evaluate(em_posterior *posterior, const em_query *query)
{
    const em_model *model = posterior->model;
    em_status status = add_prior(posterior, query);

    if (!em_model_has_likelihood(model))
        return status < 0 ? status : EM_OK;
    if (model->n_piece > 0)
        return status < 0 ? status : add_whole(posterior, query);
    if (model->ops->finish_likelihood) {
        status = sum_all_counts(posterior, status, query);
        if (!status)
            add_sums(posterior, 1, query);
        return status;
    }
    const bool is_one = is_one_part(posterior);
    const sums s = sums_begin(&posterior->likelihood, query->n_chain * (query->stride + 1), is_one);
    status = add_parts(posterior, status, query, &s);
    status = is_one ? sums_of_one(&s, status) : sums_end(&s, posterior->grid, status);
    if (!status)
        add_sums(posterior, 1, query);
    return status;
}

em_status em_posterior_evaluate(em_posterior *posterior, const em_query *query)
{
    if (posterior->whole) {
        const em_query wide = widen_query(posterior, query);
        const em_status status = em_posterior_evaluate(posterior->whole, &wide);
        narrow(posterior, query->n_chain, posterior->gradient, query->stride, query->gradient);
        return status;
    }
    if (posterior->model->estimates)
        return em_fail(EM_ECONFIG, "model %s estimates its density, of which an exact one is asked",
                       posterior->model->ops->name);
    return evaluate(posterior, query);
}

/* A distinct one of 0 .. last for each of the `count` last numbers (Floyd's sampling): all subsets
 * of that size are equally likely. */
static void choose_distinct(em_posterior *posterior, const em_stream *stream, int64_t count,
                            int64_t n)
{
    em_uniforms_below(stream, count, (uint64_t)(n - count) + 1, 1, posterior->chosen);
    for (int64_t k = 0; k < count; k++) {
        int64_t row = posterior->chosen[k];
        if (posterior->taken[row / 64] >> (row % 64) & 1)
            row = n - count + k;
        posterior->taken[row / 64] |= UINT64_C(1) << (row % 64);
        posterior->chosen[k] = row;
    }
    for (int64_t k = 0; k < count; k++)
        posterior->taken[posterior->chosen[k] / 64] = 0;
}

/* Of the chosen rows those that this shard holds, by its own numbers; how many there are. */
static int64_t keep_own(em_posterior *posterior, int64_t count)
{
    const em_share *own = &posterior->model->rows;
    int64_t kept = 0;

    for (int64_t k = 0; k < count; k++) {
        posterior->chosen[kept] = posterior->chosen[k] - own->first;
        kept += posterior->chosen[kept] >= 0 && posterior->chosen[kept] < own->count;
    }
    return kept;
}

/*
 * The minibatch of chain c of the panel: rows of all data, chosen by the chain's own numbers, so
 * that every shard knows the whole set, and it is the same however rows are dealt. Returns the
 * number of its rows that are here.
 */
static int64_t choose(em_posterior *posterior, const em_minibatch *minibatch, const em_query *query,
                      int64_t c)
{
    const int64_t n = posterior->model->rows.total, count = minibatch->size;
    const em_draw draw = em_query_draw(query, c);
    const em_stream stream = {draw.seed, (uint64_t)draw.chain, (uint64_t)draw.iteration,
                              EM_RNG_MINIBATCH};

    if (minibatch->replacement)
        em_uniforms_below(&stream, count, (uint64_t)n, 0, posterior->chosen);
    else
        choose_distinct(posterior, &stream, count, n);
    return em_grid_n_shard(posterior->grid) == 1 ? count : keep_own(posterior, count);
}

/* The minibatches of all chains at once: fast, but added in an order that depends on the number of
 * shards, where they are not counts. */
static em_status sum_chosen(em_posterior *posterior, em_status status,
                            const em_minibatch *minibatch, const em_query *query)
{
    em_model *model = posterior->model;
    const int64_t n = query->n_chain * query->stride, size = n + query->n_chain;
    double *sum = posterior->likelihood.part;
    const em_query all = into(query, sum, sum + n);

    memset(sum, 0, (size_t)size * sizeof *sum);
    for (int64_t c = 0; status >= 0 && c < query->n_chain; c++) {
        em_query one = em_query_panel(&all, c, 1);
        one.rows =
            (em_rows){.count = choose(posterior, minibatch, query, c), .index = posterior->chosen};
        if (one.rows.count > 0)
            status = model->ops->add_likelihood(model, &one);
    }
    return end_counts(posterior, status, &all);
}

/* Puts the chosen rows into the order of the parts; within a part they keep theirs, which is the
 * same on any number of shards. */
static void group_by_part(em_posterior *posterior, int64_t count)
{
    const em_share *own = &posterior->model->rows;
    const int64_t n_part = (own->count + own->part - 1) / own->part;
    int64_t *end = posterior->end;

    memset(end, 0, (size_t)(n_part + 1) * sizeof *end);
    for (int64_t k = 0; k < count; k++)
        end[posterior->chosen[k] / own->part + 1]++;
    for (int64_t p = 1; p <= n_part; p++)
        end[p] += end[p - 1]; /* so far, where the next part begins */
    for (int64_t k = 0; k < count; k++)
        posterior->grouped[end[posterior->chosen[k] / own->part]++] = posterior->chosen[k];
}

/* The minibatch of chain c of the panel, part by part. */
static em_status add_chosen_parts(em_posterior *posterior, const em_minibatch *minibatch,
                                  const em_query *query, int64_t c, const sums *s)
{
    em_model *model = posterior->model;
    const int64_t n = query->n_chain * query->stride, row = c * query->stride;
    const int64_t values = n + c / 8 * 8, count = choose(posterior, minibatch, query, c);
    const em_query all = into(query, s->part, s->part + n);
    em_query one = em_query_panel(&all, c, 1);
    em_status status = EM_OK;

    group_by_part(posterior, count);
    for (int64_t first = 0, p = 0; status >= 0 && first < count; first = posterior->end[p++]) {
        one.rows =
            (em_rows){.count = posterior->end[p] - first, .index = posterior->grouped + first};
        if (one.rows.count == 0)
            continue;
        status = model->ops->add_likelihood(model, &one);
        em_binned_add(query->stride, s->part + row, s->bins + em_binned_size(row));
        em_binned_add(8, s->part + values, s->bins + em_binned_size(values));
    }
    return status;
}

static em_status sum_chosen_parts(em_posterior *posterior, em_status status,
                                  const em_minibatch *minibatch, const em_query *query)
{
    const sums s = sums_begin(&posterior->likelihood, query->n_chain * (query->stride + 1), false);

    for (int64_t c = 0; status >= 0 && c < query->n_chain; c++)
        status = add_chosen_parts(posterior, minibatch, query, c, &s);
    return sums_end(&s, posterior->grid, status);
}

em_status em_posterior_sum_by_parts(em_posterior *posterior)
{
    const em_share *own = &posterior->model->rows;
    em_status status;

    if (posterior->model->ops->finish_likelihood)
        return EM_OK;
    status = em_allocate(em_integers_room(own->total), sizeof(int64_t), &posterior->grouped);

    if (!status)
        status = em_allocate(own->count / own->part + 2, sizeof(int64_t), &posterior->end);
    return status;
}

em_status em_posterior_estimate(em_posterior *posterior, const em_minibatch *minibatch,
                                const em_query *query)
{
    const int64_t n = posterior->model->rows.total;
    em_status status;

    if (posterior->whole) {
        const em_query wide = widen_query(posterior, query);
        status = em_posterior_estimate(posterior->whole, minibatch, &wide);
        narrow(posterior, query->n_chain, posterior->gradient, query->stride, query->gradient);
        return status;
    }
    if (minibatch->size >= n || !em_model_has_likelihood(posterior->model))
        return evaluate(posterior, query);
    status = add_prior(posterior, query);
    status = posterior->grouped ? sum_chosen_parts(posterior, status, minibatch, query)
                                : sum_chosen(posterior, status, minibatch, query);
    if (!status)
        add_sums(posterior, (double)n / (double)minibatch->size, query);
    return status;
}

/* ---------------------------------------------------------------- the model's own transition */

static em_status sum_over_shards(void *context, em_status own, int64_t n, int64_t *x)
{
    const em_grid *grid = context;
    int64_t n_failed = own < 0;

    em_grid_sum_integers(grid, 1, &n_failed);
    if (n_failed > 0)
        return em_grid_share_failure(grid, own);
    em_grid_sum_integers(grid, n, x);
    return EM_OK;
}

em_status em_posterior_update(em_posterior *posterior, const em_update *update)
{
    const em_shards shards = {(void *)posterior->grid, sum_over_shards};
    em_update asked = *update;
    em_status status = EM_OK;

    if (posterior->whole) {
        widen(posterior, update->n_chain, update->stride, update->chain, update->theta);
        asked.stride = em_stride(posterior->model->dim);
        asked.theta = posterior->theta;
        asked.block = posterior->block;
        status = em_posterior_update(posterior->whole, &asked);
        narrow(posterior, update->n_chain, posterior->theta, update->stride, update->theta);
        return status;
    }
    asked.shards = &shards;
    if (em_fault("model"))
        status =
            shards.sum(shards.context,
                       em_fail(EM_EMODEL, "model %s failed", posterior->model->ops->name), 0, NULL);
    if (!status)
        status = posterior->model->ops->update(posterior->model, &asked);
    return sum_over_shards(shards.context, status, 0, NULL);
}

em_status em_posterior_watch(em_posterior *posterior, const em_update *after)
{
    const em_shards shards = {(void *)posterior->grid, sum_over_shards};
    em_update asked = *after;

    if (!posterior->model->ops->watch)
        return EM_OK;
    asked.shards = &shards;
    return sum_over_shards(shards.context, posterior->model->ops->watch(posterior->model, &asked),
                           0, NULL);
}

/* ---------------------------------------------------------------- the metric */

static void mirror(int64_t n, double *matrix)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            matrix[j * n + i] = matrix[i * n + j];
}

/* Of the observations of this shard, part by part; a summary answers once, on the first shard. */
static em_status sum_metric(em_posterior *posterior, em_status status, const double *theta,
                            double *derivative, const sums *s)
{
    em_model *model = posterior->model;
    const bool is_whole = model->n_piece > 0, is_first = em_grid_shard(posterior->grid) == 0;
    const int64_t count = is_whole ? is_first : model->rows.count;

    for (int64_t first = 0; status >= 0 && first < count; first += model->rows.part) {
        const em_rows rows = is_whole ? (em_rows){.all = true} : part_at(&model->rows, first);
        status = model->ops->add_metric(model, false, &rows, theta, s->part, derivative);
        em_binned_add(s->n, s->part, s->bins);
    }
    return sums_end(s, posterior->grid, status);
}

/* Adds the metric of the observations to that of the prior. */
static em_status add_metric_of_rows(em_posterior *posterior, em_status status, const double *theta,
                                    double *metric, double *derivative)
{
    const int64_t n = posterior->model->dim, square = n * n, cube = derivative ? n * square : 0;

    if (!posterior->metric.part && !status)
        status = sums_create(square + n * square, &posterior->metric);
    if (!posterior->metric.part)
        return status;
    const sums s = sums_begin(&posterior->metric, square + cube, false);
    status = sum_metric(posterior, status, theta, derivative ? s.part + square : NULL, &s);
    for (int64_t i = 0; i < square; i++)
        metric[i] += s.part[i];
    for (int64_t i = 0; i < cube; i++)
        derivative[i] += s.part[square + i];
    return status;
}

em_status em_posterior_metric(em_posterior *posterior, const double *theta, double *metric,
                              double *derivative)
{
    em_model *model = posterior->model;
    const int64_t n = model->dim, square = n * n, cube = derivative ? n * square : 0;
    em_status status;

    if (posterior->whole)
        return em_fail(EM_ECONFIG, "the metric of model %s is asked of a block of its parameters",
                       model->ops->name);
    if (!model->ops->add_metric)
        return em_fail(EM_ECONFIG, "model %s has no metric, which Riemannian samplers need",
                       model->ops->name);
    memset(metric, 0, (size_t)square * sizeof *metric);
    if (derivative)
        memset(derivative, 0, (size_t)cube * sizeof *derivative);
    status = model->ops->add_metric(model, true, NULL, theta, metric, derivative);
    if (em_model_has_likelihood(model))
        status = add_metric_of_rows(posterior, status, theta, metric, derivative);
    mirror(n, metric);
    for (int64_t k = 0; k < cube; k += square)
        mirror(n, derivative + k);
    return status < 0 ? status : EM_OK;
}

const em_model *em_posterior_model(const em_posterior *posterior)
{
    return posterior->model;
}

int64_t em_posterior_evaluations(const em_posterior *posterior)
{
    return posterior->evaluations;
}
